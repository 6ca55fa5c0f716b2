"""Tasks, columns, kinds of faults and policies in files outside the package, as docs/extending.md shows them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import snake_gym
from snake_gym import plugins, registry
from snake_gym.benchmark import evaluate, tune
from snake_gym.config import ConfigError, apply_overrides
from snake_gym.envs import SnakeVectorEnv, make_waypoints
from snake_gym.interface import observations
from snake_gym.simulation import fault_kinds, randomisation
from tests.envs.vector_checker import assert_same, check_vector_env, spread_ends_at_reset

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text()


def example(section: str, language: str = "python", which: int = 0) -> str:
    """A block of code of a section of the page."""
    return PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0].split(f"```{language}\n")[1 + which].split("```")[0]


EXAMPLES = {
    "reach.py": example("A task of your own"),
    "reach.yaml": example("A task of your own", "yaml"),
    "curl.py": example("An observation column of your own"),
    "worn.py": example("A fault kind of your own"),
    "scales.py": example("A world that varies in your own way"),
    "steady.py": example("A policy of your own"),
    "straight.py": example("A policy of your own", which=1),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder outside the package with the examples; what they register is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    for name, text in EXAMPLES.items():
        (tmp_path / name).write_text(text)
    for env_id in registry.TASKS:  # what our own tasks register must not be forgotten
        registry.find_task(env_id)
    tables: list[Any] = [
        registry.TASKS, gym.registry, observations.COLUMNS, fault_kinds.FAULT_KINDS, randomisation.RANDOMISERS,
    ]  # fmt: skip
    before, modules = [dict(table) for table in tables], set(sys.modules)
    yield tmp_path
    for table, content in zip(tables, before, strict=True):
        table.clear()
        table.update(content)
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def run(folder: Path, *command: str, ok: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.returncode == 0) is ok, done.stdout + done.stderr
    return done


# --- tasks -----------------------------------------------------------------------------------------------------------


def test_a_task_keeps_the_promises_of_every_vector_env(folder: Path) -> None:
    snake_gym.load_plugins(["reach.py"])
    make, config = partial(SnakeVectorEnv, "Mine/Reach-v0"), {"time_limit_s": 4.0, "faults": {"n_max": 2}}
    check_vector_env(lambda n, mode: spread_ends_at_reset(make(n, mode, config=config)))
    obs, _ = make(3).reset(seed=1)
    assert obs[:, -1].tolist() == [1.0] * 3  # all the time is left
    with pytest.raises(ConfigError, match=r"env.distance_m is -1; expected > 0"):
        gym.make("Mine/Reach-v0", distance_m=-1.0)


def test_what_a_task_changes_and_does_not_keep_is_named_before_a_state_is_saved_without_it(folder: Path) -> None:
    clock = "        self.index[reached] = 1\n"
    for line in ("self.clock_s = step.state.time_s + 0.0", "self.n_steps = getattr(self, 'n_steps', 0) + 1"):
        (folder / "reach.py").write_text(EXAMPLES["reach.py"].replace(clock, f"{clock}        {line}\n"))
        snake_gym.load_plugins("reach.py")
        env = SnakeVectorEnv("Mine/Reach-v0", 2)
        _ = env.reset(seed=0), env.get_state(), env.step(np.zeros((2, 9)))
        with pytest.raises(ConfigError, match=r"the task has changed its (clock_s|n_steps), which no"):
            env.get_state()
        del sys.modules["reach"]


def test_other_processes_find_the_plugin_by_the_keywords_of_the_env(folder: Path) -> None:
    snake_gym.load_plugins("reach.py")
    spec = gym.make("Mine/Reach-v0", time_limit_s=4.0).spec
    assert spec is not None
    assert json.loads(spec.to_json())["kwargs"]["plugin"] == str(folder / "reach.py")
    workers = gym.make_vec("Mine/Reach-v0", 1, "async", vector_kwargs={"context": "spawn"})
    here = SnakeVectorEnv("Mine/Reach-v0", 1)
    assert_same(workers.reset(seed=5)[0], here.reset(seed=5)[0], "another process")
    workers.close()


@pytest.mark.slow
def test_a_task_is_trained_resumed_exported_and_evaluated_where_its_file_is_named(folder: Path) -> None:
    train, export, evaluate = (["-m", "snake_gym", program] for program in ("train", "export", "evaluate"))
    run(folder, *train, "--config", "reach.yaml", "--run-dir", "run", "--quiet")
    for command in ([*train, "--resume", "run"], [*export, "run"]):
        assert "--plugin" in run(folder, *command, ok=False).stderr
    named = ["--plugin", "reach.py"]
    run(folder, *train, "--resume", "run", "--set", "total_steps=384", "--quiet", *named)
    run(folder, *export, "run", *named)
    play = [*evaluate, "--policy", "mine=run", "--controllers", "none", "--episodes", "3", "--set", "resamples=100"]
    assert f"give --plugin {folder / 'reach.py'}" in run(folder, *play, ok=False).stderr
    run(folder, *play, *named)
    assert "Mine/Reach-v0" in (folder / "runs/evaluation/results.json").read_text()
    assert "mine" in (folder / "runs" / "evaluation" / "replay.html").read_text()
    again = [text.replace("mine=run", "mine=run/export") for text in play]
    run(folder, *again, *named, "--no-pictures", "--out", "exported")


def test_a_gait_is_tuned_in_a_task_of_ones_own(folder: Path) -> None:
    words = ["--plugin", "reach.py", "--env-id", "Mine/Reach-v0", "--controller", "sjc", "--set", "time_limit_s=2"]
    assert tune.main([*words, "--budget", "1", "--population", "4", "--worlds", "8", "--out", "sjc.yaml"]) == 0
    assert "Mine/Reach-v0" in (folder / "sjc.yaml").read_text()


def test_a_name_is_taken_once_and_a_bad_one_leaves_nothing_behind(folder: Path) -> None:
    (folder / "away.py").write_text(AWAY)
    (folder / "other.py").write_text(AWAY)
    snake_gym.load_plugins("away.py")
    config_type = registry.find_task("Mine/Away-v0")
    assert snake_gym.register_task("Mine/Away-v0")(config_type) is config_type  # as a notebook's cell, run again
    with pytest.raises(ConfigError, match=r"other.py: the name of task 'Mine/Away-v0' is taken"):
        snake_gym.load_plugins("other.py")
    for taken in (*registry.TASKS, registry.REAL, "CartPole-v1"):
        with pytest.raises(ConfigError, match=f"the name of task '{taken}' is taken"):
            snake_gym.register_task(taken)(type("Another", (config_type,), {}))
    with pytest.raises(ConfigError, match=r"the name of a task is .*; expected the plain name of an env"):
        snake_gym.register_task("evil:Mine/Away-v0")
    for file, what in (("curl", "column 'curl'"), ("worn", "fault kind 'worn'")):
        snake_gym.load_plugins(f"{file}.py")
        (folder / f"{file}2.py").write_text(EXAMPLES[f"{file}.py"])
        with pytest.raises(ConfigError, match=f"{file}2.py: the name of {what} is taken"):
            snake_gym.load_plugins(f"{file}2.py")


# --- columns, kinds of faults, policies ------------------------------------------------------------------------------


def test_a_column_follows_the_others_and_is_checked(folder: Path) -> None:
    snake_gym.load_plugins("curl.py")
    settings: dict[str, Any] = {"observation": {"columns": ["standard", "curl"]}, "action": {"kind": "gait"}}
    env = gym.make("SnakeGym/Waypoints-v0", **settings)
    plain = gym.make("SnakeGym/Waypoints-v0", action={"kind": "gait"})
    obs, without = env.reset(seed=4)[0], plain.reset(seed=4)[0]
    assert_same(obs[:-1], without, "the columns before it")
    assert obs[-1] == pytest.approx(0.5 * obs[:9].sum(), abs=1e-6)
    with pytest.raises(ConfigError, match=r"columns\[0\] is 'crul'.*did you mean 'curl'"):
        gym.make("SnakeGym/Waypoints-v0", observation={"columns": ["crul"]})


def test_a_kind_of_fault_acts_on_its_joints_from_its_onset_on(folder: Path) -> None:
    snake_gym.load_plugins("worn.py")
    event = {"joint": 3, "kind": "worn", "strength": 0.6, "onset_s": 1.0}
    ways = []
    for faults in ({"events": [event]}, {"n_max": 0}):
        core = make_waypoints(2, config={"faults": faults, "time_limit_s": 4.0}).core
        core.reset(np.array([1, 2]))
        path = [core.robot.joint_angle()]
        for _ in range(10):
            core.step(np.full((2, 9), 0.5))
            path.append(core.robot.joint_angle())
        ways.append(np.array(path))
    same = (ways[0] == ways[1]).all(axis=(1, 2))
    assert same.tolist() == [True] * 6 + [False] * 5
    drawn = make_waypoints(50, config={"faults": {"n_min": 2, "n_max": 2, "kinds": ["worn", "locked"]}}).core
    drawn.reset(np.arange(50))
    faults = drawn.robot.faults
    of_kind = faults.kind == fault_kinds.FAULT_KINDS["worn"].code
    assert 30 < of_kind.sum() < 70 and (faults.strength[of_kind] == 0.5).all()
    assert drawn.infos()["n_failed_joints"].tolist() == [2] * 50


SCALES: dict[str, Any] = {"randomisation": {"functions": ["worn_scales"]}, "time_limit_s": 1.0}


def test_a_randomiser_is_the_world_s_own_and_passes_the_checker(folder: Path) -> None:
    """Worlds alone and in a batch, saved states, seeds and autoreset."""
    snake_gym.load_plugins("scales.py")
    waypoints = "SnakeGym/Waypoints-v0"
    check_vector_env(
        lambda n, mode: spread_ends_at_reset(SnakeVectorEnv(waypoints, n, mode, config=SCALES)), n_worlds=3, n_steps=8
    )
    core, nominal = make_waypoints(3, config=SCALES).core, make_waypoints(3).core.robot.params
    core.reset(np.arange(3))
    wear = 1.0 - core.robot.params.c_n / nominal.c_n
    assert (np.diff(wear, axis=1) <= 0.0).all() and np.unique(wear).size == wear.size
    np.testing.assert_allclose(core.robot.params.joint_friction, 0.2 * wear[:, 1:], atol=1e-12)
    core.set_difficulty(0.5)
    core.reset(np.arange(3))
    np.testing.assert_allclose(1.0 - core.robot.params.c_n / nominal.c_n, 0.5 * wear, atol=1e-12)
    saved, other = core.get_state(), make_waypoints(3, config=SCALES).core
    other.reset(np.arange(3) + 9)
    other.set_state(saved)
    for own, restored in zip(core.robot.params, other.robot.params, strict=True):
        np.testing.assert_array_equal(restored, own)


def test_a_saved_state_names_its_faults_whatever_the_order_of_the_plugins(folder: Path) -> None:
    for name, angle in (("up", 0.8), ("down", -0.8)):
        (folder / f"{name}.py").write_text(
            "import snake_gym\nfrom snake_gym.simulation.fault_kinds import FaultEffect\n"
            f"@snake_gym.register_fault_kind('{name}')\n"
            f"def aim(joints): return FaultEffect(reference=joints.reference * 0.0 + {angle})\n"
        )
    kinds = {"events": [{"joint": 2, "kind": "up"}, {"joint": 7, "kind": "down"}]}
    ours, saved, played = dict(fault_kinds.FAULT_KINDS), dict[str, Any](), []
    for plugins_in_order in (["up.py", "down.py"], ["down.py", "up.py"]):
        snake_gym.load_plugins(plugins_in_order)
        env: Any = gym.make("SnakeGym/Waypoints-v0", faults=kinds).unwrapped
        env.reset(seed=0)
        saved = saved or env.get_state()
        env.set_state(saved)
        played.append([env.step(np.zeros(9))[0].tolist() for _ in range(8)])
        fault_kinds.FAULT_KINDS.clear()  # as in a new process
        fault_kinds.FAULT_KINDS.update(ours)
        del sys.modules["up"], sys.modules["down"]
    assert played[0] == played[1]
    plain: Any = gym.make("SnakeGym/Waypoints-v0").unwrapped
    plain.reset(seed=0)
    with pytest.raises(ValueError, match=r"a kind of fault that no imported module registers; give it with --plugin"):
        plain.set_state(saved)


def test_a_column_of_ones_own_task_is_refused_in_others(folder: Path) -> None:
    snake_gym.load_plugins(["reach.py", "curl.py"])
    with pytest.raises(ConfigError, match=r"time_left of the observations has no entries .* it needs another task"):
        gym.make("SnakeGym/Velocity-v0", observation={"columns": ["curl", "time_left"]})
    env: Any = gym.make("Mine/Reach-v0", observation={"columns": ["time_left", "curl"]})
    assert env.reset(seed=1)[0].shape == (2,)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"progress": made', '"progress": made * np.nan', r"the reward term progress is nan at \[0\]"),
        ('"progress": made, ', "", "reward terms are reached; expected progress, reached"),
        ('self.record["time_left"]}', 'self.record["time_left"] + np.inf}', "the task's signal time_left is inf"),
    ],
)
def test_a_task_gives_finite_terms_and_signals(old: str, new: str, message: str, folder: Path) -> None:
    assert EXAMPLES["reach.py"].count(old) == 1
    (folder / "reach.py").write_text(EXAMPLES["reach.py"].replace(old, new))
    snake_gym.load_plugins("reach.py")
    env = SnakeVectorEnv("Mine/Reach-v0", 2)
    with pytest.raises(ConfigError, match=message):
        _ = env.reset(seed=0), env.step(np.zeros((2, 9)))


def odd_column(values: Any, **more: Any) -> dict[str, Any]:
    snake_gym.register_column("odd", "1", "odd", **more)(lambda seen: values)
    return {"observation": {"columns": ["odd"]}}


def odd_fault(**effect: Any) -> dict[str, Any]:
    snake_gym.register_fault_kind("odd")(lambda joints: fault_kinds.FaultEffect(**effect))
    return {"robot": "resilient", "faults": {"events": [{"joint": 3, "kind": "odd"}]}}


def odd_randomiser(change: Any) -> dict[str, Any]:
    snake_gym.register_randomiser("odd")(lambda params, rng: change(params))
    return {"randomisation": {"functions": ["odd"]}}


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (partial(odd_column, [[0.0], [np.nan]]), r"the column odd of the observations is nan at \[1, 0\]"),
        (partial(odd_fault, torque_share=[0.5] * 2, speed_share=[0.5] * 2), "expected one of them"),
        (partial(odd_fault, speed_share=[0.5] * 2), "resilient has no speed limit to lower"),
        (partial(odd_fault, reference=[np.nan] * 2), "the reference of fault kind odd is nan"),
        (partial(odd_fault, torque_share=[0.5, 5.0]), r"the torque_share of fault kind odd is 5; expected in \[0, 1\]"),
        (partial(odd_randomiser, lambda params: params.mass.fill(-1.0)), "sets params.mass to -1; expected > 0"),
        (partial(odd_randomiser, lambda params: params), "returns a value; expected None"),
    ],
)
def test_what_a_plugin_s_function_gives_is_checked(register: Any, message: str, folder: Path) -> None:
    env = make_waypoints(2, config=register())
    with pytest.raises(ValueError, match=message):
        _ = env.reset(seed=0), env.step(np.zeros((2, 9)))


@pytest.mark.parametrize("group", ["action.controller.kind", "faults.kinds", "observation.columns"])
def test_a_name_that_nobody_registered_asks_for_its_plugin(group: str) -> None:
    name = "mine" if group.endswith("kind") else "[mine]"
    with pytest.raises(ConfigError, match=r"is 'mine'.*give it with --plugin FILE.py"):
        gym.make("SnakeGym/Waypoints-v0", **apply_overrides({"action": {"kind": "residual"}}, [f"{group}={name}"]))


def test_a_policy_of_ones_own_is_evaluated_under_a_fault_of_ones_own(folder: Path) -> None:
    play = ["--policy", "straight=straight.py:Straight", "--controllers", "none", "--episodes", "3"]
    worn = ["--plugin", "worn.py", "--set", "env.faults.events=[{joint: 3, kind: worn}]", "env.time_limit_s=10"]
    assert evaluate.main([*play, *worn, "resamples=100"]) == 0
    assert "straight" in (folder / "runs/evaluation/results.json").read_text()
    assert "worn" in (folder / "runs" / "evaluation" / "replay.html").read_text()


def test_the_function_of_the_page_plays_in_the_env_that_is_asked_for(folder: Path) -> None:
    (folder / "env.yaml").write_text("time_limit_s: 2.0\naction: {kind: gait}\n")
    play = ["--policy", "steady=steady:make", "--controllers", "none", "--env", "env.yaml"]
    assert evaluate.main([*play, "--episodes", "3", "--set", "resamples=100", "--no-pictures"]) == 0
    assert json.loads((folder / "runs/evaluation/results.json").read_text())["config"]["action"] == {"kind": "gait"}


AWAY = """
from dataclasses import dataclass
from snake_gym import register_task
from snake_gym.envs import WaypointsConfig

@register_task("Mine/Away-v0")
class AwayConfig(WaypointsConfig):
    pass
"""


def test_a_policy_plays_in_the_task_that_its_file_names_not_in_one_with_equal_settings(folder: Path) -> None:
    (folder / "away.py").write_text(AWAY)
    (folder / "there.py").write_text(
        EXAMPLES["straight.py"]
        .replace('"SnakeGym/Waypoints-v0"', '"Mine/Away-v0"')
        .replace("SnakeEnv(self.env_id", "SnakeEnv('SnakeGym/Waypoints-v0'")
    )
    play = ["--policy", "x=there.py:Straight", "--controllers", "none", "--episodes", "2", "--set", "resamples=100"]
    for command in (play, [*play, "--set", "env_id=SnakeGym/Waypoints-v0"]):
        unknown = "policy x: env_id is 'Mine/Away-v0', which no imported module registers; give it with --plugin"
        with pytest.raises(ConfigError, match=unknown):
            evaluate.main([*command, "--no-pictures"])
    assert evaluate.main([*play, "--no-pictures", "--plugin", "away.py"]) == 0
    result = json.loads((folder / "runs/evaluation/results.json").read_text())
    assert (result["config"]["env_id"], result["notes"]) == ("Mine/Away-v0", [])


# --- loading ---------------------------------------------------------------------------------------------------------


def test_a_plugin_that_is_not_there_or_takes_a_name_is_refused(folder: Path) -> None:
    (folder / "json.py").write_text("")
    (folder / "broken.py").write_text("\nraise SystemExit(0)")
    for plugin, message in (
        ("reahc.py", "plugin reahc.py does not exist"),
        ("no_such_module", "plugin 'no_such_module' is no module that Python finds"),
        ("json.py", "another module named 'json' is loaded"),
        ("broken.py", "broken.py fails in line 2: SystemExit: 0"),
    ):
        with pytest.raises(ConfigError, match=message):
            snake_gym.load_plugins(plugin)
    assert "broken" not in sys.modules
    assert snake_gym.load_plugins(["curl.py", "curl.py"]) == (str(folder / "curl.py"),) * 2


def test_what_a_run_or_an_evaluation_left_behind_imports_nothing(folder: Path) -> None:
    settings = {"plugins": [str(folder / "my curl.py")]}
    (folder / "my curl.py").write_text("")
    with pytest.raises(ConfigError, match=r"config.yaml names the plugin .*: give --plugin '.*/my curl.py'"):
        plugins.take_plugins(settings, "results/config.yaml")
    assert "my curl" not in sys.modules
    assert plugins.take_plugins(settings, "results/config.yaml", ["my curl.py"]) == settings
    sys.modules.pop("my curl")
    assert plugins.take_plugins(settings, "mine.yaml") == settings
    (folder / "config.yaml").write_text("policies: {x: 'straight.py:Straight'}")
    with pytest.raises(ConfigError, match=r"names the class .*: give --policy x=straight.py:Straight"):
        evaluate.read_config(evaluate.parse(["--config", "config.yaml"]))
    assert "straight" not in sys.modules
