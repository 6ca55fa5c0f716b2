"""What a simulated robot, its faults, sensors and surroundings cannot be: one line names the setting."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from snake_gym.config import ConfigError, build
from snake_gym.envs import ObstacleFieldConfig, WaypointsConfig
from snake_gym.envs.core import SnakeCore

SERVO = "resilient_servo"


def faults(robot: Any = SERVO, **settings: Any) -> dict[str, Any]:
    return {"robot": robot, "faults": settings}


def event(**settings: Any) -> dict[str, Any]:
    return faults(events=[{"joint": 2, **settings}])


def encoders(**settings: Any) -> dict[str, Any]:
    return {"sensors": {"encoder_faults": settings}}


def varied(name: str, robot: Any = SERVO, **ends: float) -> dict[str, Any]:
    return {"robot": robot, "randomisation": {name: ends}}


def servo(**settings: Any) -> dict[str, Any]:
    return {"preset": SERVO, "actuator": settings}


TORQUE = servo(kind="torque", speed_limit_rad_s=".inf")
NO_GAINS = servo(kind="torque", speed_limit_rad_s=".inf", kp=0.0, kd=0.0)
ICE = {"preset": SERVO, "friction": {"tangential_ns_m": 0.0, "normal_ns_m": 0.0}}
LATE = {"command_delay_s": {"high": 1.0}, "command_jitter_s": {"high": 0.1}}

REFUSED: list[tuple[dict[str, Any], str]] = [
    (faults(n_min=3, n_max=2), "n_min is 3, n_max 2"),
    (faults(onset_max_s=math.inf), "onset_max_s is inf"),
    (faults(duration_s=5.0, duration_max_s=4.0), "duration_s is 5, duration_max_s 4"),
    (faults(weak_strength=[0.4, 0.2]), "weak_strength is [0.4, 0.2]; expected [low, high] with low <= high"),
    (faults(strengths={"weak": 0.1}), "faults.strengths has a key that is 'weak'; expected one of"),
    (faults(recovering_share=0.5), "faults.recovering_share is 0.5, but faults.duration_s is inf"),
    (faults(second_share=0.5), "faults.second_share is 0.5"),
    (faults(events=[{"joint": 1}], joints=[2]), "faults.events and faults.joints are both set"),
    (faults(joints=[2, 2]), "each joint once"),
    (faults(n_max=10), "n_max is 10; expected at most 9"),
    (faults(events=[{"joint": 4}] * 3), "expected each joint at most twice"),
    (faults("resilient", kinds=["locked", "slow"]), "faults.kinds has slow, but resilient has no speed limit"),
    (faults("muscle", kinds=["rough"]), "muscle has no torque limit"),
    (faults("resilient", kinds=["rough"]), "resilient has no torque limit"),
    (faults("muscle", kinds=["loose"]), "muscle has no position or torque servo"),
    (event(strength=0.0), "events[0].strength is 0"),
    (encoders(kinds=["locked"]), "sensors.encoder_faults.kinds[0] is 'locked'"),
    (encoders(events=[{"joint": 10}]), "encoder_faults.events has joint 10; expected 1 to 9"),
    (varied("mass", low=2.0), "randomisation.mass.low is 2, high 1; expected low <= high"),
    (varied("push_hz", high=1.0), "push_m_s is null, but push_hz is set; expected both or none"),
    (varied("pose_jitter_s", high=0.3), "pose_jitter_s.high is 0.3; expected at most the robot's control_dt_s, 0.2"),
    ({"robot": SERVO, "randomisation": LATE}, "at most 1 s with"),
    (varied("command_delay_s", TORQUE, high=0.1), "command_delay_s is set, but robot.actuator.kind is 'torque'"),
    (varied("servo_gain", NO_GAINS, low=0.5), "servo_gain is set, but resilient_servo has none"),
    (varied("patches", ICE, high=0.5), "randomisation.patches is set, but resilient_servo has none"),
    (varied("backlash_rad", "resilient", high=0.1), "expected 'position' or 'torque'"),
    ({"robot": servo(delay_s=0.1, kind="torque")}, "expected 'position'"),
    ({"robot": {"preset": "resilient", "actuator": {"torque_limit_nm": 1.0}}}, "actuator.torque_limit_nm is set, but"),
    (
        {"robot": {"preset": "resilient", "actuator": {"speed_limit_rad_s": 1}}},
        "speed_limit_rad_s is set, but robot",
    ),
    ({"robot": "resilient", "field": {}}, "robot.actuator.kind is 'acceleration'; expected 'torque', 'position' or"),
    ({"contact_sensor": {"threshold_n": 9.0, "limit_n": 3.0}}, "limit_n is 3; expected > threshold_n 9"),
]


@pytest.mark.parametrize(("settings", "expected"), REFUSED)
def test_what_cannot_be_simulated_is_refused_in_one_line(settings: dict[str, Any], expected: str) -> None:
    kind = ObstacleFieldConfig if {"field", "contact_sensor"} & settings.keys() else WaypointsConfig
    with pytest.raises(ConfigError, match=re.escape(expected)) as refused:
        SnakeCore(build(kind, settings, "env"), 1)
    assert "\n" not in str(refused.value)
