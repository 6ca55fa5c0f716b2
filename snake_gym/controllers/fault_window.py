"""Window of recent motion from which a learned estimator tells how each joint fares, for W worlds of any J joints.

A sample covers the time in which a healthy joint makes a good part of its motion: ``SHORTEST_SAMPLE_S``, or the loop's
time constant where that is longer, in whole control steps. Each has four numbers: the motion that the nominal servo
would have made, the motion that was made, the error that is left, and the torque that the loop asks for as a share of
the torque limit. Angles are squashed by ``asinh(angle / ANGLE_SCALE_RAD)``. Beside its own window, a joint's features
hold how much its neighbours and all other joints lag, how far out it sits, and how fast its loop and its servo are
within a sample. Nothing depends on the number of joints or their numbering.
"""

from __future__ import annotations

import numpy as np

from snake_gym.controllers.base import ControllerState
from snake_gym.controllers.nominal_joint import NominalJoints
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec

SHORTEST_SAMPLE_S = 0.1
ANGLE_SCALE_RAD = 0.05
LARGEST_DEMAND = 3.0
"""Share of the torque limit beyond which more makes no difference."""
SAMPLE_SIZE, N_CONTEXT = 4, 7
"""Numbers of a sample, and numbers beside the window."""


def n_features(n_samples: int) -> int:
    """Return the number of features of a joint for windows of ``n_samples``."""
    return n_samples * SAMPLE_SIZE + N_CONTEXT


class FaultWindow:
    """Windows of the last ``n_samples`` samples of a robot's joints.

    State, (W, J) each: ``start`` the angle at the sample's begin, ``model_angle`` and ``model_rate`` of the nominal
    joint that started there, the last ``reference``; ``window`` (W, J, n_samples, SAMPLE_SIZE), the newest sample last;
    ``elapsed_s`` of the sample and ``n_seen`` measurements, (W,).
    """

    def __init__(self, spec: RobotSpec, n_samples: int) -> None:
        self.n_joints, self.n_samples = spec.n_joints, n_samples
        self._nominal = NominalJoints(spec)
        self.sample_s = max(SHORTEST_SAMPLE_S, self._nominal.time_constant_s)
        """Least length of a sample [s]."""
        self._torque_limit = spec.joints("actuator.torque_limit_nm")
        self._place = np.abs(np.linspace(-1.0, 1.0, spec.n_joints)) if spec.n_joints > 1 else np.zeros(1)
        loop = np.log(np.maximum(self._nominal.kp, 1e-9) / np.maximum(self._nominal.kd, 1e-9) * self.sample_s)
        reach = np.log(spec.joints("actuator.speed_limit_rad_s") * self.sample_s / 0.3)
        self._servo = np.clip(np.stack([loop, reach]), -2.0, 2.0)

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state with nothing seen."""
        shape = (n_worlds, self.n_joints)
        state = {name: np.zeros(shape) for name in ("start", "model_angle", "model_rate", "reference")}
        state["window"] = np.zeros((*shape, self.n_samples, SAMPLE_SIZE))
        return {**state, "elapsed_s": np.zeros(n_worlds), "n_seen": np.zeros(n_worlds)}

    def advance(self, state: ControllerState, measurement: Measurement, dt_s: float) -> FloatArray:
        """Take the measurement after ``dt_s`` [s] into ``state``; return lengths (W,) [s] of new samples, else 0."""
        angle = measurement.joint_angle
        self._nominal.advance(state["model_angle"], state["model_rate"], state["reference"], dt_s)
        first = state["n_seen"] == 0.0
        state["elapsed_s"] += dt_s
        due = ~first & (state["elapsed_s"] >= self.sample_s - 1e-9)
        length = np.where(due, state["elapsed_s"], 0.0)
        if due.any():
            error = state["reference"] - angle
            asked, done = state["model_angle"] - state["start"], angle - state["start"]
            torque = self._nominal.kp * error - self._nominal.kd * measurement.joint_rate
            demand = np.clip(torque / self._torque_limit, -LARGEST_DEMAND, LARGEST_DEMAND)
            sample = np.stack([*(np.arcsinh(part / ANGLE_SCALE_RAD) for part in (asked, done, error)), demand], axis=-1)
            window = state["window"]
            window[due] = np.concatenate([window[due][:, :, 1:], sample[due][:, :, None]], axis=2)
        begin = due | first
        for name in ("start", "model_angle"):
            state[name][begin] = angle[begin]
        state["model_rate"][begin] = measurement.joint_rate[begin]
        state["elapsed_s"][begin] = 0.0
        state["n_seen"] += 1.0
        return length

    def features(self, window: FloatArray) -> FloatArray:
        """Return the features (W, J, D) of windows (W, J, n_samples, SAMPLE_SIZE)."""
        lag = np.abs(window[..., 0] - window[..., 1]).sum(axis=-1) / self.n_samples
        demand = np.abs(window[..., 3]).sum(axis=-1) / self.n_samples
        context = np.zeros((*lag.shape, N_CONTEXT))
        context[:, 1:, 0], context[:, :-1, 1] = lag[:, :-1], lag[:, 1:]
        others = max(self.n_joints - 1, 1)
        for place, values in ((2, lag), (3, demand)):
            context[:, :, place] = (values.sum(axis=1)[:, None] - values) / others
        context[:, :, 4] = self._place
        context[:, :, 5], context[:, :, 6] = self._servo
        return np.concatenate([window.reshape(*lag.shape, -1), context], axis=-1)
