"""Numbers on a policy's scores beyond their mean, and on two policies' scores in the same scenarios.

The interquartile mean and the probability of improvement are those of Agarwal et al. 2021, "Deep reinforcement
learning at the edge of the statistical precipice", and its library rliable; a scenario stands for a task there.
Scores are (T, n): trainings, scenarios.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import trim_mean

from snake_gym.benchmark.statistics import interval, value_interval
from snake_gym.robot.spec import FloatArray


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
