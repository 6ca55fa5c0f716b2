"""Without a benchmark, policies play on the robot and in the env that they were trained with; else it is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from snake_gym.benchmark import evaluate, runner
from snake_gym.benchmark.scenarios import BenchmarkConfig, classical_entrant, make_scenarios
from snake_gym.config import ConfigError, dump_yaml, merge
from tests.agents.runs import untrained

ROOT = Path(__file__).parents[2]
FIELD = "SnakeGym/ObstacleField-v0"
FREE = {
    "time_limit_s": 4.0, "faults": {"n_min": 1, "n_max": 1, "kinds": ["free"]}, "course": {"radius_m": 0.3},
    "start": {"amplitude_rad": 0.6, "phase_shift_rad": 0.5236},
}  # fmt: skip


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("policies")
    untrained(root / "free", FREE)
    untrained(root / "told", merge(FREE, {"faults": {"reveal": True}, "reward": {"progress": 3.0}}))
    untrained(root / "longer", merge(FREE, {"time_limit_s": 6.0}))
    untrained(root / "field", {"time_limit_s": 2.0, "field": {"kind": "forest"}}, FIELD)
    heavy = {"preset": "resilient_servo", "name": "heavy", "link_mass_kg": 1.5}
    untrained(root / "heavy", merge(FREE, {"robot": heavy}))
    return root


def config_of(*arguments: Any) -> BenchmarkConfig:
    return evaluate.read_config(evaluate.parse([str(argument) for argument in arguments]))


def play(tmp_path: Path, *arguments: Any) -> Any:
    out = tmp_path / "out"
    evaluate.main([*map(str, arguments), "--episodes", "3", "--no-pictures", "--out", str(out)])
    return json.loads((out / "results.json").read_text())


def test_a_policy_plays_in_its_own_env_against_what_is_tuned_for_its_robot(policies: Path, tmp_path: Path) -> None:
    results = play(tmp_path, "--policy", f"mine={policies}/free")
    assert list(results["policies"]) == ["mine", "sjc", "cc", "cpg", "fault_aware"]
    env = results["config"]["env"]
    assert (env["time_limit_s"], env["course"]["radius_m"], env["faults"]["kinds"]) == (4.0, 0.3, ["free"])
    assert set(results["policies"]["mine"]["by_faults"]) == {"1"}
    (note,) = results["notes"]  # the gaits were tuned for locked joints; the policy is at home
    assert note.startswith("sjc, cc, cpg, fault_aware: tuned in other scenarios: ")
    assert "faults.kinds ['free'] for ['locked']" in note


def test_controllers_named_for_an_env_need_no_policy(tmp_path: Path) -> None:
    dump_yaml({"time_limit_s": 2}, tmp_path / "short.yaml")
    dump_yaml({"kind": "cc", "amplitude_rad": 0.4}, tmp_path / "flat.yaml")
    results = play(tmp_path, "--env", tmp_path / "short.yaml", "--controllers", f"sjc,flat={tmp_path}/flat.yaml")
    assert list(results["policies"]) == ["sjc", "flat"]


def test_opponents_are_blind_and_another_robot_without_tuned_gaits_is_said(
    policies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = config_of("--policy", policies / "told")
    assert (config.env["faults"]["reveal"], config.env["reward"]["progress"]) == (False, 3.0)
    config = config_of("--policy", policies / "heavy")
    assert config.controllers == ()
    assert make_scenarios(config).spec.link_mass_kg == 1.5
    assert "note: no controller is tuned for robot heavy, so there is no classical" in capsys.readouterr().err


def test_policies_of_one_env_play_together_and_others_are_told_what_to_do(policies: Path) -> None:
    both = config_of("--policy", policies / "free", "--policy", policies / "told")
    assert list(both.policies) == ["free", "told"]
    for other, difference in (
        ("longer", r"time_limit_s 6 for 4"), ("field", FIELD), ("heavy", r"trained on resilient_servo, plays on heavy"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=rf"policies free and {other} .*\({other}: .*{difference}") as caught:
            config_of("--policy", policies / "free", "--policy", policies / other)
        assert "say what to play: --env FILE" in str(caught.value)
    config = config_of(
        "--policy", policies / "free", "--policy", policies / "longer", "--env", "configs/env/locked_joints.yaml"
    )
    assert (config.env["time_limit_s"], config.env["faults"]["kinds"]) == (60, ["locked"])


def test_an_env_file_takes_the_place_of_the_settings(tmp_path: Path, policies: Path) -> None:
    dump_yaml({"time_limit_s": 8, "faults": {"n_max": 1}}, tmp_path / "short.yaml")
    config = config_of("--policy", policies / "heavy", "--env", tmp_path / "short.yaml", "--set", "env.faults.n_min=1")
    assert config.env == {"time_limit_s": 8, "faults": {"n_max": 1, "n_min": 1}}
    assert make_scenarios(config).spec.name == "heavy"
    dump_yaml({"robot": "resilient", "time_limit_s": 8}, tmp_path / "robot.yaml")
    assert config_of("--policy", policies / "heavy", "--env", tmp_path / "robot.yaml").robot == "resilient"
    demo = config_of("--env", tmp_path / "short.yaml")
    assert (demo.env, demo.policies) == ({"time_limit_s": 8, "faults": {"n_max": 1}}, {"ppo": "runs/demo"})
    with pytest.raises(ConfigError, match="field is not a setting"):
        config_of("--policy", policies / "free", "--env", ROOT / "configs/env/obstacle_field.yaml")


def test_a_benchmark_shows_nobody_the_truth() -> None:
    env = {"faults": {"n_max": 1}, "observation": {"privileged": ["fault_kind"]}, "time_limit_s": 2.0}
    config = BenchmarkConfig(env=env, episodes=2)
    scenarios = make_scenarios(config)
    assert scenarios.env.observation.privileged == ()
    assert runner.play(classical_entrant("cc", config), scenarios).n == 2
