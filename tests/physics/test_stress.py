"""A share of benchmarks/stress.py with its bars."""

from __future__ import annotations

import pytest

from benchmarks.stress import MOST_ENERGY, Episode, run_group, run_servos
from snake_gym.robot.spec import ContactModel

MODELS = pytest.mark.parametrize("model", ["rigid", "stiff"])


def expect_bars(episodes: list[Episode]) -> None:
    for episode in episodes:
        assert not episode.broken(), episode


@MODELS
def test_a_few_seconds_of_thrashing_break_nothing(model: ContactModel) -> None:
    episodes = run_group(0, 4.0, [model])
    expect_bars(episodes)
    assert max(episode.contacts for episode in episodes) > 0.1


@pytest.mark.parametrize("seed", [1, 7])
def test_stiff_servos_between_stops_gain_no_more_than_their_motors_can_give(seed: int) -> None:
    group = run_servos(seed, 4.0)
    assert group.finite
    assert group.surge <= MOST_ENERGY, group
    assert group.stood <= 1e-3 * group.solutions, group
