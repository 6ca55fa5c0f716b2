"""Single-joint control (SJC): the serpenoid gait steered by point-of-sight guidance (sibilska2022, eq. 32-36).

The joint loop of eq. 32, ``u = k_p (phi_ref - phi) - k_d phi_dot``, belongs to the robot's actuator; this controller
gives its references.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from snake_gym.controllers.base import PerWorld
from snake_gym.controllers.guidance import PointOfSight, SteeringConfig, steering_offset
from snake_gym.controllers.serpenoid import GaitConfig, Serpenoid
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec


@dataclass(frozen=True)
class SjcConfig(SteeringConfig, GaitConfig):
    """A serpenoid gait steered towards the target."""

    def __post_init__(self) -> None:
        GaitConfig.__post_init__(self)
        SteeringConfig.__post_init__(self)


class Sjc(Serpenoid):
    """Steered serpenoid gait. State: ``phase`` (W,) [rad] in [0, 2 pi)."""

    config_type: ClassVar[type[Any]] = SjcConfig

    def __init__(self, config: Any, spec: RobotSpec, per_world: PerWorld | None = None) -> None:
        super().__init__(config, spec, per_world)
        self._guidance = PointOfSight(spec, config.tracked_point)

    def _largest_reference(self) -> float:
        return float(np.max(self._parameter["amplitude_rad"] + self._parameter["offset_limit_rad"]))

    def offset(self, measurement: Measurement, goal: Goal) -> FloatArray:
        """Steering offset phi_o (W,) [rad]; 0 where the goal is inactive."""
        error = self._guidance.heading_error(measurement, goal)
        gain, limit = self._parameter["heading_gain"], self._parameter["offset_limit_rad"]
        return steering_offset(error, goal.active, gain, limit)
