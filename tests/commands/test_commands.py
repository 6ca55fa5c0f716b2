"""Commands ``list``, ``describe`` and ``warm``, as a user calls them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest

from snake_gym import registry
from snake_gym.__main__ import COMMANDS, main
from snake_gym.config import ConfigError
from snake_gym.controllers import CONTROLLERS
from snake_gym.interface.policy_file import shipped_policies
from snake_gym.robot.presets import PRESETS
from snake_gym.simulation.fault_kinds import JOINT_KINDS

WAYPOINTS = "SnakeGym/Waypoints-v0"
TASK = '''
from snake_gym import register_task
from snake_gym.tasks.waypoints import WaypointsConfig

@register_task("Mine/ListedTask-v0")
class MineConfig(WaypointsConfig):
    """A task of mine."""
'''


@pytest.fixture(autouse=True)
def _forget_own_tasks() -> Iterator[None]:
    """What a test registers is forgotten afterwards."""
    before = [(table, dict(table)) for table in (registry.TASKS, gym.registry)]
    yield
    for table, content in before:
        table.clear()
        table.update(content)


def test_list_has_every_name_that_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    words = set(capsys.readouterr().out.split())
    ours = {env_id for env_id in gym.registry if env_id.startswith("SnakeGym/")}
    assert {*ours, *PRESETS, *CONTROLLERS, *JOINT_KINDS, *shipped_policies()} <= words
    for robot in ("resilient_servo",):
        assert f"configs/controllers/{robot}/cc.yaml" in words


def test_list_has_what_a_plugin_registers_and_names_the_nearest_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "listed_task.py").write_text(TASK)
    assert main(["list", "envs", "--plugin", str(tmp_path / "listed_task.py")]) == 0
    out = capsys.readouterr().out
    assert re.search(r"Mine/ListedTask-v0 +A task of mine", out)
    assert "controllers:" not in out
    with pytest.raises(ConfigError, match=r"'robotz'; expected one of .*; did you mean 'robots'"):
        main(["list", "robotz"])


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


def test_an_unknown_env_or_setting_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"'Waypont'.*did you mean 'Waypoints'"):
        main(["describe", "Waypont"])
    with pytest.raises(ConfigError, match=r"faults.n_mx.*n_max"):
        main(["describe", "Waypoints", "--set", "faults.n_mx=2"])
    with pytest.raises(ConfigError, match="snake-gym hardware"):
        main(["describe", "Real"])


def test_every_command_has_help(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit) as end:
            main([command, "--help"])
        assert end.value.code in (0, None), command
        assert "usage: " in capsys.readouterr().out, command


@pytest.mark.slow
def test_after_warm_no_env_compiles(tmp_path: Path) -> None:
    """A fresh folder, warmed once; numba's own counters then see no kernel of ours compiled anew."""
    env = {"NUMBA_CACHE_DIR": str(tmp_path)}
    program = """
from numba.core import event
import gymnasium as gym, snake_gym
from snake_gym.registry import PLANAR_TASKS
seen = event.RecordingListener()
event.register("numba:compile", seen)
for env_id in PLANAR_TASKS:
    for settings in ({}, {"faults": {"n_max": 3, "kinds": ["rough", "slipped"]}}):
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
