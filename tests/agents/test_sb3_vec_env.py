"""The adapter against the env it stands for."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode
from snake_gym.agents.sb3_vec_env import Sb3VecEnv

from snake_gym.envs import SnakeVectorEnv, make_waypoints

SETTINGS = {"action": {"kind": "residual"}, "faults": {"n_max": 3}, "time_limit_s": 2.0}


def make(n_worlds: int = 6, settings: dict[str, object] = SETTINGS) -> SnakeVectorEnv:
    return make_waypoints(n_worlds, settings, AutoresetMode.SAME_STEP)


def actions(n_steps: int, n_worlds: int = 6) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (n_steps, n_worlds, 9)).astype(np.float32)


def test_steps_are_those_of_the_env_and_only_ended_worlds_have_infos() -> None:
    venv, env = Sb3VecEnv(make()), make()
    venv.seed(3)
    assert np.array_equal(venv.reset(), env.reset(seed=3)[0])
    returns = np.zeros(6)
    lengths = np.zeros(6, int)
    ends = 0
    held: list[tuple[np.ndarray, np.ndarray]] = []
    for action in actions(25):
        obs, reward, done, infos = venv.step(action)
        held += [(array, array.copy()) for array in (obs, reward, done)]
        expected_obs, expected_reward, terminated, truncated, raw = env.step(action)
        returns += expected_reward
        lengths += 1
        assert obs.dtype == reward.dtype == np.float32
        assert np.array_equal(obs, expected_obs)
        assert np.array_equal(reward, expected_reward.astype(np.float32))
        assert np.array_equal(done, terminated | truncated)
        for world in range(6):
            if not done[world]:
                assert infos[world] == {}
                continue
            ends += 1
            assert np.array_equal(infos[world]["terminal_observation"], raw["final_obs"][world])
            assert infos[world]["TimeLimit.truncated"] is True
            assert infos[world]["is_success"] == raw["final_info"]["is_success"][world]
            assert infos[world]["episode"]["r"] == returns[world]
            assert infos[world]["episode"]["l"] == lengths[world]
            returns[world] = lengths[world] = 0
    assert ends >= 12
    assert all(np.array_equal(array, copy) for array, copy in held), "a later step changes what an earlier one returned"


def test_spread_ends_come_one_after_another_and_a_resumed_run_goes_on_with_them() -> None:
    venv = Sb3VecEnv(make(5), stagger=True)
    venv.seed(3)
    venv.reset()
    drawn = actions(25, 5)
    done = []
    for action in drawn[:3]:
        done.append(venv.step(action)[2])
        assert venv.had_cut_episodes
    state = venv.get_state()
    ahead = [venv.step(action) for action in drawn[3:]]
    twin = Sb3VecEnv(make(5), stagger=True)
    twin.reset()
    twin.set_state(state)
    cut = []
    for action, (obs, reward, ended, _) in zip(drawn[3:], ahead, strict=True):
        again = twin.step(action)
        assert np.array_equal(again[0], obs)
        assert np.array_equal(again[1], reward)
        assert np.array_equal(again[2], ended)
        cut.append(twin.had_cut_episodes)
        done.append(ended)
    assert (np.array(done).argmax(axis=0) + 1).tolist() == [1, 3, 5, 7, 9]
    assert cut == [True] * 6 + [False] * 16, "until the last cut episode ends in step 9"


def test_a_completed_course_is_no_truncation() -> None:
    near = {"course": {"kind": "list", "targets": [[0.02, 0.0]], "radius_m": 0.5}, "time_limit_s": 2.0}
    venv = Sb3VecEnv(make(2, {**near, "action": {"kind": "residual"}}))
    venv.reset()
    _, _, done, infos = venv.step(np.zeros((2, 9), np.float32))
    assert done.all()
    assert all(info["TimeLimit.truncated"] is False and info["is_success"] is True for info in infos)


def test_sb3_reads_attributes_and_other_autoreset_modes_are_refused() -> None:
    assert Sb3VecEnv(make(3)).get_attr("num_envs", [0, 2]) == [3, 3]
    with pytest.raises(ValueError, match=r"autoreset mode is .*NEXT_STEP.*; expected .*autoreset_mode='SameStep'"):
        Sb3VecEnv(make_waypoints(2, SETTINGS, AutoresetMode.NEXT_STEP))
