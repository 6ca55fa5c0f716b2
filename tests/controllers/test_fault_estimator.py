"""The estimator of what broke: slips and offsets are found and undone, healthy robots are left alone, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from snake_gym.envs.core import SnakeCore
from snake_gym.tasks.task_settings import build_env

W, JOINT, ONSET_S = 24, 5, 4.0
NOISE: dict[str, Any] = {
    "sensors": {"angle_noise_rad": 0.01, "position_noise_m": 0.005, "heading_noise_rad": 0.02},
    "randomisation": {
        "pose_delay_s": {"low": 0.0, "high": 0.1}, "friction_along": {"low": 0.6, "high": 1.6},
        "pose_loss_hz": {"low": 0.1, "high": 0.1}, "pose_outage_s": {"low": 0.3, "high": 0.5},
    },
}  # fmt: skip


def crawl(kind: str | None, on: bool, n_worlds: int = W, **changed: Any) -> SnakeCore:
    """Robots that go straight on, of which joint ``JOINT`` has the fault from ``ONSET_S`` on; at their start."""
    event = {"joint": JOINT, "kind": kind, "onset_s": ONSET_S, "offset_rad": 0.6}
    faults = {"n_max": 0} if kind is None else {"events": [event]}
    action = changed.pop("action", {"kind": "residual", "controller": {"tuned": "cc"}}) | {"estimator": {"on": on}}
    columns = {"columns": ["standard", *["fault_probability"] * on]}
    settings = {**NOISE, "faults": faults, "action": action, "observation": columns, **changed}
    core = SnakeCore(build_env("SnakeGym/Waypoints-v0", settings), n_worlds)
    core.reset(np.arange(80_000_000, 80_000_000 + n_worlds))
    return core


def play(core: SnakeCore, n_steps: int) -> None:
    for _ in range(n_steps):
        core.step(np.zeros((core.n_worlds, core.decoder.size)))


@pytest.mark.parametrize(("kind", "name"), [("slipped", "slips/slip"), ("offset", "offsets/offset")])
def test_a_shifted_joint_is_found_and_undone(kind: str, name: str) -> None:
    core = crawl(kind, on=True)
    play(core, 20)
    assert not core.decoder_state[name].any()
    play(core, 80)
    shift = core.decoder_state[name]
    assert (shift[:, JOINT - 1] != 0.0).mean() > 0.7 and (shift != 0.0).sum() < 1.3 * W
    assert abs(np.median(shift[:, JOINT - 1]) - 0.6) < 0.15
    likely = core.layout.read(core.observe(), "fault_probability").reshape(W, -1, 5)
    np.testing.assert_array_equal(likely[..., 3 + (kind == "offset")] == 1.0, shift != 0.0)
    assert np.median(np.abs(core.measurement.joint_angle - core.robot.joint_angle())[:, JOINT - 1]) < 0.12


def test_a_probability_is_a_half_at_the_alarm_of_the_detector_below() -> None:
    below = {"kind": "reflex", "controller": {"kind": "fault_aware", "detector": {"alarm": 30.0}}}
    settings = {"action": {"kind": "residual", "controller": below, "estimator": {"on": True}}}
    decoder = SnakeCore(build_env("SnakeGym/Waypoints-v0", settings), 1).decoder
    state = {**decoder.initial_state(1), "fault_locked_ratio": np.full((1, 9), 30.0)}
    assert (decoder.signals(state)["fault_probability"][..., 0] == 0.5).all()


def test_a_healthy_robot_is_left_alone() -> None:
    for core in (cores := [crawl(None, on) for on in (True, False)]):
        play(core, 150)
    np.testing.assert_array_equal(cores[0].robot.state.link_angle, cores[1].robot.state.link_angle)


def test_a_world_alone_and_a_restored_one_estimate_the_same() -> None:
    core, alone, restored = crawl("slipped", True, 3), crawl("slipped", True, 1), crawl("slipped", True, 3)
    play(core, 40)
    restored.set_state(core.get_state())
    for each, n_steps in ((core, 20), (restored, 20), (alone, 60)):
        play(each, n_steps)
    for name, values in core.get_state().items():
        np.testing.assert_array_equal(values, restored.get_state()[name], name)
        if name.startswith("decoder/"):
            np.testing.assert_array_equal(values[:1], alone.get_state()[name], name)


@pytest.mark.parametrize(
    ("kind", "name"), [("slipped", "slips/slip"), ("offset", "offsets/offset"), (None, "slips/slip")]
)
def test_a_robot_at_rest_forgets_no_shift_and_imagines_none(kind: str | None, name: str) -> None:
    core = crawl(kind, True, action={"kind": "joint_reference"}, time_limit_s=200.0)
    kept, evidence, asked = [], [], np.zeros(9)
    for step in range(600):
        if not 150 <= step < 450:
            asked = 0.5 * np.sin(0.6 * step + 0.6 * np.arange(9)) / core.spec.joint_limit_rad
        core.step(np.tile(asked, (W, 1)))
        if step in (149, 200, 449, 599):
            kept.append((core.decoder_state[name].copy(), core.robot.joint_angle()[:, JOINT - 1].copy()))
            evidence.append([core.decoder_state[f"slips/{part}"].copy() for part in ("score", "information", "spread")])
    for early, late in zip(*evidence[1:3], strict=True):
        np.testing.assert_array_equal(late, early)
    if kind is None:
        assert not any(known.any() for known, _ in kept)
    else:
        (before, _), (_, early), (after, late), _ = kept
        assert (before[:, JOINT - 1] != 0.0).mean() > 0.5
        np.testing.assert_array_equal(after != 0.0, before != 0.0)
        assert np.abs(late - early).max() < 0.1


def test_a_slow_robot_with_short_control_steps_is_not_at_rest() -> None:
    own = {"robot": "resilient", "action": {"kind": "residual", "controller": {"kind": "cc"}}}
    core = crawl("slipped", True, 4 * W, sensors={}, randomisation={}, **own)
    core.reset(np.arange(1005, 1005 + 4 * W))  # poses seemed later than a step, for which velocities grew without bound
    play(core, 800)
    assert (core.decoder_state["slips/slip"][:, JOINT - 1] != 0.0).mean() > 0.4


def test_a_locked_joint_counts_as_neither_free_nor_weak() -> None:
    core = crawl("locked", on=True)
    play(core, 150)
    likely = core.layout.read(core.observe(), "fault_probability").reshape(W, -1, 5)[:, JOINT - 1]
    assert (likely[:, 0] > 0.9).all() and likely[:, 1:3].max() < 0.1
