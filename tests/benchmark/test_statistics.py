"""Bootstrap intervals: they cover what they should, keep pairs together, and say so where they are undefined."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

from snake_gym.benchmark.statistics import mean_interval, ratio_interval, share_interval


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


def test_the_ratio_is_to_the_best_reference() -> None:
    rng = np.random.default_rng(6)
    learned, weak, strong = (rng.normal(mean, 0.2, 400) for mean in (3.0, 0.5, 2.0))
    low, high = ratio(learned, strong)
    assert ratio(learned, np.stack([weak, strong])) == [low, high]
    assert low < 1.5 < high
    assert high - low < 0.1


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
