"""The shipped physics against models that share no code with it: dense equations and MuJoCo."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from snake_gym.physics.faults import FREE, LOCKED
from snake_gym.robot.presets import RESILIENT, RESILIENT_SERVO
from snake_gym.robot.spec import ActuatorKind, ActuatorSpec, FloatArray, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.dense_chain import DenseChain, DenseState, step_rk4
from tests.oracles.mujoco_chain import MujocoChain, MujocoRobot

FREE_DAMPING = 0.03


def uneven_spec(n_links: int, kind: ActuatorKind, dt_s: float = 0.001) -> RobotSpec:
    """A robot of unequal links, with friction of every sort and no loop of its own."""
    rng = np.random.default_rng(n_links)

    def some(low: float, high: float) -> tuple[float, ...]:
        return tuple(rng.uniform(low, high, n_links).tolist())

    return RobotSpec(
        n_links=n_links,
        link_half_length_m=some(0.04, 0.1),
        link_mass_kg=some(0.3, 1.5),
        link_inertia_kgm2=some(0.5e-3, 3e-3),
        links_touch=False,
        friction=FrictionSpec(some(0.2, 2.0), some(3.0, 12.0), some(0.0, 0.02)),
        actuator=ActuatorSpec(kind, 0.0, 0.0),
        free_joint_damping_nms_rad=FREE_DAMPING,
        control_dt_s=dt_s,
        sim_dt_s=dt_s,
    )


def disturbed_robot(spec: RobotSpec, n_worlds: int, seed: int, speed: float = 1.0) -> SimulatedRobot:
    rng = np.random.default_rng(seed)
    robot = SimulatedRobot(spec, n_worlds, n_threads=1)
    state = robot.state
    state.link_angle[:] = rng.uniform(-30.0, 30.0, (n_worlds, 1)) + rng.normal(0.0, 0.8, (n_worlds, spec.n_links))
    state.link_rate[:] = speed * rng.normal(size=(n_worlds, spec.n_links))
    state.centre_xy[:] = rng.normal(size=(n_worlds, 2))
    state.centre_vel[:] = speed * rng.normal(size=(n_worlds, 2))
    return robot


def dense_state(robot: SimulatedRobot) -> DenseState:
    state = robot.state
    return DenseState(state.link_angle.copy(), state.link_rate.copy(), state.centre_xy.copy(), state.centre_vel.copy())


def spread_faults(robot: SimulatedRobot, seed: int) -> NDArray[np.int64]:
    """Some joints locked, some free; their rates as the fault wants them."""
    kind = np.random.default_rng(seed).choice([0, 0, LOCKED, FREE], size=robot.faults.kind.shape)
    robot.faults.kind[:] = kind
    return kind


def stop_joints(robot: SimulatedRobot, joints: list[int]) -> None:
    """Give the link in front of each of these joints the rate of the one behind it."""
    for joint in sorted(joints):
        robot.state.link_rate[:, joint + 1] = robot.state.link_rate[:, joint]


# --- accelerations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["torque", "acceleration"])
@pytest.mark.parametrize("faulty", [False, True])
@pytest.mark.parametrize(("n_links", "n_worlds"), [(2, 3), (3, 1), (10, 21), (28, 5)])
def test_accelerations_equal_the_dense_equations(n_links: int, n_worlds: int, faulty: bool, kind: ActuatorKind) -> None:
    spec = uneven_spec(n_links, kind)
    robot = disturbed_robot(spec, n_worlds, seed=n_links)
    u = np.random.default_rng(1).normal(size=(n_worlds, spec.n_joints))
    expected_u, accelerated = u.copy(), np.full(u.shape, kind == "acceleration")
    if faulty:
        fault = spread_faults(robot, seed=2)
        rate = robot.joint_rate()
        expected_u = np.where(fault == LOCKED, 0.0, np.where(fault == FREE, -FREE_DAMPING * rate, u))
        accelerated = (accelerated | (fault == LOCKED)) & (fault != FREE)
    theta_ddot, centre_ddot = DenseChain.of(spec).accelerate(dense_state(robot), expected_u, accelerated)
    got_theta, got_centre = robot.derivative(u)
    for row in range(n_worlds):
        scale = np.abs(theta_ddot[row]).max()
        np.testing.assert_allclose(got_theta[row], theta_ddot[row], rtol=0, atol=1e-9 * scale)
    np.testing.assert_allclose(got_centre, centre_ddot, rtol=1e-9, atol=1e-9 * np.abs(centre_ddot).max())


def test_kinetic_energy_equals_the_dense_equations() -> None:
    spec = uneven_spec(7, "torque")
    robot = disturbed_robot(spec, 4, seed=0)
    np.testing.assert_allclose(robot.kinetic_energy(), DenseChain.of(spec).kinetic_energy(dense_state(robot)))


# --- trajectories -----------------------------------------------------------------------------------------------------


def mujoco_twin(robot: SimulatedRobot, locked: list[int], free: list[int]) -> MujocoChain:
    """The same robot in MuJoCo, in the same state."""
    held = {joint: float(robot.joint_angle()[0, joint]) for joint in locked}
    twin = MujocoRobot.of(robot.spec, dict.fromkeys(free, FREE_DAMPING), held)
    chain = MujocoChain(twin, None, 0.002)
    chain.set_state(*(part[0] for part in dense_state(robot)))
    return chain


@pytest.mark.parametrize(
    ("locked", "free"), [([], []), ([2], []), ([], [1, 4]), ([0, 3], [2])], ids=["healthy", "locked", "free", "both"]
)
def test_trajectory_equals_mujoco(locked: list[int], free: list[int]) -> None:
    """Two seconds of undulation by joint torques on frictional ground; steps of 0.05 ms, MuJoCo has Runge-Kutta's."""
    spec, call_s = uneven_spec(6, "torque", dt_s=5e-5), 0.002
    robot = disturbed_robot(spec, 1, seed=8, speed=0.5)
    stop_joints(robot, locked)
    robot.faults.kind[:, locked] = LOCKED
    robot.faults.kind[:, free] = FREE
    chain = mujoco_twin(robot, locked, free)

    def torque(step: int) -> FloatArray:
        wave = 0.15 * np.sin(4.0 * step * call_s + 0.8 * np.arange(spec.n_joints))
        wave[free] = 0.0
        return np.asarray(wave)

    start = robot.state.link_angle.copy()
    n_steps = 1000
    for step in range(n_steps):
        chain.run(call_s, torque=torque(step))
        robot.step(np.zeros((1, spec.n_joints)), torque(step)[None], 40)
    assert np.abs(robot.state.link_angle - start).max() > 0.3
    np.testing.assert_allclose(robot.state.link_angle[0], chain.link_angles(), atol=1e-7)
    np.testing.assert_allclose(robot.state.link_rate[0], chain.link_rates(), atol=1e-6)
    np.testing.assert_allclose(robot.state.centre_xy[0], chain.centre_xy(), atol=1e-8)


def servo_torque(spec: RobotSpec, reference: FloatArray, state: DenseState) -> FloatArray:
    """The actuator law of RobotSpec, without limits."""
    phi = state.theta[:, :-1] - state.theta[:, 1:]
    phi_dot = state.theta_dot[:, :-1] - state.theta_dot[:, 1:]
    return np.asarray(spec.joints("actuator.kp") * (reference - phi) - spec.joints("actuator.kd") * phi_dot)


def run_dense(robot: SimulatedRobot, reference: FloatArray, seconds: float, dt_s: float) -> DenseState:
    """The dense equations from the robot's state, its actuators holding ``reference``."""
    spec, state, chain = robot.spec, dense_state(robot), DenseChain.of(robot.spec)
    accelerated = np.full(reference.shape, spec.actuator.kind == "acceleration")
    for step in range(round(seconds / dt_s)):
        state = step_rk4(
            chain, state, lambda _, at: (servo_torque(spec, reference, at), accelerated), step * dt_s, dt_s
        )
    return state


SOFT_SERVO = ActuatorSpec("position", kp=3.0, kd=0.3)


@pytest.mark.parametrize(
    "spec",
    [
        RESILIENT,
        replace(RESILIENT_SERVO, actuator=SOFT_SERVO),
        pytest.param(replace(RESILIENT_SERVO, actuator=replace(SOFT_SERVO, kind="torque")), marks=pytest.mark.slow),
    ],
    ids=["acceleration", "position", "torque"],
)
def test_implicit_step_converges_to_the_dense_trajectory_with_second_order(spec: RobotSpec) -> None:
    seconds, steps = 0.4, (0.002, 0.001, 0.0005)
    reference = np.random.default_rng(0).normal(0.0, 0.3, (2, spec.n_joints))
    errors = []
    for dt_s in steps:
        robot = disturbed_robot(replace(spec, control_dt_s=dt_s, sim_dt_s=dt_s), 2, seed=7, speed=0.3)
        expected = run_dense(robot, reference, seconds, 0.001)
        robot.step(reference, None, round(seconds / dt_s))
        angle = robot.state.link_angle - expected.theta
        place = robot.state.centre_xy - expected.centre
        errors.append([np.sqrt((angle**2).mean()), np.sqrt((place**2).mean())])
    ratios = np.array(errors[:-1]) / np.array(errors[1:])
    assert ((ratios > 3.0) & (ratios < 4.6)).all(), (errors, ratios)
