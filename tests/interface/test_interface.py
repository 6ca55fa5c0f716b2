"""Actions to references and measurements to observations."""

import dataclasses

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.controllers import make_controller
from snake_gym.interface.actions import ActionConfig, ActionDecoder, describe_action
from snake_gym.interface.observations import NEAR_M, ObservationLayout
from snake_gym.interface.observer import Observer
from snake_gym.robot.measurement import Goal, Measurement, mean_angle, tracked_point
from snake_gym.robot.presets import RESILIENT_SERVO

W, J = 6, 9


def sample(seed: int = 0) -> tuple[Measurement, Goal]:
    rng = np.random.default_rng(seed)
    angle, rate = rng.normal(0, 0.4, (W, J)), rng.normal(size=(W, J))
    measurement = Measurement(angle, rate, rng.normal(size=(W, 2)), rng.normal(size=W), np.ones(W, bool))
    return measurement, Goal(rng.normal(0, 3, (W, 2)), np.ones(W, bool))


def test_residual_adds_to_the_controller_and_clips_once_last() -> None:
    config = ActionConfig(kind="residual", controller={"kind": "sjc", "amplitude_rad": 1.5}, scale_rad=0.8)
    decoder = ActionDecoder(config, RESILIENT_SERVO)
    controller = make_controller({"kind": "sjc", "amplitude_rad": 1.5}, RESILIENT_SERVO)
    state, twin = decoder.initial_state(W), controller.initial_state(W)
    limit = RESILIENT_SERVO.joint_limit_rad
    clipped = 0
    for i in range(4):
        action = np.random.default_rng(i).uniform(-1, 1, (W, J))
        base = controller.command(*sample(i), twin, 0.2)
        reference = decoder.decode(action, *sample(i), state)
        np.testing.assert_allclose(reference, np.clip(base + 0.8 * action, -limit, limit), atol=1e-12)
        clipped += int((np.abs(reference) == limit).sum())
    assert clipped > 0


@pytest.mark.parametrize("kind", ["sjc", "cc", "fault_aware"])
def test_the_last_action_of_a_paced_residual_changes_the_gait_s_clock_alone(kind: str) -> None:
    plain = ActionConfig(kind="residual", controller={"kind": kind}, scale_rad=0.8)
    paced = dataclasses.replace(plain, pace_range=2.0)
    decoder, twin = ActionDecoder(paced, RESILIENT_SERVO), ActionDecoder(plain, RESILIENT_SERVO)
    assert (decoder.size, twin.size) == (J + 1, J)
    assert describe_action(decoder)[-1] == {"name": "pace", "low": "-1", "high": "3", "unit": "1"}
    state, same = decoder.initial_state(W), twin.initial_state(W)
    residual = np.random.default_rng(0).uniform(-1, 1, (W, J))
    pace_action = np.array([-1.0, -0.5, 0.0, 0.25, 0.5, 1.0])
    action = np.column_stack([residual, pace_action])
    before = decoder.phase(state).copy()
    reference = decoder.decode(action, *sample(), state)
    unpaced = twin.decode(residual, *sample(), same)
    np.testing.assert_array_equal(reference[2], unpaced[2])  # 0: at the gait's own pace
    turn = lambda phase: np.mod(phase - before + np.pi, 2.0 * np.pi) - np.pi  # noqa: E731
    ordinary = turn(twin.phase(same))
    assert ordinary.min() > 0.0
    np.testing.assert_allclose(turn(decoder.phase(state)), (1.0 + 2.0 * pace_action) * ordinary, atol=1e-9)


def test_gait_actions_span_their_ranges_and_the_phase_runs_on() -> None:
    config = ActionConfig(kind="gait")
    decoder = ActionDecoder(config, RESILIENT_SERVO)
    state = decoder.initial_state(W)
    still = np.tile([-1.0, 1.0, 0.0, 0.5], (W, 1))
    np.testing.assert_allclose(decoder.decode(still, *sample(), state), 0.5 * config.offset_max_rad)
    assert decoder.phase(state) == pytest.approx(np.full(W, 8.0 * 0.2))
    wave = np.tile([1.0, -1.0, 1.0, 0.0], (W, 1))
    expected = config.amplitude_max_rad * np.sin(1.6 + np.arange(J) * config.phase_shift_max_rad)
    np.testing.assert_allclose(decoder.decode(wave, *sample(), state)[2], expected)
    assert decoder.phase(state) == pytest.approx(np.full(W, 1.6))


def test_observation_does_not_depend_on_the_robots_place_or_direction() -> None:
    layout = ObservationLayout(RESILIENT_SERVO, J, True, "centre")
    measurement, goal = sample()
    reference, action, phase = measurement.joint_angle + 0.1, np.full((W, J), 0.3), np.linspace(0, 6, W)
    obs = Observer(layout, W).look(measurement, goal, reference, action, phase)
    turn = np.array([[np.cos(2.0), np.sin(2.0)], [-np.sin(2.0), np.cos(2.0)]])
    moved = measurement._replace(head_xy_w=measurement.head_xy_w @ turn + 5.0, head_angle=measurement.head_angle + 2.0)
    again = Observer(layout, W).look(
        moved, goal._replace(target_xy_w=goal.target_xy_w @ turn + 5.0), reference, action, phase
    )
    np.testing.assert_allclose(again, obs, atol=1e-5)
    assert obs.dtype == np.float32 and obs.shape == (W, layout.size)


def test_layout_names_every_column_once_and_read_inverts_the_scales() -> None:
    layout = ObservationLayout(RESILIENT_SERVO, J, True, "head", reveal_faults=True)
    columns = np.concatenate([np.arange(layout.size)[f.columns] for f in layout.fields.values()])
    np.testing.assert_array_equal(columns, np.arange(layout.size))
    measurement, goal = sample()
    measurement = measurement._replace(joint_failed=np.eye(W, J, dtype=bool))
    obs = Observer(layout, W).look(measurement, goal, measurement.joint_angle, np.zeros((W, J)), np.zeros(W))
    np.testing.assert_allclose(layout.read(obs, "joint_rate"), measurement.joint_rate, rtol=1e-6)
    away = np.linalg.norm(goal.target_xy_w - measurement.head_xy_w, axis=1)
    assert away.max() > NEAR_M
    np.testing.assert_allclose(layout.read(obs, "distance")[:, 0], np.minimum(away, NEAR_M), rtol=1e-6)
    np.testing.assert_array_equal(layout.read(obs, "failed"), np.eye(W, J))
    away = goal._replace(target_xy_w=goal.target_xy_w + 1e9)
    far = Observer(layout, W).look(measurement, away, measurement.joint_angle, np.zeros((W, J)), np.zeros(W))
    assert layout.read(far, "distance").max() == NEAR_M


@pytest.mark.parametrize("point", ["centre", "head"])
def test_restored_measurement_has_the_same_shape_heading_and_points(point: str) -> None:
    layout = ObservationLayout(RESILIENT_SERVO, J, False, point)
    measurement, goal = sample()
    nearby = goal._replace(target_xy_w=tracked_point(RESILIENT_SERVO, measurement, point) + np.array([0.9, -1.2]))
    obs = Observer(layout, W).look(measurement, nearby, measurement.joint_angle, np.zeros((W, J)), None)
    seen, target = layout.restore(obs)
    np.testing.assert_allclose(mean_angle(seen), 0.0, atol=1e-6)
    again = Observer(layout, W).look(seen, target, seen.joint_angle, np.zeros((W, J)), None)
    np.testing.assert_allclose(again, obs, atol=2e-6)
    between = tracked_point(RESILIENT_SERVO, seen, "centre") - tracked_point(RESILIENT_SERVO, seen, "head")
    expected = tracked_point(RESILIENT_SERVO, measurement, "centre") - measurement.head_xy_w
    np.testing.assert_allclose(np.hypot(*between.T), np.hypot(*expected.T), atol=1e-6)


def test_a_watchful_controller_is_told_what_was_really_sent() -> None:
    decoder = ActionDecoder(ActionConfig(kind="residual", controller={"kind": "fault_aware"}), RESILIENT_SERVO)
    state = decoder.initial_state(1)
    joints = np.zeros((1, 9))
    measurement = Measurement(joints, joints, np.zeros((1, 2)), np.zeros(1), np.ones(1, bool))
    sent = decoder.decode(np.ones((1, 9)), measurement, Goal(np.array([[5.0, 0.0]]), np.ones(1, bool)), state)
    np.testing.assert_array_equal(state["fault_reference"], sent)


@pytest.mark.parametrize(
    ("returned", "found"), [(np.full((1, 9), np.nan), "is nan at"), (np.zeros((9, 1)), r"has shape \(9, 1\)")]
)
def test_a_controller_s_references_are_checked(
    monkeypatch: pytest.MonkeyPatch, returned: np.ndarray, found: str
) -> None:
    decoder = ActionDecoder(ActionConfig(kind="residual", controller={"kind": "sjc"}), RESILIENT_SERVO)
    monkeypatch.setattr(type(decoder.controller), "command", lambda *_: returned)
    joints = np.zeros((1, 9))
    measurement = Measurement(joints, joints, np.zeros((1, 2)), np.zeros(1), np.ones(1, bool))
    goal = Goal(np.array([[5.0, 0.0]]), np.ones(1, bool))
    with pytest.raises(ConfigError, match=f"the command of Sjc {found}"):
        decoder.decode(joints, measurement, goal, decoder.initial_state(1))
