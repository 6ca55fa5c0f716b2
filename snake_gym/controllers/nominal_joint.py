"""Motion of a healthy joint without load: what the nominal servo makes of its references.

    position, torque, muscle:   phi_dot = clip((k_p / k_d) (phi_ref - phi), speed limit),
    acceleration:               phi_ddot = k_p (phi_ref - phi) - k_d phi_dot,

each integrated exactly over a time in which the reference stands still.
"""

from __future__ import annotations

import numpy as np

from snake_gym.robot.spec import FloatArray, RobotSpec

_CRITICAL = 1e-6
"""Distance [1/s] of the roots of the error's equation below which they count as one."""


class NominalJoints:
    """The J joints of a nominal robot."""

    def __init__(self, spec: RobotSpec) -> None:
        self.kind = spec.actuator.kind
        self.kp, self.kd = spec.joints("actuator.kp"), spec.joints("actuator.kd")
        self._fastest = spec.joints("actuator.speed_limit_rad_s")
        if self.kind != "position":
            self._fastest = np.full(spec.n_joints, np.inf)
        self._stiffness = np.divide(self.kp, self.kd, out=np.full_like(self.kp, np.inf), where=self.kd > 0.0)
        slowest = np.sqrt(self.kp).min() if self.kind == "acceleration" else self._stiffness.min()
        self.time_constant_s = 1.0 / max(float(slowest), 1e-6)
        """Time constant of the slowest joint's loop [s]."""

    def advance(self, angle: FloatArray, rate: FloatArray, reference: FloatArray, dt_s: float) -> None:
        """Move ``angle`` and ``rate`` (W, J) by ``dt_s`` [s] towards ``reference`` (W, J), in place.

        Servos follow by their angle alone; ``rate`` counts where actuators give accelerations.
        """
        error = reference - angle
        if self.kind == "acceleration":
            left, left_rate = fade(error, -rate, self.kp, self.kd, dt_s)
            angle[:], rate[:] = reference - left, -left_rate
        else:
            reach = self._fastest * dt_s
            angle += np.clip(-np.expm1(-self._stiffness * dt_s) * error, -reach, reach)


def fade(
    error: FloatArray, rate: FloatArray, kp: FloatArray, kd: FloatArray, time_s: float
) -> tuple[FloatArray, FloatArray]:
    """Return an error and its rate (W, J) after ``time_s`` [s] of ``e_ddot + kd e_dot + kp e = 0``."""
    half = 0.5 * kd
    square = half**2 - kp
    root = np.sqrt(square.astype(np.complex128))
    slow, fast = np.exp((root - half) * time_s), np.exp(-(root + half) * time_s)
    small = np.abs(root) < _CRITICAL
    spread = 0.5 * (slow + fast).real
    grown = np.where(small, time_s * slow, 0.5 * (slow - fast) / np.where(small, 1.0, root)).real
    slope = rate + half * error
    left = spread * error + grown * slope
    return left, square * grown * error + spread * slope - half * left
