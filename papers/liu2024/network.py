"""Limit cycle and phase locking of the Hopf network from (0.1, 0.1), for every topology and weight (section 3.1).

The gait is the creeping one on 14 yaw joints. ``paper``: lambda = 0.2, alpha = 0.01 as published; ``default``: the
controller's own, faster rates. Locked: every radius within 1 % of rho and every phase difference within 0.01 rad of the
wanted one, from then on.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from papers.liu2024.creeping import FREQUENCY_RAD_S, creeping_wave
from snake_gym.controllers.coupling import Topology, Weights, coupling_weights
from snake_gym.controllers.cpg import PAPER_RATES, Cpg, CpgConfig
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.presets import SNAKESYS
from snake_gym.robot.spec import FloatArray

TOPOLOGIES: tuple[Topology, ...] = get_args(Topology)
WEIGHTS: tuple[Weights, ...] = get_args(Weights)
RATES: dict[str, dict[str, Any]] = {"paper": PAPER_RATES, "default": {}}
RADIUS_TOLERANCE, PHASE_TOLERANCE_RAD = 0.01, 0.01
HORIZON_S = {"paper": 25_000.0, "default": 600.0}
_STEP_S = 1.0
_CONTINUE = 1.5
"""A run goes on to this many times the time at which it locked, to see that it stays."""


class Settling(NamedTuple):
    """How one network settled."""

    topology: Topology
    weights: Weights
    rates: str
    radius_s: float
    """[s] from when on every radius is within 1 %; NaN: not within the horizon."""
    phase_s: float
    """[s] from when on every phase difference is within 0.01 rad."""
    radius_error: float
    """Largest |r / rho - 1| at the end."""
    phase_error_rad: float
    slowest_per_s: float
    """Rate of the slowest coupling mode, alpha times the smallest nonzero eigenvalue of the Laplacian [1/s]."""
    time_s: FloatArray
    """(T,) [s]."""
    radius_errors: FloatArray
    """(T,)."""
    phase_errors: FloatArray
    """(T,) [rad]."""


def standing_robot(n_joints: int) -> tuple[Measurement, Goal]:
    """One straight robot without a target: what an open-loop gait is given."""
    zero = np.zeros((1, n_joints))
    sample = Measurement(zero, zero.copy(), np.zeros((1, 2)), np.zeros(1), np.ones(1, dtype=bool))
    return sample, Goal(np.zeros((1, 2)), np.zeros(1, dtype=bool))


def settle(topology: Topology, weights: Weights, rates: str) -> Settling:
    """Run one network until it has locked and half as long again, or to the horizon."""
    wave = creeping_wave(SNAKESYS.n_joints)
    config = CpgConfig(
        wave.amplitude_rad, FREQUENCY_RAD_S, wave.phase_shift_rad, topology=topology, weights=weights, **RATES[rates]
    )
    controller = Cpg(config, SNAKESYS)
    state = controller.initial_state(1)
    sample, goal = standing_robot(SNAKESYS.n_joints)
    samples: list[tuple[float, float]] = []
    end = HORIZON_S[rates]
    while len(samples) * _STEP_S < end:
        z = state["u"][0] + 1j * state["v"][0]
        phase = np.angle(z[1:] / z[:-1] * np.exp(-1j * wave.phase_shift_rad))
        radius_error = np.abs(np.abs(z) / wave.amplitude_rad - 1.0).max()
        samples.append((float(radius_error), float(np.abs(phase).max())))
        if end == HORIZON_S[rates] and samples[-1][0] < RADIUS_TOLERANCE and samples[-1][1] < PHASE_TOLERANCE_RAD:
            end = min(end, _CONTINUE * len(samples) * _STEP_S + 10.0)
        controller.command(sample, goal, state, _STEP_S)
    radius, phase = np.array(samples).T
    time: FloatArray = _STEP_S * np.arange(float(len(samples)))
    weight = coupling_weights(SNAKESYS.n_joints, topology, weights, config.weight_width_joints)
    modes = np.sort(np.abs(np.linalg.eigvals(np.diag(weight.sum(axis=1)) - weight)))
    return Settling(
        topology, weights, rates, _since(time, radius < RADIUS_TOLERANCE), _since(time, phase < PHASE_TOLERANCE_RAD),
        float(radius[-1]), float(phase[-1]), config.coupling_per_s * float(modes[1]), time, radius, phase,
    )  # fmt: skip


def _since(time_s: FloatArray, good: NDArray[np.bool_]) -> float:
    """From when on all is good; NaN: not at the end."""
    if not good[-1]:
        return math.nan
    bad = np.flatnonzero(~good)
    return float(time_s[bad[-1] + 1]) if bad.size else float(time_s[0])
