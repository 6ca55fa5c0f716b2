"""Policies of the user's own class: under what their results are kept, and what is said where one is wrong."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from snake_gym.benchmark import evaluate
from snake_gym.config import ConfigError

BASE = """
import numpy as np
from snake_gym.config import to_dict
from snake_gym.envs import SnakeEnv, WaypointsConfig
from snake_gym.interface.actions import ActionConfig

class Still:
    env_id = "SnakeGym/Waypoints-v0"
    env_config = to_dict(WaypointsConfig(action=ActionConfig(kind="gait"), time_limit_s=2.0))
    digest = "1"
    def __init__(self):
        env = SnakeEnv(Still.env_id, config=Still.env_config)
        self.observation_space, self.action_space = env.observation_space, env.action_space
    def act(self, n):
        return np.zeros((n, 4), np.float32)
    def predict(self, observation, state=None, episode_start=None, deterministic=True):
        return self.act(len(observation)), state
"""
WAVE = """
class Wave(Still):
    def act(self, n):
        return np.tile(np.array([0.2, 0.3, 0.4, 0.0], np.float32), (n, 1))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    elsewhere = str(tmp_path.parent.parent)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if not entry.startswith(elsewhere)])
    forget(tmp_path.parent.parent)
    yield tmp_path
    forget(tmp_path)


def forget(folder: Path) -> None:
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(folder)):
            del sys.modules[name]


def play(path: str) -> float:
    """Mean energy of three episodes, results kept in ``out`` under the name ``p``."""
    options = ["--controllers", "none", "--episodes", "3", "--set", "resamples=100", "--no-pictures", "--out", "out"]
    assert evaluate.main(["--policy", f"p={path}", *options]) == 0
    return float(json.loads((Path("out") / "results.json").read_text())["policies"]["p"]["energy_j"])


def test_results_of_one_class_are_never_shown_as_those_of_another(folder: Path) -> None:
    (folder / "two.py").write_text(BASE + WAVE)
    still, wave = play("two.py:Still"), play("two.py:Wave")
    assert wave != still
    assert (play("two.py:Still"), play("two.py:Wave")) == (still, wave)


def test_an_edited_file_or_base_class_is_played_again(folder: Path) -> None:
    (folder / "base.py").write_text(BASE)
    (folder / "mine.py").write_text("from base import Still\nclass Mine(Still):\n    pass\n")
    sys.path.insert(0, str(folder))
    try:
        before = play("mine.py:Mine")
        forget(folder)
        (folder / "base.py").write_text(BASE.replace("np.zeros((n, 4)", "np.full((n, 4), 0.3"))
        after = play("mine.py:Mine")
    finally:
        sys.path.remove(str(folder))
    assert after != before


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("digest = None", r"its digest is null; expected str"),
        ("env_config = 3", r"its env_config is 3; expected Mapping"),
        ("predict = None", r"its predict is null; expected Callable"),
        ("act = lambda self, n: np.full((n, 4), np.nan)", r"its action is nan at \[0, 0\]; expected finite numbers"),
        ("act = lambda self, n: np.zeros((n, 5))", r"its action has shape \(3, 5\); expected \(3, 4\)"),
        ("predict = lambda self, *_, **__: 3", r"its predict returned 3; expected \(actions, state\)"),
        ("act = lambda self, n: {}['x']", r"its predict fails in line \d+: KeyError: 'x'"),
        ("def __init__(self): raise OSError('no file')", r"it fails in line \d+: OSError: no file"),
        ("def __init__(self): self.observation_space = 3", r"has no action_space"),
        ("def __init__(self): self.observation_space = self.action_space = 3", r"its observation_space is 3; expected"),
    ],
)
def test_a_wrong_policy_is_named_in_one_line(body: str, message: str, folder: Path) -> None:
    (folder / "wrong.py").write_text(f"{BASE}\nclass Wrong(Still):\n    {body}\n")
    with pytest.raises(ConfigError, match=rf"^policy p=wrong\.py:Wrong.*{message}"):
        play("wrong.py:Wrong")


def test_what_is_no_class_and_what_lacks_everything(folder: Path) -> None:
    (folder / "odd.py").write_text("class Foo: pass\nx = 3\n")
    with pytest.raises(ConfigError, match=r"^policy p=odd\.py:Foo has no predict$"):
        play("odd.py:Foo")
    with pytest.raises(ConfigError, match=r"^policy p=odd\.py:x is 3; expected a class or a function"):
        play("odd.py:x")
