"""Motion of a healthy joint without load: what the nominal servo makes of its references.

    position, torque, muscle:   phi_dot = clip((k_p / k_d) (phi_ref - phi), speed limit),
    acceleration:               phi_ddot = k_p (phi_ref - phi) - k_d phi_dot,

each integrated exactly over a time in which the reference stands still.
"""

from __future__ import annotations

import numpy as np

from snake_gym.robot.spec import FloatArray, RobotSpec

_TERMS = 24
"""Terms of the exponential series; the matrix is halved until its norm is below one."""


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
            response = _oscillator_response(self.kp, self.kd, dt_s)
            before = rate.copy()
            angle += (1.0 - response[:, 0, 0]) * error + response[:, 0, 1] * before
            rate[:] = -response[:, 1, 0] * error + response[:, 1, 1] * before
        else:
            reach = self._fastest * dt_s
            angle += np.clip(-np.expm1(-self._stiffness * dt_s) * error, -reach, reach)


def _oscillator_response(kp: FloatArray, kd: FloatArray, dt_s: float) -> FloatArray:
    """Return the map (J, 2, 2) of (phi - phi_ref, phi_dot) over ``dt_s`` [s] of ``phi_ddot = kp error - kd phi_dot``.

    It is the exponential of [[0, 1], [-kp, -kd]] dt, by its series.
    """
    matrix = np.zeros((kp.size, 2, 2))
    matrix[:, 0, 1] = dt_s
    matrix[:, 1, 0] = -kp * dt_s
    matrix[:, 1, 1] = -kd * dt_s
    halvings = max(0, int(np.ceil(np.log2(max(1.0, float(np.abs(matrix).sum(axis=(1, 2)).max()))))))
    matrix /= 2.0**halvings
    term = np.tile(np.eye(2), (kp.size, 1, 1))
    response = term.copy()
    for k in range(1, _TERMS):
        term = term @ matrix / k
        response = response + term
    for _ in range(halvings):
        response = response @ response
    return response
