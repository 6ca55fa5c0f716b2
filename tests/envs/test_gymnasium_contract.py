"""What people who know Gymnasium expect of an env: keyword settings, time limits, seeds, infos, copies."""

from __future__ import annotations

import copy
import pickle
import re
import warnings
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import snake_gym  # noqa: F401  registers
from snake_gym.config import ConfigError
from snake_gym.controllers import CONTROLLERS
from snake_gym.envs import SnakeEnv, WaypointsConfig, make_waypoints
from snake_gym.envs.checker import assert_same
from snake_gym.envs.vector_env import SnakeVectorEnv
from snake_gym.registry import PLANAR_TASKS
from snake_gym.simulation.faults import FaultConfig

IDS = list(PLANAR_TASKS)
CONFIGS = {"mapping": {"faults": {"n_max": 2}}, "object": WaypointsConfig(faults=FaultConfig(n_max=2))}


# --- settings beside a config ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("make", [SnakeEnv, SnakeVectorEnv])
def test_keyword_settings_are_laid_over_a_config(make: Any, config: Any) -> None:
    made = make(config=config, faults={"reveal": True}, time_limit_s=4.0).core.config
    assert (made.faults.n_max, made.faults.reveal, made.time_limit_s) == (2, True, 4.0)
    assert CONFIGS["object"] == WaypointsConfig(faults=FaultConfig(n_max=2))


def test_a_config_of_another_kind_is_one_clear_error() -> None:
    for config in (3, "waypoints.yaml", [("faults", {})]):
        with pytest.raises(ConfigError, match=r"env is .*; expected a group of settings"):
            SnakeEnv(config=config)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"env.action.kind is 'gaits'; expected one of .*; did you mean 'gait'"):
        SnakeEnv(config={"action": {"kind": "gaits"}})
    with pytest.raises(ConfigError, match="WaypointsConfig; this env expects a ObstacleFieldConfig"):
        SnakeEnv(IDS[1], config=WaypointsConfig())


@pytest.mark.parametrize("config", [None, {"faults": {"n_max": 2}}], ids=["alone", "beside a config"])
@pytest.mark.parametrize(
    ("make", "typo", "meant"),
    [
        (gym.make, "fautls", "faults"), (gym.make_vec, "fautls", "faults"), (gym.make, "renderm_ode", "render_mode"),
        (gym.make, "max_epsiode_steps", "max_episode_steps"), (gym.make, "disable_env_cheker", "disable_env_checker"),
        (gym.make, "confg", "config"), (gym.make_vec, "autoreset_mod", "autoreset_mode"),
        (gym.make_vec, "num_env", "num_envs"), (gym.make_vec, "vectorisation_mode", "vectorization_mode"),
    ],
)  # fmt: skip
def test_an_unknown_keyword_is_a_type_error_that_names_the_nearest(
    make: Any, typo: str, meant: str, config: dict[str, Any] | None
) -> None:
    """Libraries find out by a TypeError what an env takes: TorchRL tries ``frameskip``."""
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{typo}'.*did you mean '{meant}'") as caught:
        make(IDS[0], config=config, **{typo: None})
    assert isinstance(caught.value, ConfigError)


@pytest.mark.parametrize("env_id", IDS)
def test_a_wrong_setting_below_a_keyword_is_no_type_error(env_id: str) -> None:
    for make in (gym.make, gym.make_vec):
        with pytest.raises(ConfigError, match=r"env.faults.n_mx is not a setting") as nested:
            make(env_id, faults={"n_mx": 1})
        assert not isinstance(nested.value, TypeError)


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
    "shorter by make": ({"max_episode_steps": 5}, 5),
    "not longer by make": ({"time_limit_s": 2.0, "max_episode_steps": 12}, 10),
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

BAD_SEEDS = [-1, 1.5, 2**63, 10**30, True, "7", np.float64(3.0), np.bool_(True)]


@pytest.mark.parametrize("seed", BAD_SEEDS, ids=repr)
def test_a_seed_that_is_none_is_one_clear_error(seed: Any) -> None:
    single, vector = SnakeEnv(), make_waypoints(2)
    for env in (single, vector):
        with pytest.raises(ValueError, match=r"^seed is .*; expected an integer from 0 to 9223372036854775\d\d\d"):
            env.reset(seed=seed)
    with pytest.raises(ValueError, match=r"^seed\[1\] is .*; expected an integer from 0 to 9223372036854775807"):
        vector.reset(seed=[3, seed])
    with pytest.raises(ValueError, match=r"^seed is a list of 1; expected 2, one for each world"):
        vector.reset(seed=[seed])
    assert single.core.episode[0] == -1 and (vector.core.episode == -1).all()


def test_the_largest_seeds_and_those_of_numpy_are_seeds() -> None:
    single, vector = SnakeEnv(), make_waypoints(2)
    for seed in (2**63 - 2, np.int64(7), np.uint8(9), 0):
        alone = single.reset(seed=seed)[0]
        both = vector.reset(seed=[seed, 5])[0]  # type: ignore[list-item]
        assert_same(both[0], alone, f"seed {seed}")
        assert_same(vector.reset(seed=seed)[0][0], alone, f"seed {seed} of all worlds")  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="seed is 9223372036854775807; expected an integer from 0 to 922337203685477580"
    ):
        vector.reset(seed=2**63 - 1)
    assert_same(vector.reset(seed=np.array([3, 4]))[0], vector.reset(seed=3)[0], "an array of seeds")  # type: ignore[arg-type]


def test_none_in_a_list_of_seeds_is_what_it_is_in_gymnasium() -> None:
    """A world without a seed goes on with its next episode, as each env of a SyncVectorEnv does."""
    ours, theirs = make_waypoints(3), gym.make_vec(IDS[0], num_envs=3, vectorization_mode="sync")
    for seed in ([4, 5, 6], [None, 5, None], [7, None, None], [None, None, None], [None, 8, 8]):
        first, _ = ours.reset(seed=seed)
        expected, _ = theirs.reset(seed=seed)
        assert_same(first, expected, f"reset with {seed}")
    assert ours.core.episode.tolist() == [2, 0, 0]


def test_np_random_seed_tells_the_seed_of_the_last_reset() -> None:
    for env in (SnakeEnv(), make_waypoints(2)):
        env.reset(seed=np.int64(5))  # type: ignore[arg-type]
        assert env.np_random_seed == 5 and type(env.np_random_seed) is int
        first = env.np_random.random()
        env.reset()
        assert env.np_random_seed == 5
        env.reset(seed=5)
        assert env.np_random.random() == first
    vector = make_waypoints(2)
    vector.reset(seed=[8, 3])
    assert tuple(vector.np_random_seed) == (8, 3)  # type: ignore[arg-type]


MAKERS = pytest.mark.parametrize("make", [SnakeEnv, lambda: make_waypoints(2)], ids=["single", "vector"])


@MAKERS
@pytest.mark.parametrize("attribute", ["np_random_seed", "np_random", None])
def test_an_episode_without_a_seed_can_be_had_again_by_np_random_seed(make: Any, attribute: str | None) -> None:
    """Read before the first reset, too."""
    env, again = make(), make()
    told = None
    if attribute is not None:
        getattr(env, attribute)
        told = env.np_random_seed
    first, _ = env.reset()
    assert told in (None, env.np_random_seed)
    assert_same(again.reset(seed=env.np_random_seed)[0], first, "the seed that was told")
    assert env.core.seeds[0] == env.np_random_seed
    assert not np.array_equal(make().reset()[0], first)


@MAKERS
def test_an_own_generator_gives_the_first_seed(make: Any) -> None:
    starts = []
    for _ in range(2):
        env = make()
        env.np_random = np.random.default_rng(3)
        starts.append(env.reset()[0])
    assert_same(starts[0], starts[1], "the same generator")


# --- actions and saved states ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros((1, 9)), r"action has shape \(1, 9\); expected \(9,\)$"),
        (np.zeros(4), r"action has shape \(4,\); expected \(9,\)$"),
        (0.5, r"action has shape \(\); expected \(9,\)$"),
        ([0.0] * 3 + [np.nan] + [0.0] * 5, r"action\[3\] is nan; expected a finite number in \[-1, 1\]$"),
        (["left"] * 9, r"action is \['left', .*; expected numbers of shape \(9,\)$"),
        (["0"] * 9, r"action is \['0', .*; expected numbers of shape \(9,\)$"),
        ([1j] * 9, r"action is .*; expected numbers of shape \(9,\)$"),
        ([10**400] * 9, r"action is .*; expected numbers of shape \(9,\)$"),
        (None, r"action is null; expected numbers of shape \(9,\)$"),
        ([[0.0], [0.0, 1.0]], r"action is .*; expected numbers of shape \(9,\)$"),
    ],
)
def test_a_wrong_action_of_a_single_env_is_described_as_it_was_given(action: Any, message: str) -> None:
    env = SnakeEnv()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=f"^{message}"):
        env.step(action)
    assert env.core.step_count[0] == 0


FINITE = r" at \[\d(, \d)*\]; expected finite"
BAD_STATES: dict[str, tuple[Any, str]] = {
    "a part is missing": (lambda s: s.pop("ended"), "has other parts than this env: ended"),
    "another part": (lambda s: s.update(more=np.zeros(2)), "has other parts than this env: more"),
    "more worlds": (lambda s: s.update(ended=np.zeros(3, bool)), r"ended has shape \(3,\); expected \(2,\)"),
    "another shape": (
        lambda s: s.update({"term/progress": np.zeros((2, 2))}), r"term/progress has shape \(2, 2\); expected \(2,\)"
    ),
    "half a step": (lambda s: s.update(step_count=np.array([1.5, 2.0])), "step_count holds 1.5.*; expected int64"),
    "no step": (lambda s: s.update(step_count=np.array([np.nan, 2.0])), "step_count holds nan.*; expected int64"),
    "text": (lambda s: s.update(live=np.array(["yes", "no"])), "live holds 'yes'.*; expected bool"),
    "no seeds": (lambda s: s.update(seeds=np.array([None, None])), "seeds holds null.*; expected int64"),
    **{
        f"{name} {value}": (
            lambda s, name=name, value=value: s[name].fill(value), f"{name} holds {re.escape(f'{value:g}')}{end}"
        )
        for name, value, end in (
            ("robot/link_angle", np.nan, FINITE), ("reference", np.inf, FINITE),
            ("measurement/joint_angle", np.inf, FINITE), ("fault/onset_s", np.nan, FINITE),
        )
    },
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_STATES)
def test_a_state_that_no_episode_has_is_refused_before_anything_is_written(name: str) -> None:
    spoil, message = BAD_STATES[name]
    env = make_waypoints(2, {"faults": {"n_min": 3, "n_max": 3, "intermittent_share": 1.0}})
    env.reset(seed=1)
    env.step(env.action_space.sample())
    before, bad = env.get_state(), env.get_state()
    bad["robot/head_xy"][:] = 7.0
    spoil(bad)
    with pytest.raises(ValueError, match=f"env state {message}"):
        env.set_state(bad)
    assert_same(env.get_state(), before, "after a refused state")


def test_a_single_env_refuses_a_state_of_another() -> None:
    env = SnakeEnv()
    with pytest.raises(ValueError, match="env state is 3; expected what get_state returned"):
        env.set_state(3)  # type: ignore[arg-type]
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"env state .* has shape"):
        env.set_state(make_waypoints(2).core.get_state())


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


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("env_id", IDS)
def test_an_env_that_was_rendered_can_be_copied(env_id: str, duplicate: Any) -> None:
    single = gym.make(env_id, render_mode="rgb_array").unwrapped
    vector = gym.make_vec(env_id, num_envs=2, render_mode="rgb_array")
    for env in (single, vector):
        env.reset(seed=1)
        action = env.action_space.sample()
        env.step(action)
        env.render()
        twin = duplicate(env)
        assert_same(twin.step(action)[0], env.step(action)[0], "after copying")
        np.testing.assert_array_equal(np.shape(twin.render()), np.shape(env.render()))
        assert_same(twin.reset(seed=3)[0], env.reset(seed=3)[0], "the next episode")
        env.close()
        twin.close()


# --- checkers of others ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["joint_reference", "residual", "gait"])
@pytest.mark.parametrize("env_id", IDS)
def test_checkers_are_silent(env_id: str, kind: str) -> None:
    sb3 = pytest.importorskip("stable_baselines3.common.env_checker")
    settings = {"action": {"kind": kind}, "faults": {"n_max": 3}} if kind != "joint_reference" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(env_id, render_mode="rgb_array", **settings).unwrapped)
        sb3.check_env(gym.make(env_id, time_limit_s=2.0, **settings))
        sb3.check_env(gym.make(env_id, max_episode_steps=10, **settings).unwrapped)


def test_the_seed_in_use_is_told_after_a_state_or_some_worlds_were_set() -> None:
    one, other = gym.make("SnakeGym/Waypoints-v0").unwrapped, gym.make("SnakeGym/Waypoints-v0").unwrapped
    one.reset(seed=7)
    other.reset(seed=1)
    other.set_state(one.get_state())  # type: ignore[attr-defined]
    assert other.np_random_seed == 7
    envs = gym.make_vec("SnakeGym/Waypoints-v0", num_envs=3, vectorization_mode="vector_entry_point").unwrapped
    envs.reset(seed=10)
    envs.reset(seed=100, options={"reset_mask": np.array([True, False, False])})
    assert envs.np_random_seed == (100, 11, 12)


def test_a_robot_does_not_start_beyond_its_stops() -> None:
    robot = {"preset": "resilient_servo", "joint_stop_rad": 0.3}
    with pytest.raises(ConfigError, match=r"start.amplitude_rad is 0.349066; expected at most .* joint_stop_rad, 0.3"):
        gym.make("SnakeGym/Waypoints-v0", robot=robot)
    gym.make("SnakeGym/Waypoints-v0", robot=robot, start={"amplitude_rad": 0.3}).close()


@pytest.mark.parametrize("n", [0, "3", 2.5, True, 10**12])
def test_a_number_of_envs_that_cannot_be_is_refused(n: Any) -> None:
    with pytest.raises(ConfigError, match=r"num_envs is .*; expected an integer from 1 to 1000000"):
        gym.make_vec("SnakeGym/Waypoints-v0", num_envs=n, vectorization_mode="vector_entry_point")
