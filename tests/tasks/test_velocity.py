"""Commands of speed and heading: when they come, and how errors and tracking follow from a motion made by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from snake_gym.config import build
from snake_gym.envs import SnakeVectorEnv
from snake_gym.physics.state import zero_state
from snake_gym.robot.catalogue import load_robot
from snake_gym.tasks.velocity import CommandConfig, Velocity, VelocityRewardConfig
from tests.tasks.by_hand import begin, evaluate, mean_link_angle

SPEC = load_robot("resilient_servo")
VELOCITY = "SnakeGym/Velocity-v0"
DT = SPEC.control_dt_s


def make(n_worlds: int = 1, heading: float = 0.0, n_commands: int = 9, **settings: Any) -> Velocity:
    command = build(CommandConfig, settings)
    task = Velocity(command, VelocityRewardConfig(), SPEC, n_worlds, n_commands)
    begin(task, heading, command=command)
    return task


def drive(task: Velocity, velocity: Any, n_steps: int, first: int = 0) -> dict[str, Any]:
    """Move at a constant velocity, and return the terms of the last step."""
    terms: dict[str, Any] = {}
    for i in range(first, first + n_steps):
        state = zero_state(1, SPEC.n_links)
        state.centre_xy[:] = np.array(velocity) * DT * (i + 1)
        state.time_s[:] = DT * (i + 1)
        terms, complete = evaluate(task, np.array([velocity]) * DT * i, state, np.full((1, 9), 0.5))
        assert not complete.any()
    return terms


STRAIGHT = {"min_speed_m_s": 0.2, "max_speed_m_s": 0.2, "max_turn_rad": 0.0}


def test_commands_are_in_their_ranges_and_come_in_time() -> None:
    task = make(500, heading=1.0, min_interval_s=2.0, max_interval_s=5.0, max_turn_rad=0.7)
    given = task.scenario
    first_s, heading, speed = (given[f"command_{name}"] for name in ("begin_s", "heading_rad", "speed_m_s"))
    wait = np.diff(first_s, axis=1)
    assert (first_s[:, 0] == 0.0).all() and 2.0 <= wait.min() < 2.02 and 4.98 < wait.max() < 5.0
    turn = np.diff(np.concatenate([np.ones((500, 1)), heading], axis=1), axis=1)
    assert 0.69 < turn.max() <= 0.7 and -0.7 <= turn.min() < -0.69
    assert 0.05 <= speed.min() < 0.051 and 0.299 < speed.max() <= 0.3
    one = make(heading=1.0, min_interval_s=2.0, max_interval_s=5.0)
    given = one.scenario
    for i in range(100):
        infos = one.record
        now = np.searchsorted(given["command_begin_s"][0], DT * i + 1e-6, side="right") - 1
        assert infos["commanded_speed_m_s"][0] == given["command_speed_m_s"][0, now]
        assert infos["commanded_heading_rad"][0] == given["command_heading_rad"][0, now]
        drive(one, [0.0, 0.0], 1, i)


def test_a_robot_that_does_what_it_is_told_tracks_perfectly() -> None:
    task = make(heading=0.5, **STRAIGHT)
    ahead = np.array([np.cos(0.5), np.sin(0.5)])
    lag = 1.0 - np.exp(-DT / 1.5)
    smoothed, tracked, errors = 0.0, [], []
    for i in range(50):
        drive(task, 0.2 * ahead, 1, i)
        smoothed += lag * (0.2 - smoothed)
        errors.append(abs(smoothed - 0.2))
        tracked.append(np.exp(-((errors[-1] / 0.05) ** 2)))
    infos = task.record
    assert infos["speed_error_m_s"][0] == pytest.approx(smoothed - 0.2, abs=1e-12)
    assert infos["heading_error_rad"][0] == pytest.approx(0.0, abs=1e-9)
    assert infos["mean_speed_error_m_s"][0] == pytest.approx(np.mean(errors))
    assert infos["tracking"][0] == pytest.approx(np.mean(tracked))
    assert infos["commanded_m"][0] == pytest.approx(0.2 * 10.0)
    assert infos["progress_m"][0] == pytest.approx(0.2 * 10.0 - sum(errors) * DT)
    assert infos["is_success"][0]
    terms = drive(task, 0.2 * ahead, 200, 50)
    assert terms["speed"][0] == pytest.approx(1.0) and terms["heading"][0] == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("velocity", "speed_error", "heading_error", "rate"),
    [([0.4, 0.0], 0.2, 0.0, 0.2), ([0.0, 0.0], -0.2, np.pi / 2, 0.0), ([-0.2, 0.0], -0.4, np.pi, -0.2),
     ([0.1, 0.1], -0.1, np.pi / 4, 0.1), ([0.01, 0.0], -0.19, np.pi / 2, 0.01)],
    ids=["too fast", "standing", "backwards", "askew", "too slow to have a heading"],
)  # fmt: skip
def test_other_motions_are_errors(velocity: list[float], speed_error: float, heading_error: float, rate: float) -> None:
    task = make(**STRAIGHT)
    drive(task, velocity, 200)
    before = float(task.record["progress_m"][0])
    terms = drive(task, velocity, 1, 200)
    infos = task.record
    assert infos["speed_error_m_s"][0] == pytest.approx(speed_error, abs=1e-6)
    assert abs(infos["heading_error_rad"][0]) == pytest.approx(heading_error, abs=1e-6)
    assert terms["speed"][0] == pytest.approx(np.exp(-((speed_error / 0.05) ** 2)), abs=1e-6)
    assert terms["heading"][0] == pytest.approx(np.exp(-((heading_error / 0.5) ** 2)), abs=1e-6)
    assert infos["progress_m"][0] - before == pytest.approx(rate * DT, abs=1e-6)
    assert infos["tracking"][0] < 0.05 and not infos["is_success"][0]


def test_ended_worlds_keep_their_numbers() -> None:
    task = make(**STRAIGHT)
    drive(task, [0.2, 0.0], 30)
    before = {name: values.copy() for name, values in task.arrays.items()}
    state = zero_state(1, SPEC.n_links)
    state.time_s[:] = 50.0
    terms, _ = evaluate(task, np.zeros((1, 2)), state, np.ones((1, 9)), live=False)
    assert all(values[0] == 0.0 for values in terms.values())
    for name, values in task.arrays.items():
        np.testing.assert_array_equal(values, before[name])
    assert not make().record["is_success"][0]


def test_what_is_seen_comes_from_measured_positions() -> None:
    config = {
        "command": {"min_interval_s": 0.5, "max_interval_s": 0.7}, "sensors": {"position_noise_m": 0.02},
        "faults": {"n_max": 3},
    }  # fmt: skip
    env = SnakeVectorEnv(VELOCITY, 4, "disabled", config=config)
    env.reset(seed=1)
    core, lag = env.core, 1.0 - np.exp(-DT / 1.5)
    last, smoothed = core.measurement.centre_xy_w, np.zeros((4, 2))
    for i in range(12):
        obs, *_, infos = env.step(np.full(env.action_space.shape, 0.4 * np.sin(i)))
        here = core.measurement.centre_xy_w
        assert last is not None and here is not None
        smoothed += lag * ((here - last) / DT - smoothed)
        last = here
        heading = infos["commanded_heading_rad"]
        cos, sin = np.cos(heading), np.sin(heading)
        along = cos * smoothed[:, 0] + sin * smoothed[:, 1]
        seen = core.layout.read(obs, "velocity")
        np.testing.assert_allclose(seen[:, 0], along, atol=1e-6)
        np.testing.assert_allclose(seen[:, 1], cos * smoothed[:, 1] - sin * smoothed[:, 0], atol=1e-6)
        np.testing.assert_allclose(
            core.layout.read(obs, "commanded_speed")[:, 0], infos["commanded_speed_m_s"], atol=1e-6
        )
        error = mean_link_angle(core.measurement) - heading
        shown = np.stack([np.sin(error), np.cos(error)], axis=1)
        np.testing.assert_allclose(core.layout.read(obs, "heading_error"), shown, atol=1e-6)
        assert np.abs(infos["speed_error_m_s"] - (along - infos["commanded_speed_m_s"])).max() > 1e-4


@pytest.mark.parametrize("controller", ["sjc", "cc", "cpg", "fault_aware"])
def test_classical_controllers_hold_the_commanded_speed(controller: str) -> None:
    """The gaits alone make about 0.45 m/s; the commands are 0.12 and then 0.25 m/s."""
    config = {
        "action": {"kind": "residual", "controller": {"tuned": controller}}, "faults": {"n_max": 0},
        "command": {"min_interval_s": 40.0, "max_interval_s": 40.0, "max_turn_rad": 0.3}, "time_limit_s": 80.0,
    }  # fmt: skip
    for speed in (0.12, 0.25):
        config["command"] |= {"min_speed_m_s": speed, "max_speed_m_s": speed}  # type: ignore[operator]
        env = SnakeVectorEnv(VELOCITY, 4, "disabled", config=config)
        env.reset(seed=0)
        ways = []
        for _ in range(200):
            *_, infos = env.step(np.zeros(env.action_space.shape))
            ways.append(env.core.robot.state.centre_xy.copy())
        made = np.hypot(*(ways[-1] - ways[99]).T) / (100 * DT)
        np.testing.assert_allclose(made, speed, rtol=0.1)
        assert infos["mean_heading_error_rad"].max() < 0.4
