"""The serpenoid gait: a sine wave that runs along the body, with one constant offset on all joints.

Model: ``phi_ref_i = alpha sin(omega t + (i-1) delta) + phi_o`` (sibilska2022, eq. 33), i = 1 at the tail. With
omega, delta > 0 the wave runs from head to tail and the robot moves head first. This controller does not steer: its
offset is a constant of the configuration (irani2015 corrects a drift that way).

Departure: the phase is a state, advanced by ``omega dt`` and kept in [0, 2 pi), in place of ``omega t``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from snake_gym.controllers.base import (
    ControllerState,
    PerWorld,
    check_range,
    per_world_parameters,
    searched,
    wrap_phase,
)
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec


def fastest_followed(spec: RobotSpec) -> float:
    """Gait frequency [rad/s] that the control step can still follow."""
    return 0.8 * math.pi / spec.control_dt_s


@dataclass(frozen=True)
class GaitConfig:
    """The travelling wave; the defaults are those of sibilska2022, Table 3."""

    amplitude_rad: float = searched(math.radians(20.0), 0.05, 1.2, limit=lambda spec: spec.joint_limit_rad)
    """alpha [rad]."""
    frequency_rad_s: float = searched(math.radians(50.0), 0.2, 12.0, log=True, limit=fastest_followed)
    """omega [rad/s]; negative: the wave runs backwards."""
    phase_shift_rad: float = searched(math.radians(30.0), math.radians(10.0), math.radians(90.0))
    """delta, between neighbouring joints [rad]."""

    def __post_init__(self) -> None:
        check_range("amplitude_rad", self.amplitude_rad, 0.0, math.pi, "0 to pi")
        check_range("frequency_rad_s", self.frequency_rad_s, -1e3, 1e3, "a number within +-1000")
        check_range("phase_shift_rad", self.phase_shift_rad, -math.pi, math.pi, "-pi to pi")


@dataclass(frozen=True)
class SerpenoidConfig(GaitConfig):
    """An open-loop serpenoid gait."""

    offset_rad: float = 0.0
    """Constant offset phi_o on all joints [rad]; positive turns the head clockwise."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("offset_rad", self.offset_rad, -math.pi, math.pi, "-pi to pi")


def serpenoid_reference(
    phase: FloatArray,
    amplitude_rad: FloatArray | float,
    phase_shift_rad: FloatArray | float,
    n_joints: int,
    offset_rad: FloatArray | float = 0.0,
) -> FloatArray:
    """``alpha sin(phase + (i-1) delta) + phi_o`` (W, J) [rad] (eq. 33).

    ``phase`` is (W,) [rad], omega t; the other parameters are numbers or (W,) arrays.
    """
    amplitude, shift, offset = (np.asarray(p)[..., None] for p in (amplitude_rad, phase_shift_rad, offset_rad))
    wave = np.sin(phase[:, None] + shift * np.arange(n_joints))
    return np.asarray(amplitude * wave + offset, dtype=np.float64)


class Serpenoid:
    """Open-loop serpenoid gait. State: ``phase`` (W,) [rad] in [0, 2 pi)."""

    config_type: ClassVar[type[Any]] = SerpenoidConfig

    def __init__(self, config: Any, spec: RobotSpec, per_world: PerWorld | None = None) -> None:
        """``per_world`` gives a parameter (W,) one value for each world; see ``per_world_parameters``."""
        self.config = config
        self._n_joints = spec.n_joints
        self._limit = spec.joint_limit_rad
        self._parameter = per_world_parameters(config, per_world)
        # sin(phase + k delta) by the angle sum: two sines for each world in place of one for each joint. Worlds run
        # along the last axis in here, (J, W): numpy is several times faster on long rows.
        lag = self._parameter["phase_shift_rad"] * np.arange(self._n_joints)[:, None]
        self._reaches_limit = self._largest_reference() > self._limit
        self._in_phase = self._parameter["amplitude_rad"] * np.cos(lag)
        self._quadrature = self._parameter["amplitude_rad"] * np.sin(lag)

    @property
    def n_joints(self) -> int:
        return self._n_joints

    def initial_state(self, n_worlds: int) -> ControllerState:
        """All gaits at phase zero."""
        return {"phase": np.zeros(n_worlds)}

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Joint references (W, J) [rad], within the robot's joint limit; advances the phase by ``dt_s`` [s]."""
        return self._clamp(self._reference(measurement, goal, state, dt_s))

    def phase(self, state: ControllerState) -> FloatArray:
        """Gait phase (W,) [rad] of the tail joint."""
        return state["phase"]

    def offset(self, measurement: Measurement, goal: Goal) -> FloatArray:
        """Joint offset phi_o [rad], (W,) or one for all worlds."""
        return self._parameter["offset_rad"]

    def _largest_reference(self) -> float:
        """Bound on |reference| [rad]: where it is within the joint limit, there is nothing to clamp."""
        return float(np.max(self._parameter["amplitude_rad"] + np.abs(self._parameter["offset_rad"])))

    def _reference(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Joint references (J, W) [rad] before the limit; advances the phase."""
        phase = state["phase"]
        reference = np.sin(phase) * self._in_phase
        reference += np.cos(phase) * self._quadrature
        reference += self.offset(measurement, goal)
        phase += self._parameter["frequency_rad_s"] * dt_s
        wrap_phase(phase)
        return reference

    def _clamp(self, reference: FloatArray) -> FloatArray:
        """References (J, W) within the joint limit, as (W, J)."""
        if self._reaches_limit:
            np.maximum(reference, -self._limit, out=reference)
            np.minimum(reference, self._limit, out=reference)
        return reference.T.copy()
