"""Whether a policy's robot and observations are those that it was trained with."""

from __future__ import annotations

from typing import Any

from snake_gym.benchmark.policy_fit import column_fault
from snake_gym.interface.observations import ObservationLayout
from snake_gym.robot.presets import RESILIENT_SERVO


def layout(spec: Any = RESILIENT_SERVO, **changes: Any) -> ObservationLayout:
    return ObservationLayout(spec, 9, **{"has_phase": True, "point": "centre", **changes})


def test_columns_of_equal_number_that_mean_something_else_are_a_fault() -> None:
    with_forces, with_beams = layout(contact_limit_n=1.0), layout(n_beams=20)
    assert with_forces.size == with_beams.size
    fault = column_fault(with_forces, with_beams)
    assert fault is not None
    assert "is contact_force, here it is range" in fault
    assert column_fault(layout(), layout(has_phase=False)) is not None
