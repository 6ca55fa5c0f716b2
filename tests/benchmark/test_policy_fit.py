"""What a policy needs of an env, what its columns mean, and which seeds are for whom."""

from __future__ import annotations

import itertools
from typing import Any

from snake_gym.benchmark.policy_fit import column_fault
from snake_gym.benchmark.scenarios import policy_settings
from snake_gym.benchmark.seed_ranges import RANGES, seed_note
from snake_gym.config import to_dict
from snake_gym.envs import ObstacleFieldConfig
from snake_gym.interface.observations import ObservationLayout
from snake_gym.robot.presets import RESILIENT_SERVO


def test_a_learned_policy_takes_its_senses_along() -> None:
    trained = to_dict(ObstacleFieldConfig())
    trained["range_scan"] |= {"n_beams": 5, "noise_m": 0.3}
    settings = policy_settings(trained)
    field_of_view = trained["range_scan"]["field_of_view_rad"]
    assert settings["range_scan"] == {"n_beams": 5, "field_of_view_rad": field_of_view, "max_range_m": 2.0}
    assert settings["contact_sensor"] == {"limit_n": trained["contact_sensor"]["limit_n"]}
    assert settings["faults"] == {"reveal": False}
    assert "field" not in settings


def test_columns_of_equal_number_with_another_meaning_are_a_fault() -> None:
    def layout(**changes: Any) -> ObservationLayout:
        return ObservationLayout(RESILIENT_SERVO, 9, **{"has_phase": True, "point": "centre", **changes})

    with_forces, with_beams = layout(contact_limit_n=1.0), layout(n_beams=20)
    assert with_forces.size == with_beams.size
    assert "is contact_force, here it is range" in str(column_fault(with_forces, with_beams))
    assert column_fault(layout(), layout(has_phase=False)) is not None
    assert column_fault(layout(), layout()) is None


def test_ranges_of_seeds_do_not_meet_and_seeds_of_another_use_are_named() -> None:
    assert RANGES[0].first == 0
    assert all(before.end == after.first for before, after in itertools.pairwise(RANGES))
    assert seed_note(499_999, 2) and seed_note(1_999_900, 101) and seed_note(1_999_900, 100) is None
