"""Drawn faults: numbers, joints, kinds and times."""

import numpy as np
import pytest

from snake_gym.commands.list import list_envs
from snake_gym.config import build
from snake_gym.physics.faults import FREE, HEALTHY, LOCKED, OFFSET, SLIPPED, SLOW, WEAK, acting
from snake_gym.physics.state import FaultState, no_faults
from snake_gym.registry import TASKS
from snake_gym.simulation.faults import FaultConfig, JointFault, draw_faults
from snake_gym.simulation.streams import RandomStreams
from snake_gym.tasks.task_settings import build_env

KIND_OF_SEED_7 = [3, 0, 1, 1, 0, 0, 2, 0, 0]
ONSET_OF_SEED_7 = [
    14.370155399614, 8.890092156898, 13.712639771005, 0.877804485759, 5.362513273165,
    6.596838305474, 0.859874947518, 11.48617188826, 18.441864720243,
]  # fmt: skip


def draw(config: FaultConfig, n_worlds: int = 4000, seed: int = 0) -> FaultState:
    return draw_both(config, n_worlds, seed)[0]


def draw_both(
    config: FaultConfig, n_worlds: int = 4000, seed: int = 0, n_joints: int = 9
) -> tuple[FaultState, FaultState]:
    """The joints' first faults, and the second ones."""
    streams = RandomStreams("faults", n_worlds)
    rows = np.arange(n_worlds)
    streams.begin(rows + seed, np.zeros(n_worlds, np.int64))
    slots = no_faults(n_worlds, n_joints), no_faults(n_worlds, n_joints)
    draw_faults(config, streams, slots, rows)
    return slots


@pytest.mark.parametrize("env_id", TASKS)
def test_up_to_three_joints_fail_in_every_env_by_default_whatever_else_is_set(env_id: str) -> None:
    assert "by default with 0 to 3 joints locked" in list_envs()[env_id]
    for settings, kind in (({}, LOCKED), ({"kinds": ["free"]}, FREE), ({"onset_max_s": 5.0}, LOCKED)):
        config = build_env(env_id, {"faults": settings})
        config.load_robot()
        drawn = draw(config.faults).kind
        assert set(drawn.ravel()) == {HEALTHY, kind}
        np.testing.assert_allclose(np.bincount((drawn != HEALTHY).sum(axis=1)) / 4000, 0.25, atol=0.03)
    assert not draw(build_env(env_id, {"faults": {"n_max": 0}}).faults).kind.any()
    listed = build_env(env_id, {"faults": {"events": [{"joint": 2}]}})
    assert (draw(listed.faults).kind != HEALTHY).sum(axis=1).max() == 1
    assert not draw(listed.at_difficulty(0.4).faults).kind.any()


def test_a_robot_with_two_joints_loses_two_at_most_by_default() -> None:
    FaultConfig().check_joints(2)
    first, _ = draw_both(FaultConfig(), n_joints=2)
    np.testing.assert_allclose(np.bincount((first.kind != HEALTHY).sum(axis=1)) / 4000, 1 / 3, atol=0.03)


def test_the_numbers_drawn_by_the_settings_of_v0_have_not_moved() -> None:
    """First world of seed 7, drawn before there were bursts, recoveries and offsets."""
    settings = {"n_max": 4, "kinds": ("locked", "free", "weak"), "onset_max_s": 20.0}
    faults = draw(FaultConfig(n_min=4, duration_s=8.0, **settings), 1, seed=7)
    np.testing.assert_array_equal(faults.kind[0], KIND_OF_SEED_7)
    np.testing.assert_allclose(faults.onset_s[0], ONSET_OF_SEED_7, rtol=1e-12)
    np.testing.assert_array_equal(faults.end_s, faults.onset_s + 8.0)
    assert np.isinf(faults.period_s).all()


def test_what_is_drawn_comes_from_the_settings_and_further_settings_move_no_other_draw() -> None:
    settings = {"n_min": 9, "n_max": 9, "kinds": ("slow", "offset"), "onset_min_s": 2.0, "onset_max_s": 6.0}
    bursts = {"intermittent_share": 0.25, "period_min_s": 1.0, "period_max_s": 3.0, "duty": 0.4}
    lasting = {"duration_s": 2.0, "duration_max_s": 6.0, "recovering_share": 0.75}
    sizes = {"slow_strength": 0.2, "weak_strength": 0.6, "offset_rad": 0.3}
    base, faults = draw(FaultConfig(**settings)), draw(FaultConfig(**settings, **bursts, **lasting, **sizes))
    np.testing.assert_array_equal(base.kind, faults.kind)
    np.testing.assert_array_equal(base.onset_s, faults.onset_s)
    np.testing.assert_array_equal(draw(FaultConfig(**settings, **bursts)).period_s, faults.period_s)
    assert set(faults.kind.ravel()) == {SLOW, OFFSET} and 0.48 < (faults.kind == SLOW).mean() < 0.52
    assert faults.onset_s.min() >= 2.0 and faults.onset_s.max() <= 6.0
    assert faults.onset_s.mean() == pytest.approx(4.0, abs=0.03) and np.isinf(base.end_s).all()
    ends = np.isfinite(faults.end_s)
    assert ends.mean() == pytest.approx(0.75, abs=0.01)
    lasts = (faults.end_s - faults.onset_s)[ends]
    assert lasts.min() >= 2.0 and lasts.max() <= 6.0 and lasts.mean() == pytest.approx(4.0, abs=0.03)
    intermittent = np.isfinite(faults.period_s)
    assert intermittent.mean() == pytest.approx(0.25, abs=0.01)
    assert faults.period_s[intermittent].min() >= 1.0 and faults.period_s[intermittent].max() <= 3.0
    assert (faults.duty == 0.4).all()
    assert set(np.unique(faults.offset_rad)) == {-0.3, 0.3} and abs(faults.offset_rad.mean()) < 0.01
    assert set(faults.strength[faults.kind == SLOW]) == {0.2}


def test_a_new_episode_forgets_the_faults_of_the_last_one() -> None:
    streams, rows = RandomStreams("faults", 1), np.zeros(1, np.int64)
    faults, second = no_faults(1, 9), no_faults(1, 9)
    for config in (
        FaultConfig(n_min=9, n_max=9, kinds=("offset",), intermittent_share=1.0),
        FaultConfig(events=(JointFault(3),)),
        FaultConfig(n_min=9, n_max=9),
    ):
        streams.begin(rows, rows)
        draw_faults(config, streams, (faults, second), rows)
    fresh = draw(FaultConfig(n_min=9, n_max=9), 1)
    np.testing.assert_array_equal(faults.kind, fresh.kind)
    np.testing.assert_array_equal(faults.period_s, fresh.period_s)
    np.testing.assert_array_equal(faults.end_s, fresh.end_s)


SPREAD = {
    "weak_strength": (0.2, 0.4), "offset_rad": (0.1, 0.3), "duty": (0.25, 0.75), "jitter": (0.5, 1.0),
}  # fmt: skip


def test_each_fault_draws_its_own_numbers_from_the_ranges_and_no_range_moves_another_number() -> None:
    settings = {"n_min": 9, "n_max": 9, "kinds": ("weak", "offset"), "onset_max_s": 9.0, "intermittent_share": 0.5}
    single = {name: low for name, (low, _) in SPREAD.items()}
    faults, base = draw(FaultConfig(**settings, **SPREAD)), draw(FaultConfig(**settings, **single))
    drawn = {"weak_strength": faults.strength, "offset_rad": abs(faults.offset_rad), "duty": faults.duty}
    for name, values in {**drawn, "jitter": faults.jitter}.items():
        low, high = SPREAD[name]
        assert values.min() >= low and values.max() < high, name
        np.testing.assert_allclose(np.quantile(values, [0.25, 0.5, 0.75]), np.linspace(low, high, 5)[1:4], atol=0.01)
        assert np.unique(values).size == values.size, name
    pairs = np.corrcoef([values.ravel() for values in drawn.values()])
    np.testing.assert_allclose(pairs, np.eye(3), atol=0.03)
    for name in ("kind", "onset_s", "end_s", "period_s", "key"):
        np.testing.assert_array_equal(getattr(faults, name), getattr(base, name), err_msg=name)
    np.testing.assert_array_equal(np.sign(faults.offset_rad), np.sign(base.offset_rad))
    one = draw(FaultConfig(**settings, **{**single, "duty": SPREAD["duty"]}))
    np.testing.assert_array_equal(one.duty, faults.duty)


def test_second_faults_are_of_another_kind_in_the_set_share_of_the_joints_and_move_no_first_fault() -> None:
    settings = {"n_min": 2, "n_max": 4, "kinds": ("weak", "slow", "free"), "onset_max_s": 9.0}
    alone, none = draw_both(FaultConfig(**settings))
    first, second = draw_both(FaultConfig(**settings, second_share=0.25))
    for one, other in zip(alone, first, strict=True):
        np.testing.assert_array_equal(one, other)
    assert not none.kind.any()
    both = second.kind != HEALTHY
    assert both.sum() / (first.kind != HEALTHY).sum() == pytest.approx(0.25, abs=0.02)
    assert not (both & (first.kind == HEALTHY)).any() and not (both & (first.kind == second.kind)).any()
    np.testing.assert_allclose(np.bincount(second.kind[both])[[FREE, WEAK, SLOW]] / both.sum(), 1 / 3, atol=0.04)
    assert abs(np.corrcoef(first.onset_s[both], second.onset_s[both])[0, 1]) < 0.1


def test_a_listed_joint_may_have_two_faults_and_ranges() -> None:
    events = [
        {"joint": 2, "kind": "weak", "strength": [0.1, 0.2], "onset_s": [1.0, 3.0], "duration_s": [4.0, 5.0]},
        {"joint": 2, "kind": "slipped", "offset_rad": [-0.3, 0.3], "period_s": [0.5, 1.0], "jitter": 1.0},
    ]
    first, second = draw_both(build(FaultConfig, {"events": events}, "faults"))
    weak, slipped = (FaultState(*(values[:, 1] for values in slot)) for slot in (first, second))
    assert (weak.kind == WEAK).all() and (slipped.kind == SLIPPED).all()
    assert (first.kind != HEALTHY).sum() == (second.kind != HEALTHY).sum() == 4000
    lasts = weak.end_s - weak.onset_s
    for values, low, high in (
        (weak.strength, 0.1, 0.2), (weak.onset_s, 1.0, 3.0), (lasts, 4.0, 5.0), (slipped.offset_rad, -0.3, 0.3),
        (slipped.period_s, 0.5, 1.0),
    ):  # fmt: skip
        assert values.min() >= low - 1e-12 and values.max() < high
        assert np.median(values) == pytest.approx(0.5 * (low + high), abs=0.02 * (high - low))


def test_sizes_of_kinds_that_do_not_come_make_no_difference() -> None:
    locked, named = FaultConfig(n_max=2), FaultConfig(n_max=2, weak_strength=0.3, strengths={"rough": 0.5})
    assert named.without_unused_sizes() == locked.without_unused_sizes() == locked
    for settings in ({"events": (JointFault(2),)}, {"joints": (2,)}):
        assert FaultConfig(**settings).without_unused_sizes() == FaultConfig(**settings, n_max=0)
    weak = FaultConfig(n_max=2, kinds=("weak",), weak_strength=0.3, offset_rad=0.1)
    assert weak.without_unused_sizes() == FaultConfig(n_max=2, kinds=("weak",), weak_strength=0.3)


def test_a_late_burst_comes_once_in_each_period_at_any_place_in_it() -> None:
    faults = no_faults(1, 2)
    faults.kind[:], faults.onset_s[:], faults.period_s[:], faults.duty[:] = WEAK, 0.3, 1.0, 0.25
    faults.jitter[:], faults.key[:] = 1.0, [[12345, 12346]]
    at_each_time = FaultState(*(np.repeat(values, 40_000, axis=0) for values in faults))
    acts, others = acting(at_each_time, 0.305 + 0.01 * np.arange(40_000)).T.reshape(2, -1, 100)
    np.testing.assert_allclose(acts.sum(axis=1), 25, atol=1)  # one burst of a quarter of the period, whole
    begins = acts.argmax(axis=1) / 100.0
    assert (np.abs(np.diff(acts.astype(int), axis=1)).sum(axis=1) <= 2).all()
    np.testing.assert_allclose(np.quantile(begins, [0.25, 0.5, 0.75]), [0.19, 0.375, 0.56], atol=0.06)
    assert abs(np.corrcoef(begins[:-1], begins[1:])[0, 1]) < 0.15
    assert (others.argmax(axis=1) != acts.argmax(axis=1)).mean() > 0.9
