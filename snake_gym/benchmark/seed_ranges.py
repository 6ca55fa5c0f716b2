"""Ranges of scenario seeds by use, so that no policy is judged on scenarios that influenced a decision."""

from __future__ import annotations

from typing import NamedTuple


class SeedRange(NamedTuple):
    """Scenario seeds ``first`` to ``end - 1``."""

    use: str
    first: int
    end: int


TRAINING = SeedRange("training", 0, 500_000)
EVALUATION = SeedRange("evaluation during training", TRAINING.end, 1_000_000)
BENCHMARK = SeedRange("benchmarks", EVALUATION.end, 2_000_000)
TUNING = SeedRange("tuning", BENCHMARK.end, 2**31)
RANGES = (TRAINING, EVALUATION, BENCHMARK, TUNING)


def seed_note(first: int, count: int) -> str | None:
    """Return a note on scenarios with the seeds ``first`` and up if some are not for benchmarks; else None."""
    others = [each.use for each in RANGES if first < each.end and first + count > each.first and each != BENCHMARK]
    if not others:
        return None
    return (
        f"seeds {first} to {first + count - 1} are among those of {' and '.join(others)}: these scenarios may be known "
        f"to who is compared; seeds {BENCHMARK.first} to {BENCHMARK.end - 1} are for benchmarks"
    )
