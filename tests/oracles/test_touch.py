"""Links of one chain that touch each other: closed forms, MuJoCo's capsules, energy, and random robots that curl."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from snake_gym.physics.faults import FREE
from snake_gym.robot.measurement import chain_angles
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spec import ActuatorSpec, FloatArray, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import Precision, SimulatedRobot
from tests.oracles.link_overlap import deepest_overlaps
from tests.oracles.mujoco_chain import MujocoChain, MujocoRobot

SMOOTH = FrictionSpec(0.0, 0.0)
HALF, RADIUS, MASS = 0.07, 0.03, 1.0
TONGS = RobotSpec(
    n_links=3, link_half_length_m=HALF, link_radius_m=RADIUS, link_mass_kg=(MASS, 1e7, MASS), friction=SMOOTH,
    actuator=ActuatorSpec("torque", 0.0, 0.0), joint_limit_rad=3.0, sim_dt_s=1e-4, control_dt_s=1e-4, links_touch=True,
)  # fmt: skip
"""Two links that turn about the ends of one that does not move."""
ARM_INERTIA = 4.0 / 3.0 * MASS * HALF**2
"""About the joint [kg m^2]."""


def closing_tongs(gap_m: float) -> tuple[SimulatedRobot, float]:
    """Tongs that lean to each other until their tips have this gap; and the angle of each from upright."""
    lean = math.asin((HALF - RADIUS - 0.5 * gap_m) / (2.0 * HALF))
    robot = SimulatedRobot(TONGS, 1, 1)
    robot.set_shape(np.full((1, 2), 0.5 * math.pi + lean), np.array([-0.5 * math.pi - lean]), np.zeros((1, 2)))
    np.testing.assert_allclose(-deepest_overlaps(robot.state.link_angle, np.full(3, HALF), np.full(3, RADIUS)), gap_m)
    return robot, lean


@pytest.mark.parametrize(("first", "last"), [(3.0, 1.0), (-0.5, 2.0)])
def test_two_links_that_meet_go_on_together(first: float, last: float) -> None:
    """Without restitution: tips, of equal arms, have the mean of their speeds afterwards."""
    robot, _ = closing_tongs(1e-4)
    robot.state.link_rate[0] = [first, 0.0, -last]
    for _ in range(10):
        robot.step(np.zeros((1, 2)))
    mean = 0.5 * (first - last)
    np.testing.assert_allclose(robot.state.link_rate[0], [mean, 0.0, mean], atol=2e-3 * max(first, last))


@pytest.mark.parametrize(("first", "last"), [(2.0, 1.0), (1.0, 1.0)])
def test_two_links_pressed_together_move_by_the_difference_of_their_torques(first: float, last: float) -> None:
    robot, _ = closing_tongs(0.0)
    for _ in range(50):
        robot.step(np.zeros((1, 2)), np.array([[first, last]]))
    rate = 50 * TONGS.sim_dt_s * (first - last) / (2.0 * ARM_INERTIA)
    np.testing.assert_allclose(robot.state.link_rate[0], [rate, 0.0, rate], atol=0.01 * max(rate, 0.1))


@pytest.mark.parametrize(("n_links", "bend"), [(8, 1.2), (10, 0.9), (14, 0.8)])
def test_a_chain_that_curls_up_moves_as_in_mujoco(n_links: int, bend: float) -> None:
    """Within 0.01 rad at 1 ms, and five times nearer than at 5 ms: MuJoCo at half its step is within 0.001 rad."""
    bends = bend + 0.1 * np.sin(np.arange(n_links - 1))
    spec = replace(
        RESILIENT_SERVO, n_links=n_links, joint_limit_rad=3.0, links_touch=True, sim_dt_s=0.001, control_dt_s=0.05,
        actuator=ActuatorSpec("position", kp=4.0, kd=0.8), friction=FrictionSpec(1.0, 10.0, 0.01),
    )  # fmt: skip
    robot, twin = SimulatedRobot(spec, 1, 1), MujocoChain(MujocoRobot.of(spec), None, 1e-4, 1e-3)
    state = robot.state
    twin.set_state(state.link_angle[0], state.link_rate[0], state.centre_xy[0], state.centre_vel[0])
    for _ in range(60):
        robot.step(bends[None])
        twin.run(0.05, reference=bends)
        np.testing.assert_allclose(state.link_angle[0], twin.link_angles(), rtol=0, atol=0.01)
        np.testing.assert_allclose(state.centre_xy[0], twin.centre_xy(), rtol=0, atol=0.002)
    assert twin.n_contacts > 0


# --- random robots ----------------------------------------------------------------------------------------------------


def random_robot(rng: np.random.Generator, dry: bool) -> RobotSpec:
    """Four to twenty links, equal or not, with laws that servos and ground may have."""
    n = int(rng.integers(4, 21))
    half = rng.uniform(0.03, 0.09, n if rng.random() < 0.5 else 1) * np.ones(n)
    radius = rng.uniform(0.1, 0.8) * (half if rng.random() < 0.5 else half.min() * np.ones(n))
    kp, kd, limit = rng.uniform([5.0, 0.2, 0.5], [100.0, 10.0, 10.0]).tolist()
    dt_s, coulomb = float(rng.choice([0.01, 0.005, 0.002])), (0.1, 0.4) if dry and rng.random() < 0.3 else (0.0, 0.0)
    return RobotSpec(
        n_links=n, link_half_length_m=tuple(half.tolist()), link_radius_m=tuple(radius.tolist()),
        link_mass_kg=tuple(rng.uniform(0.2, 2.0, n).tolist()),
        friction=FrictionSpec(*rng.uniform(0.0, [2.0, 10.0, 0.02]).tolist(), *coulomb), joint_limit_rad=3.0,
        actuator=ActuatorSpec(rng.choice(["position", "torque"]), kp, kd, limit), links_touch=True,
        joint_stop_rad=float(rng.uniform(1.0, 2.6)) if rng.random() < 0.3 else math.inf,
        joint_friction_nm=float(rng.uniform(0.05, 0.5)) if dry and rng.random() < 0.2 else 0.0,
        sim_dt_s=dt_s, control_dt_s=20 * dt_s,
    )  # fmt: skip


def overlaps(robot: SimulatedRobot, theta: FloatArray) -> FloatArray:
    return deepest_overlaps(theta, robot.params.half_length[0], robot.params.radius[0])


def curled(spec: RobotSpec, rng: np.random.Generator, n_worlds: int, precision: Precision) -> SimulatedRobot:
    """Robots in random shapes, many of them curled up, none in itself, at random speeds."""
    robot = SimulatedRobot(spec, n_worlds, 1, precision=precision)
    stop, shapes = min(float(spec.joints("joint_stop_rad").min()), 2.6), np.zeros((0, spec.n_joints))
    while len(shapes) < n_worlds:
        mean = rng.uniform(-1.0, 1.0, (200, 1)) * min(stop, 20.0 / spec.n_joints)
        bends = np.clip(mean + rng.normal(0.0, 0.4, (200, spec.n_joints)), -0.95 * stop, 0.95 * stop)
        shapes = np.vstack([shapes, bends[overlaps(robot, chain_angles(bends, np.zeros(200))) < 0.0]])
    robot.set_shape(shapes[:n_worlds], rng.uniform(-9.0, 9.0, n_worlds), rng.normal(size=(n_worlds, 2)))
    speed = rng.choice([0.0, 1.0, 3.0])
    robot.state.link_rate[:] = speed * rng.normal(size=robot.state.link_rate.shape)
    robot.state.centre_vel[:] = 0.3 * speed * rng.normal(size=(n_worlds, 2))
    return robot


def throw_about(seed: int, n_worlds: int, precision: Precision = "float64") -> FloatArray:
    """Deepest overlaps [m] of random robots in 40 calls under random commands."""
    rng = np.random.default_rng(seed)
    spec = random_robot(rng, precision == "float64")
    robot, shape = curled(spec, rng, n_worlds, precision), (n_worlds, spec.n_joints)
    deepest = -np.ones(n_worlds)
    for call in range(40):
        if call % 6 == 0:
            mean = rng.uniform(-1.0, 1.0, (n_worlds, 1)) * rng.choice([0.5, 1.0, 2.0, 3.0])
            reference = np.clip(mean + rng.normal(0.0, 0.5, shape), -3.0, 3.0)
        push = rng.normal(size=shape) if spec.actuator.kind == "torque" else None
        robot.step(reference, push, int(rng.choice([1, 4, 10, 20])))
        assert all(np.isfinite(values).all() for values in robot.motion())
        deepest = np.maximum(deepest, overlaps(robot, robot.state.link_angle))
    assert (robot.state.stood_still <= 1.0).all()
    return deepest


@pytest.mark.parametrize(
    ("seeds", "n_worlds", "precision"),
    [
        (range(100, 112), 16, "float64"),
        (range(100, 112), 16, "float32"),
        pytest.param(range(1000, 1160), 64, "float64", marks=pytest.mark.slow),
    ],
)
def test_no_loop_closes_through_itself(seeds: range, n_worlds: int, precision: Precision) -> None:
    deepest = np.concatenate([throw_about(seed, n_worlds, precision) for seed in seeds])
    print(f"deepest of {deepest.size}: {1e3 * deepest.max():.3f} mm, {(deepest > -1e-4).sum()} touched")
    assert deepest.max() < 0.005
    assert (deepest > -1e-4).mean() > 0.25


def test_a_robot_pressed_into_a_curl_keeps_spinning_on_smooth_ground() -> None:
    """Forces between its own links turn no body."""
    spec, rates = replace(RESILIENT_SERVO, friction=SMOOTH, links_touch=True), []
    robot = SimulatedRobot(spec, 1, 1)
    robot.set_shape(np.zeros((1, spec.n_joints)), np.zeros(1), np.zeros((1, 2)))
    robot.state.link_rate[:] = 0.05
    for _ in range(40):
        robot.step(np.ones((1, spec.n_joints)))
        rates.append(float(robot.state.link_rate.mean()))
    assert abs(robot.state.overlap_now_m[0]) < 0.001 < abs(robot.joint_angle() - 1.0).max(), "it presses on itself"
    assert rates[-1] == pytest.approx(rates[15], rel=0.03) and abs(rates[-1]) > 0.1


@pytest.mark.parametrize("bend", [0.7, 0.9])
def test_links_that_are_put_across_each_other_gain_no_energy(bend: float) -> None:
    """Their normals contradict each other, so that they must not be driven apart."""
    robot = SimulatedRobot(replace(RESILIENT_SERVO, links_touch=True), 1, 1)
    robot.set_shape(np.full((1, 9), bend), np.zeros(1), np.zeros((1, 2)))
    robot.faults.kind[:], robot.faults.end_s[:] = FREE, np.inf
    robot.step(np.zeros((1, 9)), n_substeps=100)
    assert robot.state.self_overlap_m[0] > RADIUS and np.abs(robot.state.link_rate).max() < 1e-6


def test_touching_makes_no_energy() -> None:
    """Chains without friction or torque, thrown against themselves; what steps make without touch is 0.1 %."""
    lost = 0.0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        loose = {"actuator": ActuatorSpec("torque", 0.0, 0.0), "joint_stop_rad": math.inf, "sim_dt_s": 0.001}
        spec = replace(random_robot(rng, False), friction=SMOOTH, control_dt_s=0.001, **loose)
        robot = curled(spec, rng, 16, "float64")
        robot.state.link_rate[:] = rng.normal(size=robot.state.link_rate.shape)
        start = energy = robot.kinetic_energy()
        for _ in range(400):
            robot.step(np.zeros((16, spec.n_joints)))
            now = robot.kinetic_energy()
            assert (now <= energy + 1e-3 * start).all()
            energy = now
        lost = max(lost, float((1.0 - energy / start).max()))
    assert lost > 0.05, "they have met"
