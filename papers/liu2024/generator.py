"""Pattern generator of liu2024: limit cycle and locking, changes of gait, and the derivative of its output.

Networks (section 3.1): limit cycle and phase locking of the controller ``cpg`` in every topology and weight, with the
creeping gait on 14 yaw joints and the controller's own rates (the published network is in ``network``). Locked: every
radius within 1 % of rho and every phase difference within 0.01 rad of the wanted one, from then on.

Changes of amplitude and gait in mid-run (sections 1 and 3.1), judged by the joints' steps, speeds, accelerations and
pauses: by a serpenoid formula, which jumps where its parameters change; by the published equations alone, at the
published and at our rates; and by ``Cpg.set_gait``. The measures are the fastest motion of a joint in the old or
the new gait: omega rho for speeds, omega^2 rho for accelerations.

Derivative (section 3.3): the sliding-window five-point one against the exact one, on the network's own output.

A locked network's output is a sine, whose derivatives are known; errors are relative to their amplitudes, after the
window has filled. The steps span the paper's 10 to 100 Hz (section 4.5) and coarser ones.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from papers.liu2024.creeping import FREQUENCY_RAD_S, INITIAL_ANGLE_RAD, K_N, creeping_wave
from papers.liu2024.derivative import Derivatives, SlidingDerivative
from snake_gym.controllers.cpg import PAPER_RATES, Cpg, CpgConfig, Topology, Weights, coupling_weights
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.presets import SNAKESYS
from snake_gym.robot.spec import FloatArray

TOPOLOGIES: tuple[Topology, ...] = get_args(Topology)
WEIGHTS: tuple[Weights, ...] = get_args(Weights)
RATES: dict[str, dict[str, Any]] = {
    "published": {**PAPER_RATES, "weights": "gaussian", "weight_width_joints": 5.0},
    "default": {},
}
"""Name -> settings of a full network."""
RADIUS_TOLERANCE, PHASE_TOLERANCE_RAD = 0.01, 0.01
HORIZON_S = 600.0
_STEP_S = 1.0
_CONTINUE = 1.5
"""Length of a run as a multiple of the time at which it locked, to see that it stays locked."""


class Settling(NamedTuple):
    """Settling of one network."""

    topology: Topology
    weights: Weights
    radius_s: float
    """Time [s] from which every radius stays within 1 %; NaN: not within the horizon."""
    phase_s: float
    """Time [s] from which every phase difference stays within 0.01 rad."""
    radius_error: float
    """Largest |r / rho - 1| at the end."""
    phase_error_rad: float
    slowest_per_s: float
    """Rate of the slowest coupling mode, alpha times the smallest nonzero eigenvalue of the Laplacian [1/s]."""
    time_s: FloatArray
    """(T,) [s] times."""
    radius_errors: FloatArray
    """(T,) relative errors of the radii."""
    phase_errors: FloatArray
    """(T,) [rad] errors of the phase differences."""


def standing_robot(n_joints: int) -> tuple[Measurement, Goal]:
    """Return measurement and goal of one straight robot without a target, as input of an open-loop gait."""
    zero = np.zeros((1, n_joints))
    sample = Measurement(zero, zero.copy(), np.zeros((1, 2)), np.zeros(1), np.ones(1, dtype=bool))
    return sample, Goal(np.zeros((1, 2)), np.zeros(1, dtype=bool))


def settle(topology: Topology, weights: Weights) -> Settling:
    """Run one network until it has locked and half as long again, or to the horizon."""
    wave = creeping_wave(SNAKESYS.n_joints)
    config = CpgConfig(wave.amplitude_rad, FREQUENCY_RAD_S, wave.phase_shift_rad, topology=topology, weights=weights)
    controller = Cpg(config, SNAKESYS)
    state = controller.initial_state(1)
    sample, goal = standing_robot(SNAKESYS.n_joints)
    samples: list[tuple[float, float]] = []
    end = HORIZON_S
    while len(samples) * _STEP_S < end:
        z = state["u"][0] + 1j * state["v"][0]
        phase = np.angle(z[1:] / z[:-1] * np.exp(-1j * wave.phase_shift_rad))
        radius_error = np.abs(np.abs(z) / wave.amplitude_rad - 1.0).max()
        samples.append((float(radius_error), float(np.abs(phase).max())))
        if end == HORIZON_S and samples[-1][0] < RADIUS_TOLERANCE and samples[-1][1] < PHASE_TOLERANCE_RAD:
            end = min(end, _CONTINUE * len(samples) * _STEP_S + 10.0)
        controller.command(sample, goal, state, _STEP_S)
    radius, phase = np.array(samples).T
    time: FloatArray = _STEP_S * np.arange(float(len(samples)))
    weight = coupling_weights(SNAKESYS.n_joints, topology, weights, config.weight_width_joints)
    modes = np.sort(np.abs(np.linalg.eigvals(np.diag(weight.sum(axis=1)) - weight)))
    return Settling(
        topology, weights, _since(time, radius < RADIUS_TOLERANCE), _since(time, phase < PHASE_TOLERANCE_RAD),
        float(radius[-1]), float(phase[-1]), config.coupling_per_s * float(modes[1]), time, radius, phase,
    )  # fmt: skip


def _since(time_s: FloatArray, good: NDArray[np.bool_]) -> float:
    """Return the time from which all is good; NaN if not at the end."""
    if not good[-1]:
        return math.nan
    bad = np.flatnonzero(~good)
    return float(time_s[bad[-1] + 1]) if bad.size else float(time_s[0])


DT_S = 0.02
"""Command interval: the paper's robot takes commands at 10 to 100 Hz (section 4.5)."""
WATCHED_S = 60.0
"""Time watched after a change [s]; one by a whole wave takes some four periods of 10 s."""
STILL = 0.05
"""Share of the slower gait's omega rho below which a joint counts as standing still."""


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
    still_periods: float
    """Longest time that a joint stands still [periods of the slower gait]."""


class Change(NamedTuple):
    """Results of one change of gait in a full network."""

    name: str
    rates: str
    """Key of ``RATES``."""
    smooth: Motion
    """With ``Cpg.set_gait``."""
    alone: Motion
    """By the published equations alone: the new phase shift, rho and omega at once."""
    formula: Motion
    """By the serpenoid formula."""
    smallest_radius: float
    """Smallest radius of an oscillator on the way with ``set_gait``, over the smaller rho of the two gaits."""
    radius_alone: float
    """The same by the published equations alone."""
    phase_error_rad: float
    """Largest error of a phase difference at the end, with ``set_gait``."""
    time_s: FloatArray
    """(T,) [s] after the change."""


def change_gait(name: str, rates: str, watched_s: float = WATCHED_S) -> Change:
    """Lock a network on the creeping gait, change it as ``CHANGES[name]`` says, and record the result."""
    smooth, radius, phase = _play(name, rates, True, watched_s)
    alone, radius_alone, _ = _play(name, rates, False, watched_s)
    time: FloatArray = DT_S * np.arange(-2.0, len(smooth) - 2.0)
    old, new = (
        serpenoid_reference(frequency * time, amplitude, shift, SNAKESYS.n_joints)
        for amplitude, frequency, shift in (BEFORE, CHANGES[name])
    )
    formula = np.where(time[:, None] < 0.0, old, new)
    smoothly, by_equations, by_formula = (
        measure_motion(joints, BEFORE, CHANGES[name]) for joints in (smooth, alone, formula)
    )
    return Change(name, rates, smoothly, by_equations, by_formula, radius, radius_alone, phase, time)


def measure_motion(joints: FloatArray, old: Gait, new: Gait) -> Motion:
    """Return the measures of commands (T, J) [rad], ``DT_S`` apart, from one gait to another."""
    omega = [abs(gait.frequency_rad_s) for gait in (old, new)]
    rho = [gait.amplitude_rad for gait in (old, new)]
    rate = np.diff(joints, axis=0) / DT_S
    acceleration = float(np.abs(np.diff(rate, axis=0)).max()) / DT_S
    still, longest = np.zeros(joints.shape[1]), 0.0
    for slow in np.abs(rate) < STILL * min(omega) * min(rho):
        still = np.where(slow, still + DT_S, 0.0)
        longest = max(longest, float(still.max()))
    fastest = max(omega) * max(rho)
    return Motion(
        joints, float(np.abs(rate).max()) / fastest, acceleration / (fastest * max(omega)),
        longest * min(omega) / (2.0 * math.pi),
    )  # fmt: skip


def _play(name: str, rates: str, smooth: bool, watched_s: float) -> tuple[FloatArray, float, float]:
    """Return commands (T, J) from the last one of the old gait on, smallest radius, and final error of the phases."""
    amplitude, frequency, shift = CHANGES[name]
    controller = Cpg(CpgConfig(*BEFORE, topology="full", **RATES[rates]), SNAKESYS)
    state = controller.initial_state(1)
    wave = BEFORE.phase_shift_rad * np.arange(SNAKESYS.n_joints) - BEFORE.frequency_rad_s * DT_S
    state["u"][0], state["v"][0] = BEFORE.amplitude_rad * np.sin(wave), -BEFORE.amplitude_rad * np.cos(wave)
    sample, goal = standing_robot(SNAKESYS.n_joints)
    joints = [controller.command(sample, goal, state, DT_S)[0] for _ in range(2)]
    controller.set_gait(state, np.array([True]), amplitude, frequency, shift)
    if not smooth:
        state["departure"][:] = 0.0
    smallest = np.inf
    for _ in range(round(watched_s / DT_S)):
        joints.append(controller.command(sample, goal, state, DT_S)[0])
        smallest = min(smallest, float(np.hypot(state["u"], state["v"]).min()))
    z = state["u"][0] + 1j * state["v"][0]
    phase = np.angle(z[1:] / z[:-1] * np.exp(-1j * shift))
    return np.array(joints), smallest / min(BEFORE.amplitude_rad, amplitude), float(np.abs(phase).max())


STEPS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
DELAY = {"rate": 0, "settled_rate": 2, "acceleration": 0, "settled_acceleration": 4}
"""Delay of each result behind the newest sample [samples]."""
TITLES = {
    "rate": "rate now (eq. 40)",
    "settled_rate": "rate, settled (eq. 38)",
    "acceleration": "acceleration now (eq. 45 on k-4..k)",
    "settled_acceleration": "acceleration, settled (eq. 43)",
}
"""Title of each result. Results for "now" count at the newest sample, settled ones at their own."""


def derivative_errors() -> dict[str, FloatArray]:
    """Return the largest relative error of each result of ``SlidingDerivative``, one for each of ``STEPS_S``."""
    found = [derivative_errors_at(step) for step in STEPS_S]
    return {name: np.array([worst[name] for worst in found]) for name in DELAY}


def derivative_errors_at(dt_s: float) -> dict[str, float]:
    """Return the largest relative error of each result of ``SlidingDerivative`` at a step of ``dt_s`` [s]."""
    wave = creeping_wave(SNAKESYS.n_joints)
    lag = wave.phase_shift_rad * np.arange(SNAKESYS.n_joints)
    sliding = SlidingDerivative(SNAKESYS.n_joints)
    state = sliding.initial_state(1)
    n = 12 + math.ceil(2.0 * math.pi / FREQUENCY_RAD_S / dt_s)
    given: list[Derivatives] = []
    phase = FREQUENCY_RAD_S * dt_s * np.arange(n)[:, None] + lag
    for row in wave.amplitude_rad * np.sin(phase):
        given.append(sliding.update(state, row[None], dt_s))
    worst = {}
    for name, delay in DELAY.items():
        at = phase[12:] - delay * FREQUENCY_RAD_S * dt_s
        exact = np.cos(at) if name.endswith("rate") else -np.sin(at)
        scale = wave.amplitude_rad * FREQUENCY_RAD_S ** (1 if name.endswith("rate") else 2)
        values = np.array([getattr(derivatives, name)[0] for derivatives in given[12:]])
        worst[name] = float(np.abs(values / scale - exact).max())
    return worst


def orders(table: dict[str, FloatArray]) -> dict[str, float]:
    """Return the order of each error in the step, from the last but one doubling."""
    a, b = STEPS_S.index(0.1), STEPS_S.index(0.2)
    return {name: math.log2(values[b] / values[a]) for name, values in table.items()}
