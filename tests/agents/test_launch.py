"""Launching runs: settings, folders, and what goes wrong in one line."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import yaml
from snake_gym.agents import train
from snake_gym.agents.checkpoint import list_checkpoints
from snake_gym.agents.config import TrainConfig
from snake_gym.agents.run_folder import RunFolder

from snake_gym.benchmark import evaluate, tune
from snake_gym.config import ConfigError, build, load_yaml
from snake_gym.interface.policy_file import load_policy
from tests.agents.runs import PPO, SNAKE

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "env": SNAKE, "stagger": True, "algorithm": PPO, "n_envs": 16, "total_steps": 256, "torch_threads": 1,
    "eval": {"every_steps": 0, "episodes": 4},
}  # fmt: skip


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(SETTINGS))
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    (folder / "small.yaml").write_text(yaml.safe_dump(SETTINGS))
    run = folder / "run"
    assert train.main(["--config", str(folder / "small.yaml"), "--run-dir", str(run), "--quiet", "--seed", "3"]) == 0
    return run


def test_a_run_folder_explains_itself(finished: Path) -> None:
    config = build(TrainConfig, load_yaml(finished / "config.yaml"))
    assert (config.seed, config.torch_threads, config.env_file) == (3, 1, None)
    assert config.env["action"]["controller"]["amplitude_rad"] > 0, "the controller's settings are written out"
    status = json.loads((finished / "run.json").read_text())
    assert status["status"] == "finished"
    (entry,) = status["launches"]
    assert entry["command"].startswith("snake-gym train --config ")
    assert {"torch", "numpy", "gymnasium", "stable-baselines3", "snake-robot-gym"} <= entry["versions"].keys()
    assert entry["git"] == "unknown" or len(entry["git"].rstrip("+")) == 40
    assert (entry["from_step"], entry["to_step"]) == (0, 256)
    for part in ("policy/best/policy.json", "policy/final/policy.json", "tensorboard"):
        assert (finished / part).exists()


def test_a_finished_run_is_left_alone(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train.main(["--resume", str(finished)]) == 0
    assert "is finished: 256 steps are done" in capsys.readouterr().err
    assert len(json.loads((finished / "run.json").read_text())["launches"]) == 1


def test_a_run_killed_before_its_first_checkpoint_begins_anew(finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    shutil.rmtree(run / "checkpoints")
    (run / "run.json").unlink()
    assert train.main(["--resume", str(run), "--quiet"]) == 0
    one, two = (load_policy(path / "policy" / "final") for path in (finished, run))
    assert one.digest == two.digest


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("evaluations.json", ""),
        ("evaluations.json", '[{"step": 0, "return": 1.0}, {"st'),
        ("evaluations.json", '{"step": 0}'),
        ("evaluations.json", '[{"step": "0"}]'),
        ("evaluations.json", '[{"step": 0, "return": "much"}]'),
        ("run.json", "{"),
        ("run.json", '{"status": "finished", "launches": []}'),
        ("run.json", '{"status": "finished", "launches": [{"to_step": "256"}]}'),
    ],
)
def test_a_damaged_history_is_refused_before_training(name: str, content: str, finished: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / name).write_text(content)
    with pytest.raises(
        ConfigError, match=rf"run/{name} is damaged \(.*\); restore it, or delete it to go on"
    ) as caught:
        train.main(["--resume", str(run), "--set", "total_steps=384", "--quiet"])
    assert "\n" not in str(caught.value)
    assert (run / name).read_text() == content
    assert [path.name for path in list_checkpoints(run)] == [path.name for path in list_checkpoints(finished)]


@pytest.mark.parametrize("lost", ["policy.json", "policy.safetensors"])
def test_a_best_policy_that_is_incomplete_is_saved_anew(
    lost: str, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    (run / "policy" / "best" / lost).unlink()
    (run / "evaluations.json").unlink()
    assert train.main(["--resume", str(run), "--set", "total_steps=384", "--quiet"]) == 0
    assert " ".join(capsys.readouterr().err.split()).count("note: the best policy is missing or incomplete (") == 1
    assert load_policy(run / "policy" / "best").contract.training["steps"] == 384
    assert [each["step"] for each in RunFolder(run).evaluations()] == [384]


def test_fewer_steps_than_are_done_are_refused(finished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for total in (5, 128):
        with pytest.raises(ConfigError, match=f"^total_steps is {total}; expected at least 256, the steps that "):
            train.main(["--resume", str(finished), "--set", f"total_steps={total}"])
    assert train.main(["--resume", str(finished), "--set", "total_steps=129"]) == 0  # rounded up to 256
    assert "is finished: 256 steps are done" in capsys.readouterr().err


def test_an_existing_run_is_refused_or_continued(finished: Path, config_file: Path) -> None:
    arguments = ["--config", str(config_file), "--run-dir", str(finished), "--seed", "3"]
    with pytest.raises(ConfigError, match=f"holds a run already: continue it with snake-gym train --resume {finished}"):
        train.main(arguments)
    assert train.main([*arguments, "--set", "if_exists=continue"]) == 0
    with pytest.raises(ConfigError, match=r"was trained with another algorithm\.gamma; a resumed run may change only"):
        train.main([*arguments, "--set", "if_exists=continue", "--set", "algorithm.gamma=0.5"])


def test_two_processes_cannot_train_in_one_folder(finished: Path) -> None:
    with RunFolder(finished).lock(), pytest.raises(ConfigError, match="is in use: another process"):
        train.main(["--resume", str(finished), "--set", "total_steps=1000"])


def test_a_lock_that_is_a_link_is_not_followed(finished: Path, tmp_path: Path) -> None:
    run, victim = shutil.copytree(finished, tmp_path / "run"), tmp_path / "victim"
    victim.write_text("mine")
    (run / ".lock").unlink()
    (run / ".lock").symlink_to(victim)
    with pytest.raises(OSError, match=r"\.lock"):
        train.main(["--resume", str(run), "--set", "total_steps=1000"])
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "algorithm.learning_rat=1"], "learning_rat is not a setting; did you mean 'learning_rate'"),
        (["--set", "total_step=1"], "^total_step is not a setting; did you mean 'total_steps'"),
        (["--set", "env.faults.n_max=99"], "^env.faults.n_max is 99; expected at most 9"),
        (["--set", "env.time_limit_s=0.3"], "^env.time_limit_s is 0.3; expected a multiple"),
        (["--set", "env.action.controller.kind=sjx"], "'sjx'; expected one of"),
        (["--set", "eval.seed=3"], "eval.seed is 3; expected 500000 to "),
        (["--set", "algorithm.batch_size=1e12"], "batch_size is 1000000000000; expected <= 128, n_steps times"),
        (["--set", "algorithm.batch_size=1"], "^algorithm.batch_size is 1; expected >= 2, or algorithm.normalize_adv"),
        (["--set", "total_steps=1e30"], "total_steps is 1000.*; expected in \\[1, 1e\\+12\\]"),
        (
            ["--set", "env.observation.columns=[standard, velocity]"],
            "velocity of the observations has no entries in SnakeGym/Waypoints-v0",
        ),
        (["--set", "device=graphics"], "device is 'graphics', which torch cannot use here"),
        (["--resume", "y"], "not allowed with argument"),
    ],
)
def test_wrong_settings_are_one_line(arguments: list[str], message: str, config_file: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        train.main(["--config", str(config_file), "--run-dir", str(tmp_path / "run"), *arguments])
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_batch_that_does_not_divide_a_rollout_gets_one_note_and_no_warning_of_the_library(
    config_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    note = "note: algorithm.batch_size is 48, which does not divide 128, n_steps times n_envs: "
    for batch, expected in ((48, 1), (64, 0)):
        arguments = ["--config", str(config_file), "--run-dir", str(tmp_path / str(batch)), "--quiet"]
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            assert train.main([*arguments, "--set", f"algorithm.batch_size={batch}", "total_steps=128"]) == 0
        said = " ".join(capsys.readouterr().err.split())
        assert said.count(note) == expected and "mini-batch" not in said
        assert not [str(one.message) for one in warned if "mini-batch" in str(one.message)]


def test_an_emptied_file_is_no_complete_settings(config_file: Path, finished: Path, tmp_path: Path) -> None:
    empty, robot = tmp_path / "empty.yaml", tmp_path / "robot.yaml"
    for file in (empty, robot):
        file.write_text("")
    for arguments, file in (
        (["--config", str(empty)], empty),
        (["--config", str(config_file), "--set", f"env.robot={robot}"], robot),
        (["--config", str(config_file), "--set", f"env_file={empty}"], empty),
    ):
        with pytest.raises(ConfigError, match=f"{file} is empty; expected settings"):
            train.main([*arguments, "--run-dir", str(tmp_path / "run")])
    run = tmp_path / "copy"
    shutil.copytree(finished, run)
    (run / "config.yaml").write_text("")
    with pytest.raises(ConfigError, match=rf"{run}/config.yaml is empty; expected settings"):
        train.main(["--resume", str(run)])
    assert not (tmp_path / "run").exists()


def test_a_rollout_that_no_memory_holds_leaves_no_run(config_file: Path, tmp_path: Path) -> None:
    arguments = ["--config", str(config_file), "--run-dir", str(tmp_path / "run"), "--set", "algorithm.n_steps=1e9"]
    with pytest.raises(ConfigError, match=r"^algorithm.n_steps is 1000000000: the buffer takes \d+ GB"):
        train.main(arguments)
    assert not RunFolder(tmp_path / "run").holds_run()


def test_wrong_folders_are_one_line(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"runn does not exist; did you mean '.*run'"):
        train.main(["--resume", str(finished.with_name("runn"))])
    with pytest.raises(ConfigError, match=r"holds no config.yaml; expected the folder of a run"):
        train.main(["--resume", str(tmp_path)])
    with pytest.raises(ConfigError, match=r"small.yam does not exist"):
        train.main(["--config", str(tmp_path / "small.yam")])
    foreign = tmp_path / "foreign"
    shutil.copytree(finished, foreign)
    for path in list_checkpoints(foreign):
        (path / "tensors.pt").write_bytes(b"PK\x03\x04 foreign")
    with pytest.raises(ConfigError, match=r"is no checkpoint that train.py wrote, or it is damaged \(tensors.pt"):
        train.main(["--resume", str(foreign), "--set", "total_steps=1000", "--quiet"])


def test_runs_of_different_seeds_share_no_world_and_none_with_evaluation() -> None:
    firsts = [TrainConfig(seed=seed, n_envs=256).world_seed for seed in range(500_000 // 256)]
    assert (np.diff(sorted(firsts)) >= 256).all()
    assert len(firsts) == 1953
    assert TrainConfig(seed=15_617, n_envs=256).world_seed == 0  # larger seeds go round
    assert max(TrainConfig(seed=s, n_envs=256).world_seed for s in range(0, 2**31, 999_983)) + 256 <= 500_000


def test_train_evaluate_and_tune_take_several_settings_after_one_set() -> None:
    given = ["--set", "env.a=1", "env.b=2", "--seed", "3", "--set", "env.c=3"]
    needed = ["--robot", "resilient_servo", "--controller", "sjc"]
    for options in (train.parse(["--config", "x.yaml", *given]), evaluate.parse(given), tune._parse([*needed, *given])):
        assert options.set == ["env.a=1", "env.b=2", "env.c=3"]
