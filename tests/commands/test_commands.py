"""Commands ``list``, ``describe`` and ``warm``, as a user calls them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import pytest

from snake_gym.__main__ import main
from snake_gym.controllers import CONTROLLERS
from snake_gym.interface.policy_file import shipped_policies
from snake_gym.robot.presets import PRESETS
from snake_gym.simulation.fault_kinds import kinds_of

WAYPOINTS = "SnakeGym/Waypoints-v0"


def test_list_has_every_name_that_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    words = set(capsys.readouterr().out.split())
    ours = {env_id for env_id in gym.registry if env_id.startswith("SnakeGym/")}
    assert {*ours, *PRESETS, *CONTROLLERS, *kinds_of("joint"), *shipped_policies()} <= words


def test_describe_tells_spaces_and_changed_settings(capsys: pytest.CaptureFixture[str]) -> None:
    settings = ["--set", "env.action.kind=gait", "--set", "faults.n_max=2"]
    assert main(["describe", "Waypoints", *settings]) == 0
    out = capsys.readouterr().out
    env = gym.make(WAYPOINTS, action={"kind": "gait"}, faults={"n_max": 2})
    assert f"`{env.observation_space}`" in out and f"`{env.action_space}`" in out
    assert "- `action.kind=gait`" in out and "- `faults.n_max=2`" in out and "time_limit_s=" not in out
    _, info = env.reset(seed=0)
    terms = [name.partition("/")[2] for name in info if name.startswith("reward/")]
    assert terms
    for name in [*terms, *(name for name in info if "/" not in name)]:
        assert f"| {name} |" in out or f"| `{name}` |" in out, name


@pytest.mark.slow
def test_after_warm_no_env_compiles(tmp_path: Path) -> None:
    """A fresh folder, warmed once; numba's own counters then see no kernel of ours compiled anew."""
    env = {"NUMBA_CACHE_DIR": str(tmp_path)}
    program = """
from numba.core import event
import gymnasium as gym, snake_gym
from tests.tasks_of_robots import PLANAR_TASKS
seen = event.RecordingListener()
event.register("numba:compile", seen)
for env_id in PLANAR_TASKS:
    for settings in ({}, {"faults": {"n_max": 3, "kinds": ["rough", "slipped"]}}, {"precision": "float32"}):
        for env in (gym.make(env_id, **settings), gym.make_vec(env_id, num_envs=20, **settings)):
            env.reset(seed=0)
            env.step(env.action_space.sample())
print(len(seen.buffer))
"""
    run = [sys.executable, "-m", "snake_gym", "warm"]
    first = subprocess.run(run, env={**os.environ, **env}, capture_output=True, text=True, check=True)
    assert first.stderr.count("compiling the physics") == 1
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **env}, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("0\n", "")
