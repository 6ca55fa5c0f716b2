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


def crawl(kind: str | None, on: bool, n_worlds: int = W) -> SnakeCore:
    """Robots that go straight on, of which joint ``JOINT`` has the fault from ``ONSET_S`` on; at their start."""
    event = {"joint": JOINT, "kind": kind, "onset_s": ONSET_S, "offset_rad": 0.6}
    faults = {"n_max": 0} if kind is None else {"events": [event]}
    action = {"kind": "residual", "controller": {"tuned": "cc"}, "estimator": {"on": on}}
    columns = {"columns": ["standard", *["fault_probability"] * on]}
    settings = {**NOISE, "faults": faults, "action": action, "observation": columns}
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
