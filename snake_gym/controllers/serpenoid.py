"""Serpenoid gait: a sine wave that runs along the body, with one constant offset on all joints.

Model: ``phi_ref_i = alpha sin(omega t + (i-1) delta) + phi_o`` (sibilska2022, eq. 33), i = 1 at the tail. With
omega, delta > 0 the wave runs from head to tail and the robot moves head first. This controller does not steer: its
offset is a constant of the configuration (irani2015 corrects a drift that way).

Departure: the phase is a state, advanced by ``omega dt`` and kept in [0, 2 pi), in place of ``omega t``.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import Field

from snake_gym.config import Settings
from snake_gym.config.settings import Angle
from snake_gym.controllers.base import ControllerState, Gait, PerWorld, Swing, register_controller, searched, wrap_phase
from snake_gym.controllers.speed_hold import pace_of
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec


def fastest_followed(spec: RobotSpec) -> float:
    """Return the highest gait frequency [rad/s] that the control step can follow."""
    return 0.8 * math.pi / spec.control_dt_s


class GaitConfig(Settings):
    """Settings of the travelling wave; the defaults are those of sibilska2022, Table 3."""

    amplitude_rad: Swing = searched(math.radians(20.0), 0.05, 1.2, limit=lambda spec: spec.joint_limit_rad)
    """Amplitude alpha of the joint angles [rad]."""
    frequency_rad_s: Annotated[float, Field(ge=-1e3, le=1e3)] = searched(
        math.radians(50.0), 0.2, 12.0, log=True, limit=fastest_followed
    )
    """Frequency omega [rad/s]; negative: the wave runs backwards."""
    phase_shift_rad: Angle = searched(math.radians(30.0), math.radians(10.0), math.radians(90.0))
    """Phase shift delta between neighbouring joints [rad]."""


class SerpenoidConfig(GaitConfig):
    """Settings of an open-loop serpenoid gait."""

    offset_rad: Angle = 0.0
    """Constant offset phi_o on all joints [rad]; positive turns the head clockwise."""


def serpenoid_reference(
    phase: FloatArray,
    amplitude_rad: FloatArray | float,
    phase_shift_rad: FloatArray | float,
    n_joints: int,
    offset_rad: FloatArray | float = 0.0,
) -> FloatArray:
    """Return ``alpha sin(phase + (i-1) delta) + phi_o`` (W, J) [rad] (eq. 33).

    ``phase`` is (W,) [rad], omega t; the other parameters are numbers or (W,) arrays.
    """
    amplitude, shift, offset = (np.asarray(p)[..., None] for p in (amplitude_rad, phase_shift_rad, offset_rad))
    wave = np.sin(phase[:, None] + shift * np.arange(n_joints))
    return np.asarray(amplitude * wave + offset, dtype=np.float64)


class Wave:
    """Travelling wave ``alpha sin(phase + (i-1) delta)`` of W robots, by the parameters of ``GaitConfig``.

    The angle sum needs two sines for each world in place of one for each joint. Worlds run along the last axis, (J, W):
    numpy is several times faster on long rows.
    """

    def __init__(self, parameter: dict[str, FloatArray], n_joints: int) -> None:
        lag = parameter["phase_shift_rad"] * np.arange(n_joints)[:, None]
        self._in_phase = parameter["amplitude_rad"] * np.cos(lag)
        self._quadrature = parameter["amplitude_rad"] * np.sin(lag)
        self._frequency = parameter["frequency_rad_s"]

    def advance(self, state: ControllerState, dt_s: float, pace: FloatArray | float = 1.0) -> FloatArray:
        """Return the wave's joint angles (J, W) [rad]; advance ``phase`` by ``dt_s`` [s], ``pace`` times as fast.

        A pace in ``state``, of a speed that is held, multiplies it.
        """
        phase = state["phase"]
        reference = np.sin(phase) * self._in_phase
        reference += np.cos(phase) * self._quadrature
        phase += self._frequency * pace * pace_of(state) * dt_s
        wrap_phase(phase)
        return np.asarray(reference, dtype=np.float64)


@register_controller("serpenoid", SerpenoidConfig)
class Serpenoid(Gait):
    """Controller of an open-loop serpenoid gait. State: ``phase`` (W,) [rad] in [0, 2 pi)."""

    lopsided = ("offset_rad",)

    def __init__(self, config: SerpenoidConfig, spec: RobotSpec, per_world: PerWorld | None = None) -> None:
        super().__init__(config, spec, per_world)
        self._wave = Wave(self.parameter, spec.n_joints)

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad] within the robot's joint limit; advance the phase by ``dt_s`` [s]."""
        reference = self._wave.advance(state, dt_s)
        reference += self.parameter["offset_rad"]
        return self.limited(reference)
