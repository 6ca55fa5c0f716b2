"""Statistics against plain loops and published values; intervals cover what they should and keep pairs together."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from numpy.typing import ArrayLike

from snake_gym.benchmark.report import summarise, tables
from snake_gym.benchmark.statistics import (
    compare_scores,
    interval,
    iqm,
    mean_interval,
    ratio_interval,
    share_interval,
    spread,
    value_interval,
    worst_tenth,
)
from tests.benchmark.test_report import episodes


def test_mean_interval_covers_the_truth_as_often_as_it_says() -> None:
    """400 samples of 60, exponential with mean 1: near 95 % of the intervals hold 1 (3 sigma of a binomial: 3.3 %)."""
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(400):
        low, high = mean_interval(rng.exponential(1.0, 60), resamples=400) or (np.nan, np.nan)
        hits += low <= 1.0 <= high
    assert 0.90 <= hits / 400 <= 0.985


def ratio(values: ArrayLike, references: ArrayLike) -> list[float]:
    found = ratio_interval(values, references)
    assert found is not None
    return found


def test_pairing_narrows_the_ratio() -> None:
    rng = np.random.default_rng(5)
    difficulty = rng.exponential(3.0, 300)
    learned, classical = 2.0 * difficulty + rng.normal(0, 0.1, 300), difficulty + rng.normal(0, 0.1, 300)
    paired = ratio(learned, classical)
    shuffled = ratio(learned, rng.permutation(classical))
    assert paired[0] < 2.0 < paired[1]
    assert (paired[1] - paired[0]) < 0.2 * (shuffled[1] - shuffled[0])


def test_equal_values_give_a_point_and_what_is_undefined_gives_none() -> None:
    assert mean_interval([0.3, 0.3, 0.3]) == pytest.approx([0.3, 0.3])
    for values in ([], [4.0], [1.0, np.nan]):
        assert mean_interval(values) is None
    assert ratio_interval([1.0], [2.0]) is None
    assert ratio_interval([1.0, 2.0], [0.0, 0.0]) is None
    assert share_interval([]) is None


def test_share_interval_against_published_values() -> None:
    # Newcombe 1998 (Stat. Med. 17), table I, method 3: 81/263, 15/148, 0/20, 1/29; and 1/1: 1 / (1 + 1.96^2)
    published = (
        (81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718),
        (1, 1, 0.2065, 1.0),
    )  # fmt: skip
    for r, n, low, high in published:
        assert share_interval(np.arange(n) < r) == pytest.approx([low, high], abs=6e-5)


# --- trainings and scenarios; numbers beyond the mean, in plain loops -------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3, 4, 9, 10, 11, 30, 70, 101])
def test_iqm_and_worst_tenth_by_sorting(n: int) -> None:
    values = np.random.default_rng(3).normal(size=n)
    ranked = sorted(values.tolist())
    cut, count = n // 4, math.ceil(n / 10)
    assert float(iqm(values)) == pytest.approx(sum(ranked[cut : n - cut]) / (n - 2 * cut))
    assert float(worst_tenth(values)) == pytest.approx(sum(ranked[:count]) / count)


def test_probability_of_improvement_counts_ties_half_over_all_pairs_of_plays() -> None:
    rng = np.random.default_rng(3)
    own, other = (rng.integers(0, 4, size).astype(float) for size in ((6, 20), (4, 20)))
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


def test_the_two_way_interval_against_a_brute_force_bootstrap() -> None:
    """4 trainings x 30 scenarios with effects of both, the mean resampled in plain loops over drawn cells."""
    rng = np.random.default_rng(8)
    values = rng.normal(0, 1.0, (4, 1)) + rng.normal(0, 1.0, (1, 30)) + rng.normal(0, 0.3, (4, 30))
    drawn = []
    for _ in range(4000):
        rows, columns = rng.integers(0, 4, 4), rng.integers(0, 30, 30)
        drawn.append(np.mean([[values[i, j] for j in columns] for i in rows]))
    percentiles = np.percentile(drawn, [2.5, 97.5])
    low, high = mean_interval(values, 4000) or (0.0, 0.0)
    width = percentiles[1] - percentiles[0]
    assert high - low == pytest.approx(width, rel=0.1)
    assert [low, high] == pytest.approx(percentiles.tolist(), abs=0.15 * width)
    one_way = mean_interval(values.mean(axis=0), 4000) or (0.0, 99.0)
    assert one_way[1] - one_way[0] < 0.7 * (high - low)


def test_further_factors_of_size_one_and_equal_trainings_change_nothing() -> None:
    values = np.random.default_rng(6).normal(0.0, 1.0, 25)

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


@pytest.mark.parametrize("successes", [1, 8, 32, 63])
def test_where_no_single_episode_changes_the_estimate_the_percentile_interval_stands(successes: int) -> None:
    found = spread((np.arange(64) < successes).astype(float)[None], 500)
    for name in ("iqm", "worst_tenth"):
        low, high = found[f"{name}_ci95"]
        assert 0.0 <= low <= found[name] <= high <= 1.0
