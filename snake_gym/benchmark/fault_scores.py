"""Scores of detectors of joint faults on logs with known truth: what they find, when, and what they see that is not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_gym.benchmark.fault_logs import KINDS, Detector, FaultLog
from snake_gym.controllers.fault_detection import HEALTHY
from snake_gym.controllers.learned_detection import CODES
from snake_gym.physics.faults import FAULT_CODES
from snake_gym.robot.spec import FloatArray


class FaultScores(NamedTuple):
    """Scores of one detector; those of several logs can be added with ``pool``."""

    kind: NDArray[np.int64]
    """Place in ``KINDS`` of each fault (K,) that acts at the end of its log."""
    delay_s: FloatArray
    """Time from its onset to the first alarm (K,) [s]; NaN: none."""
    named: FloatArray
    """Code of the detector's estimate at the end (K,)."""
    severity_error: FloatArray
    """Size of the error of the severity at the end (K,); NaN where the kind is not named right or has none."""
    false_alarms: float
    """Number of alarms that begin on a healthy joint."""
    flagged_h: float
    """Time in which healthy joints were called failed [h]."""
    healthy_h: float
    """Time of healthy joints [h]."""

    def found(self, kind: str) -> float:
        """Return the share of the faults of one kind that raised an alarm; NaN if there are none."""
        return mean(np.isfinite(self.delay_s[self.kind == KINDS.index(kind)]))

    def confusion(self, kind: str) -> list[float]:
        """Return the shares of the estimates at the end for faults of one kind, in the order of ``CODES``."""
        named = self.named[self.kind == KINDS.index(kind)]
        return [mean(named == code) for code in CODES.values()]

    def delay_quantile_s(self, kind: str, share: float) -> float:
        """Return the delay that ``share`` of all faults of one kind do not exceed [s]; inf if fewer are found."""
        delays = self.delay_s[self.kind == KINDS.index(kind)]
        delays = np.where(np.isnan(delays), np.inf, delays)
        return float(np.quantile(delays, share, method="higher")) if delays.size else float("nan")


def mean(values: NDArray[np.generic]) -> float:
    """Return the mean, NaN of nothing."""
    return float(values.mean()) if values.size else float("nan")


def listen(detector: Detector, log: FaultLog) -> tuple[FloatArray, FloatArray]:
    """Return the estimates (T, W, J) of a detector and their severities (NaN if it has none)."""
    state = detector.initial_state(log.kind.shape[1])
    estimates, severities = [], []
    nothing = np.full(log.kind.shape[1:], np.nan)
    for measurement, reference in zip(log.measurements(), log.reference, strict=True):
        estimates.append(detector.update(state, measurement, log.spec.control_dt_s).copy())
        severities.append(state.get("severity", nothing).copy())
        detector.command_given(state, reference)
    return np.array(estimates), np.array(severities)


def score(estimate: FloatArray, severity: FloatArray, log: FaultLog) -> FaultScores:
    """Return the scores of estimates (T, W, J); the faults of ``log`` last from their onset on."""
    dt_s, acts, alarm = log.spec.control_dt_s, log.kind != FAULT_CODES["healthy"], estimate != HEALTHY
    failed = acts[-1]
    onset = acts.argmax(axis=0)
    late = np.where(alarm & acts, np.arange(len(acts))[:, None, None] - onset, np.inf).min(axis=0)[failed] * dt_s
    begins = int((alarm[1:] & ~alarm[:-1] & ~acts[1:]).sum()) + int((alarm[0] & ~acts[0]).sum())
    codes = np.array([FAULT_CODES[kind] for kind in KINDS])
    kind = (log.kind[-1][failed][:, None] == codes).argmax(axis=1)
    right = np.array([CODES[name] for name in KINDS])[kind] == estimate[-1][failed]
    has_size = np.isin(kind, [KINDS.index(name) for name in ("weak", "slow", "offset")])
    error = np.abs(severity[-1] - log.severity[-1])[failed]
    hour = dt_s / 3600.0
    return FaultScores(
        kind, np.where(np.isinf(late), np.nan, late), estimate[-1][failed], np.where(right & has_size, error, np.nan),
        float(begins), float((alarm & ~acts).sum()) * hour, float((~acts).sum()) * hour,
    )  # fmt: skip


def pool(scores: Sequence[FaultScores]) -> FaultScores:
    """Return the scores of several logs as those of one."""
    columns: list[Any] = [np.concatenate([getattr(one, name) for one in scores]) for name in FaultScores._fields[:4]]
    columns += [float(sum(getattr(one, name) for one in scores)) for name in FaultScores._fields[4:]]
    return FaultScores(*columns)
