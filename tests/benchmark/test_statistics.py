"""Bootstrap intervals: they cover what they should, keep pairs together, and say so where they are undefined."""

from __future__ import annotations

import math

import numpy as np
import pytest

from snake_gym.benchmark.statistics import mean_interval, ratio_interval, share_interval


def test_mean_interval_covers_the_truth_as_often_as_it_says() -> None:
    """400 samples of 60, exponential with mean 1: near 95 % of the intervals hold 1 (3 sigma of a binomial: 3.3 %)."""
    rng = np.random.default_rng(0)
    hits = 0
    for trial in range(400):
        low, high = mean_interval(rng.exponential(1.0, 60), resamples=400, seed=trial)
        hits += low <= 1.0 <= high
    assert 0.90 <= hits / 400 <= 0.985


def test_pairing_narrows_the_ratio() -> None:
    rng = np.random.default_rng(5)
    difficulty = rng.exponential(3.0, 300)
    learned, classical = 2.0 * difficulty + rng.normal(0, 0.1, 300), difficulty + rng.normal(0, 0.1, 300)
    paired = ratio_interval(learned, classical)
    shuffled = ratio_interval(learned, rng.permutation(classical))
    assert paired[0] < 2.0 < paired[1]
    assert (paired[1] - paired[0]) < 0.2 * (shuffled[1] - shuffled[0])


def test_the_ratio_is_to_the_best_reference() -> None:
    rng = np.random.default_rng(6)
    learned, weak, strong = (rng.normal(mean, 0.2, 400) for mean in (3.0, 0.5, 2.0))
    alone = ratio_interval(learned, strong)
    assert ratio_interval(learned, np.stack([weak, strong])) == alone
    low, high = alone
    assert low < 1.5 < high
    assert high - low < 0.1


def test_equal_values_give_a_point() -> None:
    assert mean_interval([0.3, 0.3, 0.3]) == pytest.approx((0.3, 0.3))


def test_one_episode_has_no_interval() -> None:
    assert all(math.isnan(bound) for bound in mean_interval([4.0]))
    assert all(math.isnan(bound) for bound in ratio_interval([1.0], [2.0]))
    assert share_interval([True]) == pytest.approx((0.2065, 1.0), abs=6e-5)  # Wilson's has a width: 1 / (1 + 1.96^2)


def test_what_is_undefined_is_nan() -> None:
    assert all(math.isnan(bound) for bound in mean_interval([]))
    assert all(math.isnan(bound) for bound in mean_interval([1.0, math.nan]))
    assert all(math.isnan(bound) for bound in ratio_interval([1.0, 2.0], [0.0, 0.0]))


def test_share_interval_against_published_values_and_at_the_ends() -> None:
    # Newcombe 1998 (Stat. Med. 17), table I, method 3: 81/263, 15/148, 0/20, 1/29
    published = ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718))
    for r, n, low, high in published:
        found = share_interval(np.arange(n) < r)
        assert found == pytest.approx((low, high), abs=6e-5)
    low, high = share_interval(np.ones(50, bool))
    assert high == 1.0 and 0.92 < low < 0.94
    assert np.isnan(share_interval(np.zeros(0, bool))).all()
