"""The pace of a gait that is to make a speed, with a robot whose speed is in proportion to it."""

import numpy as np
import pytest

from snake_gym.config import to_dict
from snake_gym.controllers import CONTROLLERS, make_controller, resolve_controller
from snake_gym.controllers.speed_hold import GAIN, SpeedHold
from snake_gym.interface.actions import ActionConfig, ActionDecoder
from snake_gym.robot.presets import PEGBOARD, RESILIENT_SERVO
from tests.controllers.worlds import straight_world

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
