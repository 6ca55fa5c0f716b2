"""What a learning curve is compared with: the gaits that were tuned for its scenarios."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from snake_gym.agents import launch
from snake_gym.agents.references import play_references, tuned_entrants

from snake_gym.benchmark.scenarios import Scenarios
from snake_gym.config import load_yaml
from snake_gym.controllers import resolve_controller
from snake_gym.envs.task_settings import build_env

ROOT = Path(__file__).parents[2]
GAITS = ROOT / "configs" / "controllers" / "resilient_servo"


@pytest.mark.parametrize(
    ("recipe", "changes", "folder"),
    [
        ("ppo", (), "."), ("ppo", ("env.faults.n_max=1",), "."), ("free_joints", (), "free_joints"),
        ("resilience", (), "resilience"), ("resilience", ("env.time_limit_s=5",), "resilience"),
    ],
)  # fmt: skip
def test_the_gaits_are_those_of_the_suite(recipe: str, changes: tuple[str, ...], folder: str, tmp_path: Path) -> None:
    config = launch.plan_new(ROOT / f"configs/train/{recipe}.yaml", changes, tmp_path / "run").config
    env = replace(build_env(config.env_id, config.env), observation=build_env(config.env_id, {}).observation)
    found = {each.name: each.identity["controller"] for each in tuned_entrants(Scenarios(env, env.load_robot(), 0, 1))}
    assert found == {
        kind: resolve_controller(load_yaml(GAITS / folder / f"{kind}.yaml")["controller"])
        for kind in ("cc", "cpg", "fault_aware", "sjc")
    }


def test_gaits_that_suspect_nothing_play_beside_a_policy_that_is_told_what_its_base_suspects(tmp_path: Path) -> None:
    file = ROOT / "configs/train/resilience.yaml"
    config = launch.plan_new(file, ["env.time_limit_s=1", "eval.episodes=2"], tmp_path / "run").config
    played = play_references(config, tmp_path / "references", lambda: None)
    names = sorted(path.stem for path in (tmp_path / "references").iterdir())
    assert names == ["base", "cc", "cpg", "fault_aware", "sjc"]
    assert played.by_name().keys() > {"base"}
