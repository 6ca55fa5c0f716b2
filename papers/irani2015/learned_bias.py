"""The paper's future work: a bias that is found while the robot moves (``snake_gym.controllers.adaptive_bias``).

Robo-Conda 1 with each failure that lets it move on, and with J2 to J6 failed both ways; and the viscous ten-link robot
with servos and one joint locked aside, which turns every gait into a circle. Before: the same gait without bias.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from papers.irani2015.crawling import FREQUENCY_RAD_S, SAMPLES_PER_PERIOD, Paths, Trial, crawl
from papers.irani2015.motion import Motion, judge
from snake_gym.controllers import make_controller
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.physics.faults import LOCKED
from snake_gym.robot.measurement import Goal, mean_angle
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.sensors import SensorConfig, measure
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams

KIND = "adaptive_bias"
N_PERIODS = 36
"""93 s of Robo-Conda's gait."""
LOCKED_PERIODS = 120
SETTLED_RAD = math.radians(0.3)


class Learning(NamedTuple):
    """Failed joints with and without a learned bias; fields of the motions are (P, joints, S)."""

    shifts_rad: FloatArray
    joints: tuple[int, ...]
    backwards: bool
    before: Motion
    after: Motion
    bias_rad: FloatArray
    """(P, joints, S) at the end."""
    paths: tuple[Paths, Paths]
    """Without and with it, at the first phase shift, trials (joints, S) flat."""


def learn(
    joints: Sequence[int],
    shifts_deg: Sequence[float],
    n_starts: int,
    backwards: bool = False,
    n_periods: int = N_PERIODS,
) -> Learning:
    """Run each failure at each phase shift from each start, without and with the learned bias."""
    shifts = np.radians(np.array(shifts_deg, dtype=np.float64))
    starts = (math.pi / n_starts * np.arange(n_starts)).tolist()
    trials = [Trial(j, d, s, 0.0, backwards) for d in shifts.tolist() for j in joints for s in starts]
    sense = np.full(len(trials), backwards)
    shape = (shifts.size, len(joints), n_starts)
    runs = crawl(trials, n_periods), crawl(trials, n_periods, {"kind": KIND})
    before, after = (Motion(*(field.reshape(shape) for field in judge(paths, sense))) for paths in runs)
    n = len(joints) * n_starts
    first = Paths(*(x[:, :n] for x in runs[0])), Paths(*(x[:, :n] for x in runs[1]))
    return Learning(shifts, tuple(joints), backwards, before, after, runs[1].bias[-1].reshape(shape), first)


class LockedJoints(NamedTuple):
    """One joint of the ten-link robot locked aside, (J,) each, joints from 1 at the tail."""

    angle_rad: float
    turned_before_rad: FloatArray
    """Change of heading over the second half of the run, without bias; headings are means over a gait period."""
    turned_after_rad: FloatArray
    bias_rad: FloatArray
    """At the end."""
    settled: FloatArray
    """Gait periods after which the bias stays within ``SETTLED_RAD`` of that."""
    speed_before_m_s: FloatArray
    """From period to period, over the second half."""
    speed_after_m_s: FloatArray


def learn_with_locked_joints(angle_rad: float, n_periods: int = LOCKED_PERIODS) -> LockedJoints:
    """Each of the nine joints locked at ``angle_rad``, gait of 30 deg, 1.5 rad/s and 40 deg."""
    plain, learned = (_crawl_locked(kind, angle_rad, n_periods) for kind in ("serpenoid", KIND))
    bias = learned[1]
    away = np.abs(bias - bias[-1]) > SETTLED_RAD
    settled = np.where(away.any(axis=0), n_periods - np.argmax(away[::-1], axis=0), 0).astype(np.float64)
    return LockedJoints(angle_rad, plain[0], learned[0], bias[-1], settled, plain[2], learned[2])


def _crawl_locked(kind: str, angle_rad: float, n_periods: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Angle turned, bias at the end of each period (n_periods, J), speed."""
    spec = RESILIENT_SERVO
    gait = {"amplitude_rad": math.radians(30.0), "frequency_rad_s": 1.5, "phase_shift_rad": math.radians(40.0)}
    n = spec.n_joints
    controller = make_controller({"kind": kind, **gait}, spec)
    state = controller.initial_state(n)
    robot = SimulatedRobot(spec, n)
    shape = serpenoid_reference(np.zeros(n), gait["amplitude_rad"], gait["phase_shift_rad"], n)
    np.fill_diagonal(shape, angle_rad)
    robot.set_shape(shape, np.zeros(n), np.zeros((n, 2)))
    np.fill_diagonal(robot.faults.kind, LOCKED)
    streams, aimless = RandomStreams("locked", n), Goal(np.zeros((n, 2)), np.zeros(n, dtype=bool))
    per_period = round(2.0 * math.pi / gait["frequency_rad_s"] / spec.control_dt_s)
    heading, centre = np.empty((n_periods * per_period, n)), np.empty((n_periods * per_period, n, 2))
    bias = np.zeros((n_periods * per_period, n))
    for k in range(n_periods * per_period):
        sample = measure(robot, SensorConfig(), streams)
        heading[k], centre[k] = mean_angle(sample), robot.state.centre_xy
        robot.step(controller.command(sample, aimless, state, spec.control_dt_s))
        bias[k] = state.get("bias_rad", 0.0)
    mean = heading.reshape(n_periods, per_period, n).mean(axis=1)
    steps = np.hypot(*np.diff(centre[::per_period], axis=0).transpose(2, 0, 1))
    speed = steps[n_periods // 2 :].mean(axis=0) / (per_period * spec.control_dt_s)
    return mean[-1] - mean[n_periods // 2], bias[per_period - 1 :: per_period], speed


def bias_history(paths: Paths) -> tuple[FloatArray, FloatArray]:
    """Time (S,) [s] and bias (S, R) [rad] of ``paths``."""
    time = np.arange(paths.bias.shape[0]) / SAMPLES_PER_PERIOD * (2.0 * math.pi / FREQUENCY_RAD_S)
    return time, paths.bias
