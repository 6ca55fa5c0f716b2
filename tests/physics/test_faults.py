"""What each joint fault of the kernels does, and when: at once, in bursts, for a time, two of a joint together."""

from __future__ import annotations

import dataclasses
import math
from typing import Literal

import numpy as np
import pytest

from snake_gym.physics.faults import FREE, HEALTHY, LOCKED, OFFSET, SLIPPED, SLOW, WEAK, acting
from snake_gym.physics.state import FaultState
from snake_gym.robot.presets import PRESETS, RESILIENT_SERVO
from snake_gym.robot.spec import ActuatorSpec, FrictionSpec, RobotSpec
from snake_gym.simulation.faults import FaultConfig
from snake_gym.simulation.simulated_robot import SimulatedRobot

TWO_LINKS = RobotSpec(
    n_links=2, link_half_length_m=0.1, link_mass_kg=(1e6, 1.0), link_inertia_kgm2=(1e6, 0.01),
    friction=FrictionSpec(0.0, 0.0), actuator=ActuatorSpec("torque", 0.0, 0.0), control_dt_s=0.2, sim_dt_s=0.01,
)  # fmt: skip
"""A heavy link and a light one that turns about their joint."""


def make(spec: RobotSpec, n_worlds: int = 1, seed: int = 0, amplitude: float = 0.3) -> SimulatedRobot:
    robot = SimulatedRobot(spec, n_worlds, 1)
    rng = np.random.default_rng(seed)
    robot.set_shape(
        amplitude * rng.uniform(-1.0, 1.0, (n_worlds, spec.n_joints)), np.zeros(n_worlds), np.zeros((n_worlds, 2))
    )
    return robot


def fail(robot: SimulatedRobot, joint: int, kind: int, slot: FaultState | None = None, **settings: float) -> None:
    """The fault ``kind`` in joint ``joint`` (from 0) of all worlds."""
    slot = robot.faults if slot is None else slot
    slot.kind[:, joint] = kind
    for name, value in settings.items():
        getattr(slot, name)[:, joint] = value


def wave(robot: SimulatedRobot, time_s: float, amplitude: float = 0.5) -> np.ndarray:
    phase = 1.5 * time_s + 0.7 * np.arange(robot.spec.n_joints)
    return np.tile(amplitude * np.sin(phase), (robot.n_worlds, 1))


def crawl(robot: SimulatedRobot, seconds: float) -> None:
    dt = robot.spec.control_dt_s
    for _ in range(round(seconds / dt)):
        robot.step(wave(robot, robot.state.time_s[0] + dt))


@pytest.mark.parametrize("name", ["resilient_servo", "robo_conda", "muscle", "snakesys"])
def test_a_joint_locked_in_motion_stays_where_it_is_to_1e_9(name: str) -> None:
    robot = make(PRESETS[name])
    fail(robot, 3, LOCKED, onset_s=1.0 + 3 * robot.spec.sim_dt_s)
    crawl(robot, 1.0)
    robot.step(wave(robot, 1.0), n_substeps=3)
    held = robot.joint_angle()[0, 3]
    assert abs(robot.joint_rate()[0, 3]) > 0.05
    for k in range(40):
        robot.step(wave(robot, 1.0 + k * robot.spec.control_dt_s))
        assert abs(robot.joint_angle()[0, 3] - held) < 1e-9
        assert abs(robot.joint_rate()[0, 3]) < 1e-9


def test_a_free_joint_keeps_within_its_stops_and_has_its_viscous_friction_only() -> None:
    robot = make(PRESETS["robo_conda"], amplitude=0.6)
    fail(robot, 6, FREE)
    widest = 0.0
    for _ in range(80):
        crawl(robot, robot.spec.control_dt_s)
        angle = robot.joint_angle()[0, 6]
        widest = max(widest, abs(angle))
        inside = abs(angle) < math.radians(38.0) - 1e-6
        if inside:
            expected = -0.045 * robot.joint_rate()[0, 6]
            assert robot.state.joint_torque[0, 6] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert math.radians(30.0) < widest <= math.radians(38.0) * (1 + 1e-9)


def test_a_weak_joint_has_its_share_of_the_torque_limit() -> None:
    spec = dataclasses.replace(
        RESILIENT_SERVO, actuator=dataclasses.replace(RESILIENT_SERVO.actuator, torque_limit_nm=0.4)
    )
    robot, healthy = make(spec, seed=2), make(spec, seed=2)
    fail(robot, 4, WEAK, strength=0.25)
    torque, full = [], []
    for _ in range(30):
        for one in (robot, healthy):
            one.step(wave(one, one.state.time_s[0] + 0.01, 1.2), n_substeps=1)
        torque.append(abs(robot.state.joint_torque[0]))
        full.append(abs(healthy.state.joint_torque[0, 4]))
    assert np.max(torque, axis=0)[4] == pytest.approx(0.1, rel=1e-6)
    assert np.max(torque) <= 0.4 * (1 + 1e-6) and max(full) > 0.2


@pytest.mark.parametrize("actuator", ["position", "torque"])
def test_a_slow_joint_moves_at_its_share_of_the_speed_limit(actuator: Literal["position", "torque"]) -> None:
    """A servo of 2 rad/s in steps of 1 ms, slow and healthy."""
    servo = ActuatorSpec(actuator, kp=60.0, kd=10.0, speed_limit_rad_s=2.0)
    spec = dataclasses.replace(TWO_LINKS, actuator=servo, sim_dt_s=0.001)
    FaultConfig(kinds=("slow",), n_max=1).check_robot(spec)
    robot = make(spec, 2, amplitude=0.0)
    fail(robot, 0, SLOW, strength=0.3)
    robot.faults.kind[1] = HEALTHY
    robot.step(np.full((2, 1), 1.2), n_substeps=200)
    np.testing.assert_allclose(robot.joint_rate()[:, 0], [0.6, 2.0], rtol=1e-4)


BOTH: dict[str, tuple[dict[str, float], dict[str, float], dict[str, float]]] = {
    "weak and weak": (
        {"kind": WEAK, "strength": 0.5}, {"kind": WEAK, "strength": 0.25}, {"kind": WEAK, "strength": 0.125},
    ),
    "slow and slow": (
        {"kind": SLOW, "strength": 0.5}, {"kind": SLOW, "strength": 0.25}, {"kind": SLOW, "strength": 0.125},
    ),
    "offset and offset": (
        {"kind": OFFSET, "offset_rad": 0.5}, {"kind": OFFSET, "offset_rad": -0.25},
        {"kind": OFFSET, "offset_rad": 0.25},
    ),
    "slipped and slipped": (
        {"kind": SLIPPED, "offset_rad": 0.5}, {"kind": SLIPPED, "offset_rad": -0.25},
        {"kind": SLIPPED, "offset_rad": 0.25},
    ),
    "weak and locked": ({"kind": WEAK, "strength": 0.5}, {"kind": LOCKED}, {"kind": LOCKED}),
    "locked and free": ({"kind": LOCKED}, {"kind": FREE}, {"kind": LOCKED}),
    "healthy and free in bursts": (
        {"kind": HEALTHY}, {"kind": FREE, "period_s": 0.3, "duty": 0.4}, {"kind": FREE, "period_s": 0.3, "duty": 0.4},
    ),
}  # fmt: skip
"""Two faults of a joint, and the one that they are together."""


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("preset", ["resilient_servo", "muscle", "resilient"])
def test_two_faults_of_a_joint_are_one_with_both_effects_to_the_last_bit(preset: str, name: str) -> None:
    first, second, together = ({**fault, "onset_s": 0.33, "end_s": 1.51} for fault in BOTH[name])
    robots = [make(PRESETS[preset]) for _ in range(2)]
    fail(robots[0], 3, **first)  # type: ignore[arg-type]
    fail(robots[0], 3, slot=robots[0].second_faults, **second)  # type: ignore[arg-type]
    fail(robots[1], 3, **together)  # type: ignore[arg-type]
    for robot in robots:
        crawl(robot, 2.0)
    for one, other in zip(robots[0].state, robots[1].state, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_joint_recovers_at_the_fault_s_end() -> None:
    robot, healthy = make(RESILIENT_SERVO), make(RESILIENT_SERVO)
    for joint, kind in enumerate((LOCKED, FREE, WEAK, SLOW, OFFSET)):
        fail(robot, joint, kind, onset_s=1.0, end_s=4.0, strength=0.1, offset_rad=0.3)
    for one in (robot, healthy):
        crawl(one, 3.9)
    assert np.abs(robot.joint_angle() - healthy.joint_angle())[0, [0, 1, 4]].min() > 0.02
    for one in (robot, healthy):
        crawl(one, 6.1)
    np.testing.assert_allclose(robot.joint_angle(), healthy.joint_angle(), atol=0.02)
    assert not robot.failed_now().any()


@pytest.mark.parametrize(
    ("onset", "period", "duty", "jitter"),
    [(0.0, 0.1, 0.5, 0.0), (0.03, 0.07, 0.4, 0.0), (0.05, 0.033, 0.5, 0.0), (-0.4, 0.08, 0.25, 0.0),
     (0.0, 0.1, 0.4, 0.7), (-0.2, 0.09, 0.3, 1.0)],
)  # fmt: skip
def test_bursts_switch_in_the_right_sub_steps(onset: float, period: float, duty: float, jitter: float) -> None:
    """A torque of 0.01 N m on an inertia of 0.02 kg m^2: the rate counts the sub-steps without the fault."""
    robot = make(TWO_LINKS, amplitude=0.0)
    robot.state.time_s[:] = 1.0
    fail(robot, 0, FREE, onset_s=1.0 + onset, period_s=period, duty=duty, jitter=jitter, key=12345)
    acts = []
    for _ in range(100):
        acts.append(bool(acting(robot.faults, robot.state.time_s)[0, 0]))
        before = robot.joint_rate()[0, 0]
        robot.step(np.zeros((1, 1)), np.full((1, 1), 0.01), n_substeps=1)
        gain = robot.joint_rate()[0, 0] - before
        assert gain == pytest.approx(0.0 if acts[-1] else 0.005, abs=2e-6)
    assert 0.1 < np.mean(acts) < 0.8
    single = make(TWO_LINKS, amplitude=0.0)
    single.state.time_s[:] = 1.0
    fail(single, 0, FREE, onset_s=1.0 + onset, period_s=period, duty=duty, jitter=jitter, key=12345)
    single.step(np.zeros((1, 1)), np.full((1, 1), 0.01), n_substeps=100)
    assert single.joint_rate()[0, 0] == pytest.approx(robot.joint_rate()[0, 0], rel=1e-3)


@pytest.mark.parametrize("stop", [math.inf, 1.2])
def test_faults_that_come_and_go_in_free_motion_never_add_energy(stop: float) -> None:
    spec = RobotSpec(
        n_links=8, friction=FrictionSpec(0.5, 5.0), actuator=ActuatorSpec("torque", 0.0, 0.0), joint_stop_rad=stop,
        free_joint_damping_nms_rad=0.02, control_dt_s=0.002, sim_dt_s=0.002,
    )  # fmt: skip
    robot, rng = make(spec, 16, 3, 1.0), np.random.default_rng(3)
    robot.state.link_rate[:] = 2.0 * rng.normal(size=(16, spec.n_links))
    robot.state.centre_vel[:] = rng.normal(size=(16, 2))
    faults, joints = robot.faults, (16, spec.n_joints)
    faults.kind[:] = rng.choice([HEALTHY, LOCKED, FREE], joints)
    faults.onset_s[:] = rng.uniform(0.0, 0.3, joints)
    faults.end_s[:] = faults.onset_s + rng.uniform(0.05, 0.4, joints)
    faults.period_s[:] = np.where(rng.uniform(size=joints) < 0.5, np.inf, 0.06)
    faults.duty[:] = 0.5
    energy = [robot.kinetic_energy()]
    for _ in range(300):
        robot.step(robot.joint_angle())
        energy.append(robot.kinetic_energy())
    gain = np.diff(energy, axis=0) / energy[:-1]
    assert gain.max() < 1e-6
    assert (energy[-1] < 0.8 * energy[0]).all()


@pytest.mark.parametrize("late", [0.25, 0.8])
def test_a_joint_locks_at_the_angle_it_had_at_the_onset_not_at_the_end_of_the_sub_step(late: float) -> None:
    spec = PRESETS["resilient_servo"]
    coarse, fine = make(spec), make(dataclasses.replace(spec, sim_dt_s=spec.sim_dt_s / 20))
    onset = 1.0 + (2.0 + late) * spec.sim_dt_s
    for robot in (coarse, fine):
        fail(robot, 3, LOCKED, onset_s=onset)
        crawl(robot, 2.0)
    rate = 0.5 * 1.5
    error = abs(coarse.joint_angle()[0, 3] - fine.joint_angle()[0, 3])
    assert error < 0.1 * rate * spec.sim_dt_s
