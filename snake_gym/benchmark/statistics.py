"""Bootstrap intervals over episodes for means and for what is computed from means, such as the ratio of two policies.

Episodes are resampled with all their columns together, so that paired scenarios stay paired. Intervals are
bias-corrected and accelerated (Efron 1987, "Better bootstrap confidence intervals", eq. 6.7; the acceleration is the
jackknife's, Efron & Tibshirani 1993, eq. 14.15): skewed episodes do not shift them, as they do percentile intervals.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from snake_gym.robot.spec import FloatArray

LEVEL = 0.95
RESAMPLES = 10_000
_CHUNK = 1_000_000
"""Resampled numbers held at once."""

Statistic = Callable[[FloatArray], FloatArray]
"""Means (K, ...) of K columns in, the statistic (...) out."""


def mean_interval(values: ArrayLike, resamples: int = RESAMPLES, seed: int = 0) -> tuple[float, float]:
    """95 % confidence interval of the mean of ``values`` (n,); (nan, nan) where there are none."""
    return interval(np.asarray(values, dtype=np.float64)[None], lambda means: means[0], resamples, seed)


def share_interval(successes: ArrayLike) -> tuple[float, float]:
    """95 % interval of the share of true entries of ``successes`` (n,); (nan, nan) where there are none.

    Wilson's score interval (Wilson 1927; Agresti & Coull 1998): unlike a bootstrap it has a width where all episodes
    succeed.
    """
    values = np.asarray(successes, dtype=bool)
    n = values.size
    if n == 0:
        return float("nan"), float("nan")
    z = float(ndtri((1.0 + LEVEL) / 2.0))
    share = float(values.mean())
    middle = (share + z * z / (2.0 * n)) / (1.0 + z * z / n)
    half = z / (1.0 + z * z / n) * float(np.sqrt(share * (1.0 - share) / n + z * z / (4.0 * n * n)))
    return max(middle - half, 0.0), min(middle + half, 1.0)


def ratio_interval(
    values: ArrayLike, references: ArrayLike, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """95 % interval of mean(values) / max over references of mean(reference), episodes paired.

    Args:
        values: (n,).
        references: (R, n) in the same order of episodes. Which one is best is chosen again in every resample, so the
            interval also holds the uncertainty about which it is.
    """
    columns = np.vstack([np.asarray(values, dtype=np.float64), np.atleast_2d(np.asarray(references, dtype=np.float64))])

    def ratio(means: FloatArray) -> FloatArray:
        best = means[1:].max(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.where(best > 0.0, means[0] / best, np.nan))

    return interval(columns, ratio, resamples, seed)


def interval(
    columns: FloatArray, statistic: Statistic, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> tuple[float, float]:
    """BCa interval of ``statistic`` of the column means.

    Args:
        columns: (K, n) K numbers of each of n episodes.
        statistic: function of the means (K, ...), vectorised over the trailing axes.
        resamples: bootstrap resamples; the same ``seed`` gives the same interval.

    Returns:
        (low, high); (nan, nan) without episodes or where the statistic is undefined in a resample; low = high = the
        estimate where all episodes are equal.
    """
    n = columns.shape[1]
    if n == 0:
        return float("nan"), float("nan")
    estimate = float(statistic(columns.mean(axis=1)))
    values = statistic(_resampled_means(columns, resamples, np.random.default_rng(seed)))
    if not (np.isfinite(estimate) and np.isfinite(values).all()):
        return float("nan"), float("nan")
    if n == 1 or float(np.ptp(values)) <= 1e-12 * max(abs(estimate), 1e-300):
        return estimate, estimate
    below = (np.count_nonzero(values < estimate) + 0.5 * np.count_nonzero(values == estimate)) / resamples
    bias = float(ndtri(np.clip(below, 0.5 / resamples, 1.0 - 0.5 / resamples)))
    acceleration = _acceleration(columns, statistic)
    tails = np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    shifted = bias + ndtri(tails)
    low, high = np.quantile(values, ndtr(bias + shifted / (1.0 - acceleration * shifted)))
    return float(low), float(high)


def _resampled_means(columns: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Means (K, resamples) of the columns over episodes drawn with replacement."""
    n = columns.shape[1]
    rows = max(1, _CHUNK // n)
    parts = []
    for first in range(0, resamples, rows):
        drawn = rng.integers(0, n, size=(min(rows, resamples - first), n))
        parts.append(np.stack([column[drawn].mean(axis=1) for column in columns]))
    return np.concatenate(parts, axis=1)


def _acceleration(columns: FloatArray, statistic: Statistic) -> float:
    n = columns.shape[1]
    left_out = statistic((columns.sum(axis=1, keepdims=True) - columns) / (n - 1))
    spread = left_out.mean() - left_out
    power = float((spread**2).sum()) ** 1.5
    if not np.isfinite(power) or power == 0.0:
        return 0.0
    return float((spread**3).sum() / (6.0 * power))
