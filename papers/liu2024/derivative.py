"""Rate and acceleration of a command that comes sample by sample, for servos commanded in all three.

Model: liu2024, section 3.3. A polynomial through five samples is differentiated at each of them (eq. 35-40); the same
on the rates gives the acceleration (eq. 41-45). The window slides. When sample k arrives, it gives

    S1  rate k      one-sided (eq. 40), for use now,
    S2  rate k-1    (eq. 39), better,
    S3  rate k-2    centred (eq. 38), settled,
    S4  acceleration at the newest rate, one-sided (eq. 45),
    S5  acceleration k-4, centred on settled rates (eq. 43), settled.

Samples need not be equally spaced. Before the first sample the command is taken to have stood still.

S4 is printed with the rates k-6 to k-2, which would give the acceleration at k-2: a misprint. The authors' program
takes the rates k-4 to k, as is done here, of which the last two are not settled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from snake_gym.controllers.base import ControllerState
from snake_gym.robot.spec import FloatArray

N_POINTS = 5
_N_KEPT = N_POINTS + 2
"""Number of rates and times in the window: k-6 to k."""


class Derivatives(NamedTuple):
    """Results of one new sample, each (W, J)."""

    rate: FloatArray
    """Rate [1/s] of the newest sample k."""
    acceleration: FloatArray
    """Acceleration [1/s^2] of sample k."""
    settled_rate: FloatArray
    """Rate [1/s] of sample k-2."""
    settled_acceleration: FloatArray
    """Acceleration [1/s^2] of sample k-4."""


class SlidingDerivative:
    """First and second derivative of J signals in W worlds.

    State: ``position`` (W, 5, J) and ``rate`` (W, 7, J) of the last samples, newest last, ``age_s`` (W, 7) their times
    before the newest [s], and ``n_samples`` (W,).
    """

    def __init__(self, n_joints: int) -> None:
        self._n_joints = n_joints

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state before the first sample; every array has shape (n_worlds, ...)."""
        return {
            "position": np.zeros((n_worlds, N_POINTS, self._n_joints)),
            "rate": np.zeros((n_worlds, _N_KEPT, self._n_joints)),
            "age_s": np.zeros((n_worlds, _N_KEPT)),
            "n_samples": np.zeros(n_worlds),
        }

    def update(self, state: ControllerState, position: FloatArray, dt_s: float) -> Derivatives:
        """Add the sample ``position`` (W, J), ``dt_s`` [s] after the last one; advances ``state`` in place.

        Raises ValueError unless ``dt_s`` is positive.
        """
        if not dt_s > 0.0:
            raise ValueError(f"dt_s is {dt_s:g}; expected > 0")
        window, rate, age = state["position"], state["rate"], state["age_s"]
        first = state["n_samples"] == 0.0
        window[first] = position[first, None]
        age[first] = dt_s * np.arange(_N_KEPT - 1, -1, -1)
        for values in (window, rate, age):
            values[:, :-1] = values[:, 1:]
        age += dt_s
        age[:, -1] = 0.0
        window[:, -1] = position
        slope = differentiation_matrix(-age[:, -N_POINTS:])
        rate[:, -3:] = _apply(slope[:, 2:], window)
        acceleration = _apply(slope[:, -1:], rate[:, -N_POINTS:])[:, 0]
        settled = _apply(differentiation_matrix(-age[:, :N_POINTS])[:, [2]], rate[:, :N_POINTS])[:, 0]
        state["n_samples"] += 1.0
        return Derivatives(rate[:, -1].copy(), acceleration, rate[:, -3].copy(), settled)


def differentiation_matrix(times_s: FloatArray) -> FloatArray:
    """Return the matrix (W, P, P) [1/s] from values at P times to derivatives of their polynomial there (eq. 35).

    ``times_s`` is (W, P) [s], all different in each row.
    """
    n = times_s.shape[1]
    gap = times_s[:, :, None] - times_s[:, None, :]
    gap[:, np.arange(n), np.arange(n)] = 1.0
    scale = gap.prod(axis=2)  # prod_{j != i} (t_i - t_j)
    matrix = scale[:, :, None] / (scale[:, None, :] * gap)
    inverse = 1.0 / gap
    inverse[:, np.arange(n), np.arange(n)] = 0.0
    matrix[:, np.arange(n), np.arange(n)] = inverse.sum(axis=2)
    return np.asarray(matrix, dtype=np.float64)


def _apply(matrix: FloatArray, values: FloatArray) -> FloatArray:
    """Return ``matrix`` (W, M, P) times ``values`` (W, P, J), without BLAS: worlds in a batch equal single worlds."""
    return np.asarray((matrix[..., None] * values[:, None]).sum(axis=2), dtype=np.float64)
