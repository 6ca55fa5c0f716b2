"""The real robot as an env: Gymnasium's own checks, the same spaces, and the same progress as in simulation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import snake_gym  # noqa: F401  registers
from benchmarks.sim_to_real import OPEN, course
from snake_gym.config import ConfigError, dump_yaml
from snake_gym.envs import SnakeVectorEnv
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.robot.connection import ConnectionConfig
from snake_gym.hardware.robot.real_env import RealSnakeEnv
from snake_gym.hardware.robot.robot_loop import CourseConfig, MeasuredCourse
from snake_gym.hardware.robot.run_config import LoopSettings, action_contract, open_loop
from snake_gym.interface.actions import ActionConfig
from snake_gym.interface.policy_file import load_policy
from snake_gym.interface.policy_writing import write_policy
from snake_gym.robot.measurement import centre_offset, chain_angles
from snake_gym.robot.presets import RESILIENT_SERVO

POLICY = "agents/pretrained/resilient_servo_locked_joints"
TARGETS = ((2.0, 0.0), (3.0, 1.5), (1.5, 2.5), (0.0, 1.0), (2.0, 0.0), (5.0, 1.0), (8.0, 4.0), (14.0, 8.0))
WAVE = 0.6 * np.sin(0.5236 * np.arange(9))
UNCLAMPED = dict(zip(("max_speed_rad_s", "max_acceleration_rad_s2"), OPEN, strict=True))


@pytest.fixture
def latch(tmp_path: Path) -> Path:
    return tmp_path / "estop"


def make(latch: Path, **settings: Any) -> RealSnakeEnv:
    connection = {"latch": str(latch), **settings.pop("connection", {})}
    env = gym.make("SnakeGym/Real-v0", connection=connection, **settings).unwrapped
    assert isinstance(env, RealSnakeEnv)
    return env


def test_gymnasium_s_checker_has_nothing_to_say(latch: Path) -> None:
    env = make(latch, time_limit_s=2.0)
    check_env(env, skip_render_check=True, skip_close_check=True)
    env.close()
    env.close()


def test_spaces_and_observations_are_those_of_the_simulated_env(latch: Path) -> None:
    action = {"kind": "residual", "controller": {"kind": "cc"}, "estimator": {"on": True}}
    real = make(latch, action=action, course={"targets": TARGETS[:1]})
    simulated = gym.make(
        "SnakeGym/Waypoints-v0", action=action, course={"kind": "list", "targets": TARGETS[:1]},
        start={"amplitude_rad": 0.0, "random": False}, faults={"n_max": 0},
    )  # fmt: skip
    assert (real.observation_space, real.action_space) == (simulated.observation_space, simulated.action_space)
    first, _ = real.reset()
    assert real.loop.decoder.estimator.slips._models  # loaded before there is torque, as it may take long
    expected, _ = simulated.reset(seed=0)
    # An emulated robot starts with its head at the origin, the simulated one with its centre there.
    moved = [real.loop.layout.fields["distance"].columns.start]
    np.testing.assert_allclose(np.delete(first, moved), np.delete(expected, moved), atol=2e-3)
    real.close()


def play(env: gym.Env[Any, Any]) -> Iterator[dict[str, Any]]:
    """The infos of an episode of the shipped policy."""
    policy, (obs, _) = load_policy(POLICY), env.reset(seed=0)
    done = False
    while not done:
        action, _ = policy.predict(obs)
        obs, _, terminated, truncated, info = env.step(action)
        yield info
        done = terminated or truncated
    env.close()


def progress_in_simulation(targets: list[list[float]], seconds: float) -> float:
    plays_in = load_policy(POLICY).env_config
    env = gym.make(
        "SnakeGym/Waypoints-v0", action=dict(plays_in["action"]), observation=dict(plays_in["observation"]),
        course={"kind": "list", "targets": targets}, time_limit_s=seconds, faults={"n_max": 0},
        start={"amplitude_rad": 0.6, "phase_shift_rad": 0.5236, "random": False},
    )  # fmt: skip
    return float(list(play(env))[-1]["progress_m"])


def progress_on_servos(latch: Path, targets: list[list[float]], seconds: float) -> float:
    # The head is where it has to be for the centre of mass to lie at the origin.
    offset = centre_offset(RESILIENT_SERVO, chain_angles(WAVE[None], np.zeros(1)))[0]
    emulated = {"joint_angle_rad": WAVE.tolist(), "point_xy_m": (-offset).tolist()}
    env = make(
        latch, policy=POLICY, course={"targets": targets}, safety=UNCLAMPED, time_limit_s=seconds,
        connection={"port": "memory", "emulated": emulated},
    )  # fmt: skip
    for info in play(env):
        assert info["sample_age_s"] < 0.02
    assert info["stop_reason"] == ""
    return float(info["progress_m"])


def test_the_shipped_policy_makes_the_same_progress_through_driver_and_bytes(latch: Path) -> None:
    """More and longer courses, and in real time: ``benchmarks/sim_to_real.py``."""
    targets, seconds = course(0), 12.0
    expected = progress_in_simulation(targets, seconds)
    assert expected > 0.3 * seconds
    assert progress_on_servos(latch, targets, seconds) == pytest.approx(expected, rel=0.03)


def test_options_of_a_reset_are_targets(latch: Path) -> None:
    env = make(latch, time_limit_s=2.0)
    with pytest.raises(ConfigError, match="a list of 2"):
        env.reset(options={"targets": [1.0, 0.0]})
    assert env.loop.measurement is None  # refused before the robot is brought up
    env.reset(options={"targets": np.array([[2.0, 0.0], [3.0, 1.0]])})
    assert env.loop.course.targets_xy.tolist() == [[2.0, 0.0], [3.0, 1.0]]
    env.close()


def test_what_a_policy_was_shown_and_no_real_robot_shows_is_refused_at_the_start(latch: Path, tmp_path: Path) -> None:
    env = SnakeVectorEnv("SnakeGym/ObstacleField-v0", 2)
    layer = np.zeros((env.core.decoder.size, env.core.layout.size)), None
    file = write_policy(tmp_path / "policy", env, [layer])
    opened = len(os.listdir("/proc/self/fd"))
    course = {"tracked_point": env.core.task.tracked_point}
    with pytest.raises(ConfigError, match=r"^the observation shows contact_force, range.*; expected .*joint_angle"):
        make(latch, policy=str(file), course=course)
    with pytest.raises(ConfigError, match=r"^the observation shows next_target_1, which a real robot does"):
        make(latch, observation={"columns": ["standard", "next_target_1"]})
    assert len(os.listdir("/proc/self/fd")) == opened


def test_bad_actions_are_refused_and_a_stop_ends_the_episode_and_forbids_the_next(latch: Path) -> None:
    env = make(latch)
    env.reset()
    for bad in (np.full(9, np.nan), np.zeros(4)):
        with pytest.raises(ValueError, match="action"):
            env.step(bad)
    env.step(env.action_space.sample())
    EmergencyStop(latch).trip("test")
    with pytest.warns(UserWarning, match="emergency stop: test"):
        _, _, terminated, truncated, info = env.step(env.action_space.sample())
    assert (terminated, truncated) == (False, True)
    assert "emergency stop: test" in info["stop_reason"]
    with pytest.raises(BringUpError, match="emergency stop"):
        env.reset()
    EmergencyStop(latch).clear()
    env.reset()
    env.close()


def test_a_lost_pose_degrades_and_holds_but_does_not_crash(latch: Path) -> None:
    env = make(latch, loop={"pose_timeout_s": 1.0}, course={"targets": TARGETS})
    env.reset()
    for _ in range(5):
        env.step(np.full(9, 0.2, np.float32))
    env.loop.pose.lost = True  # type: ignore[attr-defined]
    infos = [env.step(np.full(9, -0.4, np.float32))[4] for _ in range(12)]
    assert not infos[0]["pose_valid"]
    assert not infos[2]["held"]
    assert infos[-1]["held"]
    np.testing.assert_array_equal(infos[-1]["wanted_reference_rad"], infos[-2]["wanted_reference_rad"])
    assert infos[-1]["stop_reason"] == ""
    env.loop.pose.lost = False  # type: ignore[attr-defined]
    env.step(np.zeros(9, np.float32))
    assert not env.step(np.zeros(9, np.float32))[4]["held"]
    env.close()


def test_a_policy_drives_the_robot_that_is_named_and_every_servo_gets_its_own_speed_limit(latch: Path) -> None:
    actuator = replace(RESILIENT_SERVO.actuator, speed_limit_rad_s=(0.5,) * 8 + (6.0,))
    dump_yaml(replace(RESILIENT_SERVO, actuator=actuator), latch.parent / "mine.yaml")
    env = make(latch, policy=POLICY, robot=str(latch.parent / "mine.yaml"))
    env.reset()
    env.step(np.zeros(env.action_space.shape, np.float32))
    told = env.loop.body.bus.read_block(range(1, 10), "goal_speed").values  # type: ignore[attr-defined]
    assert [values["goal_speed"] for values in told.values()] == [326] * 8 + [3911]
    env.close()


def test_an_episode_that_begins_after_a_pause_sees_the_robot_as_it_is(latch: Path) -> None:
    contract = action_contract(ActionConfig(), RESILIENT_SERVO, MeasuredCourse(CourseConfig(), RESILIENT_SERVO))
    loop, connected = open_loop(contract, LoopSettings(connection=ConnectionConfig(latch=str(latch))))
    loop.reset()
    loop.step(np.full(9, 0.6))  # the joints are still on their way when it ends
    before = loop.body.run_until(loop.body.clock.now()).joint_angle
    connected.emulated.clock.sleep(0.4)
    loop.reset()
    assert loop.measurement is not None
    angle = connected.emulated.plant.joint_angle()
    assert np.abs(angle - before).max() > 0.05
    np.testing.assert_allclose(loop.measurement.joint_angle[0], angle, atol=0.02)
    assert loop.step(np.zeros(9)).stop_reason is None
    connected.close()
