"""A controller and a robot that live outside the package, as ``docs/extending.md`` shows them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

from snake_gym.benchmark.runner import play
from snake_gym.benchmark.scenarios import BenchmarkConfig, classical_entrant, make_scenarios
from snake_gym.benchmark.tuning import Search, TuningConfig
from snake_gym.config import dump_yaml
from snake_gym.controllers import CONTROLLERS
from snake_gym.robot.catalogue import load_robot
from tests.extending.test_plugins import example


@pytest.fixture
def gait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's gait, imported from a folder of its own."""
    (tmp_path / "my_gait.py").write_text(example("A controller of your own", "python"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    importlib.import_module("my_gait")
    yield
    del CONTROLLERS["my_gait"], sys.modules["my_gait"]


@pytest.mark.usefixtures("gait")
def test_a_gait_is_the_base_of_residual_actions() -> None:
    ways = []
    for share in (0.3, 1.0):
        controller = {"kind": "my_gait", "head_share": share, "amplitude_rad": 0.6, "frequency_rad_s": 3.0}
        action = {"kind": "residual", "controller": controller}
        env = gym.make("SnakeGym/Waypoints-v0", action=action, time_limit_s=2.0)
        env.reset(seed=1)
        for _ in range(10):
            *_, info = env.step(np.zeros(env.action_space.shape))
        ways.append(info["progress_m"])
    assert ways[0] != ways[1]


@pytest.mark.usefixtures("gait")
def test_a_gait_is_tuned_and_then_takes_part_in_an_evaluation() -> None:
    env = {"time_limit_s": 2.0}
    search = Search(TuningConfig(controller={"kind": "my_gait"}, env=env, generations=1, population=4, worlds=8))
    search.advance()
    report = search.report()
    assert report["tuning"]["searched"]["head_share"] == [0.1, 1.0]
    dump_yaml(report, "tuned.yaml")
    config = BenchmarkConfig(episodes=3, env=env)
    entrant = classical_entrant("mine=tuned.yaml", config)
    assert play(entrant, make_scenarios(config)).columns["progress_m"].shape == (3,)


@pytest.mark.usefixtures("gait")
def test_a_robot_is_played_on() -> None:
    Path("my_robot.yaml").write_text(example("A robot of your own", "yaml"))
    assert load_robot("my_robot.yaml").name == "my_robot"
    action = {"kind": "residual", "controller": {"kind": "my_gait"}}
    env = gym.make("SnakeGym/Waypoints-v0", robot="my_robot.yaml", action=action, time_limit_s=1.0)
    assert env.action_space.shape == (5,)
    env.reset(seed=0)
    env.step(env.action_space.sample())
