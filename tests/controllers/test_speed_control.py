"""Speeds that are held, through a gait's frequency or its pace, on robots with different joints and grounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from papers.drives import Drive, Follower, TargetSequence, drive, place
from snake_gym.config import to_dict
from snake_gym.controllers import CONTROLLERS, make_controller, resolve_controller
from snake_gym.controllers.speed_hold import GAIN, SpeedHold
from snake_gym.interface.actions import ActionConfig, ActionDecoder
from snake_gym.robot.presets import MUSCLE, PEGBOARD, RESILIENT_SERVO
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.controllers.worlds import straight_world

MUSCLE_GAIT = {"amplitude_rad": math.radians(30.0), "phase_shift_rad": math.radians(72.0), "frequency_gain_rad_m": 16.0}
GAIT = {"amplitude_rad": math.radians(30.0), "phase_shift_rad": math.radians(40.0), "frequency_gain_rad_m": 5.0}


def straight_run(spec: RobotSpec, seconds: float, **settings: Any) -> Drive:
    robot = SimulatedRobot(spec, 1, 1)
    place(robot, np.zeros((1, spec.n_joints)), np.zeros(1), np.zeros((1, 2)))
    controller = make_controller({"kind": "speed", **settings}, spec)
    return drive(robot, Follower(controller, TargetSequence(np.array([[[1e3, 0.0]]]), 0.1)), seconds)


@pytest.mark.parametrize(
    ("spec", "speed", "gait"),
    [(MUSCLE, 0.15, MUSCLE_GAIT), (PEGBOARD, 0.1, GAIT), (RESILIENT_SERVO, 0.12, GAIT)],
    ids=["muscle", "pegboard", "servo"],
)
def test_the_speed_is_held(spec: RobotSpec, speed: float, gait: dict[str, float]) -> None:
    run = straight_run(spec, 24.0, speed_m_s=speed, **gait)
    late = run.centre_xy[run.time_s > 16.0, 0, 0]
    assert (late[-1] - late[0]) / ((len(late) - 1) * spec.control_dt_s) == pytest.approx(speed, rel=0.03)


def test_the_frequency_stays_within_its_limits() -> None:
    controller = make_controller({"kind": "speed", "frequency_limit_rad_s": 1.0, "speed_m_s": 10.0}, RESILIENT_SERVO)
    measurement, goal = straight_world(2)
    state = controller.initial_state(2)
    for _ in range(20):
        controller.command(measurement, goal, state, 0.2)
    np.testing.assert_allclose(state["frequency"], 1.0)
    for _ in range(200):  # the goal is reached: the robot is to stop, and it stands
        controller.command(measurement, goal._replace(active=np.zeros(2, bool)), state, 0.2)
    np.testing.assert_allclose(state["frequency"], 1.0)
    moving = goal._replace(active=np.zeros(2, bool))
    for step in range(60):
        ahead = measurement._replace(head_xy_w=np.full((2, 2), [0.2 * step, 0.0]))
        controller.command(ahead, moving, state, 0.2)
    np.testing.assert_array_equal(state["frequency"], 0.0)


DT = 0.2


def test_the_speed_is_approached_as_the_time_constant_says() -> None:
    hold, (measurement, goal) = SpeedHold(RESILIENT_SERVO, "head"), straight_world(3)
    wanted, kappa = np.array([0.1, 0.3, 0.9]), 0.4
    goal = goal._replace(target_xy_w=np.tile([100.0, 0.0], (3, 1)), active=np.ones(3, bool), speed_m_s=wanted)
    state, x = hold.initial_state(3), np.zeros(3)
    for _ in range(100):
        hold.update(measurement._replace(head_xy_w=np.stack([x, np.zeros(3)], axis=1)), goal, state, DT)
        x = x + kappa * state["pace"] * DT
    np.testing.assert_allclose(kappa * state["pace"], [0.1, 0.3, 0.4], rtol=1e-3)  # no faster than the gait
    before, here = state["pace"].copy(), measurement._replace(head_xy_w=np.stack([x, np.zeros(3)], axis=1))
    hold.update(here, goal._replace(speed_m_s=0.5 * wanted), state, DT)
    expected = before + GAIN / RESILIENT_SERVO.length_m * DT * (0.5 * wanted - kappa * before)
    np.testing.assert_allclose(state["pace"], np.minimum(expected, 1.0))
    for _ in range(100):  # reached: the gait stops when the robot does not
        x = x + 0.1
        gone = measurement._replace(head_xy_w=np.stack([x, np.zeros(3)], axis=1))
        hold.update(gone, goal._replace(active=np.zeros(3, bool)), state, DT)
    np.testing.assert_array_equal(state["pace"], 0.0)


@pytest.mark.parametrize("kind", [kind for kind in CONTROLLERS if kind != "multimodal"])  # that one is spatial
def test_without_a_speed_gaits_are_what_they_were_and_a_pace_slows_their_clock(kind: str) -> None:
    spec = PEGBOARD if kind in ("pfl", "speed") else RESILIENT_SERVO
    plain = make_controller({"kind": kind}, spec)
    settings = {"kind": kind, **to_dict(plain.config)}  # type: ignore[attr-defined]
    action = ActionConfig(kind="residual", controller=settings)
    held, free = ActionDecoder(action, spec, holds_speed=True), ActionDecoder(action, spec)
    measurement, goal = straight_world(2)
    zero = np.zeros((2, spec.n_joints))
    measurement = measurement._replace(joint_angle=zero, joint_rate=zero)
    one, other = held.initial_state(2), free.initial_state(2)
    for _ in range(5):
        np.testing.assert_array_equal(
            held.decode(zero, measurement, goal, one), free.decode(zero, measurement, goal, other)
        )
    np.testing.assert_array_equal(held.phase(one), free.phase(other))
    if kind in ("speed", "cpg", "mpc"):  # a law of its own, no clock but its oscillators, a clock that it plans
        return
    slow = held.initial_state(2)
    slow["pace_xy"][:] = 0.0
    before = held.phase(slow).copy()
    still = goal._replace(speed_m_s=np.zeros(2))
    here = measurement._replace(centre_xy_w=np.zeros((2, 2)))
    for _ in range(4):
        slow["pace"][:] = 0.25
        held.decode(zero, here, still, slow)
    gait = resolve_controller(settings.get("controller", settings))  # a reflex has that of another
    turned = gait["frequency_rad_s"] * spec.control_dt_s
    np.testing.assert_allclose(np.mod(held.phase(slow) - before, 2 * np.pi), np.mod(turned, 2 * np.pi))
