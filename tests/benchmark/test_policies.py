"""Paths of several trainings of one recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from snake_gym.benchmark.policies import training_names, training_paths
from snake_gym.config import ConfigError


def test_a_glob_and_a_folder_stand_for_the_runs_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for seed in (2, 10, 1):
        (tmp_path / f"ppo_seed{seed}" / "policy" / "best").mkdir(parents=True)
        (tmp_path / f"ppo_seed{seed}" / "policy" / "best" / "policy.json").touch()
    expected = tuple(str(tmp_path / f"ppo_seed{seed}") for seed in (1, 2, 10))
    assert training_paths("ppo", str(tmp_path / "ppo_seed*")) == expected
    assert training_paths("ppo", str(tmp_path)) == expected
    assert training_paths("ppo", expected[:2]) == expected[:2]
    assert training_paths("ppo", expected[0]) == expected[:1]
    assert training_paths("ppo", "module:make") == ("module:make",)
    assert training_names(expected) == ["ppo_seed1", "ppo_seed2", "ppo_seed10"]
    assert training_names(["a/best", "b/best"]) == ["a/best", "b/best"]
    for given, fault in (("nothing_*", r"ppo=nothing_.* fits no path"), (("a", "a"), "expected each training once")):
        with pytest.raises(ConfigError, match=fault):
            training_paths("ppo", given)
