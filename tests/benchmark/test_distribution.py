"""Numbers beyond the mean, worked out again in plain loops that share no code with ours."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from snake_gym.benchmark.report import summarise, tables
from snake_gym.benchmark.statistics import (
    compare_scores,
    interval,
    iqm,
    mean_interval,
    spread,
    value_interval,
    worst_tenth,
)
from tests.benchmark.test_report import episodes

RNG = np.random.default_rng(3)


def plays(*shape: int, **how: Any) -> np.ndarray:
    return np.random.default_rng(how.get("seed", 1)).normal(how.get("mean", 0.0), 1.0, shape)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 10, 11, 30, 70, 101])
def test_iqm_and_worst_tenth_by_sorting(n: int) -> None:
    values = RNG.normal(size=n)
    ranked = sorted(values.tolist())
    cut, count = n // 4, math.ceil(n / 10)
    assert float(iqm(values)) == pytest.approx(sum(ranked[cut : n - cut]) / (n - 2 * cut))
    assert float(worst_tenth(values)) == pytest.approx(sum(ranked[:count]) / count)


def test_probability_of_improvement_counts_ties_half_over_all_pairs_of_plays() -> None:
    own, other = (RNG.integers(0, 4, size).astype(float) for size in ((6, 20), (4, 20)))
    wins = 0.0
    for i in range(20):
        for x in own[:, i]:
            for y in other[:, i]:
                wins += 1.0 if x > y else 0.5 if x == y else 0.0
    found = compare_scores(own, other, 300)
    assert found["probability_of_improvement"] == pytest.approx(wins / (20 * 6 * 4))
    low, high = found["probability_of_improvement_ci95"]
    assert low < found["probability_of_improvement"] < high
    reverse = compare_scores(other, own, 300)
    assert reverse["probability_of_improvement"] == pytest.approx(1.0 - found["probability_of_improvement"])
    assert reverse["lead"] == pytest.approx(-found["lead"])


def two_way(values: np.ndarray, resamples: int) -> list[float]:
    found = mean_interval(values, resamples)
    assert found is not None
    return found


def test_the_two_way_interval_against_a_brute_force_bootstrap() -> None:
    """4 trainings x 30 scenarios with effects of both, the mean resampled in plain loops over drawn cells."""
    rng = np.random.default_rng(8)
    values = rng.normal(0, 1.0, (4, 1)) + rng.normal(0, 1.0, (1, 30)) + rng.normal(0, 0.3, (4, 30))
    drawn = []
    for _ in range(4000):
        rows, columns = rng.integers(0, 4, 4), rng.integers(0, 30, 30)
        drawn.append(np.mean([[values[i, j] for j in columns] for i in rows]))
    percentiles = np.percentile(drawn, [2.5, 97.5])
    low, high = two_way(values, 4000)
    width = percentiles[1] - percentiles[0]
    assert high - low == pytest.approx(width, rel=0.1)
    assert [low, high] == pytest.approx(percentiles.tolist(), abs=0.15 * width)
    one_way = two_way(values.mean(axis=0), 4000)
    assert one_way[1] - one_way[0] < 0.7 * (high - low)


def test_further_factors_of_size_one_and_equal_trainings_change_nothing() -> None:
    values = plays(25, seed=6)

    def first(means: np.ndarray) -> np.ndarray:
        return np.asarray(means[0])

    alone = interval(values[None], first, 500)
    assert interval(values[None, None, None], first, 500) == alone
    assert value_interval(values[None], lambda drawn: drawn.mean(axis=-1), 500) == pytest.approx(alone)
    same = mean_interval(np.tile(values, (3, 1)), 4000)
    assert same == pytest.approx(mean_interval(values, 4000), abs=0.06)


@pytest.mark.parametrize(
    "progress", [np.array([2.0]), np.full(12, 1.5), np.zeros(12), np.array([1.0, math.nan, 2.0]), np.full(3, math.nan)]
)
def test_edge_cases_are_told_without_failing(progress: np.ndarray) -> None:
    """One episode, all equal, a policy that fails everywhere, and scores that are no number."""
    n = progress.size
    other = episodes("sjc", n=n, progress_m=np.ones(n))
    summary = summarise([episodes("ppo", "learned", n=n, progress_m=progress), other], 200, ("ppo",), 98.1)
    policy = json.loads(json.dumps(summary, allow_nan=False))["policies"]["ppo"]
    known = bool(np.isfinite(progress).all())
    assert (policy["iqm"] is None) == (policy["worst_tenth"] is None) == (not known)
    if known:
        assert policy["iqm"] == policy["worst_tenth"] == progress[0]
    assert (policy["cost_of_transport"] is None) == (not known or progress.sum() == 0.0)
    assert (policy["against"]["sjc"]["lead"] is None) == (not known)
    assert (policy["iqm_ci95"] is None) == (not known or n == 1)
    assert len(tables(summary, "")) == 2
    assert summary["best_classical"] == "sjc"


@pytest.mark.parametrize("successes", [1, 8, 30, 32, 45, 62, 63])
def test_scores_of_success_have_intervals_of_their_spread(successes: int) -> None:
    """Where leaving out any one episode changes nothing, BCa is undefined and the percentile interval stands for it."""
    scores = (np.arange(64) < successes).astype(float)[None]
    told = spread(scores, 500)
    for name in ("iqm", "worst_tenth"):
        low, high = told[f"{name}_ci95"]
        assert 0.0 <= low <= told[name] <= high <= 1.0
