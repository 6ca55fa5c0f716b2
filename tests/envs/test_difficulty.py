"""Difficulty: one number scales what makes an episode hard, from each world's next reset on."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from snake_gym.config import build, to_dict
from snake_gym.envs import SnakeVectorEnv
from snake_gym.registry import find_task
from tests.envs.vector_checker import assert_same
from tests.tasks_of_robots import PLANAR_TASKS

FAULTS = {"n_min": 1, "n_max": 4, "onset_max_s": 5.0}
HARD: dict[str, dict[str, Any]] = {
    "SnakeGym/Waypoints-v0": {"course": {"n_targets": 8}},
    "SnakeGym/ObstacleField-v0": {"field": {"kind": "bends", "difficulty": 1.0}},
    "SnakeGym/Escape-v0": {"field": {"difficulty": 1.0}},
}
VARIED = {
    "faults": FAULTS, "randomisation": {"friction_across": {"low": 0.5, "high": 1.5}},
    "sensors": {"encoder_faults": {"n_max": 3}},
}  # fmt: skip


def make(env_id: str, n: int = 6, mode: Any = "DISABLED", **settings: Any) -> SnakeVectorEnv:
    return SnakeVectorEnv(env_id, n, mode, config={"time_limit_s": 4.0, **VARIED, **HARD.get(env_id, {}), **settings})


def episode(env: SnakeVectorEnv, seed: int) -> tuple[Any, ...]:
    """The first steps of an episode, with all that it was given."""
    first = env.reset(seed=seed)
    action = np.full(env.action_space.shape, 0.3, np.float32)
    return (
        first,
        env.core.scenario(),
        env.core.sensors.encoders.faults.kind.copy(),
        *(env.step(action) for _ in range(3)),
    )


@pytest.mark.parametrize("env_id", PLANAR_TASKS)
def test_one_is_the_settings_as_they_are_and_each_share_is_those_settings_scaled(env_id: str) -> None:
    full = episode(make(env_id), 7)
    assert_same(full, episode(make(env_id, difficulty=1.0), 7), "difficulty 1")
    config = build(find_task(env_id), {"time_limit_s": 4.0, **VARIED, **HARD.get(env_id, {})})
    assert config.at_difficulty(1.0) == config
    for share in (0.0, 0.25, 0.7):
        scaled = to_dict(config.at_difficulty(share))
        assert scaled["difficulty"] == 1.0
        first, *rest = episode(make(env_id, difficulty=share), 7)
        first_scaled, *rest_scaled = episode(SnakeVectorEnv(env_id, 6, "DISABLED", config=scaled), 7)
        assert (first[1].pop("difficulty") == share).all() and (first_scaled[1].pop("difficulty") == 1.0).all()
        assert_same(first, first_scaled, f"difficulty {share}")
        for one, other in zip(rest[2:], rest_scaled[2:], strict=True):
            assert_same(one[:4], other[:4], f"difficulty {share}")


@pytest.mark.parametrize("env_id", PLANAR_TASKS)
def test_zero_draws_no_fault_and_more_draw_more_of_the_same(env_id: str) -> None:
    kinds, encoders, levels = [], [], []
    for share in (0.0, 0.3, 0.5, 0.8, 1.0):
        env = make(env_id, 64, difficulty=share)
        _, infos = env.reset(seed=11)
        kinds.append(env.core.robot.faults.kind > 0)
        encoders.append(env.core.sensors.encoders.faults.kind > 0)
        levels.append(np.abs(infos["randomisation/friction_across"] - 1.0).max())
        assert (infos["difficulty"] == share).all()
    assert not kinds[0].any() and not encoders[0].any() and levels[0] == 0.0
    for fewer, more in (*itertools.pairwise(kinds), *itertools.pairwise(encoders)):
        assert not (fewer & ~more).any()
    assert [int(kind.sum(axis=1).max()) for kind in kinds] == [0, 1, 2, 3, 4]
    assert np.all(np.diff(levels) > 0.0)


@pytest.mark.parametrize(
    ("faults", "share", "left"),
    [
        ({"joints": [2, 5, 7]}, 0.5, [2, 5]), ({"joints": [2, 5]}, 0.2, []), ({"joints": [3], "n_max": 4}, 0.4, []),
        ({"events": [{"joint": 4}, {"joint": 1}]}, 0.5, [4]), ({"events": [{"joint": 4}]}, 0.0, []),
        ({"n_min": 2, "n_max": 2}, 0.0, []),
    ],
)  # fmt: skip
def test_of_a_list_of_faults_the_first_are_kept(faults: Mapping[str, Any], share: float, left: list[int]) -> None:
    env = SnakeVectorEnv(num_envs=3, config={"faults": faults})
    env.reset(seed=0)
    env.set_difficulty(share)
    env.reset(seed=0)
    for world in range(3):
        assert sorted((np.flatnonzero(env.core.robot.faults.kind[world]) + 1).tolist()) == sorted(left)


@pytest.mark.parametrize("kind", ["pegboard", "forest", "corridor", "bends", "gates"])
def test_every_easier_field_has_room_and_its_gaps_are_wider(kind: str) -> None:
    settings = {"field": {"kind": kind, "difficulty": 0.9}}
    env = make("SnakeGym/ObstacleField-v0", 4, **settings)
    for share in np.linspace(0.0, 1.0, 21):
        env.set_difficulty(share)
        env.reset(seed=2)
        gap = env.core.task.maker._plan.gap_m
        alone = make("SnakeGym/ObstacleField-v0", 4, field={"kind": kind, "difficulty": 0.9 * round(32 * share) / 32})
        alone.reset(seed=2)
        assert alone.core.task.maker._plan.gap_m == gap
        for name in ("feature", "cell_start", "cell_item"):
            assert getattr(env.core.task.obstacles, name).shape >= getattr(alone.core.task.obstacles, name).shape
        for world in range(4):
            np.testing.assert_array_equal(
                env.core.task.scenery(world).features, alone.core.task.scenery(world).features
            )


def test_it_takes_effect_at_each_world_s_next_reset_and_stands_in_the_infos() -> None:
    env = make("SnakeGym/Escape-v0", 4)
    _, infos = env.reset(seed=1)
    assert infos["difficulty"].tolist() == [1.0] * 4 and (infos["n_faults"] > 0).all()
    before, encoders = env.core.task.n_features.copy(), env.core.sensors.encoders.faults.kind
    assert (encoders[1] > 0).any()
    env.set_difficulty(0.0)
    action = np.zeros(env.action_space.shape, np.float32)
    infos = env.step(action)[4]
    assert infos["difficulty"].tolist() == [1.0] * 4 and (env.core.task.n_features == before).all()
    mask = np.array([False, True, False, True])
    env.reset(options={"reset_mask": mask})
    infos = env.step(action)[4]
    assert infos["difficulty"].tolist() == [1.0, 0.0, 1.0, 0.0]
    assert (infos["n_faults"] > 0).tolist() == [True, False, True, False]
    assert (env.core.task.n_features < 0.5 * before).tolist() == [False, True, False, True]
    assert not encoders[mask].any() and encoders[~mask].any()
    env.set_difficulty([0.1, 0.2, 0.3, 1.0])
    assert env.reset()[1]["difficulty"].tolist() == [0.1, 0.2, 0.3, 1.0]


def test_worlds_of_any_difficulty_are_those_worlds_alone() -> None:
    shares = [0.0, 0.5, 1.0, 0.5]
    for env_id in HARD:
        env = make(env_id, 4)
        env.reset(seed=90)  # what was drawn before must not matter
        env.set_difficulty(shares)
        obs, infos = env.reset(seed=30)
        for world, share in enumerate(shares):
            alone = make(env_id, 1, difficulty=share)
            own, own_infos = alone.reset(seed=30 + world)
            np.testing.assert_array_equal(own[0], obs[world])
            for name in ("n_faults", "difficulty", "randomisation/friction_across"):
                assert own_infos[name][0] == infos[name][world], name


def test_a_saved_state_holds_the_difficulty_of_the_next_episodes() -> None:
    env, other = (make("SnakeGym/ObstacleField-v0", 3, "SAME_STEP") for _ in range(2))
    env.reset(seed=0)
    env.set_difficulty(0.2)
    other.set_state(env.get_state())
    action = np.zeros(env.action_space.shape, np.float32)
    for _ in range(22):
        mine, theirs = env.step(action), other.step(action)
        assert_same(mine, theirs, "from a saved state")
    assert (mine[4]["difficulty"] == 0.2).all()
