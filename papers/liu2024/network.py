"""Network of liu2024 as its authors run it: 28 oscillators, from their start, and how long it takes to lock.

Parameters and start are those of the authors' public program (https://github.com/LiuXPs/SnakeSys): state in degrees,
start (0.1, 0), every oscillator coupled with every other by Gaussian weights of their distance (mu 1, sigma 5), lambda
0.2, alpha 0.01, Runge-Kutta of eighth order at 1e-6. The equations are those of section 3.1 with minus signs and
fractions restored, in the form in which they are printed; nothing is shared with ``snake_gym.controllers.cpg``.

Oscillators alternate, yaw and pitch, from the head: pair k = 1..14 follows the pair before it by ``shift``, and the
pitch joint of a pair its yaw joint by a quarter of a turn. The locked output is then
``rho cos(omega t - (k - 1) shift)``, for pitch joints ``rho cos(omega t - (k - 1) shift - pi / 2)``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.integrate import solve_ivp

from papers.liu2024.creeping import creeping_wave
from snake_gym.robot.spec import FloatArray

N_PAIRS = 14
LINK_M = 0.16
LAMBDA_PER_S, ALPHA_PER_S = 0.2, 0.01
START_DEG = 0.1
MEAN_DISTANCE, WIDTH_OF_WEIGHTS = 1.0, 5.0
TOLERANCE = 1e-6
LOCKED_RAD = 0.01


class Mode(NamedTuple):
    """Gait of both rows of joints (section 3.2)."""

    yaw_deg: float
    """Amplitude rho of the yaw joints."""
    pitch_deg: float
    """Amplitude rho of the pitch joints."""
    shift_rad: float
    """Phase between neighbouring pairs."""
    frequency_rad_s: float


def _wave(n_waves: int, yaw_deg: float, pitch_deg: float) -> Mode:
    """Return a mode with ``n_waves`` along the body and initial angles of the wave (eq. 23-24)."""
    yaw, pitch = (creeping_wave(N_PAIRS, n_waves, math.radians(angle)) for angle in (yaw_deg, pitch_deg))
    return Mode(math.degrees(yaw.amplitude_rad), math.degrees(pitch.amplitude_rad), yaw.phase_shift_rad, math.pi / 5)


def _spiral(radius_m: float, rise_m: float) -> Mode:
    """Return spiral rolling: a helix of ``radius_m`` that rises by ``rise_m`` for each radian."""
    curvature, torsion = (x / (radius_m**2 + rise_m**2) for x in (radius_m, rise_m))
    rho = math.degrees(2.0 * curvature / torsion * math.sin(torsion * LINK_M))
    return Mode(rho, rho, torsion * LINK_M, math.pi / 5)


_ROLLING_DEG = math.degrees(2.0 * LINK_M / 2.0)
MODES = {
    "CL": _wave(2, 50.0, 0.1),
    "TWL": _wave(3, 0.1, 50.0),
    "SWL": _wave(2, 50.0, 15.0),
    "ARL": Mode(_ROLLING_DEG, _ROLLING_DEG, 0.0, math.pi / 2),
    "SRL": _spiral(0.26, 0.04),
}
"""Modes of Table 3: creeping, travelling wave, sidewinding, arc rolling, spiral rolling."""


class Locking(NamedTuple):
    """Locking of one mode."""

    periods: float
    """Time from which all phases stay within 0.01 rad of the locked gait's, in periods; NaN: never."""
    radius_error: float
    """Largest |r / rho - 1| at the end."""
    time_s: FloatArray
    """(T,) [s]"""
    phase_error_rad: FloatArray
    """(T,) [rad] largest difference of a phase from the mean of all, each taken back by its lag."""


def coupling() -> FloatArray:
    """Return the weights w_ij (28, 28): Gaussian in the pairs between two joints, one more from yaw to pitch."""
    i, j = np.indices((2 * N_PAIRS, 2 * N_PAIRS))
    distance = np.abs(i // 2 - j // 2) + ((i + j) % 2)
    weight = np.exp(-0.5 * ((distance - MEAN_DISTANCE) / WIDTH_OF_WEIGHTS) ** 2)
    return np.where(i == j, 0.0, weight)


def lock(mode: Mode, n_periods: float = 40.0, samples_per_period: int = 100) -> Locking:
    """Run the network from its start for ``n_periods`` of the gait."""
    rho = np.tile([mode.yaw_deg, mode.pitch_deg], N_PAIRS)
    lag = np.repeat(np.arange(N_PAIRS), 2) * mode.shift_rad + np.tile([0.0, math.pi / 2], N_PAIRS)
    weight = coupling()
    # T_ij = rho_i / rho_j R(phi_ij), as a factor of complex numbers
    turn = rho[:, None] / rho * np.exp(-1j * (lag[:, None] - lag))

    def rate(_: float, flat: FloatArray) -> FloatArray:
        x = flat[: len(rho)] + 1j * flat[len(rho) :]
        excess = 1.0 - np.abs(x) ** 2 / rho**2
        beyond = LAMBDA_PER_S * (2.0 / (1.0 + np.exp(-np.minimum(excess, 0.0))) - 1.0)
        growth = np.where(excess < 0.0, beyond, LAMBDA_PER_S * excess)
        pull = weight.sum(axis=1) * x - (weight * turn) @ x
        slope = (1j * mode.frequency_rad_s + growth) * x - ALPHA_PER_S * pull
        return np.concatenate([slope.real, slope.imag])

    start = np.concatenate([np.full(len(rho), START_DEG), np.zeros(len(rho))])
    end_s = n_periods * 2.0 * math.pi / mode.frequency_rad_s
    time_s = np.linspace(0.0, end_s, round(n_periods * samples_per_period) + 1)
    y = solve_ivp(rate, (0.0, end_s), start, "DOP853", time_s, rtol=TOLERANCE, atol=TOLERANCE).y.T
    x = (y[:, : len(rho)] + 1j * y[:, len(rho) :]) * np.exp(1j * lag)
    phase = x / np.abs(x)
    error = np.abs(np.angle(phase / phase.mean(axis=1, keepdims=True))).max(axis=1)
    bad = np.flatnonzero(error >= LOCKED_RAD)
    settled = 0.0 if not bad.size else (bad[-1] + 1) / samples_per_period
    radius = float(np.abs(np.abs(x[-1]) / rho - 1.0).max())
    return Locking(settled if error[-1] < LOCKED_RAD else math.nan, radius, time_s, error)
