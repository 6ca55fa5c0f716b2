"""Robo-Conda 1 crawling: many trials side by side, each with a failed joint, a phase shift, a start and a bias.

Gait: eq. 3 and 7 of irani2015, amplitude 38 deg, frequency 140 deg/s; the phase shift between neighbours is given only
as "10 to 90 deg", the phase at the start not at all. Joints are numbered as in the paper, from 1 at the head: its joint
j is our joint 14 - j. With amplitude and stops both at 38 deg, a bias is clipped on its side.

Frame: at the start the head is at the origin and the mean of the link angles is zero, so the body points along x. (The
axes of the paper's Fig. 5 are not known.) A gait with positive frequency and phase shift moves head first.

Mirrored trials: eq. 3-5 have no preferred side, so a start half a period later gives the mirror image, and starts over
half a period are all there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from snake_gym.controllers import Controller, ControllerState, make_controller
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.physics.faults import FREE
from snake_gym.robot.measurement import Goal, mean_angle
from snake_gym.robot.presets import ROBO_CONDA
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.sensors import SensorConfig, measure
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams

AMPLITUDE_RAD = math.radians(38.0)
FREQUENCY_RAD_S = math.radians(140.0)
PERIOD_S = 2.0 * math.pi / FREQUENCY_RAD_S
N_JOINTS = 13
COMMANDS_PER_PERIOD = 128
"""About 50 Hz, the rate of hobby servos."""
SAMPLES_PER_PERIOD = 32
FINISH_M = 3.18
"""The head has to cross this line (section 4)."""

_CONTROL_DT_S = PERIOD_S / COMMANDS_PER_PERIOD
SPEC = replace(
    ROBO_CONDA,
    control_dt_s=_CONTROL_DT_S,
    sim_dt_s=_CONTROL_DT_S / math.ceil(_CONTROL_DT_S / ROBO_CONDA.sim_dt_s - 0.1),
)
"""The preset with a control period that goes into the gait's, and its own step as nearly as that allows."""


class Trial(NamedTuple):
    """One run."""

    joint: int
    """Without power, from 1 at the head; 0: none."""
    shift_rad: float
    """Phase shift between neighbouring joints."""
    start_rad: float = 0.0
    """Phase of the tail joint's wave at the start."""
    bias_rad: float = 0.0
    """B of eq. 7, on all joints; positive turns the head clockwise."""
    backwards: bool = False
    """Driven tail first: the wave runs from tail to head."""


class Paths(NamedTuple):
    """Where R trials went: S + 1 samples, ``SAMPLES_PER_PERIOD`` in each gait period."""

    head_xy: FloatArray
    """(S + 1, R, 2) [m]."""
    centre_xy: FloatArray
    """(S + 1, R, 2) [m] centre of mass."""
    heading: FloatArray
    """(S + 1, R) [rad] mean link angle."""
    bias: FloatArray
    """(S + 1, R) [rad] bias of an adaptive controller, else the trial's."""


def our_joint(joint: int) -> int:
    """Number from 1 at the tail of the paper's ``joint``."""
    return N_JOINTS + 1 - joint


def crawl(
    trials: Sequence[Trial], n_periods: int, controller: Mapping[str, float | str] | None = None, spec: RobotSpec = SPEC
) -> Paths:
    """Run every trial for ``n_periods`` of the gait.

    Args:
        controller: settings of another controller than the plain serpenoid gait with the trials' bias; gait parameters
            are the trials'.
        spec: SPEC with other numbers.
    """
    n_trials = len(trials)
    shift, start, bias, joint = (
        np.array([getattr(t, name) for t in trials]) for name in ("shift_rad", "start_rad", "bias_rad", "joint")
    )
    frequency = np.where([t.backwards for t in trials], -FREQUENCY_RAD_S, FREQUENCY_RAD_S)
    gait = {"amplitude_rad": AMPLITUDE_RAD, "frequency_rad_s": FREQUENCY_RAD_S}
    per_world = {"phase_shift_rad": shift, "frequency_rad_s": frequency}
    if controller is None:
        control = make_controller({"kind": "serpenoid", **gait}, spec, {**per_world, "offset_rad": bias})
    else:
        control = make_controller({**controller, **gait}, spec, per_world)
    state = control.initial_state(n_trials)
    state["phase"][:] = np.mod(start, 2.0 * math.pi)
    robot = SimulatedRobot(spec, n_trials)
    shape = serpenoid_reference(start, AMPLITUDE_RAD, shift, N_JOINTS, bias)
    shape = np.clip(shape, -spec.joint_limit_rad, spec.joint_limit_rad)
    robot.set_shape(shape, np.zeros(n_trials), np.zeros((n_trials, 2)))
    robot.set_shape(shape, -robot.state.link_angle.mean(axis=1), np.zeros((n_trials, 2)))
    for world in np.flatnonzero(joint):
        robot.faults.kind[world, our_joint(int(joint[world])) - 1] = FREE
    return _record(robot, control, state, n_periods, bias)


def _record(
    robot: SimulatedRobot, control: Controller, state: ControllerState, n_periods: int, bias: FloatArray
) -> Paths:
    n = robot.n_worlds
    shape = (n_periods * SAMPLES_PER_PERIOD + 1, n)
    paths = Paths(np.empty((*shape, 2)), np.empty((*shape, 2)), np.empty(shape), np.empty(shape))
    streams, sensors = RandomStreams("crawling", n), SensorConfig()
    aimless = Goal(np.zeros((n, 2)), np.zeros(n, dtype=bool))
    every = COMMANDS_PER_PERIOD // SAMPLES_PER_PERIOD
    for k in range(n_periods * COMMANDS_PER_PERIOD + 1):
        sample = measure(robot, sensors, streams)
        if k % every == 0:
            row = k // every
            paths.head_xy[row], paths.heading[row] = sample.head_xy_w, mean_angle(sample)
            paths.centre_xy[row], paths.bias[row] = robot.state.centre_xy, state.get("bias_rad", bias)
        if k < n_periods * COMMANDS_PER_PERIOD:
            robot.step(control.command(sample, aimless, state, robot.spec.control_dt_s))
    return paths
