"""What a robot specification accepts, refuses and computes."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from snake_gym.config import ConfigError, build
from snake_gym.robot.presets import PRESETS, RESILIENT_SERVO
from snake_gym.robot.spec import ActuatorSpec, FrictionSpec, RobotSpec

UNEVEN = RobotSpec(
    n_links=3,
    link_half_length_m=(0.1, 0.2, 0.3),
    link_mass_kg=(1.0, 2.0, 4.0),
    friction=FrictionSpec(normal_ns_m=(1.0, 2.0, 3.0)),
    actuator=ActuatorSpec(kp=(5.0, 6.0), speed_limit_rad_s=2.0),
)


def test_one_number_stands_for_all_links_or_joints() -> None:
    assert UNEVEN.links("friction.tangential_ns_m").tolist() == [1.0, 1.0, 1.0]
    assert UNEVEN.links("friction.normal_ns_m").tolist() == [1.0, 2.0, 3.0]
    assert UNEVEN.joints("actuator.kp").tolist() == [5.0, 6.0]
    assert UNEVEN.joints("actuator.speed_limit_rad_s").tolist() == [2.0, 2.0]
    assert UNEVEN.joints("free_joint_damping_nms_rad").dtype == np.float64


def test_expanded_fields_are_the_callers_own() -> None:
    UNEVEN.links("link_mass_kg")[0] = 99.0
    UNEVEN.links("friction.tangential_ns_m")[0] = 99.0
    assert UNEVEN.links("link_mass_kg")[0] == 1.0
    assert UNEVEN.links("friction.tangential_ns_m")[0] == 1.0


def test_inertia_is_that_of_a_uniform_rod_unless_given() -> None:
    # A rod of length L = 2 l: m L^2 / 12.
    lengths = 2 * np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(UNEVEN.inertia(), np.array([1.0, 2.0, 4.0]) * lengths**2 / 12)
    given = dataclasses.replace(UNEVEN, link_inertia_kgm2=(0.1, 0.2, 0.3))
    assert given.inertia().tolist() == [0.1, 0.2, 0.3]


@pytest.mark.parametrize(
    ("control_dt_s", "sim_dt_s", "n_substeps"), [(0.2, 0.01, 20), (0.05, 0.05, 1), (0.3, 0.1, 3), (1.0, 1 / 3, 3)]
)
def test_substeps(control_dt_s: float, sim_dt_s: float, n_substeps: int) -> None:
    assert RobotSpec(control_dt_s=control_dt_s, sim_dt_s=sim_dt_s).n_substeps == n_substeps


DRY = FrictionSpec(0.0, 0.0, tangential_coulomb=0.05, normal_coulomb=0.5)


@pytest.mark.parametrize("control_dt_s", [0.2, 0.07, 0.001])
@pytest.mark.parametrize("friction", [FrictionSpec(), DRY], ids=["viscous", "dry"])
def test_a_step_that_is_not_named_is_chosen_and_fits_the_control_step(
    friction: FrictionSpec, control_dt_s: float
) -> None:
    robot = RobotSpec(friction=friction, control_dt_s=control_dt_s)
    assert robot.n_substeps * robot.step_s == pytest.approx(control_dt_s, rel=1e-12)
    chosen = dataclasses.replace(robot, control_dt_s=1e4 * robot.step_s).step_s
    assert 0.5 * min(chosen, control_dt_s) < robot.step_s <= chosen * (1.0 + 1e-9)
    assert dataclasses.replace(robot, sim_dt_s=control_dt_s).step_s == control_dt_s


def test_the_chosen_step_follows_ground_servos_and_masses() -> None:
    plain = dataclasses.replace(RESILIENT_SERVO, sim_dt_s=None)
    dry = dataclasses.replace(plain, friction=DRY)
    servo = plain.actuator
    assert plain.step_s == 0.005
    assert dry.step_s < 0.003
    lagging = dataclasses.replace(servo, kd=(5.0, *[10.0] * 8))  # half the lag kd / kp of the others
    for changes in (
        {"actuator": lagging},
        {"friction": dataclasses.replace(DRY, normal_coulomb=(0.5,) * 9 + (4.0,))},
        {"link_half_length_m": (0.07,) * 9 + (0.01,)},
        {"friction": dataclasses.replace(DRY, rotational_coulomb_nm=3.0)},
    ):
        assert dataclasses.replace(dry, **changes).step_s < dry.step_s
    heavier = dataclasses.replace(dry, link_mass_kg=2.0, actuator=dataclasses.replace(servo, kp=120.0, kd=20.0))
    assert heavier.step_s == dry.step_s  # friction grows with the mass
    idle = dataclasses.replace(servo, kp=0.0, kd=0.0, speed_limit_rad_s=np.inf)
    assert 0.0 < dataclasses.replace(dry, actuator=idle).step_s < 0.003


@pytest.mark.parametrize("name", PRESETS)
def test_presets_keep_their_steps_which_are_about_as_fine_as_the_chosen_ones(name: str) -> None:
    assert PRESETS[name].step_s == PRESETS[name].sim_dt_s
    assert PRESETS[name].step_note() is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"link_mass_kg": (1.0, 2.0)}, "robot.link_mass_kg has 2 numbers; expected one, or 10"),
        ({"actuator": {"kd": 0.0, "speed_limit_rad_s": 1.0}}, "robot.actuator.kd is 0; a position servo"),
        ({"control_dt_s": 0.25, "sim_dt_s": 0.1}, "robot.control_dt_s / sim_dt_s is 2.5; expected an integer from 1"),
        ({"friction": {"tangential_ns_m": 0.0, "backward": 3.0}}, "robot.friction.backward is 3.0; expected 1 without"),
        ({"actuator": {"kind": "acceleration", "dead_band_rad": 0.1}}, "robot.actuator.dead_band_rad is set"),
        ({"actuator": {"no_load_speed_rad_s": 3.0}}, "torque_limit_nm is inf; no_load_speed_rad_s scales it"),
        ({"actuator": {"kind": "muscle"}}, "robot.joint_stop_rad is inf; expected below 0.9273"),
        ({"links_touch": True, "actuator": {"kind": "acceleration"}}, "robot.links_touch is True; expected False"),
    ],
)
def test_an_impossible_robot_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(RobotSpec, changes, "robot")
    assert message in str(caught.value)
