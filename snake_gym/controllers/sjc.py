"""Single-joint control (SJC): the serpenoid gait steered by point-of-sight guidance (sibilska2022, eq. 32-36).

The joint loop of eq. 32, ``u = k_p (phi_ref - phi) - k_d phi_dot``, belongs to the robot's actuator; this controller
gives its references.
"""

from __future__ import annotations

from snake_gym.controllers.base import ControllerState, Gait, PerWorld, register_controller
from snake_gym.controllers.guidance import PointOfSight, SteeringConfig
from snake_gym.controllers.serpenoid import GaitConfig, Wave
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec


class SjcConfig(SteeringConfig, GaitConfig):
    """Settings of a serpenoid gait steered towards the target."""


@register_controller("sjc", SjcConfig)
class Sjc(Gait):
    """Controller of a steered serpenoid gait. State: ``phase`` (W,) [rad] in [0, 2 pi)."""

    lopsided = ()

    def __init__(self, config: SjcConfig, spec: RobotSpec, per_world: PerWorld | None = None) -> None:
        super().__init__(config, spec, per_world)
        self._wave = Wave(self.parameter, spec.n_joints)
        self._guidance = PointOfSight(spec, config.tracked_point)

    def steered(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return the wave with its offset (J, W) [rad], beyond limits too; advance the phase by ``dt_s`` [s]."""
        reference = self._wave.advance(state, dt_s)
        reference += self._guidance.offset(measurement, goal, self.parameter)
        return reference

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad] within the robot's joint limit; advance the phase by ``dt_s`` [s]."""
        return self.limited(self.steered(measurement, goal, state, dt_s))
