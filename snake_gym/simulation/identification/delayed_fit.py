"""Least squares with one unknown more: the time by which references act late.

A real chain of servos follows a reference some milliseconds after it was logged: host, bus and the servo's own loop
take their time. Left out, the delay is made up for by servo gains that are too low. It is found together with the
coefficients, by the same residuals, and becomes ``actuator.delay_s`` of the robot. The standard deviations hold what
single stretches of the runs do to the fit, and what half the physics step would do to it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.identification.coefficients import Coefficient, with_values
from snake_gym.simulation.identification.fit import Identification, Residuals, SensorNoise
from snake_gym.simulation.identification.replay import Replay, head_error
from snake_gym.simulation.identification.run_log import RunLog
from snake_gym.simulation.identification.uncertainty import jackknife_std

_DIFFERENCE = 0.03
_DELAY_DIFFERENCE_S = 0.002
_DELAY_SCALE_S = 0.02
"""A change of the delay by so much counts like one of a coefficient by a factor e."""


@dataclass(frozen=True, eq=False)
class DelayedIdentification:
    """What was found."""

    found: Identification
    delay_s: float
    delay_std_s: float
    """Estimated standard deviation."""
    misfit: float
    """Mean of the squared residuals, each over its sensor's standard deviation: 1 where nothing but noise is left."""


def with_delay(spec: RobotSpec, delay_s: float) -> RobotSpec:
    """``spec`` with references that act ``delay_s`` [s] late."""
    return replace(spec, actuator=replace(spec.actuator, delay_s=delay_s))


def identify_with_delay(
    logs: Sequence[RunLog],
    spec: RobotSpec,
    coefficients: Sequence[Coefficient],
    noise: SensorNoise | None = None,
    start_s: float = 0.01,
    longest_s: float = 0.15,
    n_threads: int | None = None,
    max_evaluations: int = 30,
) -> DelayedIdentification:
    """Find the coefficients and the delay with which ``spec`` moves as logged. Raises ConfigError as ``identify``."""
    from scipy.optimize import least_squares  # a second of import that nobody else needs

    begin = time.perf_counter()
    residuals = Residuals(logs, noise or SensorNoise())
    n_simulations = 0

    def predict(values: FloatArray, delay_s: float, spec: RobotSpec = spec) -> FloatArray:
        nonlocal n_simulations
        replay = Replay(logs, with_delay(spec, max(delay_s, 0.0)), coefficients, n_threads)
        of = residuals.of(replay.predict(values))
        n_simulations += replay.n_simulations
        return of

    def evaluate(x: FloatArray) -> FloatArray:
        return predict(np.exp(x[None, :-1]), x[-1] * _DELAY_SCALE_S)[0]

    def jacobian(x: FloatArray) -> FloatArray:
        n, delay_s = x.size - 1, x[-1] * _DELAY_SCALE_S
        width = _DIFFERENCE * np.eye(n)
        both = predict(np.exp(np.concatenate([x[:-1] + width, x[:-1] - width])), delay_s)
        low, high = max(delay_s - _DELAY_DIFFERENCE_S, 0.0), delay_s + _DELAY_DIFFERENCE_S
        ends = [predict(np.exp(x[None, :-1]), one)[0] for one in (low, high)]
        slope = (ends[1] - ends[0]) / (high - low) * _DELAY_SCALE_S
        return np.column_stack([(both[:n] - both[n:]).T / (2.0 * _DIFFERENCE), slope])

    start, low, high = (np.log([getattr(c, name) for c in coefficients]) for name in ("start", "low", "high"))
    result: Any = least_squares(
        evaluate, np.append(start, start_s / _DELAY_SCALE_S), jac=jacobian,
        bounds=(np.append(low, 0.0), np.append(high, longest_s / _DELAY_SCALE_S)), xtol=1e-4, ftol=1e-6,
        max_nfev=max_evaluations,
    )  # fmt: skip
    slope = jacobian(result.x)
    std = jackknife_std(slope, result.fun, residuals.stretches)
    halved = replace(spec, sim_dt_s=0.5 * spec.sim_dt_s)
    finer = predict(np.exp(result.x[None, :-1]), result.x[-1] * _DELAY_SCALE_S, halved)[0]
    std = np.hypot(std, np.linalg.pinv(slope) @ (finer - result.fun))
    values, delay_s = np.exp(result.x[:-1]), float(result.x[-1]) * _DELAY_SCALE_S
    spec = with_delay(spec, delay_s)
    replay = Replay(logs, spec, coefficients, n_threads)
    error = float(head_error(replay.predict(values[None]), replay.logs).mean())
    names = [coefficient.name for coefficient in coefficients]
    found = Identification(
        spec=with_values(spec, coefficients, values.tolist()),
        values=dict(zip(names, values.tolist(), strict=True)),
        relative_std=dict(zip(names, std[:-1].tolist(), strict=True)),
        head_error=error,
        n_simulations=n_simulations,
        seconds=time.perf_counter() - begin,
    )
    misfit = 2.0 * float(result.cost) / result.fun.size
    return DelayedIdentification(found, delay_s, float(std[-1]) * _DELAY_SCALE_S, misfit)
