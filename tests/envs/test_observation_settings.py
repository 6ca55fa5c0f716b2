"""Columns, history, truth for critics and revealed faults in the observations, each against an oracle of its own."""

from __future__ import annotations

from collections import deque
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from snake_gym.envs import SnakeVectorEnv, make_waypoints
from snake_gym.envs.core import SnakeCore
from snake_gym.interface.observations import FURTHER, ObservationLayout
from snake_gym.interface.observer import Observer
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.simulation.fault_kinds import FAULT_KINDS
from tests.envs.vector_checker import assert_same

W, J, N = 64, 9, 10
FREELY = [name for name in FURTHER if name not in ("tail_leads", "suspected_fault", "fault_probability")]
"""Columns that need neither a controller below the policy nor an estimator."""
SHORT = {"time_limit_s": 4.0, "n_threads": 1}
TRUTH = [
    "true_joint_angle", "true_joint_rate", "true_velocity", "true_turning_rate", "position_error", "mean_angle_error",
    "fault_kind", "randomisation/friction_along", "randomisation/payload_kg_place", "randomisation/level",
    "randomisation/command_delay_s", "randomisation/mass",
]  # fmt: skip
VARIED: dict[str, Any] = {
    **SHORT,
    "faults": {"n_max": 3, "kinds": ["locked", "weak"], "onset_max_s": 2.0},
    "sensors": {"angle_noise_rad": 0.01, "position_noise_m": 0.01},
    "randomisation": {
        "friction_along": {"low": 0.5, "high": 2.0}, "payload_kg": {"high": 0.5}, "mass": {"low": 0.8, "high": 1.1},
        "command_delay_s": {"high": 0.05}, "pose_loss_hz": {"high": 1.0}, "pose_outage_s": {"high": 1.0},
    },
}  # fmt: skip


# --- columns ---------------------------------------------------------------------------------------------------------


def test_columns_stand_in_the_order_in_which_they_are_named() -> None:
    named = ["distance", *FREELY, "joint_angle"]
    settings = {**SHORT, "action": {"kind": "gait"}}
    some = make_waypoints(3, {**settings, "observation": {"columns": named}})
    all_of = make_waypoints(3, {**settings, "observation": {"columns": ["standard", *FREELY]}})
    plain = make_waypoints(3, settings)
    layout = all_of.core.layout
    assert list(some.core.layout.fields) == named
    assert list(layout.fields) == [*plain.core.layout.fields, *FREELY]
    for env in (some, all_of, plain):
        env.reset(seed=3)
    for action in np.random.default_rng(0).uniform(-1.0, 1.0, (5, 3, 4)):
        few, every, usual = (env.step(action)[0] for env in (some, all_of, plain))
        assert_same(every[:, : usual.shape[1]], usual, "the standard columns")
        assert_same(few, np.hstack([every[:, layout.fields[name].columns] for name in named]), "those named")


def test_further_columns_tell_what_they_say() -> None:
    core = make_waypoints(4, {**SHORT, "observation": {"columns": FREELY}}).core
    core.reset(np.arange(4))
    before = core.robot.state
    place, angle = before.centre_xy.copy(), before.link_angle.mean(axis=1)
    for i, action in enumerate(np.random.default_rng(0).uniform(-1.0, 1.0, (6, 4, J)), start=1):
        obs = core.step(action)[0]
        state = core.robot.state
        turned = state.link_angle.mean(axis=1)
        moved = ((state.centre_xy - place) / 0.2)[:, 0] + 1j * ((state.centre_xy - place) / 0.2)[:, 1]
        seen = moved * np.exp(-1j * turned)
        expected = {
            "joint_reference": action * RESILIENT_SERVO.joint_limit_rad, "pose_valid": np.ones((4, 1)),
            "body_velocity": np.stack([seen.real, seen.imag], axis=1), "turning_rate": (turned - angle)[:, None] / 0.2,
            "remaining_time": np.full((4, 1), 1.0 - i / 20.0),
        }  # fmt: skip
        for name, values in expected.items():
            np.testing.assert_allclose(core.layout.read(obs, name), values, atol=2e-6, err_msg=name)
        assert np.abs(seen).max() > 0.01
        place, angle = state.centre_xy.copy(), turned


def test_a_policy_sees_which_end_leads_and_what_the_controller_below_suspects() -> None:
    events = [{"joint": 8, "kind": "locked", "onset_s": 2.0}, {"joint": 3, "kind": "free", "onset_s": 4.0}]
    settings = {
        "time_limit_s": 12.0, "faults": {"events": events},
        "observation": {"columns": ["tail_leads", "suspected_fault"]},
        "action": {"kind": "residual", "controller": {"tuned": "fault_aware"}},
    }  # fmt: skip
    core = make_waypoints(2, settings).core
    core.reset(np.arange(2))
    seen, led = [], []
    for _ in range(60):
        obs = core.step(np.zeros((2, J)))[0]
        assert core.layout.read(obs, "tail_leads")[:, 0] == pytest.approx(core.decoder_state["reverse"])
        seen.append(core.layout.read(obs, "suspected_fault").reshape(2, J, 3))
        led.append(core.layout.read(obs, "tail_leads"))
    assert not np.any(seen[:9])  # nothing has failed yet
    named = np.zeros((J, 3))
    named[7, 0] = named[2, 1] = 1.0
    np.testing.assert_array_equal(seen[-1], [named, named])
    assert np.any(led) and not np.all(led)


def test_velocity_stays_while_the_pose_is_lost_and_is_then_the_mean_of_the_gap() -> None:
    """A robot that moves evenly and turns through pi; its pose source tells angles from -pi to pi."""
    layout = ObservationLayout(RESILIENT_SERVO, J, False, "centre", columns=["body_velocity", "turning_rate"])
    observer, zeros = Observer(layout, 2), np.zeros((2, J))
    lost = [(False, True), (True, True), (True, False), (False, False), (True, True), (True, True)]
    seen = []
    for i, valid in enumerate(lost):
        head = np.array([0.1 * i, 0.0])
        angle = (2.9 + 0.2 * i + np.pi) % (2.0 * np.pi) - np.pi
        measurement = Measurement(zeros, zeros, np.tile(head, (2, 1)), np.full(2, angle), np.array(valid),
                                  np.tile(head, (2, 1)))  # fmt: skip
        if i == 0:
            observer.begin(measurement)
        else:
            observer.advance(measurement)
        obs = observer.look(measurement, Goal(np.ones((2, 2)), np.ones(2, bool)), zeros, zeros, None)
        seen.append(np.hypot(obs[:, 0], obs[:, 1]) * 1j + obs[:, 2])
    moving = 0.5j + 1.0
    np.testing.assert_allclose(np.array(seen)[:, 0], [0, 0, moving, moving, moving, moving], atol=1e-6)
    np.testing.assert_allclose(np.array(seen)[:, 1], [0, moving, moving, moving, moving, moving], atol=1e-6)


# --- history ---------------------------------------------------------------------------------------------------------


def test_history_is_that_of_a_deque() -> None:
    """Newest step first; a first observation fills it. Other modes of autoreset are compared by the checker."""
    k, n, columns = 3, 5, ["standard", "body_velocity"]
    plain, env = (
        make_waypoints(n, {**VARIED, "observation": {"columns": columns, "history": h}}, "SAME_STEP") for h in (1, k)
    )
    rows, stacked = (each.reset(seed=4)[0] for each in (plain, env))
    assert rows.shape[1] * k == stacked.shape[1] == env.single_observation_space.shape[0]
    steps = [deque([row] * k, k) for row in rows]
    for each in (plain, env):
        each.core.spread_ends()
    for action in np.random.default_rng(1).uniform(-1.0, 1.0, (60, n, J)):
        for world, past in enumerate(steps):
            assert_same(stacked[world], np.concatenate(list(past)[::-1]), f"world {world}")
        assert_same(env.core.observe(), stacked, "looked at again")
        (rows, _, terminated, truncated, infos), (stacked, *_, of_stacked) = plain.step(action), env.step(action)
        for world, past in enumerate(steps):
            past.append(rows[world])
            if (terminated | truncated)[world]:
                past[-1] = infos["final_obs"][world]
                assert_same(of_stacked["final_obs"][world], np.concatenate(list(past)[::-1]), f"end of world {world}")
                past.extend([rows[world]] * k)


# --- truth for critics -----------------------------------------------------------------------------------------------


def test_the_policy_s_part_is_what_it_is_without_a_privileged_one() -> None:
    plain = make_waypoints(4, {**VARIED, "observation": {"history": 2}}, "SAME_STEP")
    both = make_waypoints(4, {**VARIED, "observation": {"history": 2, "privileged": TRUTH}}, "SAME_STEP")
    assert isinstance(both.single_observation_space, gym.spaces.Dict)
    assert both.single_observation_space["policy"] == plain.single_observation_space
    alone = [make_waypoints(1, both.core.config, "SAME_STEP") for _ in range(4)]
    obs, seen = plain.reset(seed=3)[0], both.reset(seed=3)[0]
    for world, env in enumerate(alone):
        assert_same(env.reset(seed=3 + world)[0]["privileged"][0], seen["privileged"][world], "alone")
    rng = np.random.default_rng(0)
    for _ in range(25):
        assert both.observation_space.contains(seen)
        assert_same(seen["policy"], obs, "the policy's part")
        action = rng.uniform(-1.0, 1.0, (4, J))
        (obs, *rest, infos), (seen, *rest_b, infos_b) = plain.step(action), both.step(action)
        assert_same(tuple(rest), tuple(rest_b), "rewards and flags")
        for world in np.flatnonzero(infos.get("_final_obs", [])):
            assert_same(infos_b["final_obs"][world]["policy"], infos["final_obs"][world], "final_obs")
            assert both.single_observation_space.contains(infos_b["final_obs"][world])
        for world, env in enumerate(alone):
            mine = env.step(action[world : world + 1])[0]
            assert_same(mine["privileged"][0], seen["privileged"][world], "alone")
    saved = both.get_state()
    went_on = both.step(action)
    both.set_state(saved)
    assert_same(both.step(action), went_on, "restored")


@pytest.mark.parametrize(("difficulty", "ends"), [(0.0, [-1.0, -1.0]), (1.0, [0.0, 1.0])])
def test_a_critic_sees_what_was_drawn_between_the_lowest_and_highest_of_any_difficulty(
    difficulty: float, ends: list[float]
) -> None:
    """A range without the nominal mass, 1, from which difficulty leads to it."""
    drawn = {"mass": {"low": 1.5, "high": 1.5}, "friction_along": {"low": 1.5, "high": 2.0}}
    names = ["randomisation/friction_along", "randomisation/mass"]
    settings = {"randomisation": drawn, "difficulty": difficulty, "observation": {"privileged": names}}
    core = make_waypoints(8, settings).core
    shown = core.reset(np.arange(8))["privileged"]
    assert (shown[:, 0] >= ends[0] - 1e-6).all() and (shown[:, 0] <= ends[1] + 1e-6).all()
    np.testing.assert_allclose(shown[:, 1:], ends[1], atol=1e-6)


def test_privileged_columns_tell_the_truth() -> None:
    core = make_waypoints(6, {**VARIED, "observation": {"privileged": TRUTH}}).core
    core.reset(np.arange(6))
    rng = np.random.default_rng(0)
    kinds = 0
    for _ in range(20):
        seen = core.step(rng.uniform(-1.0, 1.0, (6, J)))[0]["privileged"].astype(np.float64)
        assert core.privileged is not None
        found = {name: seen[:, f.columns] / f.scale for name, f in core.privileged.fields.items()}
        state, infos = core.robot.state, core.infos()
        angle, mean = state.link_angle, state.link_angle.mean(axis=1)
        turn = np.exp(-1j * mean)
        velocity = (state.centre_vel[:, 0] + 1j * state.centre_vel[:, 1]) * turn
        off = core.measurement.centre_xy_w - state.centre_xy
        off_c = (off[:, 0] + 1j * off[:, 1]) * turn
        theta = np.hstack([core.measurement.joint_angle[:, ::-1].cumsum(axis=1)[:, ::-1], np.zeros((6, 1))])
        measured_mean = core.measurement.head_angle + theta.mean(axis=1)
        names = sorted(["locked", "weak"])
        expected = {
            "true_joint_angle": angle[:, :-1] - angle[:, 1:],
            "true_joint_rate": state.link_rate[:, :-1] - state.link_rate[:, 1:],
            "true_velocity": np.stack([velocity.real, velocity.imag], axis=1),
            "true_turning_rate": state.link_rate.mean(axis=1)[:, None],
            "position_error": np.stack([off_c.real, off_c.imag], axis=1),
            "mean_angle_error": (measured_mean - mean)[:, None],
            "randomisation/friction_along": (infos["randomisation/friction_along"][:, None] - 1.25) / 0.75,
            "randomisation/payload_kg_place": 2.0 * infos["randomisation/payload_kg_place"][:, None] - 1.0,
            "randomisation/level": np.ones((6, 1)),
            "randomisation/command_delay_s": infos["randomisation/command_delay_s"][:, None] / 0.025 - 1.0,
            "randomisation/mass": (infos["randomisation/mass"] - 0.95) / 0.15,
        }
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, atol=1e-5, err_msg=name)
        acting = found["fault_kind"].reshape(6, J, 2)
        begun = core.robot.faults.onset_s <= state.time_s[:, None] + 1e-9
        for i, kind in enumerate(names):
            np.testing.assert_array_equal(acting[..., i], (core.robot.faults.kind == FAULT_KINDS[kind].code) & begun)
        kinds += int(acting.sum())
    assert kinds > 0
    assert np.abs(found["position_error"]).max() > 1e-3 and np.abs(found["mean_angle_error"]).max() > 1e-3


def test_contact_forces_are_told_where_there_are_obstacles() -> None:
    observation = {"privileged": ["true_contact_force"]}
    settings = {"action": {"kind": "residual"}, "observation": observation}
    core = SnakeVectorEnv("SnakeGym/ObstacleField-v0", 4, config=settings).core
    core.reset(np.arange(4))
    weight_n, touched = 9.81 * core.spec.links("link_mass_kg").sum(), 0
    for _ in range(80):
        seen = core.step(np.zeros((4, J)))[0]["privileged"].reshape(4, N, 2).astype(np.float64)
        state = core.robot.state
        expected = (state.contact_force[..., 0] + 1j * state.contact_force[..., 1]) * np.exp(-1j * state.link_angle)
        expected = np.stack([expected.real, expected.imag], axis=-1) / weight_n
        np.testing.assert_allclose(seen, expected.clip(-10.0, 10.0), rtol=1e-5, atol=1e-6)
        touched += np.count_nonzero(np.abs(seen) > 1e-3)
    assert touched > 10


def broken(event: dict[str, Any], reveal: bool) -> SnakeCore:
    core = make_waypoints(4, {"faults": {"events": [event], "reveal": reveal}}).core
    core.reset(np.arange(4))
    return core


def act(core: SnakeCore, n_steps: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.array([core.step(rng.uniform(-1.0, 1.0, core.action.shape))[0] for _ in range(n_steps)])


def test_bursts_show_in_the_observation_only_when_revealed_and_only_while_they_act() -> None:
    event = {"joint": 3, "kind": "weak", "onset_s": 1.0, "duration_s": 2.0, "period_s": 0.8, "duty": 0.5}
    hidden, shown = (broken(event, reveal) for reveal in (False, True))
    columns = shown.layout.fields["failed"].columns
    assert "failed" not in hidden.layout.fields or hidden.layout.fields["failed"].columns != columns
    seen = act(shown, 20)[:, 0, columns]
    assert np.flatnonzero(seen.any(axis=0)).tolist() == [2]
    # Observed every 0.2 s from 0.2 s on: bursts at 1.0-1.4, 1.8-2.2 and 2.6-3.0 s.
    assert [round(0.2 * (k + 1), 1) for k in np.flatnonzero(seen[:, 2])] == [1.0, 1.2, 1.8, 2.0, 2.6, 2.8]


def test_revealed_faults_reach_controllers_through_measurement_and_observation() -> None:
    core = broken({"joint": 3, "onset_s": 0.5}, reveal=True)
    assert core.measurement.joint_failed is not None and not core.measurement.joint_failed.any()
    act(core, 4)
    assert np.argwhere(core.measurement.joint_failed)[:, 1].tolist() == [2] * 4
    restored, _ = core.layout.restore(core.observe())
    np.testing.assert_array_equal(restored.joint_failed, core.measurement.joint_failed)
    core.reset(mask=np.array([True, False, True, False]))
    np.testing.assert_array_equal(core.measurement.joint_failed[:, 2], [False, True, False, True])
    hidden = broken({"joint": 3}, reveal=False)
    assert hidden.measurement.joint_failed is None
    assert hidden.layout.restore(hidden.observe())[0].joint_failed is None
