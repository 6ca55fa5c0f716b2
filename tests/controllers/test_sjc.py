"""SJC: the serpenoid gait plus the steering offset, for each world by itself."""

from __future__ import annotations

import numpy as np
import pytest

from snake_gym.controllers.guidance import PointOfSight
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.controllers.sjc import Sjc, SjcConfig
from tests.controllers.worlds import N_JOINTS, SPEC, random_world


@pytest.mark.parametrize("point", ["centre", "head"])
def test_command_is_gait_plus_offset(point: str) -> None:
    config = SjcConfig(heading_gain=0.4, offset_limit_rad=0.5, tracked_point=point)  # type: ignore[arg-type]
    controller = Sjc(config, SPEC)
    measurement, goal = random_world(40)
    goal = goal._replace(active=np.arange(40) % 4 != 0)
    error = PointOfSight(SPEC, point).heading_error(measurement, goal)  # type: ignore[arg-type]
    offset = np.where(goal.active, np.clip(0.4 * error, -0.5, 0.5), 0.0)
    state = controller.initial_state(40)
    state["phase"][:] = np.linspace(0.0, 6.0, 40)
    expected = serpenoid_reference(
        state["phase"].copy(), config.amplitude_rad, config.phase_shift_rad, N_JOINTS, offset
    )
    np.testing.assert_allclose(controller.command(measurement, goal, state, 0.2), expected, atol=1e-12)
