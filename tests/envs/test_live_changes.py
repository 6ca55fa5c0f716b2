"""Joints broken and mended, and targets moved, while an episode runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from snake_gym.envs import SnakeVectorEnv
from snake_gym.envs.core import SnakeCore
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.simulation.fault_kinds import kinds_of


def core_of(env_id: str = "SnakeGym/Waypoints-v0", n_worlds: int = 1, **settings: Any) -> SnakeCore:
    core = SnakeVectorEnv(env_id, n_worlds, **{"faults": {"n_max": 0}, **settings}).core
    core.reset(np.arange(n_worlds) + 5)
    return core


def drive(core: SnakeCore, steps: int, first: int = 0) -> np.ndarray:
    """Joint angles (steps, W, J) under a wave."""
    angles = []
    for step in range(first, first + steps):
        wave = 0.5 * np.sin(0.8 * step + 0.7 * np.arange(core.decoder.size))
        core.step(np.tile(wave, (core.n_worlds, 1)))
        angles.append(core.robot.joint_angle().copy())
    return np.array(angles)


def test_a_broken_joint_is_held_and_a_mended_one_moves_again() -> None:
    core = core_of(n_worlds=2)
    drive(core, 5)
    core.set_fault(1, 3, "locked")
    held = drive(core, 6, 5)[:, :, 2]
    assert np.ptp(held[:, 1]) < 1e-9 and np.ptp(held[:, 0]) > 0.2  # in that world alone
    assert core.infos()["n_failed_joints"].tolist() == [0, 1]
    core.mend(1, 3)
    assert core.infos()["n_failed_joints"].tolist() == [0, 0]
    assert np.ptp(drive(core, 6, 11)[:, 1, 2]) > 0.2


def test_mending_all_joints_ends_drawn_faults_too_and_a_reset_draws_anew() -> None:
    core = core_of(faults={"n_min": 2, "n_max": 2, "kinds": ["free", "locked"]})
    core.set_fault(0, 9, "free")
    core.mend(0)
    drive(core, 2)
    assert not core.robot.failed_now().any()
    core.reset()
    assert core.infos()["n_failed_joints"].tolist() == [2]


@pytest.mark.parametrize("kind", [kind for kind in kinds_of("joint", RESILIENT_SERVO) if "mine" not in kind])
def test_a_state_saved_with_a_broken_and_a_mended_joint_goes_on_bit_for_bit(kind: str) -> None:
    core, other = core_of(), core_of()
    core.set_fault(0, 4, kind)
    core.set_fault(0, 7, kind)
    drive(core, 4)
    core.mend(0, 7)
    drive(core, 1, 4)
    other.set_state(core.get_state())
    np.testing.assert_array_equal(drive(core, 10, 5), drive(other, 10, 5))


def test_a_servo_that_falls_silent_keeps_its_last_command_and_answers_when_it_is_locked_instead() -> None:
    core, drawn = core_of(), core_of(faults={"events": [{"joint": 3, "kind": "silent", "onset_s": 1.0}]})
    n_before = round(1.0 / core.spec.control_dt_s)
    drive(core, n_before)
    core.set_fault(0, 3, "silent")
    angles = drive(core, 6, n_before)
    np.testing.assert_allclose(angles, drive(drawn, n_before + 6)[n_before:], atol=1e-12)
    assert core.robot.servos.silent[0].tolist() == [False, False, True] + 6 * [False]
    core.set_fault(0, 3, "locked")
    drive(core, 1)
    assert not core.robot.servos.silent.any()


# --- targets ---------------------------------------------------------------------------------------------------------


def test_a_moved_waypoint_is_the_goal_and_counts() -> None:
    core = core_of(n_worlds=2)
    second = core.task.targets_xy[1].copy()
    before = core.point_xy.copy()
    core.move_target(0, (3.0, -4.0))
    assert core.goal.target_xy_w[0].tolist() == [3.0, -4.0]
    np.testing.assert_array_equal(core.task.targets_xy[1], second)
    drive(core, 3)
    now = core.point_xy
    made = math.dist(before[0], (3.0, -4.0)) - math.dist(now[0], (3.0, -4.0))
    assert core.task.record["progress_m"][0] == pytest.approx(made)
    core.move_target(0, now[0])
    drive(core, 1)
    assert core.task.index.tolist() == [1, 0]
    other = core_of(n_worlds=2)
    core.move_target(0, (1.0, 2.0))
    other.set_state(core.get_state())
    assert other.goal.target_xy_w[0].tolist() == [1.0, 2.0]


def test_a_command_turns_towards_the_point() -> None:
    core = core_of("SnakeGym/Velocity-v0")
    here = core.point_xy[0]
    core.move_target(0, here + np.array([0.0, 2.0]))
    assert core.infos()["commanded_heading_rad"][0] == pytest.approx(math.pi / 2, abs=0.1)
    gap = core.goal.target_xy_w[0] - here
    assert math.atan2(gap[1], gap[0]) == pytest.approx(math.pi / 2, abs=0.1)


@pytest.mark.parametrize("name", ["ObstacleField", "Escape"])
def test_the_goal_among_obstacles_moves_where_it_is_shown_itself(name: str) -> None:
    env_id = f"SnakeGym/{name}-v0"
    core = core_of(env_id, goal={"guidance": "goal"})
    assert core.task.moves_target and not core_of(env_id).task.moves_target
    core.move_target(0, (0.5, 0.25))
    assert core.goal.target_xy_w[0].tolist() == [0.5, 0.25]
