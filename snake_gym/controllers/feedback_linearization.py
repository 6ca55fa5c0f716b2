r"""Partial feedback linearisation: joints that follow the gait as double integrators, whatever the robot weighs.

Model (wang, eq. 26-32; the joint law is also sibilska2022, eq. 32). The torques that give the joints the acceleration

    u_bar = [phi_ref_ddot + k_d phi_ref_dot] + k_p (phi_ref - phi) - k_d phi_dot

come from the nominal robot (``nominal_chain``); the brackets are the feed-forward that wang leaves open. Without it
(``feedforward: false``, eq. 32) a joint lags behind its reference; with it the error ``e = phi_ref - phi`` obeys
``e_ddot + k_d e_dot + k_p e = 0``. The reference is the gait of ``serpenoid`` with the offset of ``guidance`` passed
through ``beta_ddot = b^2 (beta_raw - beta) - 2 b beta_dot``, which gives the rates that the feed-forward needs.

Robots take joint references, not torques. The reference sent is the one at which the actuator's own law
``kp (reference - phi) - kd phi_dot`` gives the torque wanted (or, on a robot whose joints take accelerations, u_bar) on
the motion planned for the middle of the control step (muscles: as much later as their valves are slow); kp > 0:

    reference = phi(t_h) + (u(t_h) + kd phi_dot(t_h)) / kp

Rates of the head link and of the centre of mass are the difference of the last two poses (half a step old on average),
carried to the middle of the step by the unactuated rows (eq. 27). While the pose is lost they come from those alone.

The gains above correct joint errors through the model (``error_loop: model``). The plan then starts from the measured
joints, so that the actuator's own loop does not act against errors. An error beyond ``torque_limit / kp``, at which
the actuator gives full torque, is left to it: where torque is short, planned accelerations mean little.
With ``error_loop: actuator`` the plan is the gait itself, and the actuator's loop corrects all errors.

Departure from wang: the forces of obstacles, which eq. 25 has exactly, are left out.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from snake_gym.controllers.base import ControllerState, Gain, Gait, PerWorld, register_controller, searched, wrap_phase
from snake_gym.controllers.guidance import PointOfSight, SteeringConfig, wrap_angle
from snake_gym.controllers.nominal_chain import Motion, NominalChain
from snake_gym.controllers.nominal_joint import fade
from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.controllers.speed_hold import pace_of
from snake_gym.robot.measurement import Goal, Measurement, chain_angles, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec

ErrorLoop = Literal["model", "actuator"]
Pace = tuple[FloatArray, FloatArray]
"""Gait frequency [rad/s] at a step's start and its growth [rad/s^2] over the step; (W,) or one for all."""


class PflConfig(SteeringConfig, GaitConfig):
    """Settings of a steered serpenoid gait, followed by computed torque."""

    position_gain_per_s2: Annotated[float, Field(ge=0.0, le=1e6)] = 25.0
    """Gain k_p of the joint error [1/s^2]."""
    rate_gain_per_s: Annotated[float, Field(ge=0.0, le=1e4)] = 10.0
    """Gain k_d of the joint error [1/s]."""
    feedforward: bool = True
    """True to use rates and accelerations of the reference; False: wang, eq. 32."""
    heading_gain: Gain = 0.4
    """Joint offset per heading error, k_theta [rad/rad]; joints that follow closely pass its ripple on in full."""
    error_loop: ErrorLoop = "model"
    """Correction of joint errors: by the gains above through the model, or by the actuator's own loop."""
    offset_bandwidth_rad_s: Annotated[float, Field(ge=1e-3, le=1e4)] = searched(1.0, 0.2, 10.0, log=True)
    """Bandwidth b with which the joint offset follows the heading error [rad/s]."""


@register_controller("pfl", PflConfig)
class Pfl(Gait):
    """Controller of a serpenoid gait by computed torque.

    State: ``phase`` (W,) [rad] in [0, 2 pi); ``offset`` (W, 2) the filtered joint offset [rad] and its rate;
    ``joint_angle`` (W, J) and ``pose`` (W, 3), theta_N [rad] and centre of mass [m], of the last command, ``step_s``
    (W,) ago, infinite before the first; ``lost`` (W,) 1 where that pose was not valid; ``base_rate`` (W, 3) rates of
    theta_N and of the centre of mass as last estimated.
    """

    lopsided = ()

    def __init__(self, config: PflConfig, spec: RobotSpec, per_world: PerWorld | None = None) -> None:
        """Prepare the nominal model; raises ValueError for a robot with kp = 0; see ``Gait``."""
        super().__init__(config, spec, per_world)
        self._chain = NominalChain(spec)
        self._guidance = PointOfSight(spec, config.tracked_point)
        self._kp, self._kd = spec.joints("actuator.kp"), spec.joints("actuator.kd")
        if not (self._kp > 0.0).all():
            raise ValueError("robot.actuator.kp is 0; expected > 0, a reference passes no torque without it")
        self._takes_acceleration = spec.actuator.kind == "acceleration"
        self._lag_s = spec.actuator.muscle.pressure_lag_s if spec.actuator.kind == "muscle" else 0.0
        self._torque_limit = spec.joints("actuator.torque_limit_nm")
        self._largest_error = self._torque_limit / self._kp
        self._joint = np.arange(spec.n_joints)

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state with the gait at phase zero, no offset, no pose known."""
        return {
            "phase": np.zeros(n_worlds),
            "offset": np.zeros((n_worlds, 2)),
            "joint_angle": np.zeros((n_worlds, self.n_joints)),
            "pose": np.zeros((n_worlds, 3)),
            "lost": np.ones(n_worlds),
            "step_s": np.full(n_worlds, np.inf),
            "base_rate": np.zeros((n_worlds, 3)),
        }

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad], within the robot's joint limit, for the next ``dt_s`` [s]."""
        past, age_s = self._observe(measurement, state)
        raw = self._guidance.offset(measurement, goal, self.parameter)
        pace = self.pace(past, goal, state, dt_s)
        error = self._gait(state, raw, pace, 0.0)[0] - measurement.joint_angle
        if self._takes_acceleration:
            error_rate = self._gait(state, raw, pace, 0.0)[1] - measurement.joint_rate
        else:
            # The servo's own loop makes the rate a sawtooth in step with the samples: its mean counts.
            rate = past.omega[:, :-1] - past.omega[:, 1:]
            error_rate = self._gait(state, raw, pace, -0.5 * dt_s)[1] - rate

        def plan(ahead_s: float) -> tuple[FloatArray, FloatArray, FloatArray]:
            angle, rate, acceleration = self._gait(state, raw, pace, ahead_s)
            if self.config.error_loop == "actuator":
                return angle, rate, acceleration
            kp, kd = self._column("position_gain_per_s2"), self._column("rate_gain_per_s")
            left, left_rate = fade(error, error_rate, kp, kd, ahead_s)
            push = kd * left_rate + kp * left
            left = np.clip(left, -self._largest_error, self._largest_error)
            return angle - left, rate - left_rate, acceleration + push

        angle, rate, drive = plan(0.5 * dt_s)
        if not self._takes_acceleration:
            ahead_s = 0.5 * dt_s + self._lag_s
            drive = self._torque(state, (past, age_s), plan(ahead_s), ahead_s)
        self._advance(state, raw, pace, dt_s)
        limit = self.spec.joint_limit_rad
        return np.clip(angle + (drive + self._kd * rate) / self._kp, -limit, limit)

    def _torque(
        self,
        state: ControllerState,
        observed: tuple[Motion, FloatArray],
        plan: tuple[FloatArray, FloatArray, FloatArray],
        ahead_s: float,
    ) -> FloatArray:
        """Return torques (W, J) [N m] for joint angles, rates and accelerations planned ``ahead_s`` [s] from now."""
        (past, age_s), (angle, rate, acceleration) = observed, plan
        head_rate, velocity = self._chain.predict_base(past, rate, age_s + ahead_s)
        state["base_rate"][:] = np.concatenate([head_rate[:, None], velocity], axis=1)
        head = past.theta[:, -1] + ahead_s * head_rate
        motion = Motion(chain_angles(angle, head), chain_angles(rate, head_rate), velocity)
        torque = self._chain.joint_torque(motion, acceleration)
        return np.clip(torque, -self._torque_limit, self._torque_limit)

    def wanted(self, state: ControllerState) -> FloatArray:
        """Return the gait (W, J) [rad] that the joints are to follow at the moment of ``state``."""
        angle = state["phase"][:, None] + self._column("phase_shift_rad") * self._joint
        return np.asarray(self._column("amplitude_rad") * np.sin(angle) + state["offset"][:, :1])

    def pace(self, past: Motion, goal: Goal, state: ControllerState, dt_s: float) -> Pace:
        """Return the gait's pace in the coming step; ``past`` is the mean motion since the last command."""
        frequency = self.parameter["frequency_rad_s"] * pace_of(state)
        return frequency, np.zeros_like(frequency)

    def _column(self, name: str) -> FloatArray:
        """Return a parameter as (W, 1) or (1,)."""
        return self.parameter[name][..., None]

    def _gait(
        self, state: ControllerState, raw: FloatArray, pace: Pace, ahead_s: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return joint references ``ahead_s`` [s] from now, their rates and accelerations; (W, J) each.

        With ``feedforward`` off these are the present references, as if they stood still.
        """
        moving = self.config.feedforward
        at = ahead_s if moving else 0.0
        frequency, growth = pace
        beta, beta_rate = self._filtered(state, raw, at)
        band = self.parameter["offset_bandwidth_rad_s"]
        beta_growth = band**2 * (raw - beta) - 2.0 * band * beta_rate
        speed = np.broadcast_to(frequency + growth * at, raw.shape)[:, None]
        phase = state["phase"] + at * (frequency + 0.5 * at * growth)
        angle = phase[:, None] + self._column("phase_shift_rad") * self._joint
        amplitude = self._column("amplitude_rad")
        sin, cos = amplitude * np.sin(angle), amplitude * np.cos(angle)
        reference = sin + beta[:, None]
        if not moving:
            return reference, np.zeros_like(reference), np.zeros_like(reference)
        rise = np.broadcast_to(growth, raw.shape)[:, None]
        return reference, speed * cos + beta_rate[:, None], rise * cos - speed**2 * sin + beta_growth[:, None]

    def _filtered(self, state: ControllerState, raw: FloatArray, ahead_s: float) -> tuple[FloatArray, FloatArray]:
        """Return offset and its rate (W,) after ``ahead_s`` [s] with the raw offset held."""
        band = self.parameter["offset_bandwidth_rad_s"]
        left, rate = state["offset"][:, 0] - raw, state["offset"][:, 1]
        slope = rate + band * left
        fade = np.exp(-band * ahead_s)
        left = fade * (left + slope * ahead_s)
        return raw + left, fade * slope - band * left

    def _observe(self, measurement: Measurement, state: ControllerState) -> tuple[Motion, FloatArray]:
        """Note the sample; return link angles with mean rates since the last command, and the rates' age (W,) [s].

        Before the second sample the robot counts as at rest. Without a pose now or then, the last prediction gives the
        rates of the head and the centre, and carries the head's angle on.
        """
        valid, step_s = measurement.pose_valid, state["step_s"]
        known = np.isfinite(step_s) & (step_s > 0.0)
        step = np.where(known, step_s, 1.0)[:, None]
        joint_rate = np.where(known[:, None], (measurement.joint_angle - state["joint_angle"]) / step, 0.0)
        centre = tracked_point(self.spec, measurement, "centre")
        pose = np.concatenate([measurement.head_angle[:, None], centre], axis=1)
        change = pose - state["pose"]
        change[:, 0] = wrap_angle(change[:, 0])
        fresh = known & valid & (state["lost"] == 0.0)
        base = np.where(fresh[:, None], change / step, state["base_rate"])
        pose = np.where(valid[:, None], pose, state["pose"] + np.where(known, step_s, 0.0)[:, None] * base)
        state["base_rate"][:], state["pose"][:] = base, pose
        state["joint_angle"][:], state["lost"][:] = measurement.joint_angle, ~valid
        theta = chain_angles(measurement.joint_angle, pose[:, 0])
        return Motion(theta, chain_angles(joint_rate, base[:, 0]), base[:, 1:]), np.where(known, 0.5 * step_s, 0.0)

    def _advance(self, state: ControllerState, raw: FloatArray, pace: Pace, dt_s: float) -> None:
        frequency, growth = pace
        state["offset"][:] = np.stack(self._filtered(state, raw, dt_s), axis=1)
        state["phase"] += dt_s * (frequency + 0.5 * dt_s * growth)
        wrap_phase(state["phase"])
        state["step_s"][:] = dt_s
