"""The vector env against its own checker, Gymnasium's rules and the single env."""

from typing import Any

import pytest
from gymnasium.vector import AutoresetMode

import snake_gym  # noqa: F401  (registers)
from snake_gym.config import load_yaml
from snake_gym.envs import SnakeVectorEnv, make_waypoints
from snake_gym.interface.observations import FURTHER, OF_MUSCLES
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.simulation.fault_kinds import kinds_of
from tests.envs.vector_checker import assert_same, check_vector_env, spread_ends_at_reset

RANDOMISED = {
    **load_yaml("configs/env/randomised_servo.yaml")["randomisation"], "friction_turning": {"low": 0.5, "high": 2.0},
    "pose_loss_hz": {"high": 2.0}, "push_hz": {"high": 2.0},
}  # fmt: skip
ESCAPE = {**load_yaml("configs/env/escape.yaml"), "time_limit_s": 4.0}
ANY_TIME = [name for name in FURTHER if name not in ("remaining_time", "fault_probability")]
"""Columns that do not tell when an episode ends: some of the compared ones are cut."""
EVERY_FAULT: dict[str, Any] = {
    "faults": {
        "n_min": 4, "n_max": 7, "kinds": kinds_of("joint", RESILIENT_SERVO), "second_share": 0.6, "onset_max_s": 2.0,
        "intermittent_share": 0.5, "jitter": [0.0, 1.0], "duty": [0.3, 0.9], "weak_strength": [0.1, 0.5],
        "offset_rad": [0.1, 0.4], "duration_s": 0.5, "duration_max_s": 3.0, "strengths": {"overload": [0.01, 0.03]},
    },
    "sensors": {"encoder_faults": {"n_max": 2, "kinds": ["dead", "biased", "noisy"], "bias_rad": [0.1, 0.3]}},
    "randomisation": {"command_delay_s": {"low": 0.01, "high": 0.133}},
}  # fmt: skip
SINGLE = [kind for kind in kinds_of("joint") if kind.endswith(("_left", "_right"))]
CHECKED: dict[str, tuple[str, dict[str, Any]]] = {
    "gait": (
        "Waypoints", {"action": {"kind": "gait"}, "sensors": {"angle_noise_rad": 0.01, "position_noise_m": 0.01},
                      "robot": {"preset": "resilient_servo", "actuator": {"delay_s": 0.33}}},
    ),
    "history": (
        "Waypoints",
        {"action": {"kind": "residual", "controller": {"tuned": "fault_aware"}}, "faults": {"n_max": 3},
         "observation": {"columns": ["standard", *ANY_TIME], "history": 3}, "sensors": {"position_noise_m": 0.01},
         "randomisation": {"pose_loss_hz": {"high": 1.0}, "pose_outage_s": {"high": 1.0}}},
    ),
    "every fault": ("Waypoints", EVERY_FAULT),
    "muscles": (
        "PathFollow",
        {"robot": "muscle", "action": {"kind": "pressure"}, "observation": {"columns": ["standard", *OF_MUSCLES]},
         "faults": {"n_min": 2, "n_max": 5, "kinds": SINGLE, "second_share": 0.5, "onset_max_s": 1.0}},
    ),
    "muscles under a gait": (
        "PathFollow",
        {"robot": "muscle", "faults": {"n_min": 2},
         "action": {"kind": "residual", "controller": {"kind": "speed"}, "pressure_range": 0.3, "pace_range": 0.5}},
    ),
    "every fault of wheels": ("Waypoints", {**EVERY_FAULT, "robot": "robo_conda"}),
    "float32": ("Waypoints", {"faults": {"n_max": 3}, "precision": "float32"}),
    "joint_reference": (
        "Waypoints",
        {"faults": {"n_min": 1, "n_max": 2, "kinds": ["locked", "free", "weak"], "onset_max_s": 4.0, "reveal": True},
         "course": {"kind": "list", "targets": [[0.02, 0.0], [0.0, 0.05]], "radius_m": 0.2, "tracked_point": "head"}},
    ),
    "randomised": (
        "Waypoints",
        {"faults": {"n_max": 3, "kinds": ["locked", "free", "weak"], "onset_max_s": 3.0}, "randomisation": RANDOMISED,
         "robot": {"preset": "resilient_servo", "friction": {"rotational_nms_rad": 0.01}}},
    ),
    "targets ahead": ("Waypoints", {"course": {"lookahead": 3, "tracked_point": "head"}, "action": {"kind": "gait"}}),
    "lap": (
        "PathFollow",
        {"path": {"kind": "circle", "radius_m": 0.02}, "faults": {"n_max": 3}, "sensors": {"position_noise_m": 0.01}},
    ),
    "schedule": (
        "PathFollow",
        {"follow": {"speed_m_s": 0.1, "tracked_point": "head", "preview_m": []}, "robot": "resilient",
         "time_limit_s": 1.0, "action": {"kind": "residual", "controller": {"kind": "cpg"}}},
    ),
    "commands": (
        "Velocity",
        {"command": {"min_interval_s": 0.3, "max_interval_s": 1.0, "tracked_point": "head"}, "faults": {"n_max": 3},
         "action": {"kind": "residual", "controller": {"kind": "cc"}}, "sensors": {"position_noise_m": 0.01}},
    ),
    "near goal": (
        "ObstacleField",
        {"field": {"kind": "gates", "goal_distance_m": 3.2, "n_turns": 1}, "action": {"kind": "gait"},
         "goal": {"radius_m": 3.15, "guidance": "goal", "tracked_point": "head"},
         "contact_sensor": {"noise_n": 1.0, "threshold_n": 0.5},
         "range_scan": {"noise_m": 0.01, "dropout": 0.1, "n_beams": 5},
         "faults": {"n_min": 1, "n_max": 2, "kinds": ["locked", "free", "weak"], "onset_max_s": 4.0, "reveal": True}},
    ),
    "varied thicket": (
        "Escape",
        {**ESCAPE, "action": {"kind": "gait"}, "difficulty": 0.6,
         "randomisation": {"link_length": {"low": 0.95, "high": 1.05}, "mass": {"low": 0.8}},
         "costs": {"heat_share": 0.2, "torque_share": 0.5, "contact_force_n": 1.0, "joint_limit_share": 0.3}},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKED)
def test_checker_passes(name: str) -> None:
    task, settings = CHECKED[name]
    config = {"time_limit_s": 4.0, **settings}
    check_vector_env(
        lambda n, mode: spread_ends_at_reset(SnakeVectorEnv(f"SnakeGym/{task}-v0", n, mode, config=config))
    )


def test_checker_finds_a_shared_random_stream() -> None:
    """The checker must be able to fail: it catches worlds that influence each other."""

    def make(n: int, mode: AutoresetMode) -> object:
        env = make_waypoints(n, {"time_limit_s": 4.0}, mode)
        uniform = env.core.streams["start"].uniform
        env.core.streams["start"].uniform = lambda count, rows: uniform(count, rows) / n  # type: ignore[method-assign]
        return env

    with pytest.raises(AssertionError, match="world 0 begins differently alone"):
        check_vector_env(make)


def test_lean_infos_are_some_of_the_infos_but_all_of_them_at_the_end() -> None:
    options: dict[str, Any] = {"num_envs": 3, "autoreset_mode": "SAME_STEP", "time_limit_s": 0.4}
    envs = [SnakeVectorEnv(**options, lean_infos=lean) for lean in (True, False)]
    for env in envs:
        env.reset(seed=3)
    for _ in range(2):
        few, every = (env.step(env.action_space.high) for env in envs)
        assert_same(few[:4], every[:4], "the step")
        assert_same(few[4], {name: every[4][name] for name in few[4]}, "the infos")
    weighted = {f"reward/{name}" for name in envs[0].core.weights}
    assert few[4].keys() == {"speed_m_s", *weighted, "final_obs", "_final_obs", "final_info", "_final_info"}
