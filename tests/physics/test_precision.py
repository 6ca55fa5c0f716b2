"""Physics in float32: the same ways as in float64, anywhere in the world, and refusals of laws that need float64."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.envs import SnakeVectorEnv
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spec import FloatArray, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import Precision, SimulatedRobot
from tests.oracles.random_crawlers import draw_crawler

FAR_XY = np.array([[3000.0, -700.0]])
TURNS = 40.0 * math.pi


def crawl(
    spec: RobotSpec, references: FloatArray, precision: Precision, far: bool
) -> tuple[FloatArray, SimulatedRobot]:
    """Places of the centre of mass (K, 2) [m] after each reference, from where it began."""
    robot = SimulatedRobot(spec, 1, 1, precision=precision)
    begin = FAR_XY if far else np.zeros((1, 2))
    robot.set_shape(references[:1], np.full(1, TURNS if far else 0.0), begin, "centre")
    track = []
    for reference in references:
        robot.step(reference[None])
        track.append(robot.state.centre_xy[0] - begin[0])
    return np.array(track), robot


@pytest.mark.parametrize("change", [{}, {"sim_dt_s": 1e-3}, {"joint_stop_rad": 0.6}, {"incline_rad": 0.05}])
@pytest.mark.parametrize("seed", range(4))
def test_a_robot_goes_the_same_way_as_in_float64_near_and_far_from_the_origin(change: Any, seed: int) -> None:
    crawler = draw_crawler(seed, "viscous")
    spec = replace(crawler.spec, **change)
    references = np.clip(crawler.references(), -0.59, 0.59)
    truth, exact = crawl(spec, references, "float64", far=False)
    way = max(np.hypot(*np.diff(truth, axis=0).T).sum(), 0.1 * spec.length_m)
    for far in (False, True):
        track, robot = crawl(spec, references, "float32", far)
        assert np.abs(track - truth).max() < 2e-4 * way
        assert robot.state.work_j[0] == pytest.approx(exact.state.work_j[0], rel=1e-3)
        assert robot.state.stood_still[0] == 0.0


@pytest.mark.parametrize(
    ("settings", "law"),
    [
        ({"robot": "snakesys"}, "Coulomb friction of the ground"),
        ({"robot": {"preset": "resilient_servo", "joint_friction_nm": 0.1}}, "dry friction of joints"),
        ({"faults": {"n_max": 1, "kinds": ["rough"]}}, "dry friction of joints"),
    ],
)
def test_laws_that_float32_is_too_coarse_for_are_refused(settings: Any, law: str) -> None:
    with pytest.raises(ConfigError, match=f"precision is 'float32'; expected 'float64', which {law} needs"):
        SnakeVectorEnv("SnakeGym/Waypoints-v0", 1, config={**settings, "precision": "float32"})


def test_rigid_contacts_and_spatial_robots_are_refused() -> None:
    rigid = {"robot": {"preset": "resilient_servo", "contact": {"model": "rigid"}}, "precision": "float32"}
    with pytest.raises(ConfigError, match=r"expected 'float64', which contact\.model 'rigid' needs"):
        SnakeVectorEnv("SnakeGym/ObstacleField-v0", 1, config=rigid)
    with pytest.raises(ConfigError, match="expected 'float64', in which MuJoCo computes"):
        SnakeVectorEnv("SnakeGym/SpatialWaypoints-v0", 1, config={"precision": "float32"})


def test_both_precisions_play_side_by_side_and_a_restored_one_goes_on_bit_for_bit() -> None:
    settings = {"faults": {"n_max": 3}, "n_threads": 1}
    envs = [
        SnakeVectorEnv("SnakeGym/Waypoints-v0", 3, config={**settings, "precision": p}) for p in get_args(Precision)
    ]
    restored = SnakeVectorEnv("SnakeGym/Waypoints-v0", 3, config={**settings, "precision": "float32"})
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (30, *envs[0].action_space.shape)).astype(np.float32)
    for env in (*envs, restored):
        env.reset(seed=5)
    for action in actions[:15]:
        double, single = (env.step(action)[0] for env in envs)
    restored.core.set_state(envs[1].core.get_state())
    for action in actions[15:]:
        double, single = (env.step(action)[0] for env in envs)
        np.testing.assert_array_equal(restored.step(action)[0], single)
    assert not (double == single).all()
    np.testing.assert_allclose(double, single, atol=1e-3)


def test_a_rod_on_ice_keeps_its_momentum() -> None:
    spec = replace(RESILIENT_SERVO, n_links=2, friction=FrictionSpec(0.0, 0.0))
    robot = SimulatedRobot(spec, 1, 1, precision="float32")
    robot.set_shape(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 2)), "centre")
    robot.state.centre_vel[:] = 0.3, -0.1
    robot.state.link_rate[:] = 2.0
    for _ in range(50):
        robot.step(np.zeros((1, 1)))
    np.testing.assert_allclose(robot.state.centre_vel[0], [0.3, -0.1], rtol=2e-4)
    np.testing.assert_allclose(robot.state.centre_xy[0], [3.0, -1.0], rtol=2e-4)
    assert robot.state.link_angle[0] == pytest.approx(20.0, rel=2e-3)
