"""Progress along the route, the carrot, the goal and what contacts add up to."""

import numpy as np
import pytest

from snake_gym.obstacles.fields import FieldConfig
from snake_gym.obstacles.shapes import Circle
from snake_gym.physics.state import ChainState, zero_state
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.measurement import centre_offset, chain_angles, head_angle_for
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.tasks.obstacle_field import GoalConfig, ObstacleField, ObstacleFieldConfig, robot_extent
from snake_gym.tasks.task import NewEpisodes, begin_episodes
from tests.tasks.by_hand import evaluate

SPEC = load_robot("resilient_servo")
PEG = FieldConfig(kind="list", shapes=(Circle(2.0, 0.0, 0.3),), goal_m=(4.0, 0.0))
ALL = np.array([0, 1])


def make(field: FieldConfig = PEG, **changes: object) -> ObstacleField:
    goal = GoalConfig(**{"tracked_point": "centre", **changes})  # type: ignore[arg-type]
    config = ObstacleFieldConfig(field=field, goal=goal)
    task = ObstacleField(config, SPEC, 2, goal.radius_m, "centre")
    begin_episodes(task, NewEpisodes(ALL, config, np.zeros((2, 9)), np.array([0.0, np.pi / 2]), np.full((2, 1), 0.5)))
    task.update_goal(np.zeros((2, 2)), slice(None))
    return task


def moved(xy: list[list[float]], time_s: float = 0.2) -> ChainState:
    state = zero_state(2, SPEC.n_links)
    state.centre_xy[:] = xy
    state.time_s[:] = time_s
    return state


def step(task: ObstacleField, xy: list[list[float]], time_s: float = 0.2, live: tuple[bool, bool] = (True, True)):  # type: ignore[no-untyped-def]
    before = np.zeros((2, 2))
    return evaluate(task, before, moved(xy, time_s), np.full((2, 9), 0.5), live=live)


def test_progress_is_arc_length_so_that_a_detour_pays_all_the_way() -> None:
    task = make()
    assert (task.routes.length_m > 4.02).all()
    made = np.zeros(2)
    for share in np.linspace(0.02, 1.0, 50):
        terms, complete = step(task, task.routes.place(share * task.routes.length_m).tolist(), 10.0 * share)
        assert (terms["progress"] > 0.0).all()
        made += terms["progress"]
        if complete.any():
            break
    assert complete.all()
    assert made == pytest.approx(task.record["progress_m"])
    assert (task.record["progress_m"] >= task.routes.length_m - task.radius_m - 1e-9).all()
    infos = task.record
    assert infos["is_success"].all()
    task.update_goal(task.targets_xy[:, 0], slice(None))
    assert (terms["goal"] == 1.0).all() and not task.goal().active.any()
    assert infos["time_to_goal_s"] == pytest.approx(10.0 * share)


def test_going_back_is_paid_back_and_ended_worlds_earn_nothing() -> None:
    task = make()
    ahead = task.routes.place(np.array([0.3, 0.3]))
    terms, _ = step(task, ahead.tolist())
    assert terms["progress"] == pytest.approx(0.3)
    terms, _ = step(task, [[0.0, 0.0], [0.0, 0.0]], live=(True, False))
    assert terms["progress"].tolist() == pytest.approx([-0.3, 0.0])
    assert terms["effort"].tolist() == [9 * 0.25, 0.0] and terms["energy"].tolist() == [1.0, 0.0]
    assert task.record["progress_m"].tolist() == pytest.approx([0.0, 0.3])


def test_the_carrot_goes_ahead_on_the_route_from_the_measured_place() -> None:
    task = make(lookahead_m=0.5)
    np.testing.assert_allclose(np.hypot(*task.goal().target_xy_w.T), 0.5, atol=1e-9)
    measured = task.routes.place(np.array([0.4, 0.1]))
    step(task, [[0.0, 0.0], [0.0, 0.0]])
    task.update_goal(measured, slice(None))
    np.testing.assert_allclose(task.goal().target_xy_w, task.routes.place(np.array([0.9, 0.6])), atol=1e-9)
    task.update_goal(measured[1:], np.array([1]))
    np.testing.assert_allclose(task.goal().target_xy_w, task.routes.place(np.array([0.9, 0.6])), atol=1e-9)
    for _ in range(12):
        task.update_goal(task.targets_xy[:, 0], slice(None))
    np.testing.assert_allclose(task.goal().target_xy_w, task.targets_xy[:, 0], atol=1e-9)
    direct = make(guidance="goal")
    np.testing.assert_allclose(direct.goal().target_xy_w, [[4.0, 0.0], [0.0, 4.0]], atol=1e-9)


def test_contacts_add_up() -> None:
    task = make()
    state = moved([[0.0, 0.0], [0.0, 0.0]])
    state.contact_force[0, 2] = [3.0, -4.0]
    state.contact_force[0, 5] = [0.0, 1.0]
    state.n_contacts[0], state.penetration_m[0] = 2.0, 0.001
    for _ in range(3):
        terms, _ = evaluate(task, np.zeros((2, 2)), state, np.zeros((2, 9)))
        assert terms["contact"].tolist() == [6.0, 0.0]
    state.penetration_m[0] = 0.0
    evaluate(task, np.zeros((2, 2)), state, np.zeros((2, 9)), live=[False, True])
    infos = task.record
    assert infos["contact_time_s"].tolist() == pytest.approx([0.6, 0.0])
    assert infos["contact_impulse_ns"].tolist() == pytest.approx([3 * 6.0 * 0.2, 0.0])
    assert infos["penetration_m"].tolist() == [0.001, 0.0]
    assert infos["contact_force_n"].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("point", ["centre", "head"])
def test_every_start_lies_within_the_robot_s_extent_and_looks_ahead(point: str) -> None:
    extent = robot_extent(SPEC, 0.6, 0.52, point)
    rng = np.random.default_rng(0)
    phase = rng.uniform(0.0, 2 * np.pi, (200, 1))
    joint_angle = 0.6 * np.sin(phase + 0.52 * np.arange(9))
    head = head_angle_for(joint_angle, np.zeros(200))
    robot = SimulatedRobot(SPEC, 200)
    robot.set_shape(joint_angle, head, np.zeros((200, 2)), point)
    theta = chain_angles(joint_angle, head)
    np.testing.assert_allclose(theta.mean(axis=1), 0.0, atol=1e-12)
    half, radius = SPEC.links("link_half_length_m")[0], 0.03
    offset = centre_offset(SPEC, theta)
    step = 2 * half * np.stack([np.cos(theta), np.sin(theta)], axis=-1)
    tip = robot.state.head_xy + step[:, -1] / 2
    ends = np.concatenate([tip[:, None] - np.cumsum(step[:, ::-1], axis=1), tip[:, None]], axis=1)
    np.testing.assert_allclose(robot.state.head_xy + offset, robot.state.centre_xy, atol=1e-12)
    widest = np.abs(ends[..., 1]).max() + radius
    assert 0.97 * extent.half_width_m < widest <= extent.half_width_m * 1.002
    assert ends[..., 0].max() + radius <= extent.front_m and -ends[..., 0].min() + radius <= extent.rear_m
    assert extent.length_m == pytest.approx(SPEC.length_m + 2 * radius)
