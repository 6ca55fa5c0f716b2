"""Pattern generator of liu2024: changes of gait, and the derivative of its output (the network is in ``network``).

Changes of amplitude and gait in mid-run (sections 1 and 3.1), judged by the joints' speeds and accelerations: by the
published equations at the published rates, full network on 14 yaw joints; and by a serpenoid formula, which jumps where
its parameters change. The measures are the fastest motion of a joint in the old or the new gait:
omega rho for speeds, omega^2 rho for accelerations. The controller's own rates are ours.

Derivative (section 3.3): the sliding-window five-point one against the exact one, on the network's own output. A locked
network's output is a sine with known derivatives; errors are relative to their amplitudes, after the window has filled.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from papers.liu2024.creeping import FREQUENCY_RAD_S, INITIAL_ANGLE_RAD, K_N, creeping_wave
from papers.liu2024.derivative import FIRST, differentiate
from snake_gym.controllers.cpg import PAPER_RATES, Cpg, CpgConfig
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.presets import SNAKESYS
from snake_gym.robot.spec import FloatArray

DT_S = 0.02
"""Command interval: the paper's robot takes commands at 10 to 100 Hz (section 4.5)."""
WATCHED_S = 60.0
"""Time watched after a change [s]; one by a whole wave takes some four periods of 10 s."""


class Gait(NamedTuple):
    """Parameters of a gait, equal for all joints."""

    amplitude_rad: float
    frequency_rad_s: float
    phase_shift_rad: float


def _gait(n_waves: int = K_N, initial_angle_rad: float = INITIAL_ANGLE_RAD, speed: float = 1.0) -> Gait:
    wave = creeping_wave(SNAKESYS.n_joints, n_waves, initial_angle_rad)
    return Gait(wave.amplitude_rad, FREQUENCY_RAD_S * speed, wave.phase_shift_rad)


BEFORE = _gait()
"""Creeping gait before every change."""
CHANGES: dict[str, Gait] = {
    "larger amplitude (a_y 50 to 70 deg)": _gait(initial_angle_rad=math.radians(70.0)),
    "smaller amplitude (a_y 50 to 20 deg)": _gait(initial_angle_rad=math.radians(20.0)),
    "frequency doubled": _gait(speed=2.0),
    "driving backwards": _gait(speed=-1.0),
    "three waves in place of two": _gait(3),
    "one wave in place of two": _gait(1),
    "all at once": _gait(3, math.radians(40.0), 1.5),
}
"""Change -> gait after it."""


class Motion(NamedTuple):
    """Motion of all joints through a change of gait."""

    joints: FloatArray
    """(T, J) [rad] commands."""
    speed: float
    """Largest speed of a joint [omega rho] (1: as fast as the faster gait)."""
    acceleration: float
    """Largest acceleration of a joint [omega^2 rho]."""


class Change(NamedTuple):
    """Results of one change of gait."""

    name: str
    equations: Motion
    """By the published equations: the new phase shift, rho and omega at once."""
    formula: Motion
    """By the serpenoid formula."""
    smallest_radius: float
    """Smallest radius of an oscillator on the way by the equations, over the smaller rho of the two gaits."""
    time_s: FloatArray
    """(T,) [s] after the change."""


def change_gait(name: str, watched_s: float = WATCHED_S) -> Change:
    """Lock the published network on the creeping gait, change it as ``CHANGES[name]`` says, and record the result."""
    joints, radius = _play(CHANGES[name], watched_s)
    time: FloatArray = DT_S * np.arange(-2.0, len(joints) - 2.0)
    old, new = (
        serpenoid_reference(frequency * time, amplitude, shift, SNAKESYS.n_joints)
        for amplitude, frequency, shift in (BEFORE, CHANGES[name])
    )
    formula = np.where(time[:, None] < 0.0, old, new)
    equations, by_formula = (measure_motion(motion, BEFORE, CHANGES[name]) for motion in (joints, formula))
    return Change(name, equations, by_formula, radius, time)


def measure_motion(joints: FloatArray, old: Gait, new: Gait) -> Motion:
    """Return the measures of commands (T, J) [rad], ``DT_S`` apart, from one gait to another."""
    omega = [abs(gait.frequency_rad_s) for gait in (old, new)]
    rho = [gait.amplitude_rad for gait in (old, new)]
    rate = np.diff(joints, axis=0) / DT_S
    acceleration = float(np.abs(np.diff(rate, axis=0)).max()) / DT_S
    fastest = max(omega) * max(rho)
    return Motion(joints, float(np.abs(rate).max()) / fastest, acceleration / (fastest * max(omega)))


def _play(gait: Gait, watched_s: float) -> tuple[FloatArray, float]:
    """Return commands (T, J) from the last one of the old gait on, and the smallest radius over the smaller rho."""
    rates: dict[str, Any] = {**PAPER_RATES, "weights": "gaussian", "weight_width_joints": 5.0}
    controller = Cpg(CpgConfig(*BEFORE, **rates), SNAKESYS)
    state, zero = controller.initial_state(1), np.zeros((1, SNAKESYS.n_joints))
    wave = BEFORE.phase_shift_rad * np.arange(SNAKESYS.n_joints) - BEFORE.frequency_rad_s * DT_S
    state["u"][0], state["v"][0] = BEFORE.amplitude_rad * np.sin(wave), -BEFORE.amplitude_rad * np.cos(wave)
    sample = Measurement(zero, zero.copy(), np.zeros((1, 2)), np.zeros(1), np.ones(1, dtype=bool))
    goal = Goal(np.zeros((1, 2)), np.zeros(1, dtype=bool))
    joints = [controller.command(sample, goal, state, DT_S)[0] for _ in range(2)]
    for parameter, value in gait._asdict().items():
        state[parameter][:] = value
    smallest = np.inf
    for _ in range(round(watched_s / DT_S)):
        joints.append(controller.command(sample, goal, state, DT_S)[0])
        smallest = min(smallest, float(np.hypot(state["u"], state["v"]).min()))
    return np.array(joints), smallest / min(BEFORE.amplitude_rad, gait.amplitude_rad)


def derivative_error(dt_s: float = 0.1) -> tuple[float, float]:
    """Return the largest relative errors of rate and acceleration now, at a step of ``dt_s`` [s]."""
    wave = creeping_wave(SNAKESYS.n_joints)
    lag = wave.phase_shift_rad * np.arange(SNAKESYS.n_joints)
    n = FIRST + math.ceil(2.0 * math.pi / FREQUENCY_RAD_S / dt_s)
    phase = FREQUENCY_RAD_S * dt_s * np.arange(n)[:, None] + lag
    found = differentiate(wave.amplitude_rad * np.sin(phase), dt_s)
    rate = found.rate / (wave.amplitude_rad * FREQUENCY_RAD_S) - np.cos(phase[FIRST:])
    acceleration = found.acceleration / (wave.amplitude_rad * FREQUENCY_RAD_S**2) + np.sin(phase[FIRST:])
    return float(np.abs(rate).max()), float(np.abs(acceleration).max())
