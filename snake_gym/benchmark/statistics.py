"""Intervals over episodes for means and for functions of means, such as the ratio of two policies.

Episodes are resampled with all their columns together, so that paired scenarios stay paired. Intervals are
bias-corrected and accelerated (Efron 1987, "Better bootstrap confidence intervals"): skewed episodes do not shift them,
as they do percentile intervals.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest, bootstrap

from snake_gym.robot.spec import FloatArray

LEVEL = 0.95
RESAMPLES = 10_000
_CHUNK = 1_000_000
"""Number of resampled values held at once."""
_NONE = (float("nan"), float("nan"))

Statistic = Callable[[FloatArray], FloatArray]
"""Function that maps means (K, ...) of K columns to the statistic (...)."""


def mean_interval(values: ArrayLike, resamples: int = RESAMPLES, seed: int = 0) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean of ``values`` (n,); (nan, nan) if there are less than two."""
    return interval(np.asarray(values, dtype=np.float64)[None], lambda means: means[0], resamples, seed)


def share_interval(successes: ArrayLike) -> tuple[float, float]:
    """Return the 95 % interval of the share of true entries of ``successes`` (n,); (nan, nan) if there are none.

    Wilson's score interval: unlike a bootstrap it has a width even if all episodes succeed.
    """
    values = np.asarray(successes, dtype=bool)
    if values.size == 0:
        return _NONE
    found = binomtest(int(values.sum()), values.size).proportion_ci(LEVEL, method="wilson")
    return float(found.low), float(found.high)


def ratio_interval(
    values: ArrayLike, references: ArrayLike, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[float, float]:
    """Return the 95 % interval of mean(values) / largest mean of a reference, ``values`` (n,), ``references`` (R, n).

    Episodes are paired. The best reference is chosen again in every resample, so its uncertainty is included.
    """
    columns = np.vstack([np.asarray(values, dtype=np.float64), np.atleast_2d(np.asarray(references, dtype=np.float64))])

    def ratio(means: FloatArray) -> FloatArray:
        best = means[1:].max(axis=0)
        return np.asarray(np.where(best > 0.0, means[0] / best, np.nan))

    return interval(columns, ratio, resamples, seed)


def interval(
    columns: FloatArray, statistic: Statistic, resamples: int = RESAMPLES, seed: int = 0, level: float = LEVEL
) -> tuple[float, float]:
    """Return the BCa interval of ``statistic`` vectorised over trailing axes of means (K, ...), for ``columns`` (K, n).

    Episodes n are resampled with their K numbers; the same ``seed`` gives the same interval. It is (nan, nan) for
    fewer than two episodes or if the statistic is undefined in a resample, and low = high = the estimate if all are
    equal.
    """
    n = columns.shape[1]
    if n < 2:
        return _NONE
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy warns of equal episodes
        estimate = float(statistic(columns.mean(axis=1)))
        result = bootstrap(
            tuple(columns), lambda *drawn, axis: statistic(np.stack([column.mean(axis=axis) for column in drawn])),
            paired=True, vectorized=True, n_resamples=resamples, batch=max(1, _CHUNK // n), confidence_level=level,
            method="BCa", rng=np.random.default_rng(seed),
        )  # fmt: skip
    values = result.bootstrap_distribution
    if not (np.isfinite(estimate) and np.isfinite(values).all()):
        return _NONE
    if float(np.ptp(values)) <= 1e-12 * max(abs(estimate), 1e-300):
        return estimate, estimate
    return float(result.confidence_interval.low), float(result.confidence_interval.high)
