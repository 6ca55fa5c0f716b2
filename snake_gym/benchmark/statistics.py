"""Intervals over episodes for means and for functions of means, such as the ratio of two policies.

Episodes are resampled with all their columns together, so that paired scenarios stay paired. Intervals are
bias-corrected and accelerated (Efron 1987, "Better bootstrap confidence intervals"): skewed episodes do not shift them,
as they do percentile intervals.

Several trainings of one recipe are a second factor: trainings and scenarios are resampled independently of each other,
and a resample holds every drawn training in every drawn scenario (Owen 2007, "The pigeonhole bootstrap"). With T
trainings the part of the variance that comes from them is too small by (T - 1) / T, as in any bootstrap of T values.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest, bootstrap, trim_mean

from snake_gym.robot.spec import FloatArray

LEVEL = 0.95
RESAMPLES = 10_000
_CHUNK = 1_000_000
"""Number of resampled values held at once."""

Interval = list[float] | None
"""Low and high end; None where it is undefined."""
Statistic = Callable[[FloatArray], FloatArray]
"""Function that maps means (K, ...) of K columns, or values (..., m), to the statistic (...)."""


def mean_interval(values: ArrayLike, resamples: int = RESAMPLES) -> Interval:
    """Return the 95 % confidence interval of the mean of ``values`` (n,) or, of T trainings, (T, n)."""
    return interval(np.asarray(values, dtype=np.float64)[None], lambda means: means[0], resamples)


def share_interval(successes: ArrayLike) -> Interval:
    """Return the 95 % interval of the share of true entries of ``successes`` (n,); None if there are none.

    Wilson's score interval: unlike a bootstrap it has a width even if all episodes succeed.
    """
    values = np.asarray(successes, dtype=bool)
    if values.size == 0:
        return None
    found = binomtest(int(values.sum()), values.size).proportion_ci(LEVEL, method="wilson")
    return [float(found.low), float(found.high)]


def ratio_interval(values: ArrayLike, references: ArrayLike, resamples: int = RESAMPLES) -> Interval:
    """Return the 95 % interval of mean(values) / largest mean of a reference, ``values`` (n,), ``references`` (R, n).

    ``values`` of T trainings are (T, n). Episodes are paired. The best reference is chosen again in every resample, so
    its uncertainty is included.
    """
    own, others = np.asarray(values, dtype=np.float64), np.atleast_2d(np.asarray(references, dtype=np.float64))
    columns = np.stack(np.broadcast_arrays(own, *others))

    def ratio(means: FloatArray) -> FloatArray:
        best = means[1:].max(axis=0)
        return np.asarray(np.where(best > 0.0, means[0] / best, np.nan))

    return interval(columns, ratio, resamples)


def interval(columns: FloatArray, statistic: Statistic, resamples: int = RESAMPLES) -> Interval:
    """Return the BCa interval of ``statistic`` vectorised over trailing axes of means (K, ...), for ``columns`` (K, n).

    Episodes n are resampled with their K numbers. ``columns`` (K, T, ..., n) have further factors, such as trainings,
    each of which is resampled independently. It is None for fewer than two episodes or if the statistic is undefined in
    a resample, and low = high = the estimate if all are equal. Where BCa is undefined, as no single episode changes the
    estimate, it is the percentile interval. The same input gives the same interval.
    """
    sizes, n = [size for size in columns.shape[1:-1] if size > 1], columns.shape[-1]
    columns = columns.reshape(len(columns), *sizes, n)

    def of_samples(*drawn: FloatArray, axis: int) -> FloatArray:
        return statistic(np.stack([column.mean(axis=axis) for column in drawn]))

    def of_factors(*drawn: NDArray[np.int64], axis: int) -> FloatArray:
        return statistic(_means(columns, drawn))

    if not sizes:
        return _bca(tuple(columns), of_samples, n, True, resamples)
    indices = tuple(np.arange(size) for size in (*sizes, n))
    return _bca(indices, of_factors, columns.size // sizes[0], False, resamples)


def value_interval(values: FloatArray, statistic: Statistic, resamples: int = RESAMPLES) -> Interval:
    """Return the 95 % BCa interval of a statistic of all ``values`` (T, n) of T trainings in n scenarios together.

    See ``interval``; the difference is that ``statistic`` is no function of means, as a trimmed mean.
    """
    n_trainings, n = values.shape

    def of_values(drawn: FloatArray, axis: int) -> FloatArray:
        return statistic(drawn)

    def of_factors(training: NDArray[np.int64], episode: NDArray[np.int64], axis: int) -> FloatArray:
        drawn = values[training[..., :, None], episode[..., None, :]]
        return statistic(drawn.reshape(*drawn.shape[:-2], -1))

    if n_trainings == 1:
        return _bca((values[0],), of_values, n, True, resamples)
    return _bca((np.arange(n_trainings), np.arange(n)), of_factors, values.size, False, resamples)


def _means(columns: FloatArray, drawn: Sequence[NDArray[np.int64]]) -> FloatArray:
    """Return the means (K, ...) of ``columns`` (K, T, ..., n) over drawn indices (..., size) of each factor."""
    weights = [_weights(each, size) for each, size in zip(drawn, columns.shape[1:], strict=True)]
    means = columns @ weights.pop().T
    for share in reversed(weights):
        means = np.einsum("...tb,bt->...b", means, share)
    return means.reshape(-1, *drawn[-1].shape[:-1])


def _weights(drawn: NDArray[np.int64], size: int) -> FloatArray:
    """Return the weights (B, size) of ``size`` entries in the means over drawn indices (..., m), B sets of them."""
    sets = drawn.reshape(-1, drawn.shape[-1])
    places = sets + size * np.arange(len(sets))[:, None]
    return np.bincount(places.ravel(), minlength=len(sets) * size).reshape(-1, size) / sets.shape[1]


def _bca(
    data: tuple[NDArray[Any], ...], statistic: Callable[..., FloatArray], size: int, paired: bool, resamples: int
) -> Interval:
    """Return scipy's interval, or what stands for it where it has none; see ``interval``.

    ``size``: number of values in one resample.
    """
    if len(data[-1]) < 2:
        return None
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scipy warns of equal episodes
        estimate = float(statistic(*data, axis=-1))
        result = bootstrap(
            data, statistic, paired=paired, vectorized=True, n_resamples=resamples, batch=max(1, _CHUNK // size),
            confidence_level=LEVEL, method="BCa", rng=np.random.default_rng(0),
        )  # fmt: skip
    values = result.bootstrap_distribution
    if not (np.isfinite(estimate) and np.isfinite(values).all()):
        return None
    if float(np.ptp(values)) <= 1e-12 * max(abs(estimate), 1e-300):
        return [estimate, estimate]
    ends = np.array(result.confidence_interval)
    if not np.isfinite(ends).all():  # the jackknife's values are all equal: the percentile interval
        ends = np.quantile(values, [0.5 - 0.5 * LEVEL, 0.5 + 0.5 * LEVEL])
    return [float(end) for end in ends]


def iqm(values: FloatArray) -> FloatArray:
    """Return the interquartile mean (...) of values (..., m)."""
    return np.asarray(trim_mean(values, 0.25, axis=-1))


def worst_tenth(values: FloatArray) -> FloatArray:
    """Return the mean (...) of the lowest tenth, rounded up, of values (..., m)."""
    count = -(-values.shape[-1] // 10)
    return np.asarray(np.partition(values, count - 1, axis=-1)[..., :count].mean(axis=-1))


def spread(scores: FloatArray, resamples: int) -> dict[str, Any]:
    """Return ``seed_means``, and ``iqm`` and ``worst_tenth`` with their intervals; None where scores are not finite.

    The interval of the worst tenth is too high: of normal scores it holds the truth in 86 % of samples of 64 scenarios
    and 94 % of 512, and mostly lies above it.
    """
    found: dict[str, Any] = {"seed_means": [number(mean) for mean in scores.mean(axis=1)]}
    known = bool(np.isfinite(scores).all() and scores.size)
    for name, statistic in (("iqm", iqm), ("worst_tenth", worst_tenth)):
        found[name] = number(statistic(scores.reshape(-1))) if known else None
        found[f"{name}_ci95"] = value_interval(scores, statistic, resamples) if known else None
    return found


def compare_scores(own: FloatArray, reference: FloatArray, resamples: int) -> dict[str, Any]:
    """Return probability of improvement (ties count half) and lead over a reference in the same scenarios.

    Intervals resample the scenarios, and the trainings of both, each independently.
    """
    names = ("probability_of_improvement", "lead")
    found: dict[str, Any] = dict.fromkeys([*names, *(f"{name}_ci95" for name in names)])
    if not (np.isfinite(own).all() and np.isfinite(reference).all()):
        return found
    pair = np.stack(np.broadcast_arrays(own[:, None], reference[None]))
    better = (pair[0] > pair[1]) + 0.5 * (pair[0] == pair[1])
    found["probability_of_improvement"] = number(better.mean())
    found["probability_of_improvement_ci95"] = interval(better[None], lambda means: means[0], resamples)
    found["lead"] = number(pair[0].mean() - pair[1].mean())
    found["lead_ci95"] = interval(pair, lambda means: means[0] - means[1], resamples)
    return found


def number(value: Any) -> float | None:
    """Return a number for JSON; None if it is not finite."""
    return float(value) if math.isfinite(value) else None
