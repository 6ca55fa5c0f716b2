"""Seeds of training, benchmarks and tuning do not meet, and who crosses over is told."""

from __future__ import annotations

import itertools

from snake_gym.benchmark.seed_ranges import RANGES, seed_note, uses
from snake_gym.benchmark.tuning import SEED_BASE


def test_the_ranges_follow_one_another() -> None:
    assert RANGES[0].first == 0
    assert all(before.end == after.first for before, after in itertools.pairwise(RANGES))
    assert uses(SEED_BASE, 1) == ["tuning"]


def test_seeds_of_another_use_are_named() -> None:
    assert uses(499_999, 1) == ["training"]
    assert uses(499_999, 2) == ["training", "evaluation during training"]
    assert seed_note(1_999_900, 100) is None
    note = seed_note(1_999_900, 101)
    assert note is not None
    assert "seeds 1999900 to 2000000 are among those of tuning" in note
