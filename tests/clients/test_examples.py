"""Learners of others in our envs: each example plays, learns and leaves a policy that plays in the benchmark."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym import load_plugins
from snake_gym.__main__ import main as snake_gym
from snake_gym.envs import SnakeEnv
from snake_gym.interface.policy_file import load_policy
from snake_gym.interface.policy_writing import write_policy

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]
ROOT = Path(__file__).parents[2]
LEARNERS = {
    "cleanrl_ppo": ("torch", "--total-steps 512 --num-envs 4 --num-steps 64 --episode-steps 30", 16),
    "torchrl_ppo": ("torchrl", "--total-steps 600 --batch-steps 200 --episode-steps 30", 20),
    "tianshou_ppo": ("tianshou", "--total-steps 480 --batch-steps 240 --num-envs 4 --episode-steps 30", 16),
}
"""Example -> its library, its options, and the episodes that it ends."""


def run(name: str, *argv: str) -> dict[str, list[float]]:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, list[float]] = module.main(list(argv))
    assert np.isfinite(found["losses"]).all() and len(found["losses"]) > 1
    assert np.isfinite(found["returns"]).all() and len(set(found["returns"])) > 1
    return found


def check_policy(folder: Path, env_id: str) -> None:
    policy: Any = load_policy(folder)
    assert policy.env_id == env_id
    short = ["--episodes", "3", "--set", "resamples=100", "--no-pictures", "--controllers", "none"]
    assert snake_gym(["evaluate", "--policy", f"mine={folder}", *short, "--out", str(folder / "out")]) == 0


@pytest.mark.parametrize("env_id", ["SnakeGym/Waypoints-v0", "SnakeGym/Velocity-v0"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_leaves_a_policy(name: str, env_id: str, tmp_path: Path) -> None:
    library, sizes, n_episodes = LEARNERS[name]
    pytest.importorskip(library, reason="extra train or clients")
    found = run(name, "--env-id", env_id, *sizes.split(), "--out", str(tmp_path))
    assert len(found["returns"]) == n_episodes
    assert found.get("truncated", [n_episodes])[0] == n_episodes
    check_policy(tmp_path, env_id)


@pytest.mark.parametrize("env_id", ["SnakeGym/Waypoints-v0", "SnakeGym/Velocity-v0"])
def test_rllib(env_id: str) -> None:
    """Runs in the environment of its own that docs/clients.md describes."""
    pytest.importorskip("ray.rllib", reason="its own environment: it demands another Gymnasium")
    found = run(
        "rllib_ppo", "--env-id", env_id, *["--iterations", "2", "--batch-steps", "256", "--episode-steps", "30"]
    )
    assert max(found["changed"]) > 0.0


def test_minari(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("minari", reason="extra clients")
    pytest.importorskip("jax", reason="extra clients: Minari's DataCollector needs it")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    sizes = ["--episodes", "4", "--episode-steps", "40", "--updates", "200"]
    found = run("minari_offline", *sizes, "--out", str(tmp_path / "cloned"))
    assert len(found["returns"]) == 4
    assert np.mean(found["losses"][-10:]) < 0.3 * np.mean(found["losses"][:3])
    check_policy(tmp_path / "cloned", "SnakeGym/Waypoints-v0")


def test_a_student_imitates_a_teacher_that_is_told_more_and_goes_on_by_ppo(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="extra train")
    load_plugins(str(ROOT / "examples" / "teacher_student.py"))
    columns = {"columns": ["standard", "told_fault", "told_angle"]}
    env = SnakeEnv("Example/Told-v0", action={"kind": "gait"}, observation=columns)
    write_policy(
        tmp_path / "told", env, [(0.1 * np.random.default_rng(0).normal(size=(4, env.core.layout.size)), None)]
    )
    sizes = ["--steps", "9600", "--num-envs", "24", "--estimator", "--ppo-steps", "18000"]
    found = run("teacher_student", str(tmp_path / "told"), *sizes, "--out", str(tmp_path / "student"))
    assert found["losses"][-1] < 0.5 * found["losses"][0]
    assert np.mean(found["returns"][-24:]) > np.mean(found["returns"][:24]) + 1.0
    check_policy(tmp_path / "student", "SnakeGym/Waypoints-v0")
