"""Motion of a healthy joint without load: what the nominal servo makes of its references.

    position, torque, muscle:   phi_dot = clip((k_p / k_d) (phi_ref - phi), speed limit),
    acceleration:               phi_ddot = k_p (phi_ref - phi) - k_d phi_dot,

each integrated exactly over a time in which the reference stands still.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_gym.controllers.base import ControllerState
from snake_gym.robot.measurement import Measurement
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


class Interval(NamedTuple):
    """Intervals that have ended with a measurement, in M worlds."""

    worlds: NDArray[np.int64] | slice
    """The worlds (M,); all of them as a slice."""
    asked: FloatArray
    """Motion (M, J) [rad] that nominal joints would have made."""
    done: FloatArray
    """Motion (M, J) [rad] that was made."""
    length_s: FloatArray
    """(M, 1), or (1, 1) where all are as long: numpy is faster with one number."""


class JointIntervals:
    """Intervals, of at least ``length_s``, over which the joints' motion is compared with that of nominal ones.

    State, (W, J) each: ``start`` the angle at the interval's begin, ``model_angle`` and ``model_rate`` of the nominal
    joint that started there, the last ``reference``; ``elapsed_s`` of the interval and ``n_seen`` measurements, (W,).
    """

    def __init__(self, nominal: NominalJoints, length_s: float) -> None:
        self.nominal, self.length_s = nominal, length_s

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state with nothing seen."""
        shape = (n_worlds, self.nominal.kp.size)
        state = {name: np.zeros(shape) for name in ("start", "model_angle", "model_rate", "reference")}
        return {**state, "elapsed_s": np.zeros(n_worlds), "n_seen": np.zeros(n_worlds)}

    def advance(self, state: ControllerState, measurement: Measurement, dt_s: float) -> Interval:
        """Take the measurement after ``dt_s`` [s] into ``state``; begin anew where an interval ends, and say so."""
        angle, first = measurement.joint_angle, state["n_seen"] == 0.0
        self.nominal.advance(state["model_angle"], state["model_rate"], state["reference"], dt_s)
        state["elapsed_s"] += dt_s
        due = ~first & (state["elapsed_s"] >= self.length_s - 1e-9)
        worlds, begin = (slice(None) if mask.all() else np.flatnonzero(mask) for mask in (due, due | first))
        start = state["start"][worlds]
        asked, done = state["model_angle"][worlds] - start, angle[worlds] - start
        length_s = state["elapsed_s"][worlds][:, None]
        length_s = (length_s[:1] if (length_s == length_s[:1]).all() else length_s).copy()
        for name in ("start", "model_angle"):
            state[name][begin] = angle[begin]
        state["model_rate"][begin] = measurement.joint_rate[begin]
        state["elapsed_s"][begin] = 0.0
        state["n_seen"] += 1.0
        return Interval(worlds, asked, done, length_s)


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
