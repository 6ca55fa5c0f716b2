"""The serpenoid gait: eq. 33 of sibilska2022, its phase and limits; CC: eq. 37, through joint references."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from snake_gym.controllers.cc import Cc, CcConfig
from snake_gym.controllers.serpenoid import Serpenoid, SerpenoidConfig, serpenoid_reference
from snake_gym.controllers.sjc import Sjc, SjcConfig
from snake_gym.robot.presets import RESILIENT
from snake_gym.robot.spec import ActuatorSpec, RobotSpec
from tests.controllers.worlds import N_JOINTS, SPEC, random_world, straight_world

CONFIG = SerpenoidConfig(amplitude_rad=0.5, frequency_rad_s=4.0, phase_shift_rad=0.6, offset_rad=-0.1)


def test_reference_is_the_formula() -> None:
    phase = np.array([0.0, 1.0])
    reference = serpenoid_reference(phase, np.array([0.5, 0.2]), 0.6, N_JOINTS, np.array([-0.1, 0.3]))
    for w, (alpha, phi_o) in enumerate([(0.5, -0.1), (0.2, 0.3)]):
        for i in range(1, N_JOINTS + 1):
            assert reference[w, i - 1] == pytest.approx(alpha * math.sin(phase[w] + (i - 1) * 0.6) + phi_o, abs=1e-14)


def test_commands_follow_the_formula_over_time() -> None:
    controller = Serpenoid(CONFIG, SPEC)
    state = controller.initial_state(3)
    world = straight_world(3)
    for step in range(200):
        phase = controller.phase(state).copy()
        assert ((phase >= 0.0) & (phase < 2.0 * math.pi)).all()
        command = controller.command(*world, state, 0.1)
        expected = serpenoid_reference(np.full(3, 4.0 * 0.1 * step), 0.5, 0.6, N_JOINTS, -0.1)
        np.testing.assert_allclose(command, expected, atol=1e-10)
        np.testing.assert_allclose(command, serpenoid_reference(phase, 0.5, 0.6, N_JOINTS, -0.1), atol=1e-14)


def test_phase_stays_in_range_when_the_wave_runs_backwards() -> None:
    controller = Serpenoid(SerpenoidConfig(frequency_rad_s=-1e-17), SPEC)
    state, world = controller.initial_state(1), straight_world(1)
    controller.command(*world, state, 1.0)
    assert 0.0 <= state["phase"][0] < 2.0 * math.pi


UNEQUAL = replace(
    RESILIENT, actuator=ActuatorSpec("acceleration", tuple(np.linspace(1, 3, 9)), tuple(np.linspace(2, 1, 9)))
)
WIDE = 3.1


@pytest.mark.parametrize("spec", [RESILIENT, UNEQUAL], ids=["equal gains", "a gain for each joint"])
def test_references_give_the_coupled_control_signal(spec: RobotSpec) -> None:
    spec = replace(spec, joint_limit_rad=WIDE)
    measurement, goal = random_world(30)
    kp, kd = spec.joints("actuator.kp"), spec.joints("actuator.kd")

    def control(reference: np.ndarray) -> np.ndarray:
        return kp * (reference - measurement.joint_angle) - kd * measurement.joint_rate

    cc, sjc = Cc(CcConfig(), spec), Sjc(SjcConfig(), spec)
    coupled = cc.command(measurement, goal, cc.initial_state(30), 0.05)
    plain = sjc.command(measurement, goal, sjc.initial_state(30), 0.05)
    free, uncoupled = np.abs(coupled) < WIDE, control(plain)
    expected = uncoupled.copy()
    expected[:, 1:] += 0.5 * uncoupled[:, :-1]
    assert free.mean() > 0.9
    np.testing.assert_allclose(control(coupled)[free], expected[free], atol=1e-12)
