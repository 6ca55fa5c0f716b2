"""The shipped robots: their papers' numbers, and that each crawls as its paper's gait makes it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from snake_gym.robot.presets import PEGBOARD, PRESETS, SNAKESYS
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.spatial.spec import load_spatial_robot

GAITS = {
    # amplitude [deg], frequency [rad/s], phase shift between neighbours [deg]
    "resilient": (20.0, math.radians(50.0), 30.0),
    "resilient_servo": (30.0, 1.5, 40.0),
    "robo_conda": (38.0, math.radians(140.0), 40.0),
    "muscle": (30.0, 2.0 * math.pi, 72.0),
    "snakesys": (math.degrees(2.0 * math.radians(50.0) * math.sin(2.0 * math.pi / 14)), math.pi / 5, 360.0 / 7),
    "pegboard": (30.0, 1.5, 40.0),
}


def crawl(spec: RobotSpec, seconds: float) -> np.ndarray:
    """Centre of mass (T, 2) [m] at every control step of the paper's gait; wave from head to tail, commands held."""
    amplitude, frequency, shift = GAITS[spec.name]
    joint = np.arange(spec.n_joints) * math.radians(shift)
    robot = SimulatedRobot(spec, 1, 1)
    robot.set_shape(math.radians(amplitude) * np.sin(joint)[None], np.zeros(1), np.zeros((1, 2)))
    path = []
    for _ in range(round(seconds / spec.control_dt_s)):
        phase = frequency * (robot.state.time_s[0] + spec.control_dt_s) + joint
        robot.step(math.radians(amplitude) * np.sin(phase)[None])
        path.append(robot.state.centre_xy[0].copy())
    assert np.isfinite(robot.state.link_angle).all()
    return np.array(path)


@pytest.mark.parametrize("name", PRESETS)
def test_every_robot_crawls_headwards_with_its_gait(name: str) -> None:
    spec = PRESETS[name]
    seconds = 3 * 2.0 * math.pi / GAITS[name][1]
    path = crawl(spec, seconds)
    assert np.hypot(*(path[-1] - path[0])) > 0.15 * spec.length_m
    assert path[-1, 0] > 0.0, "head first: it begins along x"


def test_snakesys_lumps_29_modules_into_15_links() -> None:
    assert SNAKESYS.n_joints == 14
    assert SNAKESYS.length_m == pytest.approx(29 * 0.160)
    assert SNAKESYS.links("link_mass_kg").sum() == pytest.approx(41.0, abs=0.05), "with wheels, as published"
    spatial = load_spatial_robot("configs/robot/spatial/snake_robot_iii.yaml")
    on_wheels = replace(spatial, wheels=replace(spatial.wheels, pairs=True))
    assert SNAKESYS.links("link_mass_kg").sum() == pytest.approx(on_wheels.mass_kg)
    assert SNAKESYS.links("link_mass_kg")[-1] == pytest.approx(0.95365 + on_wheels.mass_kg / 15 - spatial.mass_kg / 15)
    assert SNAKESYS.actuator.speed_limit_rad_s == spatial.actuator.speed_limit_rad_s
    assert SNAKESYS.joint_friction_nm == spatial.joint_friction_nm


def test_the_pegboard_robot_has_wang_s_rotational_friction() -> None:
    np.testing.assert_allclose(PEGBOARD.links("friction.rotational_nms_rad"), 10.0 * PEGBOARD.inertia())
    assert PEGBOARD.contact.model == "rigid"
