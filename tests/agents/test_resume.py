"""A PPO run that was stopped or killed and resumed ends like one that never was, bit for bit."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from gymnasium.vector import AutoresetMode
from snake_gym.agents.algorithms import make_model
from snake_gym.agents.metrics import EpisodeWindow
from snake_gym.agents.sb3_internals import restore
from snake_gym.agents.sb3_vec_env import Sb3VecEnv
from snake_gym.agents.train import snake_envs

from snake_gym.interface.policy_file import load_policy
from tests.agents.runs import (
    PPO,
    RECURRENT,
    SAC,
    assert_resumes,
    assert_same_state,
    checkpoints,
    read,
    resume_to_end,
    run_to_end,
    small_config,
    start,
    stop_after,
    wait_for,
    write_small,
)

PRIVILEGED = {"env": {"observation": {"history": 2, "privileged": ["true_velocity", "fault_kind"]}}}
MIRRORED = {**PPO, "mirror": 0.25, "max_grad_norm": {"actor": 0.5, "critic": 1.0}, "target_kl": 0.05}
OFTEN = {"log_every_steps": 1024, "eval": {"every_steps": 4096, "episodes": 4}, "checkpoint": {"every_steps": 512}}
SCHEDULE = {"algorithm": {**PPO, "learning_rate": {"start": 1e-3, "end": 0.0}, "use_sde": True, "sde_sample_freq": 4}}


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"algorithm": MIRRORED, **PRIVILEGED}, id="mirrored-clipped-apart"),
        pytest.param({"algorithm": {**MIRRORED, "overlap": True}}, id="overlapping-updates"),
        pytest.param(SCHEDULE, id="ppo-schedule-sde"),
        pytest.param({"env_id": "SnakeGym/Escape-v0", "curriculum": {"share": 0.8}}, id="escape-curriculum"),
    ],
)
def test_stopped_and_resumed_equals_uninterrupted(changes: dict[str, Any], tmp_path: Path) -> None:
    assert_resumes(small_config(total_steps=1024, **changes), tmp_path)


def test_killed_in_the_middle_of_a_rollout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Killed(BaseException):
        pass

    def kill(window: EpisodeWindow) -> None:
        update(window)
        done.append(window.venv.num_envs)
        if sum(done) == 256 * 3 + 48:
            raise Killed

    config, done, update = small_config(), list[int](), EpisodeWindow.update
    run_to_end(config, tmp_path / "a")
    monkeypatch.setattr(EpisodeWindow, "update", kill)
    with pytest.raises(Killed):
        run_to_end(config, tmp_path / "b")
    assert [path.name for path in checkpoints(tmp_path / "b")] == ["step_000000000768", "step_000000000512"]
    resume_to_end(config, tmp_path / "b")
    assert_same_state(tmp_path / "a", tmp_path / "b")


def test_evaluation_checkpoints_and_logging_do_not_change_what_is_learned(tmp_path: Path) -> None:
    quiet = {"eval": {"every_steps": None, "episodes": 4}, "checkpoint": {"every_steps": 0}, "log_every_steps": 100_000}
    a = run_to_end(small_config(), tmp_path / "a")
    b = run_to_end(small_config(**quiet), tmp_path / "b")
    for name, values in a.model.policy.state_dict().items():
        assert values.equal(b.model.policy.state_dict()[name]), name


@pytest.mark.parametrize("algorithm", [SAC, RECURRENT], ids=["sac", "recurrent"])
def test_other_algorithms_go_on_from_their_networks(algorithm: dict[str, Any], tmp_path: Path) -> None:
    if algorithm is RECURRENT:
        pytest.importorskip("sb3_contrib")
    config = small_config(algorithm=algorithm, total_steps=640)
    stop_after(config, tmp_path / "run", rollouts=3 if algorithm is RECURRENT else 20)
    saved = read(checkpoints(tmp_path / "run")[0])["learner"]
    model = make_model(config.algorithm, Sb3VecEnv(snake_envs(config)(config.n_envs, AutoresetMode.SAME_STEP)), 7)
    restore(model, saved)
    for name, values in model.policy.state_dict().items():
        assert values.equal(saved["parameters"]["policy"][name]), name
    run = resume_to_end(config, tmp_path / "run")
    assert run.model.num_timesteps == 640 and load_policy(tmp_path / "run" / "policy" / "final")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_and_says_how_to_resume(number: int, tmp_path: Path) -> None:
    write_small(tmp_path / "config.yaml", total_steps=10_000_000, **OFTEN)
    run = tmp_path / "run"
    process = start("--config", str(tmp_path / "config.yaml"), "--run-dir", str(run))
    wait_for(lambda: bool(checkpoints(run)), process)
    process.send_signal(number)
    _, errors = process.communicate()
    assert process.returncode == 130
    last = int(checkpoints(run)[0].name[5:])
    assert f"stopped after {last:,} steps; continue with: python train.py --resume {run}" in errors.replace("\n", " ")
    assert "Traceback" not in errors
    process = start("--resume", str(run), "--set", f"total_steps={last + 256}", "--quiet")
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert int(checkpoints(run)[0].name[5:]) == last + 256
