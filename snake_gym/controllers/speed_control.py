r"""Heading and speed control by computed torque: the joints follow a gait whose frequency holds the robot's speed.

Model: a consistent version of haghshenas2022, section 2.3, which inverts the dynamics for joints, heading and position
at once (eq. 44-51). J joint torques cannot do that: they are internal forces, and leave the centre of mass to friction.
So the torques drive the joints (``feedback_linearization``); the joint offset controls heading, and speed follows from

    omega_dot = k (v_d - v),   omega within 0 and its limit

with v the velocity of the centre of mass along the mean link angle, from the last two poses. Where v grows as
``kappa omega``, the speed approaches v_d with the time constant ``1 / (k kappa)``. Without an active goal v_d is 0.
Muscles split the wanted torque of their joint by themselves (``physics.muscles``).
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from pydantic import Field

from snake_gym.controllers.base import ControllerState, Gain, register_controller, searched
from snake_gym.controllers.feedback_linearization import ErrorLoop, Pace, Pfl, PflConfig
from snake_gym.controllers.nominal_chain import Motion
from snake_gym.robot.measurement import Goal
from snake_gym.robot.spec import FloatArray


class SpeedConfig(PflConfig):
    """Settings of a steered gait that holds a speed."""

    speed_m_s: Gain = searched(0.1, 0.01, 1.0, log=True)
    """Wanted speed v_d along the mean direction of the links [m/s], where the goal has none."""
    frequency_rad_s: Annotated[float, Field(ge=-1e3, le=1e3)] = 0.0
    """Frequency omega at the start of an episode [rad/s]."""
    error_loop: ErrorLoop = "actuator"
    """Correction of joint errors, by default the actuator's: valves are too slow for the model's gains."""
    frequency_gain_rad_m: Annotated[float, Field(ge=0.0, le=1e4)] = 10.0
    """Growth k of the frequency per missing speed [rad/s^2 per m/s]."""
    frequency_limit_rad_s: Annotated[float, Field(ge=1e-6, le=1e3)] = 4.0 * math.pi
    """Highest gait frequency [rad/s]."""


@register_controller("speed", SpeedConfig)
class SpeedControl(Pfl):
    """Controller of a steered gait at a speed. State: that of ``Pfl`` and ``frequency`` (W,) [rad/s]."""

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state of ``Pfl`` and the frequency at the start."""
        start = np.broadcast_to(self.parameter["frequency_rad_s"], (n_worlds,)).copy()
        return {**super().initial_state(n_worlds), "frequency": start}

    def pace(self, past: Motion, goal: Goal, state: ControllerState, dt_s: float) -> Pace:
        """Return the frequency (W,) [rad/s] and its growth [rad/s^2] towards the wanted speed."""
        heading = past.theta.sum(axis=1) / past.theta.shape[1]
        speed = np.cos(heading) * past.velocity[:, 0] + np.sin(heading) * past.velocity[:, 1]
        wanted = self.parameter["speed_m_s"] if goal.speed_m_s is None else goal.speed_m_s
        missing = np.where(goal.active, wanted, 0.0) - speed
        frequency = state["frequency"].copy()
        faster = frequency + dt_s * self.parameter["frequency_gain_rad_m"] * missing
        limited = np.minimum(np.maximum(faster, 0.0), self.parameter["frequency_limit_rad_s"])
        return frequency, (limited - frequency) / dt_s

    def _advance(self, state: ControllerState, raw: FloatArray, pace: Pace, dt_s: float) -> None:
        super()._advance(state, raw, pace, dt_s)
        state["frequency"] += dt_s * pace[1]
