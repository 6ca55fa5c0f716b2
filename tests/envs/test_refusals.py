"""Settings that no env can have: one line names the setting, what it is and what was expected."""

from __future__ import annotations

import re
from typing import Any

import pytest

from snake_gym.config import ConfigError
from snake_gym.envs import SnakeVectorEnv

SERVO = "resilient_servo"
CORNER_TWICE = [[0, 0], [1, 0], [1, 0]]
FIXED = {"kind": "list", "targets": [[30, 0]]}


def seen(*columns: str) -> dict[str, Any]:
    return {"observation": {"columns": ["standard", *columns]}}


def truth(*columns: str) -> dict[str, Any]:
    return {"observation": {"privileged": list(columns)}}


def varied(name: str) -> dict[str, Any]:
    return {"randomisation": {name: {"low": 0.5, "high": 1.0}}}


def breaking(*kinds: str, **more: Any) -> dict[str, Any]:
    return {"faults": {"kinds": kinds, "n_max": 1, **more}}


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("Waypoints", {"action": {"kind": "gaits"}}, "env.action.kind is 'gaits'; expected one of"),
    ("Waypoints", {"time_limit_s": 1.05}, "time_limit_s is 1.05; expected a multiple"),
    (
        "Waypoints",
        {"robot": {"preset": SERVO, "sim_dt_s": 1e-6}},
        "expected an integer from 1 to 100000 (near",
    ),
    ("Waypoints", {"robot": {"preset": SERVO, "joint_stop_rad": 0.3}}, "start.amplitude_rad is 0.349066; expected at"),
    ("Waypoints", {"robot": {"preset": SERVO, "actuator": {"kind": "torque", "kd": 0.0}}}, "actuator.kd is 0"),
    ("Waypoints", seen("joint_angel"), "did you mean 'joint_angle'"),
    ("Waypoints", seen("distance"), "named twice"),
    ("Waypoints", seen("range"), "it needs a task with obstacles"),
    ("Waypoints", seen("phase"), "it needs action.kind"),
    ("Waypoints", seen("tail_leads"), "it needs a residual on a controller that drives both ways"),
    ("Waypoints", seen("cross_track"), "the column cross_track of the observations has no entries"),
    ("Waypoints", {"faults": {"n_max": 0}, **truth("fault_kind")}, "fault_kind, of which there is nothing here"),
    ("Waypoints", truth("randomisation/mass"), "privileged[0] is 'randomisation/mass'; expected one of"),
    ("Waypoints", seen("muscle_tension"), "it needs a robot with muscles"),
    ("Waypoints", breaking("burst_left"), "resilient_servo has no muscles"),
    ("Waypoints", {"action": {"kind": "pressure"}}, "kind is 'pressure', but resilient_servo has no muscles"),
    (
        "Waypoints",
        {"action": {"kind": "pressure"}, **breaking("offset")},
        "faults has offset, which acts on references",
    ),
    ("Waypoints", {"action": {"kind": "torque"}}, "kind is 'torque', but resilient_servo follows references"),
    ("Waypoints", {"course": {"kind": "list"}}, "targets is empty"),
    ("Waypoints", {"course": {"kind": "paper", "targets": [[1, 1]]}}, "targets is given for course.kind paper"),
    ("Waypoints", {"course": {"n_targets": 4, "success_targets": 5}}, "success_targets is 5; expected <= 4"),
    ("Waypoints", {"robot": "resilient", "costs": {"torque_share": 0.5}}, "resilient has no torque limit"),
    ("Velocity", {"command": {"min_speed_m_s": 0.5}}, "min_speed_m_s is 0.5, max_speed_m_s 0.3"),
    ("Velocity", {"command": {"min_interval_s": 0.001}}, "min_interval_s is 0.001 for time_limit_s 60"),
    ("Escape", {"robot": {"link_radius_m": 0}}, "link_radius_m is 0; expected at least 0.001 among obstacles"),
    ("Escape", {"goal": {"distance_m": 0.1}}, "goal.distance_m is 0.1; expected at least half the robot's length"),
    ("PathFollow", {"path": {"kind": "recorded"}}, "path.points has 0 entries"),
    ("PathFollow", {"path": {"kind": "recorded", "points": CORNER_TWICE}}, "points[1] is [1.0, 0.0], as the next one"),
    ("PathFollow", {"path": {"kind": "line", "closed": True}}, "path.closed is given for path.kind line"),
    ("PathFollow", {"path": {"length_m": 1e4, "bend_every_m": 1.0}}, "bend_every_m is 1 for length_m 10000"),
    (
        "PathFollow",
        {"path": {"kind": "recorded", "file": "no.csv"}},
        "(No such file or directory); expected a CSV",
    ),
    ("Terrain", {"size_m": 4.0}, "size_m is 4; expected at least 9.28"),
    ("Terrain", {"course": FIXED}, "target up to 30 m away"),
    ("SpatialWaypoints", varied("friction_across"), "friction_across is set"),
    ("SpatialWaypoints", {**varied("torque_limit"), "robot": {"n_joints": 4}}, "torque_limit_nm of spatial is inf"),
    ("SpatialWaypoints", {"costs": {"contact_force_n": 5.0}}, "contact_force_n is set"),
    ("SpatialWaypoints", breaking("loose"), "env.faults.kinds has loose; snake_robot_iii can have locked"),
    ("SpatialWaypoints", breaking("locked", "weak", second_share=0.5), "second_share is 0.5; expected one"),
    ("SpatialWaypoints", {"action": {"controller": {"kind": "multimodal", "guided": True}}}, "guided is true"),
    ("SpatialWaypoints", {"action": {"controller": {"kind": "sjc"}}}, "sjc with kind gait; expected multimodal"),
    ("SpatialWaypoints", {"robot": {"link_inertia_kgm2": [1.0, 0.1, 0.1]}}, "[1.0, 0.1, 0.1], which no body"),
    ("SpatialWaypoints", {"robot": {"actuator": {"torque_constant_nm_a": 2.0}}}, "torque_constant_nm_a is set"),
    ("SpatialWaypoints", {"robot": {"actuator": {"kind": "torque"}}}, "actuator.kind is 'torque'; expected 'position'"),
    ("SpatialWaypoints", {"robot": {"actuator": {"backlash_rad": 0.1}}}, "actuator.backlash_rad is set"),
    ("SpatialWaypoints", {"robot": {"joint_stop_rad": 0.5}}, "expected at most joint_stop_rad, 0.5"),
    ("SpatialWaypoints", {"robot": {"head_joint": "pitch", "wheels": {"pairs": True}}}, "wheels are below yaw links"),
    ("SpatialWaypoints", {"robot": "resilient"}, "spatial robot's YAML file"),
    ("SpatialWaypoints", truth("true_faults"), "privileged"),
    ("SpatialWaypoints", {"start": {"amplitude_rad": 2.0}, "robot": {"joint_stop_rad": 1.6}}, "expected at most"),
]


@pytest.mark.parametrize(("task", "settings", "expected"), REFUSED)
def test_settings_that_no_env_can_have_are_refused_in_one_line(
    task: str, settings: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(expected)) as refused:
        SnakeVectorEnv(f"SnakeGym/{task}-v0", 2, **settings)
    assert "\n" not in str(refused.value)
