"""Settings that no env can have: one line names the setting, what it is and what was expected."""

from __future__ import annotations

import re
from typing import Any

import pytest

from snake_gym.config import ConfigError
from snake_gym.envs import SnakeVectorEnv

SERVO = "resilient_servo"
FIXED = {"kind": "list", "targets": [[30, 0]]}


def seen(*columns: str) -> dict[str, Any]:
    return {"observation": {"columns": ["standard", *columns]}}


def truth(*columns: str) -> dict[str, Any]:
    return {"observation": {"privileged": list(columns)}}


def varied(name: str, robot: Any = SERVO, **ends: float) -> dict[str, Any]:
    return {"robot": robot, "randomisation": {name: ends}}


def faults(robot: Any = SERVO, **settings: Any) -> dict[str, Any]:
    return {"robot": robot, "faults": settings}


def servo(**settings: Any) -> dict[str, Any]:
    return {"preset": SERVO, "actuator": settings}


def single(robot: Any = SERVO, **more: Any) -> dict[str, Any]:
    """In float32."""
    return {"robot": robot, "precision": "float32", **more}


NO_GAINS = servo(kind="torque", speed_limit_rad_s=".inf", kp=0.0, kd=0.0)
ICE = {"preset": SERVO, "friction": {"tangential_ns_m": 0.0, "normal_ns_m": 0.0}}
NEEDS = "precision is 'float32'; expected 'float64', which "

PLANAR: list[tuple[str, dict[str, Any], str]] = [
    ("Waypoints", {"time_limit_s": 1.05}, "time_limit_s is 1.05; expected a multiple"),
    ("Waypoints", {"robot": {"preset": SERVO, "sim_dt_s": 1e-6}}, "expected an integer from 1 to 100000 (near"),
    ("Waypoints", {"robot": {"preset": SERVO, "joint_stop_rad": 0.3}}, "start.amplitude_rad is 0.349066; expected at"),
    ("Waypoints", {"robot": {"preset": "resilient", "actuator": {"torque_limit_nm": 1.0}}}, "torque_limit_nm is set"),
    ("Waypoints", {"action": {"kind": "pressure"}}, "kind is 'pressure', but resilient_servo has no muscles"),
    ("Waypoints", seen("joint_angel"), "did you mean 'joint_angle'"),
    ("Waypoints", seen("range"), "it needs a task with obstacles"),
    ("Waypoints", seen("phase"), "it needs action.kind"),
    ("Waypoints", seen("tail_leads"), "it needs a residual on a controller that drives both ways"),
    ("Waypoints", seen("cross_track"), "the column cross_track of the observations has no entries"),
    ("Waypoints", seen("muscle_tension"), "it needs a robot with muscles"),
    ("Waypoints", {"faults": {"n_max": 0}, **truth("fault_kind")}, "fault_kind has no entries with this robot"),
    ("Waypoints", truth("randomisation/mass"), "privileged[0] is 'randomisation/mass'; expected one of"),
    ("Waypoints", faults(kinds=["burst_left"]), "resilient_servo has no muscles"),
    ("Waypoints", faults(strengths={"weak": 0.1}), "faults.strengths has a key that is 'weak'; expected one of"),
    ("Waypoints", faults(events=[{"joint": 1}], joints=[2]), "faults.events and faults.joints are both set"),
    ("Waypoints", faults("resilient", kinds=["locked", "slow"]), "faults.kinds has slow, but resilient has no speed"),
    ("Waypoints", {"action": {"kind": "torque"}}, "kind is 'torque', but resilient_servo follows references"),
    ("Waypoints", {"robot": NO_GAINS}, "kind is 'joint_reference', but resilient_servo follows none with kp 0"),
    ("Waypoints", faults("muscle", kinds=["rough"]), "muscle has no torque limit"),
    ("Waypoints", varied("command_delay_s", NO_GAINS, high=0.1), "command_delay_s is set, but robot.actuator.kind is"),
    ("Waypoints", varied("servo_gain", NO_GAINS, low=0.5), "servo_gain is set, but resilient_servo has none"),
    ("Waypoints", varied("patches", ICE, high=0.5), "randomisation.patches is set, but resilient_servo has none"),
    ("Waypoints", varied("backlash_rad", "resilient", high=0.1), "expected 'position' or 'torque'"),
    ("Waypoints", {"robot": "resilient", "costs": {"torque_share": 0.5}}, "resilient has no torque limit"),
    ("Waypoints", single("snakesys"), NEEDS + "Coulomb friction of the ground needs"),
    ("Waypoints", single({"preset": SERVO, "joint_friction_nm": 0.1}), NEEDS + "dry friction of joints needs"),
    ("Waypoints", single(faults={"kinds": ["rough"]}), NEEDS + "dry friction of joints needs"),
    ("ObstacleField", single({"preset": SERVO, "contact": {"model": "rigid"}}), NEEDS + "contact.model 'rigid' needs"),
    ("ObstacleField", {"robot": "resilient"}, "robot.actuator.kind is 'acceleration'; expected 'torque', 'position'"),
    ("Escape", {"goal": {"distance_m": 0.1}}, "goal.distance_m is 0.1; expected at least half the robot's length"),
]
SPATIAL: list[tuple[str, dict[str, Any], str]] = [
    ("Climb", {"pole_height_m": 4.0}, "env.pole_height_m is 4; expected at least 5.08"),
    ("Terrain", {"size_m": 4.0}, "size_m is 4; expected at least 9.28"),
    ("Terrain", {"course": FIXED}, "target up to 30 m away"),
    ("SpatialWaypoints", {"precision": "float32"}, "expected 'float64', in which MuJoCo computes"),
    ("SpatialWaypoints", varied("torque_limit", {"n_joints": 4}, low=0.5), "torque_limit_nm of spatial is inf"),
    ("SpatialWaypoints", {"faults": {"kinds": ["loose"]}}, "faults.kinds has loose; snake_robot_iii can have locked"),
    ("SpatialWaypoints", {"action": {"kind": "torque"}}, "kind is 'torque', but snake_robot_iii follows references"),
    ("SpatialWaypoints", {"action": {"controller": {"kind": "sjc"}}}, "sjc with kind gait; expected multimodal"),
    ("SpatialWaypoints", {"robot": "resilient"}, "spatial robot's YAML file"),
    ("SpatialWaypoints", truth("true_faults"), "privileged"),
    ("SpatialWaypoints", {"start": {"amplitude_rad": 2.0}, "robot": {"joint_stop_rad": 1.6}}, "expected at most"),
]


@pytest.mark.parametrize(("task", "settings", "expected"), PLANAR + SPATIAL)
def test_settings_that_no_env_can_have_are_refused_in_one_line(
    task: str, settings: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(expected)) as refused:
        SnakeVectorEnv(f"SnakeGym/{task}-v0", 2, **settings)
    assert "\n" not in str(refused.value)
