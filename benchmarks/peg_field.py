"""A snake that crawls among pegs, ours and MuJoCo's: the scene of the ``substeps_pegs`` rows of throughput.py.

Pegs of radius 4 cm stand on a staggered lattice; the snake starts stretched in a lane and winds forward in a wave wide
enough to push itself off the pegs. Worlds differ in the phase of the wave. Every ``RUN_S`` seconds all start again, so
that the snake is always among the pegs.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from mujoco_chain import MujocoChain

from snake_gym.obstacles.grid import FieldBounds, empty_arrays, write_world
from snake_gym.obstacles.shapes import Circle, features
from snake_gym.physics.state import Obstacles
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spec import ContactModel, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

PEG_RADIUS_M = 0.04
SPACING_M = (0.30, 0.24)
RUN_S = 5.0
DT_S = 0.001
PER_CALL = 20
AMPLITUDE_RAD, FREQUENCY_RAD_S, SHIFT_RAD = 0.5, 2.0, 0.7
SKIN_M = 0.05
N_PHASES = 16


def lay_pegs(columns: int, rows: int) -> np.ndarray:
    """Centres and radii (O, 3) [m]; the lane y = 0 is free."""
    x = SPACING_M[0] * (np.arange(columns) - 0.35 * columns)
    y = SPACING_M[1] * (np.arange(rows) - rows / 2 + 0.5)
    pegs = [(px + 0.5 * SPACING_M[0] * (row % 2), py, PEG_RADIUS_M) for row, py in enumerate(y) for px in x]
    return np.array(pegs)


def pegs_as_obstacles(pegs: np.ndarray, n_worlds: int, spec: RobotSpec) -> Obstacles:
    rows = features([Circle(*peg) for peg in pegs.tolist()])
    reach = float((spec.links("link_half_length_m") + spec.links("link_radius_m")).max()) + SKIN_M
    extent = float(np.ptp(pegs[:, :2], axis=0).max()) + 2 * PEG_RADIUS_M
    arrays = empty_arrays(n_worlds, FieldBounds(len(rows), extent, 0.0, PEG_RADIUS_M), reach, SKIN_M)
    for world in range(n_worlds):
        write_world(arrays, world, rows, reach)
    return arrays


def wave(spec: RobotSpec, phase: np.ndarray, time_s: float) -> np.ndarray:
    """Joint references (W, J) [rad]."""
    return AMPLITUDE_RAD * np.sin(FREQUENCY_RAD_S * time_s + phase[:, None] + SHIFT_RAD * np.arange(spec.n_joints))


class OurCrawl:
    """``n_worlds`` of our robots in the field; counts their contacts."""

    def __init__(self, pegs: np.ndarray, n_worlds: int, n_threads: int, model: ContactModel = "stiff", links: int = 10):
        self.spec = replace(RESILIENT_SERVO, n_links=links, sim_dt_s=DT_S, control_dt_s=PER_CALL * DT_S)
        self.spec = replace(self.spec, contact=replace(self.spec.contact, model=model))
        self.robot = SimulatedRobot(
            self.spec, n_worlds, n_threads, obstacles=pegs_as_obstacles(pegs, n_worlds, self.spec)
        )
        self._phase = 2.0 * math.pi * np.arange(n_worlds) / n_worlds
        self.calls_per_run = round(RUN_S / (PER_CALL * DT_S))
        self._call = 0
        self._references = [wave(self.spec, self._phase, k * PER_CALL * DT_S) for k in range(self.calls_per_run)]
        self.contacts: list[float] = []

    def restart(self) -> None:
        """The next call begins a run."""
        self._call = 0

    def run(self, calls: int) -> None:
        """``calls`` times PER_CALL steps of all worlds."""
        for _ in range(calls):
            if self._call == 0:
                w = self.robot.n_worlds
                middle = np.tile([self.spec.length_m * (0.5 - 0.5 / self.spec.n_links), 0.0], (w, 1))
                self.robot.set_shape(np.zeros((w, self.spec.n_joints)), np.zeros(w), middle)
            self.robot.step(self._references[self._call])
            self.contacts.append(float(self.robot.state.n_contacts.mean()))
            self._call = (self._call + 1) % self.calls_per_run


class MujocoCrawl:
    """One MuJoCo robot in the same field, one phase after the other."""

    def __init__(self, pegs: np.ndarray, spec: RobotSpec) -> None:
        self.spec = spec
        self.chain = MujocoChain(spec, DT_S, "implicitfast", True, np.zeros(spec.n_joints), pegs)
        # The root link's centre is half a link ahead of the robot's middle if the number of links is even.
        root = 2 * (spec.n_links // 2) + 1 - spec.n_links
        self._root_x = root * float(spec.links("link_half_length_m")[0])
        self.calls_per_run = round(RUN_S / (PER_CALL * DT_S))
        phases = 2.0 * math.pi * np.arange(N_PHASES) / N_PHASES
        self._references = np.stack(
            [wave(spec, phases, k * PER_CALL * DT_S) for k in range(self.calls_per_run)], axis=1
        )
        self._phase = self._call = 0
        self.contacts: list[int] = []

    def restart(self) -> None:
        """The next call begins a run."""
        self._call = 0

    def run(self, calls: int) -> None:
        """``calls`` times PER_CALL steps."""
        for _ in range(calls):
            if self._call == 0:
                self.chain.restart()
                self.chain.data.qpos[0] = self._root_x
                self._phase = (self._phase + 1) % N_PHASES
            self.chain.command(self._references[self._phase, self._call])
            self.chain.step(PER_CALL)
            self.contacts.append(self.chain.n_contacts)
            self._call = (self._call + 1) % self.calls_per_run
