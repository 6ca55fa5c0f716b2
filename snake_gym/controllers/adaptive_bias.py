r"""Adaptive bias: a serpenoid gait that finds, while it runs, the joint bias that keeps it on course.

irani2015 adds a constant bias to all joints against the drift that a joint failure causes (eq. 7), finds it by trial,
and leaves a method to choose it to future work. Here it follows once in each gait period k from the course error e_k:

    B_k     = clip(p e_k + L_k, -limit, limit)
    L_k + 1 = clip(L_k + r clip(e_k, -band, band), -limit, limit)

e_k is the mean of ``theta_bar - course`` over the period (as angles on the circle), free of the undulation.
theta_bar is the mean link angle (sibilska2022, eq. 35); the course is the bearing of the active target, or, without
one, the direction in which the robot pointed when it started or when its last target became inactive. L is the learned
part, which makes up for the fault; p e reacts at once.

A positive bias turns a robot that moves head first clockwise (``phi_i = theta_i - theta_{i+1}``), and one that is
driven tail first (frequency and phase shift of opposite signs) the other way: both terms then change sign, and the
course points out of its tail. While the pose is invalid the bias stays as it is, and a period without a valid pose
changes nothing. Where the joint limit clips the reference, the integral makes up for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from snake_gym.controllers.base import ControllerState, Gain, Gait, PerWorld, Swing, register_controller, searched
from snake_gym.controllers.guidance import PointOfSight, TrackedPoint, bearing, wrap_angle
from snake_gym.controllers.serpenoid import GaitConfig, Wave
from snake_gym.robot.measurement import Goal, Measurement, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec


@dataclass(frozen=True)
class AdaptiveBiasConfig(GaitConfig):
    """Settings of a serpenoid gait with a learned bias."""

    course_gain: Gain = searched(0.05, 0.01, 1.0, log=True)
    """Joint bias per course error, p [rad/rad]."""
    learning_rate: Gain = searched(0.01, 0.001, 0.3, log=True)
    """Joint bias learned in one gait period per course error, r [rad/rad]."""
    bias_limit_rad: Swing = math.radians(10.0)
    """Largest joint bias [rad]."""
    learning_band_rad: Swing = math.radians(20.0)
    """Largest course error that counts for learning [rad], so that a new target far aside is not learned as a fault."""
    tracked_point: TrackedPoint = "centre"
    """Point of the robot that goes to the target."""


@register_controller("adaptive_bias", AdaptiveBiasConfig)
class AdaptiveBias(Gait):
    """Serpenoid gait with a learned bias.

    State, each (W,): ``phase`` [rad] in [0, 2 pi), ``bias_rad`` B and ``learned_rad`` L, ``course_rad`` to hold without
    a target (NaN before the first command), ``error_sin`` and ``error_cos``, sums over the present period.
    """

    def __init__(self, config: AdaptiveBiasConfig, spec: RobotSpec, per_world: PerWorld | None = None) -> None:
        super().__init__(config, spec, per_world)
        self._wave = Wave(self.parameter, spec.n_joints)
        self._guidance = PointOfSight(spec, config.tracked_point)
        backwards = self.parameter["frequency_rad_s"] * self.parameter["phase_shift_rad"] < 0.0
        self._sense = np.where(backwards, -1.0, 1.0)
        self._front = np.where(backwards, math.pi, 0.0)

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state at the start of an episode: phase zero, no bias, no course."""
        state = {name: np.zeros(n_worlds) for name in ("phase", "bias_rad", "learned_rad", "error_sin", "error_cos")}
        state["course_rad"] = np.full(n_worlds, np.nan)
        return state

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad]; advance the phase and, at the end of a period, the bias."""
        self._observe(measurement, goal, state)
        before = state["phase"].copy()
        reference = self._wave.advance(state, dt_s)
        reference += state["bias_rad"]
        self._learn(state, np.abs(state["phase"] - before) > math.pi)
        return self.limited(reference)

    def _observe(self, measurement: Measurement, goal: Goal, state: ControllerState) -> None:
        """Add the present course error to the period's sums."""
        heading = self._guidance.heading(measurement) + self._front
        course = state["course_rad"]
        valid = measurement.pose_valid
        held = np.where(np.isnan(course) | goal.active, heading, course)
        np.copyto(course, held, where=valid)
        way = goal.target_xy_w - tracked_point(self.spec, measurement, self._guidance.point)
        error = heading - np.where(goal.active, bearing(way), course)
        state["error_sin"] += np.where(valid, np.sin(error), 0.0)
        state["error_cos"] += np.where(valid, np.cos(error), 0.0)

    def _learn(self, state: ControllerState, ended: NDArray[np.bool_]) -> None:
        """Set the next period's bias and begin new sums in worlds where a period has ``ended`` (W,)."""
        sin, cos = state["error_sin"], state["error_cos"]
        taught = ended & (np.hypot(sin, cos) > 0.0)
        error = wrap_angle(np.arctan2(sin, cos))
        limit, band = self.parameter["bias_limit_rad"], self.parameter["learning_band_rad"]
        learned = state["learned_rad"]
        lesson = self.parameter["learning_rate"] * np.clip(error, -band, band)
        np.copyto(learned, np.clip(learned + self._sense * lesson, -limit, limit), where=taught)
        wanted = self._sense * self.parameter["course_gain"] * error + learned
        np.copyto(state["bias_rad"], np.clip(wanted, -limit, limit), where=taught)
        sin[ended] = 0.0
        cos[ended] = 0.0
