"""The two fits: least squares on whole paths, and irani2015's alternating search on the last head position.

Least squares minimises ``sum ((predicted - measured) / sigma)^2`` over head positions, head angles and joint angles of
all runs (Gauss-Newton in a trust region, scipy), with the logarithms of the coefficients as variables. The Jacobian is
central differences; all displaced candidates are one batch. The standard deviations returned are those of
``uncertainty``: what single stretches of the runs do to the fit.

A run is replayed whole from its start, with the starting pose left free (see ``Residuals``). Runs that are unstable (a
joint without power near the head) amplify every error and teach little: leave them out, or cut them short.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, choose
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.identification.alternating_search import SearchStep, alternating_variable_search
from snake_gym.simulation.identification.coefficients import Coefficient, with_values
from snake_gym.simulation.identification.replay import Prediction, Replay, head_error
from snake_gym.simulation.identification.run_log import RunLog
from snake_gym.simulation.identification.uncertainty import jackknife_std

Method = Literal["least_squares", "avs"]
Loss = Literal["linear", "soft_l1", "huber", "cauchy"]
_DIFFERENCE = 0.03
"""Half width of the central differences in the logarithm of a coefficient: far above the solver's rounding, far below
the curvature of the paths."""

_NEWTON_STEPS = 8
"""Enough to turn a path to where it fits best, to rounding."""


@dataclass(frozen=True)
class SensorNoise:
    """Standard deviations that weigh the residuals against each other."""

    position_m: float = 0.005
    heading_rad: float = 0.01
    joint_rad: float = 0.01

    def __post_init__(self) -> None:
        for name in ("position_m", "heading_rad", "joint_rad"):
            if not 0.0 < getattr(self, name) < np.inf:
                raise ConfigError(f"noise.{name} is {getattr(self, name):g}; expected > 0")


@dataclass(frozen=True, eq=False)
class Identification:
    """What was found, and what it cost."""

    spec: RobotSpec
    """The robot with the coefficients found."""
    values: dict[str, float]
    relative_std: dict[str, float] | None
    """Estimated standard deviation of each value, as a share of it; None: the method gives none."""
    head_error: float
    """Mean of eq. 6 over the logs, with the values found."""
    n_simulations: int
    """Runs simulated: candidates times logs."""
    seconds: float
    steps: tuple[SearchStep, ...] = ()
    """Iterations of the alternating search."""


def identify(
    logs: Sequence[RunLog],
    spec: RobotSpec,
    coefficients: Sequence[Coefficient],
    method: Method = "least_squares",
    noise: SensorNoise | None = None,
    loss: Loss = "linear",
    n_threads: int | None = None,
    max_iterations: int | None = None,
) -> Identification:
    """Find the coefficients with which ``spec`` moves as logged.

    Args:
        logs: runs of one robot, one control period; several gaits and speeds, so that Coulomb and viscous parts
            differ, and a run with each joint fault whose coefficient is looked for.
        noise: weights of the residuals (least squares).
        loss: how large residuals count (least squares); anything but linear for logs with outliers.
        max_iterations: evaluations of the path (least squares) or iterations (avs).

    Raises:
        ConfigError: logs or coefficients that do not fit the robot, unknown method.
    """
    choose(method, get_args(Method), "method")
    choose(loss, get_args(Loss), "loss")
    begin = time.perf_counter()
    replay = Replay(logs, spec, coefficients, n_threads)
    steps: tuple[SearchStep, ...] = ()
    std = None
    if method == "avs":
        values, steps = _search(replay, max_iterations or 600)
    else:
        values, std = _least_squares(replay, noise or SensorNoise(), loss, max_iterations or 50)
    error = float(head_error(replay.predict(values[None]), replay.logs).mean())
    names = [coefficient.name for coefficient in coefficients]
    return Identification(
        spec=with_values(spec, coefficients, values.tolist()),
        values=dict(zip(names, values.tolist(), strict=True)),
        relative_std=None if std is None else dict(zip(names, std.tolist(), strict=True)),
        head_error=error,
        n_simulations=replay.n_simulations,
        seconds=time.perf_counter() - begin,
        steps=steps,
    )


def _search(replay: Replay, max_iterations: int) -> tuple[FloatArray, tuple[SearchStep, ...]]:
    start, low, high = _bounds(replay.coefficients)
    steps = alternating_variable_search(
        lambda candidates: np.sqrt((head_error(replay.predict(candidates), replay.logs) ** 2).mean(axis=1)),
        start, low, high, max_iterations=max_iterations,
    )  # fmt: skip
    return steps[-1].values, tuple(steps)


def _least_squares(
    replay: Replay, noise: SensorNoise, loss: Loss, max_evaluations: int
) -> tuple[FloatArray, FloatArray]:
    from scipy.optimize import least_squares  # a second of import that nobody else needs

    start, low, high = _bounds(replay.coefficients)
    residuals = Residuals(replay.logs, noise)

    def evaluate(x: FloatArray) -> FloatArray:
        return residuals.of(replay.predict(np.exp(x)[None]))[0]

    def jacobian(x: FloatArray) -> FloatArray:
        width = _DIFFERENCE * np.eye(x.size)
        both = residuals.of(replay.predict(np.exp(np.concatenate([x + width, x - width]))))
        return (both[: x.size] - both[x.size :]).T / (2.0 * _DIFFERENCE)

    result: Any = least_squares(
        evaluate, np.log(start), jac=jacobian, bounds=(np.log(low), np.log(high)), loss=loss, xtol=1e-5, ftol=1e-6,
        max_nfev=max_evaluations,
    )  # fmt: skip
    return np.exp(result.x), jackknife_std(jacobian(result.x), result.fun, residuals.stretches)


def _bounds(coefficients: Sequence[Coefficient]) -> tuple[FloatArray, FloatArray, FloatArray]:
    start, low, high = ([getattr(c, name) for c in coefficients] for name in ("start", "low", "high"))
    return np.array(start), np.array(low), np.array(high)


class Residuals:
    """Predicted minus measured, over sigma, of all that the logs hold after the start.

    The starting pose is known no better than the pose source tells it, and an error of its angle turns the whole path.
    On even ground paths that begin in another place and direction are the same but for that, so each prediction is
    first moved and turned to where it fits best.

    Args:
        logs: the runs.
        noise: what residuals are measured in.
        from_share: what comes before this share of a run does not count.
    """

    def __init__(self, logs: Sequence[RunLog], noise: SensorNoise, from_share: float = 0.0) -> None:
        n_periods = max(log.n_periods for log in logs)
        self._noise = noise
        self._measured: dict[str, FloatArray] = {}
        firsts = [max(log.n_rest, round(from_share * log.n_periods)) for log in logs]
        for number, (log, first) in enumerate(zip(logs, firsts, strict=True), start=1):
            if np.isnan(log.head_xy_m[first:]).any(axis=1).all() or np.isnan(log.head_angle_rad[first:]).all():
                raise ConfigError(f"log {number} has no head pose after the start; expected some")
        for name in ("head_xy_m", "head_angle_rad", "joint_angle_rad"):
            rows = np.full((len(logs), n_periods + 1, *getattr(logs[0], name).shape[1:]), np.nan)
            for k, (log, first) in enumerate(zip(logs, firsts, strict=True)):
                rows[k, first : log.n_periods + 1] = getattr(log, name)[first:]
            self._measured[name] = rows
        self._measured["head_xy_m"][np.isnan(self._measured["head_xy_m"]).any(axis=-1)] = np.nan

    def of(self, prediction: Prediction) -> FloatArray:
        """(K, number of residuals)."""
        position, angle, joint = self.misses(prediction)
        noise = self._noise
        parts = []
        for off, sigma in ((position, noise.position_m), (angle, noise.heading_rad), (joint, noise.joint_rad)):
            known = np.isfinite(off[0])
            parts.append(off[:, known] / sigma)
        return np.concatenate(parts, axis=1)

    def misses(self, prediction: Prediction) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Predicted minus measured: head position (K, L, T + 1, 2) [m] and angle (K, L, T + 1) [rad] after the best
        move, joint angles (K, L, T + 1, J) [rad]; NaN: not measured."""
        return *self._aligned(prediction), prediction.joint_angle_rad - self._measured["joint_angle_rad"]

    def stretches(self, number: int) -> NDArray[np.int64]:
        """To which stretch of time each residual belongs, from 0, with each run cut into ``number``."""
        n_logs, n_samples = self._measured["head_angle_rad"].shape
        cut = number * np.arange(n_logs)[:, None] + np.arange(n_samples) * number // n_samples
        parts = []
        for rows in self._measured.values():
            label = np.broadcast_to(cut.reshape(n_logs, n_samples, *(1,) * (rows.ndim - 2)), rows.shape)
            parts.append(label[np.isfinite(rows)])
        return np.unique(np.concatenate(parts), return_inverse=True)[1]

    def _aligned(self, prediction: Prediction) -> tuple[FloatArray, FloatArray]:
        """Differences of head position (K, L, T + 1, 2) and angle (K, L, T + 1) after the best move; NaN: unknown."""
        measured = self._measured["head_xy_m"]
        unknown = np.isnan(measured).any(axis=-1, keepdims=True)
        at = np.where(unknown, np.nan, prediction.head_xy_m)
        mean_at, mean_measured = np.nanmean(at, axis=2, keepdims=True), np.nanmean(measured, axis=1)[:, None]
        arm, wanted = at - mean_at, measured - mean_measured
        angle = prediction.head_angle_rad - self._measured["head_angle_rad"]
        # First by the mean difference of the head's angles, then by what positions and angles together ask for.
        first = -np.arctan2(np.nansum(np.sin(angle), axis=2), np.nansum(np.cos(angle), axis=2))[..., None]
        angle = np.remainder(angle + first + np.pi, 2.0 * np.pi) - np.pi
        sine = np.nansum(arm[..., 0] * wanted[..., 1] - arm[..., 1] * wanted[..., 0], axis=2, keepdims=True)
        cosine = np.nansum((arm * wanted).sum(axis=-1), axis=2, keepdims=True)
        best, pull = np.arctan2(sine, cosine) - first, np.hypot(sine, cosine) / self._noise.position_m**2
        spring = np.isfinite(angle).sum(axis=2, keepdims=True) / self._noise.heading_rad**2
        mean_angle = np.nansum(angle, axis=2, keepdims=True) / self._noise.heading_rad**2
        turn = np.zeros_like(best)
        for _ in range(_NEWTON_STEPS):
            slope = pull * np.sin(turn - best) + spring * turn + mean_angle
            turn -= slope / (pull * np.maximum(np.cos(turn - best), 0.2) + spring)
        cos, sin = np.cos(first + turn), np.sin(first + turn)
        x, y = arm[..., 0], arm[..., 1]
        moved = np.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)
        return moved - wanted, angle + turn
