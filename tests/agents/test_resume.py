"""A run that was stopped or killed and resumed ends like one that never was, bit for bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from snake_gym.agents.checkpoint import list_checkpoints

from snake_gym.config import ConfigError
from tests.agents.runs import (
    PPO,
    SAC,
    SNAKE,
    assert_resumes,
    assert_same_state,
    make_training,
    resume_to_end,
    run_to_end,
    small_config,
)

ROOT = Path(__file__).parents[2]
NORMALISE = {"normalise": {"observation": True, "reward": True}}
SCHEDULE = {"algorithm": {**PPO, "learning_rate": {"start": 1e-3, "end": 0.0}, "use_sde": True, "sde_sample_freq": 4}}
TD3 = {"name": "TD3", "buffer_size": 2000, "batch_size": 32, "learning_starts": 64, "action_noise_std": 0.1,
       "network": {"net_arch": [16]}}  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="ppo"),
        pytest.param(NORMALISE, id="ppo-normalised", marks=pytest.mark.slow),
        pytest.param(SCHEDULE, id="ppo-schedule-sde"),
        pytest.param({"algorithm": {**SAC, "use_sde": True}, "total_steps": 480}, id="sac-sde", marks=pytest.mark.slow),
        pytest.param({"algorithm": {"name": "A2C"}}, id="a2c", marks=pytest.mark.slow),
        pytest.param({"algorithm": SAC, "total_steps": 640, **NORMALISE}, id="sac-normalised"),
        pytest.param({"algorithm": TD3, "total_steps": 480}, id="td3", marks=pytest.mark.slow),
        pytest.param({"env_id": "SnakeGym/ObstacleField-v0"}, id="obstacle-field"),
        pytest.param({"env_id": "SnakeGym/Escape-v0", "curriculum": {"share": 0.8}}, id="escape-curriculum"),
    ],
)
def test_stopped_and_resumed_equals_uninterrupted(changes: dict[str, Any], tmp_path: Path) -> None:
    assert_resumes(small_config(**changes), tmp_path)


def test_killed_in_the_middle_of_a_rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def kill(venv: Any) -> None:
        update(venv)
        if training.model.num_timesteps == 256 * 3 + 48:
            raise Killed

    config = small_config()
    run_to_end(config, tmp_path / "a")
    training = make_training(config, tmp_path / "b")
    update = training.window.update
    monkeypatch.setattr(training.window, "update", kill)
    with pytest.raises(Killed):
        training.run()
    assert [path.name for path in list_checkpoints(tmp_path / "b")] == ["step_000000000768", "step_000000000512"]
    resume_to_end(config, tmp_path / "b")
    assert_same_state(list_checkpoints(tmp_path / "a")[0], list_checkpoints(tmp_path / "b")[0])


def test_evaluation_checkpoints_and_logging_do_not_change_what_is_learned(tmp_path: Path) -> None:
    quiet = {"eval": {"every_steps": 0, "episodes": 4}, "checkpoint": {"every_steps": 0}, "log_every_steps": 100_000}
    a = run_to_end(small_config(), tmp_path / "a")
    b = run_to_end(small_config(**quiet), tmp_path / "b")
    for name, values in a.model.policy.state_dict().items():
        assert values.equal(b.model.policy.state_dict()[name]), name


def test_a_checkpoint_of_another_network_is_refused(tmp_path: Path) -> None:
    run_to_end(small_config(), tmp_path / "run")
    other = small_config(algorithm={**PPO, "network": {"net_arch": [8]}})
    with pytest.raises(ConfigError, match="does not fit the run's settings"):
        make_training(other, tmp_path / "run").resume()


def write_config(path: Path, total_steps: int) -> None:
    settings = {
        "env": SNAKE, "stagger": True, "algorithm": PPO, "n_envs": 16, "total_steps": total_steps, "torch_threads": 1,
        "log_every_steps": 1024, "eval": {"every_steps": 4096, "episodes": 4}, "checkpoint": {"every_steps": 512},
    }  # fmt: skip
    path.write_text(yaml.safe_dump(settings))


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / "train.py"), *arguments]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, env=dict(os.environ))


def finish(*arguments: str) -> None:
    process = start(*arguments)
    _, errors = process.communicate()
    assert process.returncode == 0, errors


def wait_for_checkpoint(process: subprocess.Popen[str], run: Path, beyond: int = 0) -> None:
    while not any(int(path.name[5:]) > beyond for path in list_checkpoints(run)):
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)


@pytest.mark.slow
def test_sigkill_and_resume_ends_with_the_same_weights(tmp_path: Path) -> None:
    write_config(tmp_path / "config.yaml", 16_384)
    finish("--config", str(tmp_path / "config.yaml"), "--run-dir", str(tmp_path / "a"), "--quiet")
    b = tmp_path / "b"
    arguments = ["--config", str(tmp_path / "config.yaml"), "--run-dir", str(b)]
    for kill in range(2):
        process = start(*arguments, "--quiet")
        wait_for_checkpoint(process, b, 4096 * kill)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        arguments = ["--resume", str(b)]
    finish("--resume", str(b), "--quiet")
    assert_same_state(list_checkpoints(tmp_path / "a")[0], list_checkpoints(b)[0])


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_says_how_to_resume(number: int, tmp_path: Path) -> None:
    write_config(tmp_path / "config.yaml", 10_000_000)
    run = tmp_path / "run"
    process = start("--config", str(tmp_path / "config.yaml"), "--run-dir", str(run))
    wait_for_checkpoint(process, run)
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == 130
    last = int(list_checkpoints(run)[0].name[5:])
    assert f"stopped after {last:,} steps; continue with: python train.py --resume {run}" in errors.replace("\n", " ")
    assert "Traceback" not in errors
    finish("--resume", str(run), "--set", f"total_steps={last + 256}", "--quiet")
    assert int(list_checkpoints(run)[0].name[5:]) == last + 256
