"""Small runs for the tests: settings, and training in this process as if it were launched."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml
from gymnasium.vector import AutoresetMode
from snake_gym.agents.algorithms import make_model
from snake_gym.agents.callback import RunCallback
from snake_gym.agents.config import TrainConfig, complete
from snake_gym.agents.display import TrainingDisplay
from snake_gym.agents.policy_writer import PolicyWriter
from snake_gym.agents.run_folder import RunFolder, write_folder
from snake_gym.agents.sb3_vec_env import Sb3VecEnv
from snake_gym.agents.train import learn

from snake_gym.config import build, merge, to_dict
from snake_gym.envs import DEFAULT_ENV, SnakeVectorEnv
from snake_gym.tasks.task_settings import build_env
from tests.agents.copy_env import CopyEnv

ROOT = Path(__file__).parents[2]
SNAKE = {"action": {"kind": "residual"}, "faults": {"n_max": 3}, "time_limit_s": 4.0, "n_threads": 1}
NETWORK = {"net_arch": [16], "log_std_init": -1.0}
PPO = {"name": "PPO", "n_steps": 8, "batch_size": 64, "n_epochs": 2, "network": NETWORK}
RECURRENT: dict[str, Any] = {
    "name": "RecurrentPPO", "n_steps": 8, "batch_size": 64, "n_epochs": 1,
    "network": {"net_arch": [8], "lstm_hidden_size": 6, "n_lstm_layers": 2},
}  # fmt: skip
SAC = {"name": "SAC", "buffer_size": 4000, "batch_size": 32, "learning_starts": 96, "network": {"net_arch": [16]}}


SMALL: dict[str, Any] = {
    "env": SNAKE, "stagger": True, "algorithm": PPO, "n_envs": 16, "total_steps": 1280, "log_every_steps": 128,
    "torch_threads": 1, "checkpoint": {"every_steps": 256}, "eval": {"every_steps": 512, "episodes": 4},
}  # fmt: skip


def small_config(**changes: Any) -> TrainConfig:
    base = {name: value for name, value in SMALL.items() if name != "algorithm" or "algorithm" not in changes}
    return complete(build(TrainConfig, merge(base, changes)))[0]


def write_small(path: Path, **changes: Any) -> Path:
    """A file with those settings, some of them changed."""
    path.write_text(yaml.safe_dump({**SMALL, **changes}))
    return path


def copy_envs(n_worlds: int, mode: AutoresetMode) -> CopyEnv:
    return CopyEnv(n_worlds, mode=mode)


def untrained(
    path: Path, settings: Mapping[str, Any], env_id: str = DEFAULT_ENV, still: bool = False, seed: int = 0
) -> Path:
    """The folder of a run in that env whose only policy has learned nothing; ``still``: its actions are 0."""
    algorithm_settings = {**PPO, "batch_size": 16}
    config = TrainConfig(
        env_id=env_id, env=to_dict(build_env(env_id, settings)), algorithm=algorithm_settings, seed=seed
    )
    env = SnakeVectorEnv(env_id, 2, "SAME_STEP", config=build_env(env_id, settings))
    model = make_model(config.algorithm, Sb3VecEnv(env), seed)
    for parameter in model.policy.action_net.parameters() if still else ():
        parameter.data.zero_()
    write_folder(path / "policy" / "final", PolicyWriter(config, RunFolder(path)).encode(model))
    return path


class Display(TrainingDisplay):
    """A silent display from which a test knows the steps."""

    steps = 0

    def advance(self, steps: int) -> None:
        self.steps = steps


def run_to_end(config: TrainConfig, path: Path, **kw: Any) -> RunCallback:
    """A launch of a run that is new or goes on."""
    path.mkdir(exist_ok=True)
    return learn(config, RunFolder(path), Display(config.total_steps, quiet=True), **kw)


def stop_after(config: TrainConfig, path: Path, rollouts: int, **kw: Any) -> None:
    """A launch that is asked to stop once ``rollouts`` have been made."""
    path.mkdir(exist_ok=True)
    display = Display(config.total_steps, quiet=True)
    limit = rollouts * config.n_envs * config.algorithm.get("n_steps", 1)
    run = learn(config, RunFolder(path), display, should_stop=lambda: display.steps >= limit, **kw)
    assert run.stopped and run.saved == limit


def resume_to_end(config: TrainConfig, path: Path, **kw: Any) -> RunCallback:
    np.random.seed(99)  # noqa: NPY002  # whatever the process did before must not matter
    torch.manual_seed(99)
    return run_to_end(config, path, **kw)


def checkpoints(path: Path) -> list[Path]:
    return RunFolder(path).checkpoints()


def read(checkpoint: Path) -> dict[str, Any]:
    return RunFolder(checkpoint.parents[1]).read_checkpoint(checkpoint)


def start(*arguments: str) -> subprocess.Popen[str]:
    """``train.py`` in a process and a session of its own."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}, start_new_session=True,
    )  # fmt: skip


def wait_for(found: Callable[[], bool], process: subprocess.Popen[str] | None = None, most_s: float = 900.0) -> None:
    """Return once something is found; fail if it takes too long, or ``process`` ends before."""
    give_up = time.monotonic() + most_s
    while not found():
        assert process is None or process.poll() is None, process and process.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.02)


def assert_same_state(a: Path, b: Path) -> None:
    """The newest checkpoints of two runs hold the same networks, optimisers, generators, env and statistics."""
    one, two = checkpoints(a)[0], checkpoints(b)[0]
    assert one.name == two.name
    _assert_same(read(one), read(two), "state")


def assert_resumes(config: TrainConfig, folder: Path) -> None:
    """A run that is stopped and resumed ends like one that is not, bit for bit."""
    run_to_end(config, folder / "a")
    stop_after(config, folder / "b", rollouts=5)
    resume_to_end(config, folder / "b")
    assert_same_state(folder / "a", folder / "b")


def _assert_same(a: Any, b: Any, where: str) -> None:
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            _assert_same(a[key], b[key], f"{where}/{key}")
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            _assert_same(x, y, f"{where}[{i}]")
    elif isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype, where
        assert a.numpy().tobytes() == b.numpy().tobytes(), where
    else:
        assert a == b, where
