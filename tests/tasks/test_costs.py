"""Costs against closed forms, on states that are written by hand and on motors that stall."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snake_gym.envs import SnakeVectorEnv
from snake_gym.robot.catalogue import load_robot
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.tasks.costs import CostConfig, Costs
from tests.envs.vector_checker import assert_same

SPEC = load_robot({"preset": "resilient_servo", "joint_limit_rad": 1.0})  # limit 8 N m, control step 0.2 s
LIVE = np.ones(2, bool)
ALL = {"joint_limit_share": 0.9, "torque_share": 0.8, "contact_force_n": 10.0, "heat_share": 0.02}


def make(**thresholds: Any) -> Costs:
    return Costs(CostConfig(**thresholds), SimulatedRobot(SPEC, 2))


@pytest.mark.parametrize(
    ("joint_stop_rad", "angle_rad", "counts"),
    [(np.inf, -0.9001, True), (np.inf, 0.8999, False), (0.5, 0.4501, True), (0.5, -0.4499, False)],
)
def test_joints_cost_from_the_share_of_the_nearer_of_limit_and_stop(
    joint_stop_rad: float, angle_rad: float, counts: bool
) -> None:
    spec = replace(SPEC, joint_stop_rad=joint_stop_rad)
    costs = Costs(CostConfig(joint_limit_share=0.9), SimulatedRobot(spec, 2))
    costs.robot.state.link_angle[0, :5] = angle_rad  # joint i is theta_i - theta_{i+1}
    costs.count(LIVE)
    assert costs.infos()["cost/joint_limit"].tolist() == costs.infos()["cost"].tolist() == [counts / 9.0, 0.0]


def test_forces_and_torques_cost_beyond_their_limits() -> None:
    costs = make(torque_share=0.8, contact_force_n=10.0)
    costs.robot.servos.torque_square[0, :3] = [6.4001**2, 6.3999**2, 8.0**2]
    costs.robot.state.contact_force[0, 7] = [6.0, -8.001]
    costs.robot.state.contact_force[1, :2] = [[6.0, -7.999], [9.0, 0.0]]  # no link alone
    costs.count(LIVE)
    infos = costs.infos()
    assert infos["cost/torque"].tolist() == [2.0 / 9.0, 0.0]
    assert infos["cost/contact_force"].tolist() == [1.0, 0.0]
    assert infos["cost"].tolist() == [1.0 + 2.0 / 9.0, 0.0]


def test_heat_follows_the_square_of_the_load_exponentially_and_begins_cold() -> None:
    costs = make(heat_share=0.5, heating_s=4.0)
    costs.robot.servos.torque_square[0, 0] = 64.0  # full load: heat 1 - exp(-t / 4 s), a half after 2.77 s
    costs.robot.servos.torque_square[0, 1] = 16.0  # half load: a quarter of that
    told = []
    for step in range(1, 21):
        costs.count(LIVE)
        told.append(costs.infos()["cost/heat"][0])
        warm = 1.0 - np.exp(-0.2 * step / 4.0)
        np.testing.assert_allclose(costs.heat[0, :3], [warm, 0.25 * warm, 0.0], rtol=1e-12)
    assert told == [0.0] * 13 + [1.0 / 9.0] * 7
    held = costs.heat.copy()
    costs.count(np.array([False, True]))
    np.testing.assert_array_equal(costs.heat, held)
    assert costs.infos()["cost"][0] == 0.0  # a world that has ended
    costs.begin(np.array([0]))
    assert (costs.heat == 0.0).all()


@pytest.mark.parametrize("env_id", ["SnakeGym/Waypoints-v0", "SnakeGym/ObstacleField-v0", "SnakeGym/Escape-v0"])
def test_costs_change_nothing_but_the_infos(env_id: str) -> None:
    off, on = (
        SnakeVectorEnv(env_id, 4, "SAME_STEP", config={"time_limit_s": 3.0, "faults": {"n_max": 2}, "costs": costs})
        for costs in ({}, ALL)
    )
    first, infos = off.reset(seed=3)
    np.testing.assert_array_equal(first, on.reset(seed=3)[0])
    assert not any(name.startswith("cost") for name in infos)
    rng, total, hot = np.random.default_rng(0), 0.0, 0.0
    for _ in range(30):
        action = rng.uniform(-1.0, 1.0, off.action_space.shape).astype(np.float32)
        plain, told = off.step(action), on.step(action)
        assert_same(plain[:4], told[:4], "with costs")
        hot += float(told[4]["cost/heat"].sum())
        each = [told[4][f"cost/{name}"] for name in ("joint_limit", "torque", "contact_force", "heat")]
        np.testing.assert_allclose(told[4]["cost"], np.sum(each, axis=0))
        assert all(((cost >= 0.0) & (cost <= 1.0)).all() for cost in each)
        total += float(told[4]["cost"].sum())
    assert total > hot > 0.0
