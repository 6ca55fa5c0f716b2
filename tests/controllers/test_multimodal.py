"""Network of liu2024 for spatial robots: gaits of its tables, locking, and changes from each gait to each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.controllers import make_controller
from snake_gym.controllers.multimodal import GAITS, MODES, Mode, Multimodal, MultimodalConfig, Wave
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spatial_spec import load_spatial_robot
from snake_gym.robot.spec import FloatArray

III = load_spatial_robot("configs/robot/spatial/snake_robot_iii.yaml")
DT_S = 1.0 / 30.0
"""Control step of the authors' program."""
ROUND = list(zip(MODES, [*MODES[1:], MODES[0]], strict=True))
"""Changes of gait that visit each gait once; the others are slow tests."""
PAIRS = [
    pair if pair in ROUND else pytest.param(*pair, marks=pytest.mark.slow) for pair in itertools.permutations(MODES, 2)
]


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


@pytest.mark.parametrize("mode", MODES)
def test_the_published_start_locks_on_the_wave(mode: Mode) -> None:
    """From 0.1 degrees everywhere to the phases within 0.01 rad in the periods that SNAKESYS's network takes."""
    controller = Multimodal(MultimodalConfig(mode=mode, start="published"), III)
    state, (sample, goal) = controller.initial_state(1), standing(1)
    first = controller.command(sample, goal, state, DT_S)
    assert np.abs(first).max() < math.radians(0.2)
    locked_at = math.inf
    wave = Wave(GAITS[mode], III)
    for step in range(round(25 * period(mode) / DT_S)):
        controller.command(sample, goal, state, DT_S)
        y = state["y"][0, :, 0] + 1j * state["y"][0, :, 1]
        error = np.abs(np.angle(y * np.exp(-1j * np.angle(y.sum())))).max()
        if error > 0.01:
            locked_at = math.inf
        elif math.isinf(locked_at):
            locked_at = step * DT_S / period(mode)
    assert np.abs(np.hypot(*state["y"][0].T) - 1.0).max() < 0.01
    assert 1.0 < locked_at < {"CL": 10.0, "TWL": 10.0, "SWL": 15.0, "ARL": 25.0, "SRL": 10.0}[mode]
    assert np.abs(controller.reference(state)).max() <= wave.amplitude_rad.max() * 1.01


@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_a_change_of_gait_is_steady_at_every_moment(old: Mode, new: Mode) -> None:
    """At 12 moments of a period: no jump in position or speed, no servo too fast, no joint still for a period."""
    n_worlds = 12
    controller = Multimodal(MultimodalConfig(mode=old), III)
    state, (sample, goal) = controller.initial_state(n_worlds), standing(n_worlds)
    for _ in range(round(7 * period(old) / DT_S)):
        controller.command(sample, goal, state, DT_S)
    rows, u = np.arange(n_worlds), [controller.reference(state)]
    n_changes = round(period(old) / DT_S)
    longer = max(period(old), period(new))
    for step in range(n_changes + round(5 * longer / DT_S)):
        controller.set_gait(state, (n_changes * rows) // n_worlds == step, new)
        u.append(controller.command(sample, goal, state, DT_S))
    angle = np.array(u)
    speed = np.diff(angle, axis=0) / DT_S
    acceleration = np.diff(speed, axis=0) / DT_S
    before, after = Wave(GAITS[old], III), Wave(GAITS[new], III)
    omega = max(abs(before.frequency_rad_s), abs(after.frequency_rad_s))
    swing = max(before.amplitude_rad.max(), after.amplitude_rad.max())
    assert np.abs(speed).max() <= min(1.5 * omega * swing, 6.80)
    assert np.abs(acceleration).max() <= 2.0 * omega**2 * swing
    least = 2.0 * np.minimum(before.amplitude_rad, after.amplitude_rad)
    n = math.ceil(longer / DT_S) + 1
    travelled = np.array([np.ptp(angle[i : i + n], axis=0) for i in range(0, len(angle) - n, 10)])
    assert (travelled.min(axis=0) >= 0.08 * least).all()
    # it arrives: the new gait from the last period on, at whatever common phase
    assert np.allclose(
        np.ptp(angle[-math.ceil(period(new) / DT_S) - 1 :], axis=0), 2.0 * after.amplitude_rad, atol=2e-3
    )


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


def test_a_world_in_a_batch_is_that_world_alone() -> None:
    config = MultimodalConfig(start="published", guided=True)
    several, one = (Multimodal(config, III) for _ in range(2))
    many, single = several.initial_state(7), one.initial_state(1)
    angle = np.random.default_rng(1).uniform(-0.3, 0.3, (7, III.n_joints))
    for step in range(40):
        if step == 20:
            several.set_gait(many, np.ones(7, bool), "ARL", -0.5)
            one.set_gait(single, np.ones(1, bool), "ARL", -0.5)
        a = several.command(*standing(7, angle), many, 0.1)
        b = one.command(*standing(1, angle[4:5]), single, 0.1)
        assert (a[4] == b[0]).all()


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


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"arc_radius_m": 1.0}, "arc_radius_m is set, which SWL has no use for"),
        ({"mode": "SWM"}, "did you mean 'SWL'"),
        ({"mode": "ARL", "arc_radius_m": 0.0}, "arc_radius_m"),
    ],
)
def test_wrong_settings_are_one_clear_error(settings: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_controller({"kind": "multimodal", **settings}, III)  # type: ignore[arg-type]


def test_a_planar_robot_is_refused() -> None:
    with pytest.raises(ConfigError, match="for spatial robots"):
        make_controller("multimodal", load_robot("resilient"))
