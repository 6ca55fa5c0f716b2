"""Network of liu2024 for spatial robots: gaits of its tables, locking, and changes from each gait to each other."""

from __future__ import annotations

import itertools
import math
from typing import Literal

import numpy as np
import pytest

from snake_gym.controllers.base import ControllerState
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spec import FloatArray
from snake_gym.spatial.gaits import GAITS, MODES, Mode, Multimodal, MultimodalConfig, Wave
from snake_gym.spatial.spec import load_spatial_robot

III = load_spatial_robot("configs/robot/spatial/snake_robot_iii.yaml")
DT_S = 1.0 / 30.0
"""Control step of the authors' program."""


def standing(n_worlds: int, joint_angle: FloatArray | None = None) -> tuple[Measurement, Goal]:
    """Return a straight robot at rest with a target ahead."""
    angle = np.zeros((n_worlds, III.n_joints)) if joint_angle is None else joint_angle
    zero = np.zeros((n_worlds, 2))
    sample = Measurement(angle, 0.0 * angle, zero, np.zeros(n_worlds), np.ones(n_worlds, bool), zero)
    return sample._replace(heading=np.zeros(n_worlds)), Goal(zero + np.array([1.0, 0.0]), np.ones(n_worlds, bool))


def period(mode: Mode) -> float:
    return 2.0 * math.pi / abs(GAITS[mode].frequency_rad_s)


@pytest.mark.parametrize(
    ("mode", "yaw_deg", "pitch_deg", "phase_deg"),
    [("CL", 43.39, 0.1, 51.43), ("TWL", 0.1, 62.35, 77.14), ("SWL", 43.39, 13.02, 51.43), ("ARL", 9.17, 9.17, 0.0),
     ("SRL", 68.79, 68.79, 5.30)],
)  # fmt: skip
def test_amplitudes_and_phases_are_those_of_the_paper(
    mode: Mode, yaw_deg: float, pitch_deg: float, phase_deg: float
) -> None:
    """Equations 24 to 32 with Table 3; joint 28 is the first yaw joint behind the head, joint 27 the first pitch."""
    wave = Wave(GAITS[mode], III)
    assert np.degrees(wave.amplitude_rad[[27, 26]]) == pytest.approx([yaw_deg, pitch_deg], abs=0.01)
    assert np.degrees(wave.phase_rad[27] - wave.phase_rad[25::-2]) == pytest.approx(
        phase_deg * np.arange(1, 14), abs=0.1
    )
    assert np.degrees(wave.phase_rad[1::2] - wave.phase_rad[::2]) == pytest.approx(90.0)


def begin(modes: list[Mode], start: Literal["locked", "published"] = "locked") -> tuple[Multimodal, ControllerState]:
    """A controller and the state of one robot in each of ``modes``."""
    begun = [Multimodal(MultimodalConfig(mode=mode, start=start), III).initial_state(1) for mode in modes]
    state = {name: np.concatenate([one[name] for one in begun]) for name in begun[0]}
    return Multimodal(MultimodalConfig(start=start), III), state


def test_a_wound_robot_goes_on_from_the_phase_that_it_is_in() -> None:
    gait, wave = Multimodal(MultimodalConfig(mode="SRL", start="wound"), III), Wave(GAITS["SRL"], III)
    phase = np.array([0.3, 2.0, 5.0])
    bent = wave.amplitude_rad * np.cos(wave.phase_rad + phase[:, None])
    state = gait.initial_state(3)
    reference = gait.command(*standing(3, 0.9 * bent), state, 1e-6)
    np.testing.assert_allclose(reference, bent, atol=1e-6)


def test_the_published_start_locks_on_the_wave() -> None:
    """From 0.1 degrees everywhere to the phases within 0.01 rad in the periods that SNAKESYS's network takes."""
    controller, state = begin(list(MODES), "published")
    sample, goal = standing(5)
    first = controller.command(sample, goal, state, DT_S)
    assert np.abs(first).max() < math.radians(0.2)
    n_steps = round(16 * period("CL") / DT_S)
    errors = np.zeros((n_steps, 5))
    for step in range(n_steps):
        controller.command(sample, goal, state, DT_S)
        y = state["y"][..., 0] + 1j * state["y"][..., 1]
        errors[step] = np.abs(np.angle(y * np.exp(-1j * np.angle(y.sum(axis=1)))[:, None])).max(axis=1)
    assert np.abs(np.hypot(*state["y"].T) - 1.0).max() < 0.01
    for mode, error, periods in zip(MODES, errors.T, (10.0, 10.0, 15.0, 25.0, 10.0), strict=True):
        locked_at = (np.flatnonzero(error > 0.01)[-1] + 1) * DT_S / period(mode)
        assert 1.0 < locked_at < periods, mode
    highest = np.array([Wave(GAITS[mode], III).amplitude_rad.max() for mode in MODES])
    assert (np.abs(controller.reference(state)).max(axis=1) <= highest * 1.01).all()


@pytest.mark.parametrize("moments", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_a_change_of_gait_is_steady_at_every_moment(moments: int) -> None:
    """Each gait to each other at several moments of a period: no jump in position or speed, no servo too fast, no joint
    still for a period."""
    pairs = list(itertools.permutations(MODES, 2))
    old, new = ([pair[i] for pair in pairs for _ in range(moments)] for i in range(2))
    controller, state = begin(old)
    sample, goal = standing(len(old))
    for _ in range(round(4 * period("CL") / DT_S)):
        controller.command(sample, goal, state, DT_S)
    moment = np.tile(np.arange(moments), len(pairs))
    change_at = np.array([round(period(mode) / DT_S) for mode in old]) * moment // moments
    u = [controller.reference(state)]
    for step in range(round(6 * period("CL") / DT_S)):
        for mode in MODES:
            controller.set_gait(state, (change_at == step) & (np.array(new) == mode), mode)
        u.append(controller.command(sample, goal, state, DT_S))
    for (before, after), angle in zip(pairs, np.split(np.array(u), len(pairs), axis=1), strict=True):
        expect_steady(angle, before, after)


def expect_steady(angle: FloatArray, old: Mode, new: Mode) -> None:
    """Judge commands (T, W, J) of a change of gait in its first period."""
    speed = np.diff(angle, axis=0) / DT_S
    acceleration = np.diff(speed, axis=0) / DT_S
    before, after = Wave(GAITS[old], III), Wave(GAITS[new], III)
    omega = max(abs(before.frequency_rad_s), abs(after.frequency_rad_s))
    swing = max(before.amplitude_rad.max(), after.amplitude_rad.max())
    assert np.abs(speed).max() <= min(1.5 * omega * swing, 6.80), (old, new)
    assert np.abs(acceleration).max() <= 2.0 * omega**2 * swing, (old, new)
    least = 2.0 * np.minimum(before.amplitude_rad, after.amplitude_rad)
    n = math.ceil(max(period(old), period(new)) / DT_S) + 1
    travelled = np.array([np.ptp(angle[i : i + n], axis=0) for i in range(0, len(angle) - n, 10)])
    assert (travelled.min(axis=0) >= 0.08 * least).all(), (old, new)
    # it arrives: the new gait from the last period on, at whatever common phase
    last = angle[-math.ceil(period(new) / DT_S) - 1 :]
    assert np.allclose(np.ptp(last, axis=0), 2.0 * after.amplitude_rad, atol=2e-3), (old, new)


def test_changes_may_follow_on_each_other() -> None:
    """A new gait every half second, in any order: still no jump and no servo too fast."""
    controller = Multimodal(MultimodalConfig(), III)
    state, (sample, goal) = controller.initial_state(8), standing(8)
    rng = np.random.default_rng(0)
    u = []
    for step in range(900):
        if step % 15 == 0:
            for world in range(8):
                controller.set_gait(state, np.arange(8) == world, MODES[rng.integers(5)], rng.uniform(-1.0, 1.0))
        u.append(controller.command(sample, goal, state, DT_S))
    speed = np.diff(u, axis=0) / DT_S
    assert np.abs(speed).max() < 6.80
    assert np.abs(np.diff(speed, axis=0)).max() / DT_S < 20.0


def test_it_begins_at_the_robots_own_angles() -> None:
    bent = np.tile(np.linspace(-0.5, 0.5, III.n_joints), (1, 1))
    controller = Multimodal(MultimodalConfig(mode="SRL"), III)
    state, (sample, goal) = controller.initial_state(1), standing(1, bent)
    first = controller.command(sample, goal, state, DT_S)
    assert np.abs(first - bent).max() < 0.01


def test_a_policys_actions_choose_mode_pace_and_steering() -> None:
    controller = Multimodal(MultimodalConfig(), III)
    state = controller.initial_state(2)
    action = np.zeros((2, 7))
    action[0, MODES.index("ARL")] = action[1, MODES.index("CL")] = 0.5
    action[:, -2], action[:, -1] = (1.0, -1.0), 1.0
    controller.take_action(action, state)
    assert [MODES[int(code)] for code in state["mode"]] == ["ARL", "CL"]
    assert state["omega_goal"] == pytest.approx([1.5 * math.pi, -0.6 * math.pi])
    assert state["centre_goal"][0, -1] == pytest.approx(-math.radians(10.0)) and state["centre_goal"][0, -2] == 0.0


def test_frequencies_stop_where_the_servos_do() -> None:
    controller = Multimodal(MultimodalConfig(mode="SRL", frequency_rad_s=50.0), III)
    state, (sample, goal) = controller.initial_state(1), standing(1)
    u = [controller.command(sample, goal, state, 0.01) for _ in range(2000)]
    assert 3.0 < np.abs(np.diff(u, axis=0)).max() / 0.01 < 6.80
