"""Least-squares fit of a robot's coefficients to logged runs.

It minimises ``sum ((predicted - measured) / sigma)^2`` over head positions, head angles and joint angles of all runs
(Gauss-Newton in a trust region, scipy), with the logarithms of the coefficients as variables. The Jacobian is central
differences; all displaced candidates are one batch. The standard deviations are those of ``jackknife_std``.

One coefficient of a real robot is the time by which references act late: host, bus and the servo's own loop take some
milliseconds. Left out, it is made up for by servo gains that are too low.

A run is replayed whole from its start, with the starting pose left free (see ``Residuals``). Runs that are unstable (a
joint without power near the head) amplify every error and teach little: leave them out, or cut them short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.identification.coefficients import Coefficient, usual_coefficients, with_values
from snake_gym.simulation.identification.replay import Prediction, Replay, with_finer_step
from snake_gym.simulation.identification.run_log import RunLog

_DIFFERENCE = 0.03
"""Half width of central differences in a coefficient's logarithm."""
STRETCHES = (3, 5, 8, 16, 40)
"""Numbers of stretches of a run for ``jackknife_std``."""


class SensorNoise(NamedTuple):
    """Standard deviations, each > 0, that weigh the residuals against each other."""

    position_m: float = 0.005
    heading_rad: float = 0.01
    joint_rad: float = 0.01


_WEIGHTS = SensorNoise(position_m=0.1, heading_rad=0.2, joint_rad=0.2)
"""Equal weights of misses: those of a model, rather than of sensors."""


@dataclass(frozen=True, eq=False)
class Identification:
    """What was found."""

    spec: RobotSpec
    """The robot with the coefficients found."""
    values: dict[str, float]
    relative_std: dict[str, float]
    """Estimated standard deviation of each value, as a share of it."""


def identify(
    logs: Sequence[RunLog], spec: RobotSpec, coefficients: Sequence[Coefficient], noise: SensorNoise | None = None
) -> Identification:
    """Find the coefficients with which ``spec`` moves as logged.

    Args:
        logs: runs of one robot, one control period; several gaits and speeds, so that Coulomb and viscous parts
            differ, and a run with each joint fault that has a coefficient.
        noise: weights of the residuals.

    Raises:
        ConfigError: logs that do not fit the robot.
    """
    from scipy.optimize import least_squares  # a second of import that nobody else needs

    replay, residuals = Replay(logs, spec, coefficients), Residuals(logs, noise)

    def evaluate(x: FloatArray) -> FloatArray:
        return residuals.of(replay.predict(np.exp(x)[None]))[0]

    def jacobian(x: FloatArray) -> FloatArray:
        width = _DIFFERENCE * np.eye(x.size)
        both = residuals.of(replay.predict(np.exp(np.concatenate([x + width, x - width]))))
        return (both[: x.size] - both[x.size :]).T / (2.0 * _DIFFERENCE)

    start, low, high = np.log([[one.start, one.low, one.high] for one in coefficients]).T
    result: Any = least_squares(evaluate, start, jac=jacobian, bounds=(low, high), xtol=1e-5, ftol=1e-6, max_nfev=50)
    names, values = [one.name for one in coefficients], np.exp(result.x).tolist()
    std = jackknife_std(result.jac, result.fun, residuals.stretches)
    return Identification(
        spec=with_values(spec, coefficients, values),
        values=dict(zip(names, values, strict=True)),
        relative_std=dict(zip(names, std.tolist(), strict=True)),
    )


def identify_robot(logs: Sequence[RunLog], spec: RobotSpec, said: str = "logged runs") -> Identification:
    """Find friction, servo gains, backlash and delay, as far as ``spec`` has them. Raises ConfigError.

    A robot that should be identified with backlash, say, is given some. ``said``: where the logs are from, for the
    source in the specification.
    """
    step = with_finer_step(spec, logs[0].period_s)
    found = identify(logs, step, usual_coefficients(spec), _WEIGHTS)
    named = replace(
        found.spec, name=f"{spec.name}_identified", control_dt_s=spec.control_dt_s, sim_dt_s=spec.sim_dt_s,
        source=f"{spec.name} with friction and servos identified from {said}",
    )  # fmt: skip
    return replace(found, spec=named)


class Residuals:
    """Predicted minus measured, over sigma, of all that the logs hold after the start.

    The starting pose is known no better than the pose source tells it, and an error of its angle turns the whole path.
    On even ground paths that begin in another place and direction are the same but for that, so each prediction is
    first moved and turned to where it fits best.

    Args:
        logs: the runs.
        noise: standard deviations that the residuals are divided by.
    """

    def __init__(self, logs: Sequence[RunLog], noise: SensorNoise | None = None) -> None:
        n_periods = max(log.n_periods for log in logs)
        self._noise = noise or SensorNoise()
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
        parts = zip(self.misses(prediction), self._noise, strict=True)
        return np.concatenate([off[:, np.isfinite(off[0])] / sigma for off, sigma in parts], axis=1)

    def misses(self, prediction: Prediction) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return predicted minus measured: head position (K, L, T + 1, 2) [m] and angle (K, L, T + 1) [rad] after the
        best move, joint angles (K, L, T + 1, J) [rad]; NaN: not measured."""
        measured, noise = self._measured["head_xy_m"] @ _COMPLEX, self._noise
        at = np.where(np.isnan(measured), np.nan, prediction.head_xy_m @ _COMPLEX)
        arm, wanted = (path - np.nanmean(path, axis=-1, keepdims=True) for path in (at, measured))
        off = prediction.head_angle_rad - self._measured["head_angle_rad"]
        pull = np.nansum(wanted * arm.conj(), axis=-1, keepdims=True) / noise.position_m**2
        pull += np.nansum(np.exp(-1j * off), axis=-1, keepdims=True) / noise.heading_rad**2
        turn = np.angle(pull)
        missed = arm * np.exp(1j * turn) - wanted
        return (
            np.stack([missed.real, missed.imag], axis=-1), np.remainder(off + turn + np.pi, 2.0 * np.pi) - np.pi,
            prediction.joint_angle_rad - self._measured["joint_angle_rad"],
        )  # fmt: skip

    def stretches(self, number: int) -> NDArray[np.int64]:
        """Return the stretch of time of each residual, from 0, with each run cut into ``number``."""
        n_logs, n_samples = self._measured["head_angle_rad"].shape
        cut = number * np.arange(n_logs)[:, None] + np.arange(n_samples) * number // n_samples
        parts = []
        for rows in self._measured.values():
            label = np.broadcast_to(cut.reshape(n_logs, n_samples, *(1,) * (rows.ndim - 2)), rows.shape)
            parts.append(label[np.isfinite(rows)])
        return np.unique(np.concatenate(parts), return_inverse=True)[1]


_COMPLEX = np.array([1.0, 1j])
"""Weights that make one complex number of (x, y)."""


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
