"""Simulation and training where names that only Linux, or only Unix, has are missing, as on macOS and Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ELSEWHERE = """
import os, shutil, sys

del os.sched_getaffinity, os.sysconf
shutil._use_fd_functions = False
sys.modules.update(dict.fromkeys(("fcntl", "grp", "pwd", "termios", "tty", "resource", "serial")))  # none is found
open_file, flush, read_only = os.open, os.fsync, set()

def open_no_folder(path, flags, *rest, **named):
    if isinstance(path, (str, os.PathLike)) and os.path.isdir(path):
        raise PermissionError(13, "Permission denied", path)
    handle = open_file(path, flags, *rest, **named)
    (read_only.discard if flags & (os.O_RDWR | os.O_WRONLY) else read_only.add)(handle)
    return handle

def flush_what_can_be_written(handle):
    if handle in read_only:
        raise OSError(9, "Bad file descriptor")
    flush(handle)

os.open, os.fsync = open_no_folder, flush_what_can_be_written
"""


def run_elsewhere(code: str, *arguments: str) -> str:
    """What a program prints on such a system."""
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE + code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "SDL_VIDEODRIVER": "dummy", "OMP_WAIT_POLICY": "passive"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_env_steps_and_the_commands_work_without_what_only_unix_has(tmp_path: Path) -> None:
    code = """
import gymnasium as gym
import snake_gym
import snake_gym.commands.play
from snake_gym.__main__ import main

env = gym.make("SnakeGym/Waypoints-v0")
env.reset(seed=0)
env.step(env.action_space.sample())
envs = gym.make_vec("SnakeGym/Waypoints-v0", num_envs=2)
envs.reset(seed=0)
envs.step(envs.action_space.sample())
main(["list", "envs"])
main(["describe", "Waypoints"])
main(["play", "Waypoints", "--controller", "cc", "--frames", "2", "--screenshot", sys.argv[1]])
assert not [name for name in sys.modules if name.startswith("snake_gym.hardware")]
"""
    assert "SnakeGym/Waypoints-v0" in run_elsewhere(code, str(tmp_path / "picture.png"))
    assert (tmp_path / "picture.png").is_file()


@pytest.mark.slow
def test_it_trains_evaluates_and_tunes_without_what_only_unix_has(tmp_path: Path) -> None:
    code = """
from snake_gym.__main__ import main

out = sys.argv[1]
small = ["n_envs=16", "total_steps=256", "eval.episodes=4", "env.time_limit_s=4", "algorithm.n_steps=8"]
small += ["algorithm.batch_size=64"]
main(["train", "--config", "configs/train/ppo.yaml", "--run-dir", f"{out}/run", "--quiet", "--set", *small])
short = ["--set", "env.time_limit_s=2"]
main(["evaluate", "--policy", f"mine={out}/run", "--episodes", "4", *short, "resamples=200", "--out", f"{out}/results"])
tune = ["--controller", "sjc", "--robot", "resilient_servo", "--env", "configs/env/locked_joints.yaml", *short]
main(["tune", *tune, "--budget", "1", "--population", "4", "--worlds", "8", "--out", f"{out}/sjc.yaml"])
"""
    pytest.importorskip("stable_baselines3")
    run_elsewhere(code, str(tmp_path))
    assert list((tmp_path / "run" / "checkpoints").glob("step_*/state.pt"))
    assert (tmp_path / "results" / "replay.html").is_file() and (tmp_path / "sjc.yaml").is_file()


def test_the_robot_s_env_and_play_say_in_one_line_what_is_missing() -> None:
    code = """
import gymnasium as gym
import snake_gym
import snake_gym.commands.play
from snake_gym.__main__ import main

for sys.platform in ("darwin", "linux"):
    for use in (
        lambda: gym.make("SnakeGym/Real-v0"), lambda: main(["play", "--port", "X", "--help"]),
        lambda: main(["hardware", "scan", "--port", "X"]),
    ):
        try:
            use()
        except snake_gym.ConfigError as error:
            print(error)
"""
    lines = run_elsewhere(code).splitlines()
    assert len(lines) == 6 and all(line.startswith("the robot needs Linux, and this is darwin") for line in lines[:3])
    assert all(line.startswith("the robot needs pyserial, which is not") for line in lines[3:])
