"""What a run imposes on its robot besides the references: shares of torque, speeds, clamps. Part of the run's log.

A model that is to move as the robot did needs them: a joint with a third of its torque follows as one with a softer
servo and less friction would.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from snake_gym.hardware.calibration import Calibration, straight_chain
from snake_gym.hardware.safety import SafetyLimits
from snake_gym.robot.spec import RobotSpec


@dataclass(frozen=True)
class Imposed:
    """Limits of one run with J joints."""

    torque_limit: float = 1.0
    """Share of the servos' stall torque."""
    servo_speed_rad_s: tuple[float | None, ...] | None = None
    """(J,) greatest speeds that the servos were given with their goals; None: of one, of all: their own."""
    max_speed_rad_s: float | None = None
    """Clamp of the references; those logged as sent have passed it."""
    max_acceleration_rad_s2: float | None = None
    """Likewise."""


def imposed_by(safety: SafetyLimits, spec: RobotSpec, calibration: Calibration | None) -> Imposed:
    """What a run with these settings imposes."""
    chain = calibration or straight_chain(range(spec.n_joints), spec.joint_limit_rad)
    counts = chain.goal_speeds(spec.joints("actuator.speed_limit_rad_s"))
    speeds = tuple(count * chain.rad_per_step if count else None for count in counts)
    return Imposed(safety.torque_limit, speeds, safety.max_speed_rad_s, safety.max_acceleration_rad_s2)


def speed_limits(imposed: Imposed, n_joints: int) -> tuple[float, ...]:
    """(J,) [rad/s] greatest speeds of the servos; inf: their own."""
    told = imposed.servo_speed_rad_s or (None,) * n_joints
    return tuple(math.inf if one is None else one for one in told)
