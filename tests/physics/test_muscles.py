"""Muscle pairs in the physics: against an independent model, limits, faults, convergence."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from snake_gym.physics.faults import (
    BURST_LEFT,
    BURST_RIGHT,
    FREE,
    LEAK_LEFT,
    LEAK_RIGHT,
    LOCKED,
    OFFSET,
    SLOW,
    WEAK,
    WEAK_LEFT,
    WEAK_RIGHT,
)  # fmt: skip
from snake_gym.physics.muscles import ATMOSPHERE_PA
from snake_gym.robot.muscle_pair import muscle_force, muscle_length, muscle_lever
from snake_gym.robot.presets import MUSCLE
from snake_gym.robot.spec import FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.dense_chain import DenseChain, DenseState
from tests.oracles.muscle_pair import MusclePair

PAIR = MUSCLE.actuator.muscle
ORACLE = MusclePair(PAIR.attachment_m, PAIR.half_width_m, PAIR.rest_length_m, PAIR.radius_m, PAIR.braid_angle_rad)


def crawl(robot: SimulatedRobot, seconds: float, amplitude: float = math.radians(30.0)) -> None:
    dt = robot.spec.control_dt_s
    joint = np.arange(robot.spec.n_joints)
    for _ in range(round(seconds / dt)):
        phase = 2.0 * math.pi * (robot.state.time_s[:, None] + dt) + joint * math.radians(72.0)
        robot.step(amplitude * np.sin(phase))


def test_lengths_forces_and_pressures_stay_within_their_limits_while_crawling_with_faults() -> None:
    rng = np.random.default_rng(1)
    robot = SimulatedRobot(MUSCLE, 40, 1)
    robot.set_shape(rng.uniform(-0.4, 0.4, (40, 5)), np.zeros(40), np.zeros((40, 2)))
    shape = robot.faults.kind.shape
    robot.faults.kind[:] = rng.choice(
        [0, 0, LOCKED, FREE, WEAK, SLOW, OFFSET, *range(BURST_LEFT, WEAK_RIGHT + 1)], shape
    )
    robot.faults.onset_s[:] = rng.uniform(0.0, 2.0, shape)
    robot.faults.period_s[:] = np.where(rng.uniform(size=shape) < 0.3, 0.3, np.inf)
    robot.faults.strength[:], robot.faults.offset_rad[:], robot.faults.duty[:] = 0.3, 0.4, 0.5
    widest = 0.0
    for _ in range(80):
        crawl(robot, 0.05, math.radians(50.0))
        pressure = robot.state.muscle_pressure
        length = muscle_length(PAIR, robot.joint_angle())
        assert pressure.min() >= 0.0 and pressure.max() <= PAIR.max_pressure_pa
        assert length.min() >= PAIR.shortest_m and length.max() <= PAIR.longest_m
        assert muscle_force(PAIR, length, pressure).min() >= 0.0
        widest = max(widest, float(np.abs(robot.joint_angle()).max()))
    assert widest > math.radians(42.0)
    assert np.isfinite(robot.state.link_angle).all()


WHOLE = np.ones((2, 2))


def simulate_oracle(
    spec: RobotSpec, reference: np.ndarray, seconds: float, dt: float, kept: np.ndarray = WHOLE,
    pull: np.ndarray = WHOLE, added: float = 0.0,
) -> np.ndarray:  # fmt: skip
    """Joint angles after ``seconds`` from rest, by dense equations, vector geometry and small Runge-Kutta steps.

    Muscles (J, 2) keep the shares ``kept`` of their pressures, 0 after a burst, and ``pull`` of their forces.
    """
    m, n, pair = PAIR, spec.n_links, ORACLE
    chain = DenseChain.of(spec)
    kp, kd = spec.joints("actuator.kp"), spec.joints("actuator.kd")

    def command(phi: float, request: float) -> tuple[float, float]:
        """Pressures (left, right), co-contracted as far as both can."""
        left_pull, right_pull = (pair.force(pair.length(phi, s), 1.0) * pair.lever(phi, s) for s in (1, -1))
        base, most = m.base_pressure_pa, m.max_pressure_pa
        more = (request - base * (left_pull + right_pull)) / (right_pull - left_pull)
        left, right = base - more, base + more
        if left < 0.0:
            left, right = 0.0, min(request / right_pull, most)
        elif right < 0.0:
            left, right = min(request / left_pull, most), 0.0
        return left, right

    def slope(y: np.ndarray) -> np.ndarray:
        theta, omega, pressure = y[:n], y[n : 2 * n], y[2 * n + 4 :].reshape(-1, 2)
        phi, rate = theta[:-1] - theta[1:], omega[:-1] - omega[1:]
        request = kp * (reference - phi) - kd * rate
        wanted = np.array([command(*pair_of) for pair_of in zip(phi, request, strict=True)])
        wanted = np.clip(wanted + added, 0.0, m.max_pressure_pa)
        pulls = pressure * pull * (kept > 0.0)
        torque = np.array([pair.torque(angle, *p) for angle, p in zip(phi, pulls, strict=True)])
        state = DenseState(theta[None], omega[None], y[None, 2 * n : 2 * n + 2], y[None, 2 * n + 2 : 2 * n + 4])
        no_lock = np.zeros((1, n - 1), bool)
        link, centre = chain.accelerate(state, (torque - m.damping_nms_rad * rate)[None], no_lock)
        lag = (wanted - pressure / np.where(kept > 0.0, kept, 1.0)) / m.pressure_lag_s
        return np.concatenate([omega, link[0], y[2 * n + 2 : 2 * n + 4], centre[0], lag.ravel()])

    y = np.zeros(2 * n + 4 + 2 * (n - 1))
    y[2 * n + 4 :] = m.base_pressure_pa
    for _ in range(round(seconds / dt)):
        k1 = slope(y)
        k2 = slope(y + 0.5 * dt * k1)
        k3 = slope(y + 0.5 * dt * k2)
        y = y + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + slope(y + dt * k3))
    return y[: n - 1] - y[1:n]


BROKEN = {
    0: {}, BURST_LEFT: {"kept": np.array([[1.0, 1.0], [0.0, 1.0]])},
    LEAK_RIGHT: {"kept": np.array([[1.0, 1.0], [1.0, 0.3]]), "added": 2e4},
    WEAK_LEFT: {"pull": np.array([[1.0, 1.0], [0.3, 1.0]])},
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_motion_is_that_of_an_independent_model(kind: int) -> None:
    spec = dataclasses.replace(
        MUSCLE, n_links=3, friction=FrictionSpec(0.5, 3.0, 0.05), control_dt_s=0.4, sim_dt_s=0.0005,
        actuator=dataclasses.replace(MUSCLE.actuator, kp=1.0, kd=0.05),
    )  # fmt: skip
    reference = np.array([0.5, -0.3])
    robot = SimulatedRobot(spec, 1, 1)
    robot.set_shape(np.zeros((1, 2)), np.zeros(1), np.zeros((1, 2)))
    robot.faults.kind[0, 1], robot.faults.strength[:] = kind, 0.3
    robot.state.pressure_command[:] = BROKEN[kind].get("added", 0.0)
    robot.step(reference[None])
    expected = simulate_oracle(spec, reference, 0.4, 0.002, **BROKEN[kind])
    np.testing.assert_allclose(robot.joint_angle()[0], expected, atol=2e-4)
    assert np.abs(expected).max() > 0.2


def test_the_step_converges_with_second_order() -> None:
    def angles(dt: float) -> np.ndarray:
        spec = dataclasses.replace(
            MUSCLE, friction=FrictionSpec(0.5, 3.0, 0.001), control_dt_s=0.32, sim_dt_s=dt,
            actuator=dataclasses.replace(MUSCLE.actuator, kp=1.0, kd=0.05),
        )  # fmt: skip
        robot = SimulatedRobot(spec, 1, 1)
        robot.set_shape(np.zeros((1, 5)), np.zeros(1), np.zeros((1, 2)))
        robot.step(np.array([[0.2, -0.1, 0.15, -0.2, 0.1]]))
        return robot.joint_angle()[0]

    coarse, medium, fine, exact = (angles(dt) for dt in (0.004, 0.002, 0.001, 0.000125))
    errors = [np.abs(values - exact).max() for values in (coarse, medium, fine)]
    assert errors[0] / errors[2] > 10.0, errors


def test_a_free_joint_s_muscles_are_vented_and_slow_valves_take_longer() -> None:
    robot = SimulatedRobot(MUSCLE, 1, 1)
    robot.set_shape(np.zeros((1, 5)), np.zeros(1), np.zeros((1, 2)))
    robot.faults.kind[0, 1] = FREE
    robot.step(np.zeros((1, 5)), n_substeps=round(0.2 / MUSCLE.sim_dt_s))
    expected = PAIR.base_pressure_pa * math.exp(-0.2 / PAIR.pressure_lag_s)
    np.testing.assert_allclose(robot.state.muscle_pressure[0, 1], expected, rtol=0.02)
    np.testing.assert_allclose(robot.state.muscle_pressure[0, 0], PAIR.base_pressure_pa, rtol=1e-9)
    limp = dataclasses.replace(MUSCLE.actuator, kp=0.0, kd=0.0)
    slow = SimulatedRobot(dataclasses.replace(MUSCLE, link_inertia_kgm2=100.0, actuator=limp), 2, 1)  # hardly turns
    slow.set_shape(np.zeros((2, 5)), np.zeros(2), np.zeros((2, 2)))
    slow.faults.kind[0, 2] = SLOW
    slow.faults.strength[0, 2] = 0.1
    slow.step(np.zeros((2, 5)), np.full((2, 5), 0.05), n_substeps=round(0.02 / slow.spec.sim_dt_s))
    rise = slow.state.muscle_pressure[:, 2, 1] - PAIR.base_pressure_pa
    straight = np.zeros(1)
    force = muscle_force(PAIR, muscle_length(PAIR, straight), np.ones((1, 2)))
    wanted = 0.05 / (force * np.abs(muscle_lever(PAIR, straight)))[0, 1] / 2.0
    expected = [wanted * (1.0 - math.exp(-0.02 / lag)) for lag in (0.5, 0.05)]
    np.testing.assert_allclose(rise, expected, rtol=0.01)


def test_reset_presses_both_muscles_with_the_pressure_of_co_contraction() -> None:
    robot = SimulatedRobot(MUSCLE, 3, 1)
    robot.set_shape(np.zeros((3, 5)), np.zeros(3), np.zeros((3, 2)))
    crawl(robot, 0.3)
    robot.set_shape(np.zeros((1, 5)), np.zeros(1), np.zeros((1, 2)), mask=np.array([False, True, False]))
    assert (robot.state.muscle_pressure[1] == PAIR.base_pressure_pa).all()
    assert (robot.state.muscle_pressure[0] != PAIR.base_pressure_pa).any()


def by_pressure(spec: RobotSpec, kinds: list[int], strength: float, pressure_pa: float) -> SimulatedRobot:
    """Straight robots at rest, one for each kind of fault of joint 1; all muscles are commanded the same pressure."""
    robot = SimulatedRobot(spec, len(kinds), 1)
    robot.take_pressures()
    robot.set_shape(np.zeros((len(kinds), spec.n_joints)), np.zeros(len(kinds)), np.zeros((len(kinds), 2)))
    robot.faults.kind[:, 0], robot.faults.strength[:] = kinds, strength
    robot.state.pressure_command[:] = pressure_pa
    return robot


HEAVY = dataclasses.replace(MUSCLE, link_inertia_kgm2=100.0, control_dt_s=1.0)
"""Joints that hardly turn."""


def test_a_single_muscle_bursts_leaks_and_weakens_while_the_other_goes_on() -> None:
    base, seconds, lag = PAIR.base_pressure_pa, 0.03, PAIR.pressure_lag_s
    robot = by_pressure(HEAVY, [LEAK_LEFT, BURST_RIGHT, WEAK_RIGHT], 0.4, 1e5)
    robot.step(np.zeros((3, 5)), n_substeps=round(seconds / HEAVY.sim_dt_s))
    whole, leaky = (end + (base - end) * math.exp(-seconds / (end / 1e5 * lag)) for end in (1e5, 0.4e5))
    expected = np.array([[leaky, whole], [whole, 0.0], [whole, whole]])
    np.testing.assert_allclose(robot.state.muscle_pressure[:, 0], expected, rtol=1e-3)
    force = ORACLE.force(0.1, 1.0) * np.array([[leaky, whole], [whole, 0.0], [whole, 0.4 * whole]])
    np.testing.assert_allclose(robot.muscle_tension()[:, 0], force, rtol=1e-3)
    np.testing.assert_allclose(robot.state.joint_torque[:, 0], PAIR.half_width_m * (force @ [-1.0, 1.0]), rtol=2e-3)


def test_a_pair_rests_where_its_torques_balance_or_at_the_stop_beside_the_whole_muscle() -> None:
    spec = dataclasses.replace(MUSCLE, n_links=2, friction=FrictionSpec(0.01, 0.01), control_dt_s=3.0)
    robot = by_pressure(spec, [LEAK_LEFT, WEAK_LEFT, BURST_LEFT], 0.8, 1e5)
    robot.step(np.zeros((3, 1)))
    *balanced, burst = robot.joint_angle()[:, 0]
    assert burst == pytest.approx(spec.joint_stop_rad, abs=1e-6)
    for angle in balanced:
        assert ORACLE.torque(angle - 2e-3, 0.8e5, 1e5) > 0.0 > ORACLE.torque(angle + 2e-3, 0.8e5, 1e5) and angle > 0.1


def test_energy_is_that_of_the_air_that_fills_muscles_and_leaks_from_them_but_not_of_what_they_breathe() -> None:
    robot = by_pressure(HEAVY, [0, BURST_LEFT, LEAK_LEFT], 0.5, 1.5e5)
    robot.step(np.zeros((3, 5)))
    filled, *failed = robot.state.work_j / (math.log1p(PAIR.max_pressure_pa / ATMOSPHERE_PA) * ORACLE.volume(0.1))
    assert filled == pytest.approx(10 * 1e5, rel=0.01)
    for more, left in zip(failed, (0.0, 0.75e5), strict=True):
        assert more - 0.9 * filled == pytest.approx((1.5e5 - left) / PAIR.pressure_lag_s, rel=0.02)
    robot.state.pressure_command[:], before = 0.0, robot.state.work_j.copy()
    robot.step(np.zeros((3, 5)))
    np.testing.assert_array_equal(robot.state.work_j, before)
