"""Seeds of training, benchmarks and tuning do not meet, and who crosses over is told."""

from __future__ import annotations

import itertools

from snake_gym.benchmark.seed_ranges import RANGES, seed_note


def test_the_ranges_follow_one_another() -> None:
    assert RANGES[0].first == 0
    assert all(before.end == after.first for before, after in itertools.pairwise(RANGES))


def test_seeds_of_another_use_are_named() -> None:
    assert "among those of training and evaluation during training:" in str(seed_note(499_999, 2))
    assert seed_note(1_999_900, 100) is None
    assert "seeds 1999900 to 2000000 are among those of tuning" in str(seed_note(1_999_900, 101))
