"""What contact must do whatever the numbers: symmetry, dissipation, no feature overlooked."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from snake_gym.physics.lanes import SLOTS
from snake_gym.robot.spec import ActuatorSpec, ContactModel, ContactSpec, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.contact_scenes import discs, one_cell

FloatArray = NDArray[np.float64]
ICE = FrictionSpec(0.0, 0.0)
MODELS = pytest.mark.parametrize("model", ["rigid", "stiff"])


def make_spec(model: ContactModel, **changes: Any) -> RobotSpec:
    """Six light links that nothing drives."""
    spec = RobotSpec(
        n_links=6, link_half_length_m=0.05, link_mass_kg=0.4, link_radius_m=0.02, friction=ICE,
        contact=ContactSpec(model), actuator=ActuatorSpec("torque", 0.0, 0.0), control_dt_s=0.005, sim_dt_s=0.005,
    )  # fmt: skip
    return replace(spec, **changes)


def clutter(seed: int) -> FloatArray:
    """Pegs, capsules and the corners of a wall around the line y = 0, as features (F, 6)."""
    rng = np.random.default_rng(seed)
    x = np.linspace(-0.45, 0.45, 7)
    side = rng.choice([-1.0, 1.0], x.size)
    pegs = discs(*zip(x, side * rng.uniform(0.07, 0.1, x.size), np.full(x.size, 0.03), strict=True))
    turn = rng.uniform(0.0, 2.0 * math.pi, 3)
    place = np.stack([rng.uniform(-0.45, 0.45, 3), rng.choice([-0.25, 0.25], 3)], axis=1)
    walls = np.column_stack([place, np.cos(turn), np.sin(turn), np.full(3, 0.12), [0.0, 0.01, 0.0]])
    return np.vstack([pegs, walls])


def throw(robot: SimulatedRobot, seed: int, speed: float = 1.0) -> None:
    """Straight links in motion."""
    rng = np.random.default_rng(seed)
    shape = robot.state.link_rate.shape
    robot.set_shape(np.zeros((shape[0], shape[1] - 1)), np.zeros(shape[0]), np.zeros((shape[0], 2)), "centre")
    robot.state.link_rate[:] = 3.0 * speed * rng.normal(size=shape)
    robot.state.centre_vel[:] = speed * rng.normal(size=(shape[0], 2))


# --- energy -----------------------------------------------------------------------------------------------------------


def energy_gain(robot: SimulatedRobot, seconds: float, per_call: int = 1) -> float:
    """Largest rise of the kinetic energy from one call to the next, as a share of the largest energy."""
    zero = np.zeros((robot.n_worlds, robot.spec.n_joints))
    energy = [robot.kinetic_energy()]
    for _ in range(round(seconds / (per_call * robot.spec.sim_dt_s))):
        robot.step(zero, None, per_call)
        energy.append(robot.kinetic_energy())
    assert np.isfinite(energy).all()
    return float((np.diff(energy, axis=0) / np.max(energy, axis=0)).max())


@MODELS
@given(
    seed=st.integers(0, 10_000), restitution=st.floats(0.0, 0.8), coulomb=st.floats(0.0, 1.0),
    viscous=st.sampled_from([0.0, 3.0]), per_call=st.sampled_from([1, 10]),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_contact_and_its_friction_only_take_energy(
    model: ContactModel, seed: int, restitution: float, coulomb: float, viscous: float, per_call: int
) -> None:
    """On ice, so that nothing else takes any."""
    contact = ContactSpec(model, restitution=restitution, friction_ns_m=viscous, friction_coulomb=coulomb)
    robot = SimulatedRobot(
        make_spec(model, contact=contact, sim_dt_s=0.001), 8, 1, obstacles=one_cell(clutter(seed), 8)
    )
    throw(robot, seed, 0.5)
    # An impact acts in the geometry of its step's end, which a link of speed v has turned by v h / l: at 1 ms 1 %.
    assert energy_gain(robot, 0.5, per_call) < 2e-3


# --- symmetry ---------------------------------------------------------------------------------------------------------


@MODELS
@given(seed=st.integers(0, 10_000), angle=st.floats(-3, 3), x=st.floats(-5, 5), y=st.floats(-5, 5))
@settings(max_examples=12, deadline=None)
def test_motion_among_obstacles_does_not_depend_on_place_direction_or_handedness(
    model: ContactModel, seed: int, angle: float, x: float, y: float
) -> None:
    contact = ContactSpec(model, restitution=0.3, friction_ns_m=0.5, friction_coulomb=0.2)
    friction = FrictionSpec(0.5, 3.0, 0.001, 0.05, 0.3)
    spec = make_spec(model, contact=contact, friction=friction, sim_dt_s=0.001, joint_stop_rad=0.5)
    features = clutter(seed)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    turned, mirrored = features.copy(), features.copy()
    turned[:, :2], turned[:, 2:4] = features[:, :2] @ turn + [x, y], features[:, 2:4] @ turn
    mirrored[:, [1, 3]] *= -1.0
    robots = []
    for rows in (features, turned, mirrored):
        robots.append(SimulatedRobot(spec, 4, 1, obstacles=one_cell(features, 4)))
        throw(robots[-1], seed)
        robots[-1].obstacles = one_cell(rows, 4)
    base, turner, mirror = (robot.state for robot in robots)
    turner.link_angle[:] += angle
    turner.centre_xy[:] = turner.centre_xy @ turn + [x, y]
    turner.centre_vel[:] = turner.centre_vel @ turn
    for array in (mirror.link_angle, mirror.link_rate):
        array *= -1.0
    for array in (mirror.centre_xy, mirror.centre_vel):
        array *= [1.0, -1.0]
    torque = np.random.default_rng(seed).normal(0.0, 0.2, (4, 5))
    touched = np.zeros(4)
    for _ in range(5):
        for robot, sign in zip(robots, (1.0, 1.0, -1.0), strict=True):
            robot.step(np.zeros((4, 5)), sign * torque, 20)
        touched += base.n_contacts
        near = {"rtol": 0.0, "atol": 1e-6}
        np.testing.assert_allclose(turner.link_angle, base.link_angle + angle, **near)
        np.testing.assert_allclose(turner.centre_xy, base.centre_xy @ turn + [x, y], **near)
        np.testing.assert_allclose(mirror.link_angle, -base.link_angle, **near)
        np.testing.assert_allclose(mirror.centre_xy, base.centre_xy * [1, -1], **near)
        scale = 1e-6 * max(1.0, float(np.abs(base.contact_force).max()))
        np.testing.assert_allclose(turner.contact_force, base.contact_force @ turn, rtol=0, atol=100 * scale)
    assert touched.max() > 0.0


# --- nothing overlooked -----------------------------------------------------------------------------------------------


@MODELS
def test_a_feature_is_met_though_more_are_near_than_a_link_has_slots(model: ContactModel) -> None:
    """A rod in a lane of pegs 8 mm beside it, more than it can keep, runs into the peg at the lane's end."""
    half, radius, gap, ahead = 0.1, 0.02, 0.008, 0.015
    spec = make_spec(model, n_links=2, link_half_length_m=half, link_radius_m=radius)
    x = np.linspace(0.02, 0.4, SLOTS + 4)
    lane = [(float(a), side * (radius + gap + 0.01), 0.01) for a in x for side in (-1.0, 1.0)]
    nose = 2.0 * half + radius
    features = discs(*lane, (nose + ahead + 0.01, 0.0, 0.01))
    obstacles = one_cell(features)._replace(skin_m=0.02)
    robot = SimulatedRobot(spec, 1, 1, obstacles=obstacles)
    robot.set_shape(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 2)), "centre")
    robot.state.centre_vel[0, 0] = 0.3
    robot.step(np.zeros((1, 1)), None, 40)
    assert robot.state.centre_xy[0, 0] == pytest.approx(ahead, abs=1e-4)
    assert robot.state.contact_force[0, 1, 0] < 0.0


@MODELS
def test_overlap_of_a_link_that_swings_round_a_peg_goes_down(model: ContactModel) -> None:
    """The path of a fast link's end is curved: what the end of a step adds to an overlap must not pile up."""
    spec = make_spec(model, n_links=2, incline_rad=0.5, incline_direction_rad=-math.pi / 2)
    robot = SimulatedRobot(spec, 1, 1, obstacles=one_cell(discs((0.07, -0.05, 0.03))))
    robot.set_shape(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 2)), "centre")
    robot.state.link_rate[0] = 8.0, -8.0
    deepest, pressed = 0.0, 0
    for _ in range(100):
        robot.step(np.zeros((1, 1)), None, 4)
        deepest = max(deepest, float(robot.state.penetration_m[0]))
        pressed += robot.state.n_contacts[0] > 0
    assert pressed > 5
    assert deepest < (0.005 if model == "rigid" else 0.01) * 0.1
