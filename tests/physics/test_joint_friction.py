"""Dry friction of joints: constant braking, rest below the limit, never a gain of energy."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snake_gym.physics.faults import FREE, LOCKED
from snake_gym.robot.spec import ActuatorSpec, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.physics.test_faults import TWO_LINKS

DRY_NM = 0.03
INERTIA_KGM2 = 0.02
"""Light link about the joint: 0.01 about its centre and 1 kg at 0.1 m."""
ONE_JOINT = replace(TWO_LINKS, joint_friction_nm=DRY_NM, links_touch=False, control_dt_s=0.01)


def one_joint(rate: float, **changes: Any) -> SimulatedRobot:
    robot = SimulatedRobot(replace(ONE_JOINT, **changes), 1, 1)
    robot.state.link_rate[:, 1] = -rate
    robot.state.centre_vel[:, 1] = -1e-6 * 0.1 * rate
    return robot


@pytest.mark.parametrize("dt", [0.001, 0.01, 0.05])
@pytest.mark.parametrize("kind", ["torque", "free", "acceleration, free"])
def test_a_joint_brakes_at_a_constant_rate_and_stops(kind: str, dt: float) -> None:
    """Rate w0 - F t / I until t = I w0 / F, after the angle I w0^2 / (2 F); then rest without creep."""
    actuator = ActuatorSpec("acceleration", 1.0, 1.0) if "acceleration" in kind else ONE_JOINT.actuator
    robot = one_joint(1.0, actuator=actuator, control_dt_s=dt, sim_dt_s=dt)
    if "free" in kind:
        robot.faults.kind[:] = FREE
    for k in range(round(0.6 / dt)):
        robot.step(np.zeros((1, 1)), n_substeps=1)
        expected = 1.0 - DRY_NM / INERTIA_KGM2 * (k + 1) * dt
        assert robot.joint_rate()[0, 0] == pytest.approx(expected, abs=0.02 * dt + 3e-6)
    robot.step(np.zeros((1, 1)), n_substeps=round(0.4 / dt))
    rest = robot.joint_angle()[0, 0]
    assert robot.joint_rate()[0, 0] == 0.0
    assert rest == pytest.approx(INERTIA_KGM2 / (2.0 * DRY_NM), abs=DRY_NM / INERTIA_KGM2 * dt**2 + 1e-5)
    robot.step(np.zeros((1, 1)), n_substeps=50)
    assert abs(robot.joint_angle()[0, 0] - rest) < 1e-12


@pytest.mark.parametrize("torque", [0.9, -0.9, 1.1, -1.1])
def test_a_joint_holds_below_the_limit_and_moves_above_it(torque: float) -> None:
    robot = one_joint(0.0)
    robot.step(np.zeros((1, 1)), np.full((1, 1), torque * DRY_NM), n_substeps=100)
    surplus = math.copysign(max(abs(torque) - 1.0, 0.0), torque) * DRY_NM
    assert robot.joint_rate()[0, 0] == pytest.approx(surplus / INERTIA_KGM2, rel=1e-3)
    assert (robot.joint_angle()[0, 0] == 0.0) == (surplus == 0.0)
    # What is told is the actuator's torque, whether the joint slides or sticks.
    assert robot.state.joint_torque[0, 0] == pytest.approx(torque * DRY_NM, rel=1e-6)


MANY = RobotSpec(
    n_links=8, friction=FrictionSpec(0.0, 0.0), actuator=ActuatorSpec("torque", 0.0, 0.0), joint_friction_nm=0.05,
    control_dt_s=0.01, sim_dt_s=0.01,
)  # fmt: skip


@pytest.mark.parametrize("dt", [0.002, 0.01, 0.05])
@pytest.mark.parametrize("stop", [math.inf, 1.0])
def test_friction_takes_energy_only_and_brings_every_joint_to_rest(dt: float, stop: float) -> None:
    robot = SimulatedRobot(replace(MANY, control_dt_s=dt, sim_dt_s=dt, joint_stop_rad=stop), 12, 1)
    rng = np.random.default_rng(1)
    robot.set_shape(rng.uniform(-0.9, 0.9, (12, 7)), np.zeros(12), np.zeros((12, 2)))
    robot.state.link_rate[:] = 2.0 * rng.normal(size=(12, 8))
    robot.faults.kind[:] = rng.choice([0, FREE, FREE, LOCKED], (12, 7))
    energy = [robot.kinetic_energy()]
    for _ in range(round(8.0 / dt)):
        robot.step(robot.joint_angle(), n_substeps=1)
        energy.append(robot.kinetic_energy())
    gain = np.diff(energy, axis=0) / energy[0]
    assert gain.max() < (1e-6 if dt < 0.05 else 1e-3)
    assert np.abs(robot.joint_rate()).max() < 1e-9
    assert robot.state.stood_still.sum() == 0
    assert np.abs(robot.joint_angle()).max() <= stop * (1.0 + 1e-9)
