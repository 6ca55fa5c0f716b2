"""CC: eq. 37 on control signals, and the same signals through joint references."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from snake_gym.controllers.cc import Cc, CcConfig, couple
from snake_gym.controllers.sjc import Sjc, SjcConfig
from snake_gym.robot.presets import RESILIENT
from snake_gym.robot.spec import ActuatorSpec, RobotSpec
from tests.controllers.worlds import random_world

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
    np.testing.assert_array_equal(couple(uncoupled), expected)
    assert free.mean() > 0.9
    np.testing.assert_allclose(control(coupled)[free], expected[free], atol=1e-12)
