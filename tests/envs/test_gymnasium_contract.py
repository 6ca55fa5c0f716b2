"""What people who know Gymnasium expect of an env: keyword settings, time limits, seeds, infos, copies."""

from __future__ import annotations

import pickle
import re
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from snake_gym.config import ConfigError
from snake_gym.controllers import CONTROLLERS
from snake_gym.envs import SnakeEnv, WaypointsConfig, make_waypoints
from snake_gym.envs.vector_env import SnakeVectorEnv
from snake_gym.simulation.faults import FaultConfig
from tests.envs.vector_checker import assert_same
from tests.tasks_of_robots import PLANAR_TASKS

IDS = list(PLANAR_TASKS)
CONFIGS = {"mapping": {"faults": {"n_max": 2}}, "object": WaypointsConfig(faults=FaultConfig(n_max=2))}


# --- settings over a config ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("make", [SnakeEnv, SnakeVectorEnv])
def test_keyword_settings_are_laid_over_a_config(make: Any, config: Any) -> None:
    made = make(config=config, faults={"reveal": True}, time_limit_s=4.0).core.config
    assert (made.faults.n_max, made.faults.reveal, made.time_limit_s) == (2, True, 4.0)
    assert CONFIGS["object"] == WaypointsConfig(faults=FaultConfig(n_max=2))


@pytest.mark.parametrize(
    ("make", "typo", "meant"), [(gym.make, "fautls", "faults"), (gym.make_vec, "autoreset_mod", "autoreset_mode")]
)
def test_an_unknown_keyword_is_a_type_error_that_names_the_nearest(make: Any, typo: str, meant: str) -> None:
    """Libraries find out by a TypeError what an env takes: TorchRL tries ``frameskip``."""
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{typo}'.*did you mean '{meant}'") as caught:
        make(IDS[0], config={"faults": {"n_max": 2}}, **{typo: None})
    assert isinstance(caught.value, ConfigError)


@pytest.mark.parametrize("env_id", IDS)
def test_infos_of_a_single_env_are_numpy_scalars(env_id: str) -> None:
    env = gym.make(env_id)
    _, first = env.reset(seed=0)
    *_, second = env.step(env.action_space.sample())
    for info in (first, second):
        assert {name: type(value) for name, value in info.items() if not isinstance(value, np.generic)} == {}
        assert type(info["is_success"]) is np.bool_
        assert type(info["progress_m"]) is np.float64
        assert type(info["n_faults"]) is np.int64


# --- how long an episode is ------------------------------------------------------------------------------------------


def count_steps(env: gym.Env[Any, Any]) -> int:
    """Steps until truncation under actions of 0."""
    env.reset(seed=0)
    for n in range(1, 2_000):
        _, _, terminated, truncated, _ = env.step(np.zeros(env.action_space.shape or (), np.float32))
        assert not terminated
        if truncated:
            return n
    raise AssertionError("no end")


STEPS: dict[str, tuple[dict[str, Any], int]] = {
    "by default": ({}, 300),
    "longer by time_limit_s": ({"time_limit_s": 100.0}, 500),
    "of another robot": ({"robot": {"preset": "resilient_servo", "control_dt_s": 0.5}}, 120),
    "shorter by make": ({"time_limit_s": 2.0, "max_episode_steps": 5}, 5),
}


@pytest.mark.parametrize(("settings", "expected"), STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("mode", ["vector_entry_point", "sync"])
def test_the_time_limit_or_fewer_steps_end_an_episode(mode: str, settings: dict[str, Any], expected: int) -> None:
    for env_id in IDS if expected < 20 else IDS[:1]:
        assert count_steps(gym.make(env_id, **settings)) == expected
        envs = gym.make_vec(env_id, num_envs=2, vectorization_mode=mode, **settings)
        envs.reset(seed=0)
        ends = [envs.step(np.zeros(envs.action_space.shape or (), np.float32))[3].all() for _ in range(expected)]
        assert np.flatnonzero(ends).tolist() == [expected - 1]


# --- seeds -----------------------------------------------------------------------------------------------------------


def test_none_in_a_list_of_seeds_is_what_it_is_in_gymnasium() -> None:
    """A world without a seed goes on with its next episode, as each env of a SyncVectorEnv does."""
    ours, theirs = make_waypoints(3), gym.make_vec(IDS[0], num_envs=3, vectorization_mode="sync")
    for seed in ([4, 5, 6], [None, 5, None], [7, None, None], [None, None, None], [None, 8, 8]):
        first, _ = ours.reset(seed=seed)
        expected, _ = theirs.reset(seed=seed)
        assert_same(first, expected, f"reset with {seed}")
    assert ours.core.episode.tolist() == [2, 0, 0]


def test_np_random_seed_is_the_seed_of_the_last_reset_or_state() -> None:
    for env in (SnakeEnv(), make_waypoints(2)):
        env.reset(seed=np.int64(5))  # type: ignore[arg-type]
        assert env.np_random_seed == 5 and type(env.np_random_seed) is int
        first = env.np_random.random()
        env.reset()
        assert env.np_random_seed == 5
        env.reset(seed=5)
        assert env.np_random.random() == first
    one, other = SnakeEnv(), SnakeEnv()
    one.reset(seed=7)
    other.reset(seed=1)
    other.set_state(one.get_state())
    assert other.np_random_seed == 7
    vector = make_waypoints(3)
    vector.reset(seed=[8, 3, 5])
    vector.reset(seed=100, options={"reset_mask": np.array([True, False, False])})
    assert tuple(vector.np_random_seed) == (100, 3, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", [SnakeEnv, lambda: make_waypoints(2)], ids=["single", "vector"])
def test_an_episode_without_a_seed_can_be_had_again_by_np_random_seed(make: Any) -> None:
    """The seed may be read before the first reset, too."""
    for env in (make(), make()):
        before = env.np_random_seed
        first, _ = env.reset()
        assert before == env.np_random_seed == env.core.seeds[0]
        assert_same(make().reset(seed=before)[0], first, "the same seed")
        assert not np.array_equal(make().reset()[0], first)


# --- arguments that are refused, and saved states --------------------------------------------------------------------


BAD = np.array([[0.0] * 9, [0.0] * 3 + [np.nan] + [0.0] * 5])


def bends(n_worlds: int) -> SnakeVectorEnv:
    """An env with no room for a wider corridor between six bends."""
    return SnakeVectorEnv(
        "SnakeGym/ObstacleField-v0", n_worlds, field={"kind": "bends", "difficulty": 1.0, "n_turns": 6}
    )


WRONG: list[tuple[Any, Any, str]] = [
    (SnakeEnv, lambda env: env.step(np.zeros(4)), r"action has shape (4,); expected (9,)"),
    (make_waypoints, lambda env: env.step(BAD), "action is nan at [1, 3]; expected finite numbers"),
    (SnakeEnv, lambda env: env.reset(seed=-1), "seed is -1; expected an integer from 0 to 9223372036854775807"),
    (make_waypoints, lambda env: env.reset(seed=[3]), "seed is a list of 1; expected 2, one for each world"),
    (make_waypoints, lambda env: env.reset(options={"reset_mask": BAD[0]}), "expected bool (2,), at least one True"),
    (SnakeEnv, lambda env: env.set_state(make_waypoints(2).core.get_state()), "has shape (2,); expected (1,)"),
    (
        make_waypoints,
        lambda env: env.set_state({**env.get_state(), "robot/link_angle": np.full((2, 10), np.nan)}),
        "env state robot/link_angle holds nan",
    ),
    (make_waypoints, lambda env: make_waypoints(2, None, "sometimes"), "autoreset_mode is 'sometimes'; expected one"),
    (bends, lambda env: env.set_difficulty(np.nan), "difficulty is nan"),
    (bends, lambda env: env.set_difficulty([0.1, 0.2, 0.3]), "expected a number in [0, 1], or 2 of them"),
    (bends, lambda env: env.set_difficulty(0.0), "field.n_turns is 6: the turns are"),
    (bends, lambda env: env.core.move_target(0, (1.0, 1.0)), "no target"),
    (make_waypoints, lambda env: env.core.set_fault(0, 10, "locked"), "joint 10"),
    (make_waypoints, lambda env: env.core.mend(0, 12), "joint is 12"),
    (make_waypoints, lambda env: env.core.set_fault(7, 1, "locked"), "world is 7; expected <"),
    (make_waypoints, lambda env: env.core.move_target(0, (np.nan, 0.0)), "place[0] is nan; expected"),
    (SnakeEnv, lambda env: SnakeEnv(IDS[1], config=WaypointsConfig()), "WaypointsConfig; this env expects a Obst"),
]


@pytest.mark.parametrize(("make", "call", "expected"), WRONG, ids=[row[2] for row in WRONG])
def test_a_wrong_argument_is_refused_in_one_line_and_changes_nothing(make: Any, call: Any, expected: str) -> None:
    env = make() if make is SnakeEnv else make(2)
    with pytest.raises(gym.error.ResetNeeded):
        env.step(np.zeros(env.action_space.shape))
    env.reset(seed=0)
    before = env.get_state()
    with pytest.raises(ValueError, match=re.escape(expected)):
        call(env)
    assert_same(env.get_state(), before, "after a refusal")


@pytest.mark.parametrize("controller", [None, *(kind for kind in CONTROLLERS if kind != "multimodal")])
def test_what_get_state_returns_is_taken_back_whatever_controller_runs(controller: str | None) -> None:
    """Some parts of a state are not finite by their meaning: times that have not come, places not yet found."""
    action = {} if controller is None else {"kind": "residual", "controller": {"kind": controller}}
    robot = {"pfl": "pegboard", "speed": "muscle"}.get(str(controller), "resilient_servo")
    faults = {"encoder_faults": {"n_max": 2, "kinds": ["dead"]}}
    env = make_waypoints(2, {"action": action, "robot": robot, "sensors": faults, "faults": {"n_max": 2}})
    for _ in range(3):
        env.set_state(env.get_state())
        env.reset()
        env.set_state(env.get_state())
        for _ in range(5):
            env.step(0.3 * env.action_space.sample())
        kept = env.get_state()
        env.set_state({name: values.tolist() for name, values in kept.items()})
        assert_same(env.get_state(), kept, "as plain lists")


# --- copies ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", IDS[:2])
def test_an_env_that_was_rendered_can_be_pickled(env_id: str) -> None:
    single = gym.make(env_id, render_mode="rgb_array").unwrapped
    vector = gym.make_vec(env_id, num_envs=2, render_mode="rgb_array")
    for env in (single, vector):
        env.reset(seed=1)
        action = env.action_space.sample()
        for _ in range(3):
            env.step(action)
        env.render()
        twin = pickle.loads(pickle.dumps(env))
        assert_same(twin.step(action)[0], env.step(action)[0], "after copying")
        np.testing.assert_array_equal(np.shape(twin.render()), np.shape(env.render()))
        assert_same(twin.reset(seed=3)[0], env.reset(seed=3)[0], "the next episode")
        env.close()
        twin.close()


# --- checkers of others ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "kind"), [*((env_id, "joint_reference") for env_id in IDS), (IDS[0], "residual"), (IDS[1], "gait")]
)
def test_checkers_are_silent(env_id: str, kind: str) -> None:
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    settings = {"action": {"kind": kind}, "faults": {"n_max": 3}} if kind != "joint_reference" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id, render_mode="rgb_array", **settings).unwrapped)
        sb3.check_env(gym.make(env_id, time_limit_s=2.0, **settings))
