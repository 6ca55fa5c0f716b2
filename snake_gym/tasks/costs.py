"""Costs of steps that strain the robot, apart from the reward (constrained learning).

The convention is that of Safety-Gymnasium (Ji et al. 2023): every step, ``info["cost"]`` is the sum of the costs that
are on, and ``info["cost/<name>"]`` is each of them. A cost is in [0, 1], and 0 where nothing is wrong; it is never part
of the reward. A threshold switches its cost on; where all are None, there is nothing to compute, and no infos.

Costs use the truth: true angles, forces and parameters, and what each motor bore over the whole control step. A motor's
torque is bounded by its limit, and what a mechanical stop or a seized gear holds is no load of it.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, Settings
from snake_gym.config.settings import Positive, PositiveShare
from snake_gym.robot.protocol import Robot
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.fault_kinds import HEATING_S

COST_NOTES = {
    "joint_limit": "share of the joints that are at or beyond `costs.joint_limit_share` of their limit",
    "torque": "share of the motors whose torque (root mean square over the step) is at or beyond `costs.torque_share` "
    "of its limit",
    "contact_force": "1 where the force on some link (mean over the step) is beyond `costs.contact_force_n`; 0 without "
    "obstacles",
    "heat": "share of the motors whose heat is at or beyond `costs.heat_share`",
}
"""Meaning of each cost."""


class CostConfig(Settings):
    """Thresholds of the costs, each of them in [0, 1] and in `info` as `cost/<name>`; null: this one is off."""

    joint_limit_share: PositiveShare | None = None
    """Cost joint_limit: share of a joint's limit, which is the smaller of joint_limit_rad and joint_stop_rad."""
    torque_share: PositiveShare | None = None
    """Cost torque: share of a motor's torque limit."""
    contact_force_n: Positive | None = None
    """Cost contact_force: force on a link."""
    heat_share: PositiveShare | None = None
    """Cost heat: share of the heat at continuous full torque."""
    heating_s: Positive = HEATING_S
    """Time constant with which a motor's heat follows (torque / torque limit)^2; it begins cold."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the costs that are on."""
        thresholds = (self.joint_limit_share, self.torque_share, self.contact_force_n, self.heat_share)
        return tuple(name for name, limit in zip(COST_NOTES, thresholds, strict=True) if limit is not None)


class Costs:
    """Costs of W robots, one at least. Raises ConfigError for a cost that the robot cannot have."""

    def __init__(self, config: CostConfig, robot: Robot) -> None:
        spec = robot.spec
        self.config, self.robot = config, robot
        self.values: dict[str, FloatArray] = {name: np.zeros(robot.n_worlds) for name in config.names}
        """Costs of the last step (W,), by name."""
        self.heat: FloatArray = np.zeros((robot.n_worlds, spec.n_joints))
        """Heat of each motor (W, J); 1: that of continuous full torque."""
        loads = [name for name in ("torque", "heat") if name in config.names]
        if loads:
            if not np.isfinite(spec.joints("actuator.torque_limit_nm")).all():
                raise ConfigError(
                    f"costs.{loads[0]}_share is set, but {spec.name} has no torque limit; expected a finite "
                    "actuator.torque_limit_nm, or null"
                )
            robot.note_torques()
        limit = np.minimum(spec.joints("joint_limit_rad"), spec.joints("joint_stop_rad"))
        self._angle = limit * (config.joint_limit_share or math.inf)
        self._gain = -math.expm1(-spec.control_dt_s / config.heating_s)

    def begin(self, rows: NDArray[np.int64]) -> None:
        """Begin new episodes in the worlds of ``rows``."""
        self.heat[rows] = 0.0
        for values in self.values.values():
            values[rows] = 0.0

    def count(self, live: NDArray[np.bool_]) -> None:
        """Work out the costs of the step that the worlds ``live`` (W,) took; those of others are 0."""
        config, state, values = self.config, self.robot.state, self.values
        if config.joint_limit_share is not None:
            values["joint_limit"][:] = (np.abs(self.robot.joint_angle()) >= self._angle).mean(axis=1)
        if "torque" in values or "heat" in values:
            load2 = self.robot.servos.torque_square / self.robot.params.torque_limit**2
            if config.torque_share is not None:
                values["torque"][:] = (load2 >= config.torque_share**2).mean(axis=1)
            if config.heat_share is not None:
                self.heat += np.where(live[:, None], self._gain * (load2 - self.heat), 0.0)
                values["heat"][:] = (self.heat >= config.heat_share).mean(axis=1)
        if config.contact_force_n is not None:
            force2 = state.contact_force[..., 0] ** 2 + state.contact_force[..., 1] ** 2
            values["contact_force"][:] = force2.max(axis=1) > config.contact_force_n**2
        for cost in values.values():
            cost *= live

    def infos(self) -> dict[str, FloatArray]:
        """Return the sum of the costs of the last step and each of them: fresh arrays (W,)."""
        each = {f"cost/{name}": values.copy() for name, values in self.values.items()}
        total: FloatArray = np.sum(list(self.values.values()), axis=0)
        return {"cost": total, **each}

    def state_arrays(self) -> dict[str, FloatArray]:
        """Return everything that changes, by name: the arrays themselves."""
        return {"cost_heat": self.heat, **{f"cost/{name}": values for name, values in self.values.items()}}
