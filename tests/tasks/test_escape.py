"""``SnakeGym/Escape-v0``: where the robot starts, and when it is out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from snake_gym.config import load_yaml
from snake_gym.envs import SnakeVectorEnv
from snake_gym.physics.state import ChainState, zero_state

ESCAPE = "SnakeGym/Escape-v0"
SHIPPED = load_yaml("configs/env/escape.yaml")
CC = {"kind": "residual", "controller": {"file": "configs/controllers/resilient_servo/obstacle_field/cc.yaml"}}


def make(n_worlds: int, mode: Any = "DISABLED", **settings: Any) -> SnakeVectorEnv:
    return SnakeVectorEnv(ESCAPE, n_worlds, mode, config={**SHIPPED, **settings})


def body(
    link_angle: NDArray[np.float64], head_xy: NDArray[np.float64], half: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Points (p, 2) all along one robot, link by link from the head on."""
    points, tip = [], head_xy + half[-1] * np.array([np.cos(link_angle[-1]), np.sin(link_angle[-1])])
    for angle, reach in zip(link_angle[::-1], half[::-1], strict=True):
        back = tip - 2.0 * reach * np.array([np.cos(angle), np.sin(angle)])
        points.append(tip + np.linspace(0.0, 1.0, 201)[:, None] * (back - tip))
        tip = back
    return np.concatenate(points)


@pytest.mark.parametrize("lengths", [{}, {"randomisation": {"link_length": {"low": 0.9, "high": 1.1}}}])
def test_no_peg_is_on_the_true_robot_as_it_starts_whatever_its_links_are(lengths: dict[str, Any]) -> None:
    env = make(48, field={"difficulty": 1.0}, **lengths)
    env.reset(seed=0)
    core = env.core
    half, state = core.robot.params.half_length, core.robot.state
    nearest = []
    for world in range(48):
        points, rows = (
            body(state.link_angle[world], state.head_xy[world], half[world]),
            core.task.scenery(world).features,
        )
        gap = np.hypot(*(points[:, None] - rows[None, :, :2]).transpose(2, 0, 1)) - rows[:, 5] - 0.03
        nearest.append(gap.min())
        middle = points.reshape(-1, 201, 2)[:, 100].mean(axis=0)
        np.testing.assert_allclose(middle, 0.0, atol=1e-9)
    assert min(nearest) > 0.003 - 1e-6 and max(nearest) < 0.004


def test_it_is_out_when_every_part_of_every_link_is_beyond_the_distance() -> None:
    n, distance = 400, 1.1
    env = make(n, goal={"distance_m": distance})
    env.reset(seed=0)
    rng, task = np.random.default_rng(1), env.core.task
    state: ChainState = zero_state(n, 10)
    state.link_angle[:] = rng.uniform(-np.pi, np.pi, (n, 1)) + np.cumsum(rng.normal(0.0, 0.4, (n, 10)), axis=1)
    state.head_xy[:] = rng.uniform(-2.2, 2.2, (n, 2))
    half = env.core.robot.params.half_length
    clear = np.array([np.hypot(*body(state.link_angle[w], state.head_xy[w], half[w]).T).min() - 0.03 for w in range(n)])
    decided = np.abs(clear - distance) > 1e-4
    out = task.has_reached(state, state.head_xy)
    np.testing.assert_array_equal(out[decided], (clear > distance)[decided])
    assert 40 < out.sum() < n - 40
    head_alone = np.hypot(*state.head_xy.T) > distance + 0.1
    assert (head_alone & ~out).sum() > 40  # a head outside is not enough


def test_robots_get_out_while_joints_fail_and_what_is_told_is_true() -> None:
    env = make(16, action=CC, field={"difficulty": 0.5})
    env.reset(seed=0)
    action, going = np.zeros(env.action_space.shape, np.float32), np.ones(16, bool)
    onset = env.core.scenario()["fault_onset_s"]
    assert np.nanmin(onset) >= 0.0 and 2.0 < np.nanmax(onset) <= 5.0
    for _ in range(150):
        _, _, terminated, _, info = env.step(action)
        out = env.core.task.has_reached(env.core.robot.state, env.core.robot.state.head_xy)
        for told in (info["is_success"], terminated, np.isfinite(info["time_to_goal_s"])):
            np.testing.assert_array_equal(told[going], out[going])
        going &= ~terminated
        if not going.any():
            break
    assert info["is_success"].sum() >= 12
    assert (info["progress_m"][info["is_success"]] > 1.0).all() and info["contact_time_s"].max() > 0.0
    assert (info["progress_m"] < info["route_m"]).all()
