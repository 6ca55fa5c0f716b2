"""The detector on joints that follow a known law: what it finds, how soon, and what it must not find."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from snake_gym.controllers.fault_detection import FREE, HEALTHY, LOCKED, WEAK, FaultDetector, FaultDetectorConfig
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.presets import PRESETS
from snake_gym.robot.spec import FloatArray, RobotSpec
from tests.controllers.worlds import N_JOINTS, SPEC


class Joints:
    """Joints that follow sines by the nominal law, or fail from ``onset_s`` on."""

    def __init__(self, spec: RobotSpec, kinds: FloatArray, onset_s: float, noise_rad: float = 0.0) -> None:
        self.spec, self.kinds, self.onset_s, self.noise_rad = spec, kinds, onset_s, noise_rad
        self.angle, self.rate = np.zeros_like(kinds), np.zeros_like(kinds)
        self.time_s = 0.0
        self.rng = np.random.default_rng(0)

    def measure(self) -> Measurement:
        w = len(self.angle)
        noise = self.noise_rad * self.rng.normal(size=self.angle.shape)
        return Measurement(self.angle + noise, self.rate.copy(), np.zeros((w, 2)), np.zeros(w), np.ones(w, dtype=bool))

    def reference(self, omega: float) -> FloatArray:
        return 0.5 * np.sin(omega * self.time_s + 0.5 * np.arange(self.kinds.shape[1])) * np.ones_like(self.kinds)

    def step(self, reference: FloatArray, dt_s: float) -> None:
        kp, kd = self.spec.joints("actuator.kp"), self.spec.joints("actuator.kd")
        failed = self.time_s >= self.onset_s
        h = dt_s / 20
        for _ in range(20):
            if self.spec.actuator.kind == "acceleration":
                rate = self.rate + h * (kp * (reference - self.angle) - kd * self.rate)
            else:
                fastest = self.spec.joints("actuator.speed_limit_rad_s")
                rate = np.clip(0.95 * kp / kd * (reference - self.angle), -fastest, fastest)
            if failed:
                shaken = 1.5 * np.sin(1.7 * (self.time_s + h) + 2.0 * np.arange(self.kinds.shape[1]))
                rate = np.where(self.kinds == LOCKED, 0.0, np.where(self.kinds == FREE, shaken, rate))
            self.rate = rate
            self.angle = self.angle + h * rate
            self.time_s += h


def watch(
    joints: Joints,
    time_s: float,
    omega: float = 3.0,
    config: FaultDetectorConfig | None = None,
    dt_s: float = 0.2,
    given: Callable[[int, FloatArray], FloatArray] = lambda step, reference: reference,
) -> FloatArray:
    """Estimates (T, W, J); ``given`` is what the joints get of a reference."""
    detector = FaultDetector(config or FaultDetectorConfig(), joints.spec)
    state = detector.initial_state(len(joints.kinds))
    seen = []
    for step in range(round(time_s / dt_s)):
        seen.append(detector.update(state, joints.measure(), dt_s).copy())
        reference = joints.reference(omega)
        detector.command_given(state, reference)
        joints.step(given(step, reference), dt_s)
    return np.array(seen)


def kinds_of(*codes: float) -> FloatArray:
    """One failed joint in each world, joint 4."""
    kinds = np.zeros((len(codes), N_JOINTS))
    kinds[:, 3] = codes
    return kinds


@pytest.mark.parametrize(("kind", "within_s"), [(LOCKED, 1.5), (FREE, 2.5)])
def test_a_failed_joint_is_found_and_named(kind: float, within_s: float) -> None:
    seen = watch(Joints(SPEC, kinds_of(kind, HEALTHY), 10.0), 30.0)
    assert (seen[:50] == HEALTHY).all()
    assert (seen[50 + round(within_s / 0.2) :, 0, 3] != HEALTHY).all()
    assert (seen[-50:, 0, 3] == kind).mean() > 0.8
    assert (np.delete(seen[:, 0], 3, axis=1) == HEALTHY).all()
    assert (seen[:, 1] == HEALTHY).all()


def test_a_joint_that_works_again_is_healthy_again() -> None:
    joints = Joints(SPEC, kinds_of(LOCKED), 0.0)

    def repair(step: int, reference: FloatArray) -> FloatArray:
        joints.onset_s = 1e9 if step >= 50 else 0.0
        return reference

    estimates = watch(joints, 20.0, given=repair)[:, 0, 3].tolist()
    assert estimates[49] == LOCKED
    assert estimates[-1] == HEALTHY
    assert estimates.index(HEALTHY, 49) < 70


def test_a_joint_that_is_asked_for_nothing_tells_nothing() -> None:
    seen = watch(Joints(SPEC, kinds_of(LOCKED), 0.0), 20.0, omega=0.0)
    assert (seen[-1, 0, 4:] == HEALTHY).all()


@pytest.mark.parametrize("noise_rad", [0.005, 0.02])
def test_noise_that_it_knows_of_raises_no_alarm(noise_rad: float) -> None:
    config = FaultDetectorConfig(angle_noise_rad=noise_rad)
    seen = watch(Joints(SPEC, kinds_of(HEALTHY, LOCKED), 10.0, noise_rad), 120.0, config=config)
    assert (seen[:, 0] != HEALTHY).mean() < 1e-3
    assert (seen[70:, 1, 3] == LOCKED).mean() > 0.95


def test_a_slack_joint_that_still_follows_is_weak() -> None:
    """It makes a quarter of the motion, in step with what is asked."""
    share = 1.0 - 0.75 * (kinds_of(WEAK) == WEAK)
    seen = watch(Joints(SPEC, kinds_of(WEAK), 1e9), 20.0, given=lambda _, reference: reference * share)
    assert seen[-1, 0, 3] == WEAK


def test_a_robot_whose_actuators_give_accelerations() -> None:
    spec = PRESETS["resilient"]
    seen = watch(Joints(spec, kinds_of(LOCKED, HEALTHY), 15.0), 45.0, omega=0.9, dt_s=0.05)
    assert (seen[:300] == HEALTHY).all()
    assert (seen[-1, 0] == kinds_of(LOCKED)[0]).all()
    assert (seen[:, 1] == HEALTHY).all()
