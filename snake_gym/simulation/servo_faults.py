"""Kinds of faults of geared bus servos, registered as a user's own would be (``fault_kinds``).

A misread servo's joint goes where the servo's loop believes to be right, and the bus reports the same wrong angle. In a
silent servo the last command keeps acting, and the last reading stands.
"""

from __future__ import annotations

import numpy as np

from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.fault_kinds import FaultEffect, FaultyJoints, register_fault_kind

GROWTH_S = 20.0
"""Time in which backlash grows to its final width [s]."""
HEATING_S = 5.0
"""Time constant of a servo's heat [s]."""
LARGEST_LOAD = 1e3
"""Loads are clipped at this multiple of the bearable load."""
COOL = 0.5
"""Heat at which a servo comes back; it switches off at 1."""


def lacks_torque_limit(spec: RobotSpec) -> str:
    """Return what the robot lacks for a fault with a share of the torque limit as its strength."""
    return "" if np.isfinite(spec.joints("actuator.torque_limit_nm")).all() else "torque limit"


def lacks_implicit_limit(spec: RobotSpec) -> str:
    """Return the same where the joint's dry friction follows from it."""
    return "integrator 'implicit'" if spec.integrator != "implicit" else lacks_torque_limit(spec)


def lacks_gears(spec: RobotSpec) -> str:
    """Return what the robot lacks for backlash."""
    if spec.actuator.kind not in ("position", "torque"):
        return "position or torque servo"
    return "integrator 'implicit'" if spec.integrator != "implicit" else ""


@register_fault_kind("rough", (0.4, 0.9), ("joint_friction",), lacks_implicit_limit)
def friction_fault(joints: FaultyJoints) -> FaultEffect:
    """Dry friction of a share ``strength`` of the torque limit."""
    limit = joints.spec.joints("actuator.torque_limit_nm")[joints.joint]
    return FaultEffect(friction_nm=joints.strength * limit)


@register_fault_kind("loose", (0.2, 0.8), ("imperfect",), lacks_gears)
def backlash_fault(joints: FaultyJoints) -> FaultEffect:
    """Backlash that grows to ``strength`` rad within 20 s."""
    return FaultEffect(backlash_rad=joints.strength * np.minimum(joints.since_s / GROWTH_S, 1.0))


@register_fault_kind("overload", (0.1, 0.3), lacks=lacks_torque_limit)
def overload_fault(joints: FaultyJoints) -> FaultEffect:
    """Shutdown when hot; the servo bears a share ``strength`` of its torque limit.

    Heat follows the square of the load with a lag; the memory is the heat, negative while the servo is off. The load is
    that of the last control step, so that a trip comes up to a control step early or late.
    """
    limit = joints.spec.joints("actuator.torque_limit_nm")[joints.joint]
    torque = np.where(joints.memory < 0.0, 0.0, joints.torque_nm)
    load = np.minimum(torque / (joints.strength * limit), LARGEST_LOAD)
    heat = np.abs(joints.memory)
    heat = np.minimum(heat + (load**2 - heat) * -np.expm1(-joints.step_s / HEATING_S), 1.0)
    is_off = np.where(joints.memory < 0.0, heat > COOL, heat >= 1.0)
    return FaultEffect(powered=~is_off, memory=np.where(is_off, -heat, heat))


@register_fault_kind("misread", (0.2, 0.5))
def encoder_fault(joints: FaultyJoints) -> FaultEffect:
    """Error of the servo's own encoder, up to ``strength`` rad, anew in each control step."""
    error = joints.strength * (2.0 * joints.random - 1.0)
    return FaultEffect(shift_rad=-error, misread_rad=error)


@register_fault_kind("silent")
def bus_fault(joints: FaultyJoints) -> FaultEffect:
    """No commands, no readings."""
    return FaultEffect(reference=joints.last_command, silent=np.ones(joints.joint.size, bool))
