"""Every env with every robot that ships: checkers, Gymnasium's own vector env, seeds, observations."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import snake_gym  # noqa: F401  registers
from snake_gym.envs import SnakeVectorEnv
from snake_gym.robot.presets import PRESETS
from tests.envs.vector_checker import assert_same, draw_actions
from tests.tasks_of_robots import PLANAR_TASKS, SPATIAL_TASKS

AMONG_OBSTACLES = ("SnakeGym/ObstacleField-v0", "SnakeGym/Escape-v0")
"""Tasks that refuse a robot whose joints have given accelerations."""
PLANAR = [(env_id, robot) for env_id in PLANAR_TASKS for robot in PRESETS]
EVERY = [(env_id, robot) for env_id, robot in PLANAR if (robot, env_id in AMONG_OBSTACLES) != ("resilient", True)]
EVERY += [(env_id, "configs/robot/spatial/snake_robot_i.yaml") for env_id in SPATIAL_TASKS]
every = pytest.mark.parametrize(("env_id", "robot"), EVERY)

CONSTANT = {("SnakeGym/Velocity-v0", "distance"): "the target stands for a heading: it is always 10 m away"}
"""Columns that are constant by their meaning, and why."""


# --- Gymnasium's vector env of single envs ---------------------------------------------------------------------------

LIMITS = (4, 6, 9, 9)
"""Steps of the worlds' first episodes, which end apart and together."""
LATER_STEPS = 9


def vector_envs(env_id: str, robot: str, mode: AutoresetMode) -> tuple[Any, Any]:
    """Our vector env and Gymnasium's of single envs."""
    settings: dict[str, Any] = {"robot": robot, "faults": {"n_max": 2}, "max_episode_steps": LATER_STEPS}
    settings["sensors"] = {"angle_noise_rad": 0.01, "position_noise_m": 0.01}
    ours = gym.make_vec(env_id, len(LIMITS), "vector_entry_point", autoreset_mode=mode, **settings)
    return ours, SyncVectorEnv([lambda: gym.make(env_id, **settings)] * len(LIMITS), autoreset_mode=mode)


def assert_infos(ours: dict[str, Any], theirs: dict[str, Any], rows: np.ndarray, what: str) -> None:
    """Each info that a single env tells stands in ours, in the rows (W,) bool."""
    names = {name for name in theirs if not name.startswith(("_", "final_"))}
    assert names == {name for name in ours if not name.startswith(("_", "final_"))}, what
    for name in names:
        np.testing.assert_array_equal(ours[name][rows], theirs[name][rows], err_msg=f"{what}: {name}")


@pytest.mark.parametrize("mode", AutoresetMode)
@pytest.mark.parametrize(
    ("env_id", "robot"),
    [pair if pair == EVERY[0] else pytest.param(*pair, marks=pytest.mark.slow) for pair in EVERY],
)
def test_the_vector_env_does_what_gymnasium_s_does_with_single_envs(
    env_id: str, robot: str, mode: AutoresetMode
) -> None:
    ours, theirs = vector_envs(env_id, robot, mode)
    everyone = np.ones(len(LIMITS), bool)
    first, infos = ours.reset(seed=30)
    expected, others_infos = theirs.reset(seed=30)
    assert_same(first, expected, "reset")
    assert_infos(infos, others_infos, everyone, "reset")
    ours.unwrapped.core.step_limit[:] = LIMITS
    for env, limit in zip(theirs.envs, LIMITS, strict=True):
        env.unwrapped.core.step_limit[:] = limit
    n_ends = np.zeros(len(LIMITS), int)
    for step, action in enumerate(draw_actions(ours, 3 * LATER_STEPS)):
        *results, infos = ours.step(action)
        *others, others_infos = theirs.step(action)
        for a, b, name in zip(results, others, ("obs", "reward", "terminated", "truncated"), strict=True):
            assert_same(a, b, f"{name} of step {step}")
        ended = results[2] | results[3]
        n_ends += ended
        assert_infos(infos, others_infos, everyone, f"step {step}")
        if mode is AutoresetMode.SAME_STEP:
            assert ("final_obs" in infos) == ("final_obs" in others_infos) == bool(ended.any())
            if ended.any():
                np.testing.assert_array_equal(infos["_final_obs"], others_infos["_final_obs"])
                assert_same(infos["final_obs"][ended], others_infos["final_obs"][ended], f"final_obs of step {step}")
                assert_infos(infos["final_info"], others_infos["final_info"], ended, f"final_info of step {step}")
        if mode is AutoresetMode.DISABLED and ended.any():
            obs, infos = ours.reset(options={"reset_mask": ended})
            other, others_infos = theirs.reset(options={"reset_mask": ended})
            assert_same(obs, other, f"reset after step {step}")
            assert_infos(infos, others_infos, ended, f"reset after step {step}")
    assert (n_ends >= 2).all()


# --- seeds -----------------------------------------------------------------------------------------------------------


def scenarios(env_id: str, robot: str, seed: int = 4, **settings: Any) -> list[dict[str, np.ndarray]]:
    """What is drawn for the first and the second episode of three worlds; some steps lie between."""
    envs = SnakeVectorEnv(env_id, 3, robot=robot, **settings)
    found = []
    for wanted in (seed, None):
        envs.reset(seed=wanted)
        found.append(envs.core.scenario())
        for action in draw_actions(envs, int(settings.get("max_episode_steps", 3)), seed=len(settings)):
            envs.step(action)
    return found


@pytest.mark.slow
@every
def test_a_draw_for_one_purpose_moves_none_of_another(env_id: str, robot: str) -> None:
    """Sensor noise, faults, what varies, actions and the length of episodes move neither task nor start, nor faults; a
    start that draws nothing moves no fault."""
    noise = {"angle_noise_rad": 0.02, "position_noise_m": 0.02}
    faults = {"n_min": 1, "n_max": 2, "kinds": ["locked"], "onset_max_s": 2.0}
    plain = scenarios(env_id, robot)
    broken = scenarios(env_id, robot, faults=faults, max_episode_steps=5)
    varied = scenarios(
        env_id, robot, faults=faults, sensors=noise, action={"kind": "gait"}, max_episode_steps=2,
        randomisation={"friction_along": {"low": 0.9, "high": 1.1}},
    )  # fmt: skip
    straight = scenarios(env_id, robot, faults=faults, start={"random": False})
    others = scenarios(env_id, robot, seed=40, faults=faults)
    for episode in (0, 1):
        own = set(plain[episode]) - {"fault_kind", "fault_onset_s"}
        assert len(own) > 2, "the task draws more than the pose"
        for name in own:
            np.testing.assert_array_equal(broken[episode][name], plain[episode][name], err_msg=name)
            np.testing.assert_array_equal(varied[episode][name], plain[episode][name], err_msg=name)
        for name in ("fault_kind", "fault_onset_s"):
            np.testing.assert_array_equal(varied[episode][name], broken[episode][name], err_msg=name)
            np.testing.assert_array_equal(straight[episode][name], broken[episode][name], err_msg=name)
        moved = {name for name in own if not np.array_equal(others[episode][name], plain[episode][name])}
        assert "link_angle" in moved and len(moved) > 1, "another seed draws another task and start"
        assert not np.array_equal(others[episode]["fault_onset_s"], broken[episode]["fault_onset_s"])
    assert not np.array_equal(plain[0]["link_angle"], plain[1]["link_angle"])


# --- observations ----------------------------------------------------------------------------------------------------

N_WORLDS, N_STEPS = 256, 400
HELD_STEPS = 20
"""Control steps for which a random action is held where the robot has to get on."""


@pytest.mark.slow
@every
def test_observations_of_100_000_random_steps_lie_in_the_space_and_none_is_constant(env_id: str, robot: str) -> None:
    """In a field no robot comes to a peg by joint references that change in every step: there random gaits are held."""
    has_to_crawl = env_id == "SnakeGym/ObstacleField-v0"
    settings = {"action": {"kind": "gait"}} if has_to_crawl else {}
    envs = SnakeVectorEnv(env_id, N_WORLDS, AutoresetMode.SAME_STEP, robot=robot, **settings)
    obs, _ = envs.reset(seed=0)
    low, high = obs.min(axis=0), obs.max(axis=0)
    rng = np.random.default_rng(0)
    for step in range(N_STEPS):
        if step % (HELD_STEPS if has_to_crawl else 1) == 0:
            action = rng.uniform(-1.0, 1.0, envs.action_space.shape).astype(np.float32)
        obs, reward, *_ = envs.step(action)
        assert envs.observation_space.contains(obs), f"step {step}"
        assert np.isfinite(reward).all(), f"step {step}"
        low, high = np.minimum(low, obs.min(axis=0)), np.maximum(high, obs.max(axis=0))
    fields = envs.core.layout.fields.values()
    constant = {field.name for field in fields if (high - low)[field.columns].min() < 1e-4}
    assert constant == {name for of, name in CONSTANT if of == env_id}
