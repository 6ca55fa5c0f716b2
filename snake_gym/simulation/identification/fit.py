"""The two fits: least squares on whole paths, and irani2015's alternating search on the last head position.

Least squares minimises ``sum ((predicted - measured) / sigma)^2`` over head positions, head angles and joint angles of
all runs (Gauss-Newton in a trust region, scipy), with the logarithms of the coefficients as variables. The Jacobian is
central differences; all displaced candidates are one batch. The standard deviations are those of ``jackknife_std``.

A further unknown is the time by which references act late: host, bus and the servo's own loop take some milliseconds.
Left out, it is made up for by servo gains that are too low.

A run is replayed whole from its start, with the starting pose left free (see ``Residuals``). Runs that are unstable (a
joint without power near the head) amplify every error and teach little: leave them out, or cut them short.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, Settings, choose
from snake_gym.config.settings import Positive
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.identification.alternating_search import alternating_variable_search
from snake_gym.simulation.identification.coefficients import Coefficient, with_values
from snake_gym.simulation.identification.replay import Prediction, Replay, head_error
from snake_gym.simulation.identification.run_log import RunLog

Method = Literal["least_squares", "avs"]
_DIFFERENCE = 0.03
"""Half width of the central differences in the logarithm of a coefficient: far above the solver's rounding, far below
the curvature of the paths."""
_NEWTON_STEPS = 8
"""Enough to turn a path to where it fits best, to rounding."""
_LONGEST_DELAY_S, _DELAY_DIFFERENCE_S = 0.15, 0.002
_DELAY_SCALE_S = 0.02
"""Change of the delay that counts like a change of a coefficient by a factor e."""
STRETCHES = (3, 5, 8, 16, 40)
"""Numbers of stretches into which each run is cut, see ``jackknife_std``."""


class SensorNoise(Settings):
    """Standard deviations that weigh the residuals against each other."""

    position_m: Positive = 0.005
    heading_rad: Positive = 0.01
    joint_rad: Positive = 0.01


@dataclass(frozen=True, eq=False)
class Identification:
    """What was found, and what it cost."""

    spec: RobotSpec
    """The robot with the coefficients found."""
    values: dict[str, float]
    head_error: float
    """Mean of eq. 6 over the logs, with the values found."""
    n_simulations: int
    """Runs simulated: candidates times logs."""
    seconds: float
    relative_std: dict[str, float] | None = None
    """Estimated standard deviation of each value, as a share of it; None: the method gives none."""
    delay_std_s: float = np.nan
    """Standard deviation of ``spec.actuator.delay_s``; NaN where it was not sought."""

    @property
    def delay_s(self) -> float:
        """Time by which references act late [s]."""
        return self.spec.actuator.delay_s

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        names = ("values", "relative_std", "delay_s", "delay_std_s", "seconds")
        return {name: getattr(self, name) for name in names}


def identify(
    logs: Sequence[RunLog],
    spec: RobotSpec,
    coefficients: Sequence[Coefficient],
    method: Method = "least_squares",
    noise: SensorNoise | None = None,
    delay_start_s: float | None = None,
) -> Identification:
    """Find the coefficients with which ``spec`` moves as logged.

    Args:
        logs: runs of one robot, one control period; several gaits and speeds, so that Coulomb and viscous parts
            differ, and a run with each joint fault that has a coefficient.
        noise: weights of the residuals (least squares).
        delay_start_s: where the search for the delay begins [s] (least squares); None: the delay is that of ``spec``.

    Raises:
        ConfigError: logs that do not fit the robot, unknown method.
    """
    choose(method, get_args(Method), "method")
    begin, replay = time.perf_counter(), Replay(logs, spec, coefficients)
    if method == "least_squares":
        return _least_squares(replay, spec, noise or SensorNoise(), delay_start_s, begin)
    steps = alternating_variable_search(
        lambda candidates: np.sqrt((head_error(replay.predict(candidates), replay.logs) ** 2).mean(axis=1)),
        *bounds(coefficients),
    )
    return _report(spec, replay, steps[-1].values, begin)


def _report(spec: RobotSpec, replay: Replay, values: FloatArray, begin: float) -> Identification:
    """Return ``spec`` with ``values`` for the coefficients of ``replay``, which is played once more."""
    error = float(head_error(replay.predict(values[None]), replay.logs).mean())
    return Identification(
        spec=with_values(spec, replay.coefficients, values.tolist()),
        values=dict(zip([one.name for one in replay.coefficients], values.tolist(), strict=True)),
        head_error=error,
        n_simulations=replay.n_simulations,
        seconds=time.perf_counter() - begin,
    )


def _least_squares(
    replay: Replay, spec: RobotSpec, noise: SensorNoise, delay_start_s: float | None, begin: float
) -> Identification:
    from scipy.optimize import least_squares  # a second of import that nobody else needs

    logs, coefficients, seeks_delay = replay.logs, replay.coefficients, delay_start_s is not None
    n, residuals = len(coefficients), Residuals(logs, noise)

    def late_spec(x: FloatArray) -> RobotSpec:
        return with_delay(spec, max(float(x[n]) * _DELAY_SCALE_S, 0.0)) if seeks_delay else spec

    def predict(logarithms: FloatArray, late: RobotSpec) -> FloatArray:
        return residuals.of(Replay(logs, late, coefficients).predict(np.exp(logarithms)))

    def evaluate(x: FloatArray) -> FloatArray:
        return predict(x[None, :n], late_spec(x))[0]

    def jacobian(x: FloatArray) -> FloatArray:
        width = _DIFFERENCE * np.eye(n)
        both = predict(np.concatenate([x[:n] + width, x[:n] - width]), late_spec(x))
        slope = (both[:n] - both[n:]).T / (2.0 * _DIFFERENCE)
        if not seeks_delay:
            return slope
        delay_s = late_spec(x).actuator.delay_s
        low, high = max(delay_s - _DELAY_DIFFERENCE_S, 0.0), delay_s + _DELAY_DIFFERENCE_S
        ends = [predict(x[None, :n], with_delay(spec, one))[0] for one in (low, high)]
        return np.column_stack([slope, (ends[1] - ends[0]) / (high - low) * _DELAY_SCALE_S])

    start, low, high = (np.log(values) for values in bounds(coefficients))
    if delay_start_s is not None:
        ends = (delay_start_s, 0.0, _LONGEST_DELAY_S)
        start, low, high = (np.append(x, one / _DELAY_SCALE_S) for x, one in zip((start, low, high), ends, strict=True))
    result: Any = least_squares(
        evaluate, start, jac=jacobian, bounds=(low, high), xtol=1e-4 if seeks_delay else 1e-5, ftol=1e-6,
        max_nfev=30 if seeks_delay else 50,
    )  # fmt: skip
    std = jackknife_std(result.jac, result.fun, residuals.stretches)
    late = late_spec(result.x)
    found = _report(late, Replay(logs, late, coefficients), np.exp(result.x[:n]), begin)
    return replace(
        found,
        n_simulations=len(logs) * (result.nfev + 2 * result.x.size * result.njev + 1),
        relative_std=dict(zip([one.name for one in coefficients], std[:n].tolist(), strict=True)),
        delay_std_s=float(std[n]) * _DELAY_SCALE_S if seeks_delay else np.nan,
    )


def bounds(coefficients: Sequence[Coefficient]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return start, least and greatest value of each coefficient, (n,) each."""
    start, low, high = (np.array([getattr(c, name) for c in coefficients]) for name in ("start", "low", "high"))
    return start, low, high


def with_delay(spec: RobotSpec, delay_s: float) -> RobotSpec:
    """Return ``spec`` with references that act ``delay_s`` [s] late."""
    return replace(spec, actuator=replace(spec.actuator, delay_s=delay_s))


class Residuals:
    """Predicted minus measured, over sigma, of all that the logs hold after the start.

    The starting pose is known no better than the pose source tells it, and an error of its angle turns the whole path.
    On even ground paths that begin in another place and direction are the same but for that, so each prediction is
    first moved and turned to where it fits best.

    Args:
        logs: the runs.
        noise: standard deviations that the residuals are divided by.
    """

    def __init__(self, logs: Sequence[RunLog], noise: SensorNoise) -> None:
        n_periods = max(log.n_periods for log in logs)
        self._noise = noise
        self._measured: dict[str, FloatArray] = {}
        for number, log in enumerate(logs, start=1):
            if np.isnan(log.head_xy_m[log.n_rest :]).any(axis=1).all():
                raise ConfigError(f"log {number} has no head pose after the start; expected some")
        for name in ("head_xy_m", "head_angle_rad", "joint_angle_rad"):
            rows = np.full((len(logs), n_periods + 1, *getattr(logs[0], name).shape[1:]), np.nan)
            for k, log in enumerate(logs):
                rows[k, log.n_rest : log.n_periods + 1] = getattr(log, name)[log.n_rest :]
            self._measured[name] = rows
        self._measured["head_xy_m"][np.isnan(self._measured["head_xy_m"]).any(axis=-1)] = np.nan

    def of(self, prediction: Prediction) -> FloatArray:
        """Return the residuals (K, number of residuals)."""
        noise = self._noise
        parts = zip(self.misses(prediction), (noise.position_m, noise.heading_rad, noise.joint_rad), strict=True)
        return np.concatenate([off[:, np.isfinite(off[0])] / sigma for off, sigma in parts], axis=1)

    def misses(self, prediction: Prediction) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return predicted minus measured: head position (K, L, T + 1, 2) [m] and angle (K, L, T + 1) [rad] after the
        best move, joint angles (K, L, T + 1, J) [rad]; NaN: not measured."""
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
        return moved - wanted, angle + turn, prediction.joint_angle_rad - self._measured["joint_angle_rad"]

    def stretches(self, number: int) -> NDArray[np.int64]:
        """Return the stretch of time of each residual, from 0, with each run cut into ``number``."""
        n_logs, n_samples = self._measured["head_angle_rad"].shape
        cut = number * np.arange(n_logs)[:, None] + np.arange(n_samples) * number // n_samples
        parts = []
        for rows in self._measured.values():
            label = np.broadcast_to(cut.reshape(n_logs, n_samples, *(1,) * (rows.ndim - 2)), rows.shape)
            parts.append(label[np.isfinite(rows)])
        return np.unique(np.concatenate(parts), return_inverse=True)[1]


def jackknife_std(
    slope: FloatArray, residuals: FloatArray, stretches: Callable[[int], NDArray[np.int64]]
) -> FloatArray:
    """Return standard deviations (n,) of the variables at a minimum, from what single stretches of the runs do to it.

    The usual formula takes every residual for a draw of its own. Those of a replayed path are not: what the model
    lacks, or where a joint slipped a moment later, shifts all that follows, and the formula promises ten times too
    much. Here the fit is made again without one stretch of time, for each stretch in turn (the delete-a-group
    jackknife; Efron, The jackknife, the bootstrap and other resampling plans, SIAM 1982; each new fit is one
    Gauss-Newton step). Residuals that belong together lie within one stretch only if it is long, and long ones are
    few: of several lengths, the one that gives the largest value counts.

    Args:
        slope: (R, n) derivatives of the residuals.
        residuals: (R,).
        stretches: function of a number of stretches a run; returns the stretch of each residual (R,), from 0.
    """
    return np.max([_deleted(slope, residuals, stretches(number)) for number in STRETCHES], axis=0)


def _deleted(slope: FloatArray, residuals: FloatArray, label: NDArray[np.int64]) -> FloatArray:
    n_groups = int(label.max()) + 1
    members = [label == group for group in range(n_groups)]
    normal = np.stack([slope[one].T @ slope[one] for one in members])
    pull = np.stack([slope[one].T @ residuals[one] for one in members])
    whole, total = normal.sum(axis=0), pull.sum(axis=0)
    moved = np.stack([np.linalg.pinv(whole - normal[k]) @ (total - pull[k]) for k in range(n_groups)])
    return np.sqrt((n_groups - 1) / n_groups * ((moved - moved.mean(axis=0)) ** 2).sum(axis=0))
