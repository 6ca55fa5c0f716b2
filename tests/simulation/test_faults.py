"""Drawn faults: numbers, joints, kinds and times."""

import numpy as np
import pytest

from snake_gym.physics.faults import FREE, HEALTHY, LOCKED, WEAK
from snake_gym.physics.state import FaultState, no_faults
from snake_gym.simulation.faults import FaultConfig, draw_faults
from snake_gym.simulation.streams import RandomStreams


def draw(config: FaultConfig, n_worlds: int = 4000, seed: int = 0) -> FaultState:
    streams = RandomStreams("faults", n_worlds)
    rows = np.arange(n_worlds)
    streams.begin(rows + seed, np.zeros(n_worlds, np.int64))
    faults = no_faults(n_worlds, 9)
    draw_faults(config, streams, faults, rows)
    return faults


def test_number_of_failed_joints_and_their_places_are_uniform() -> None:
    faults = draw(FaultConfig(n_min=1, n_max=3))
    count = (faults.kind != HEALTHY).sum(axis=1)
    assert set(count) == {1, 2, 3}
    share = np.bincount(count, minlength=4)[1:] / 4000
    np.testing.assert_allclose(share, 1 / 3, atol=0.03)
    per_joint = (faults.kind != HEALTHY).mean(axis=0)
    np.testing.assert_allclose(per_joint, 2 / 9, atol=0.03)


def test_kinds_and_onsets_come_from_the_configured_sets() -> None:
    faults = draw(
        FaultConfig(n_min=2, n_max=2, kinds=("free", "weak"), onset_min_s=2.0, onset_max_s=6.0, weak_strength=0.4)
    )
    failed = faults.kind != HEALTHY
    assert set(faults.kind[failed]) == {FREE, WEAK}
    assert 0.45 < (faults.kind[failed] == FREE).mean() < 0.55
    assert faults.onset_s[failed].min() >= 2.0 and faults.onset_s[failed].max() <= 6.0
    assert faults.onset_s[failed].std() > 1.0
    assert np.isinf(faults.end_s).all()
    assert (faults.strength == 0.4).all()


def test_a_list_of_joints_counts_from_one_at_the_tail() -> None:
    faults = draw(FaultConfig(joints=(3, 5, 9)), 5)
    expected = np.zeros((5, 9), int)
    expected[:, [2, 4, 8]] = LOCKED
    np.testing.assert_array_equal(faults.kind, expected)


def test_changing_one_setting_moves_nothing_else() -> None:
    base, later = draw(FaultConfig(n_max=3)), draw(FaultConfig(n_max=3, onset_max_s=9.0, kinds=("free",)))
    np.testing.assert_array_equal(base.kind != HEALTHY, later.kind != HEALTHY)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_min": 3, "n_max": 2}, "n_min is 3, n_max 2"),
        ({"onset_min_s": 5.0}, "onset_min_s is 5, onset_max_s 0"),
        ({"kinds": ()}, "kinds is empty"),
        ({"weak_strength": 0.0}, "weak_strength is 0"),
        ({"duration_s": 0.0}, "duration_s is 0"),
    ],
)
def test_impossible_settings_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FaultConfig(**settings)


def test_joints_are_checked_against_the_robot() -> None:
    with pytest.raises(ValueError, match="joint 12; expected 1 to 9"):
        FaultConfig(joints=(12,)).check_joints(9)
    with pytest.raises(ValueError, match="each joint once"):
        FaultConfig(joints=(2, 2)).check_joints(9)
    with pytest.raises(ValueError, match="n_max is 10; expected at most 9"):
        FaultConfig(n_max=10).check_joints(9)
