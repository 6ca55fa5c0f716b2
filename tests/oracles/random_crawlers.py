"""Random robots on viscous or dry ground, each with a random gait."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from snake_gym.controllers.serpenoid import GaitConfig, serpenoid_reference
from snake_gym.robot.spec import GRAVITY_M_S2, ActuatorSpec, CoulombAxes, FloatArray, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

Ground = Literal["viscous", "coulomb"]
GROUNDS: tuple[Ground, ...] = ("viscous", "coulomb")
SECONDS = 5.0
CONVERGED_S = 1e-4
LEAST_WAY = 0.1
"""Way, in lengths of the robot, below which errors are relative to it: a robot that hardly moves goes nowhere."""


def crawl(spec: RobotSpec, references: FloatArray, ahead: FloatArray | None = None) -> FloatArray:
    """Centre of mass (K + 1, 2) [m] under references (K, J) [rad], begun at rest in the shape of the first.

    Masses have their centres ``ahead`` (N,) half lengths ahead of the links' middles.
    """
    robot = SimulatedRobot(spec, 1, 1)
    if ahead is not None:
        robot.use_parameters(robot.params._replace(ahead=ahead[None].copy()))
    robot.set_shape(references[:1], np.zeros(1), np.zeros((1, 2)), "centre")
    track = [robot.state.centre_xy[0].copy()]
    for reference in references:
        robot.step(reference[None])
        track.append(robot.state.centre_xy[0].copy())
    return np.array(track)


@dataclass(frozen=True)
class Crawler:
    """One robot and its gait, begun at rest in the gait's shape."""

    spec: RobotSpec
    gait: GaitConfig

    def references(self) -> FloatArray:
        """(control steps, J) [rad]."""
        phase = self.gait.frequency_rad_s * self.spec.control_dt_s * np.arange(round(SECONDS / self.spec.control_dt_s))
        return serpenoid_reference(phase, self.gait.amplitude_rad, self.gait.phase_shift_rad, self.spec.n_joints)

    def run(self, step_s: float | None = None) -> FloatArray:
        """Centre of mass (control steps + 1, 2) [m], in steps of at most ``step_s`` [s]; None: the robot's own."""
        spec = self.spec
        if step_s is not None:
            spec = replace(spec, sim_dt_s=spec.control_dt_s / math.ceil(spec.control_dt_s / step_s - 1e-9))
        return crawl(spec, self.references())

    def error(self, track: FloatArray, truth: FloatArray) -> float:
        """Distance of the final places, as a share of the way in chords of a period, or of ``LEAST_WAY`` lengths."""
        stride = round(2.0 * math.pi / self.gait.frequency_rad_s / self.spec.control_dt_s)
        way = np.linalg.norm(np.diff(truth[::-stride], axis=0), axis=-1).sum()
        return float(np.linalg.norm(track[-1] - truth[-1]) / max(way, LEAST_WAY * self.spec.length_m))


def draw_crawler(seed: int, ground: Ground) -> Crawler:
    """Draw a robot of 3 to 12 links that all differ, servos that can move it, and a gait that these can follow."""
    rng = np.random.default_rng([seed, GROUNDS.index(ground)])
    n = int(rng.integers(3, 13))
    half = math.exp(rng.uniform(math.log(0.025), math.log(0.1))) * rng.uniform(0.7, 1.3, n)
    mass = rng.uniform(2.0, 10.0) * 2.0 * half * rng.uniform(0.7, 1.3, n)
    weight = float(mass.mean()) * GRAVITY_M_S2
    axes: tuple[CoulombAxes, ...] = ("independent", "coupled")
    if ground == "viscous":
        across = float(mass.mean() * 10.0 ** rng.uniform(0.3, 1.3))
        friction = FrictionSpec(across * float(rng.uniform(0.03, 0.3)), across)
        grip = across * 0.2
    else:
        across = float(rng.uniform(0.2, 0.9))
        wet = float(rng.choice([0.0, rng.uniform(0.5, 5.0)])) * float(mass.mean())
        friction = FrictionSpec(
            0.1 * wet, wet, tangential_coulomb=across * float(rng.uniform(0.03, 0.3)), normal_coulomb=across,
            coulomb_axes=axes[rng.integers(2)],
        )  # fmt: skip
        grip = across * weight + wet * 0.2
    # Torque against friction on a quarter of the links at half the robot's length, and several times that.
    length = 2.0 * float(half.sum())
    torque = float(rng.uniform(1.0, 5.0)) * grip * n / 4.0 * length / 4.0
    kp = torque / float(rng.uniform(0.05, 0.3))
    kd = kp * math.exp(rng.uniform(math.log(0.03), math.log(0.2)))
    speed = float(rng.uniform(2.0, 6.0)) if rng.random() < 0.5 else math.inf
    spec = RobotSpec(
        name="random", n_links=n, link_half_length_m=tuple(half.tolist()), link_mass_kg=tuple(mass.tolist()),
        friction=friction, actuator=ActuatorSpec("position", kp, kd, torque, speed),
        control_dt_s=float(rng.choice([0.05, 0.1, 0.2])),
    )  # fmt: skip
    amplitude, frequency = math.radians(rng.uniform(15.0, 45.0)), float(rng.uniform(1.5, 6.0))
    return Crawler(spec, GaitConfig(amplitude, frequency, 2.0 * math.pi * float(rng.uniform(0.7, 1.5)) / n))
