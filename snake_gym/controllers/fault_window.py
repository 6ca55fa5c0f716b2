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
from snake_gym.controllers.nominal_joint import JointIntervals, NominalJoints
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

    State: that of ``JointIntervals``, and ``window`` (W, J, n_samples, SAMPLE_SIZE), the newest sample last.
    """

    def __init__(self, spec: RobotSpec, n_samples: int) -> None:
        self.n_joints, self.n_samples = spec.n_joints, n_samples
        self._nominal = NominalJoints(spec)
        sample_s = max(SHORTEST_SAMPLE_S, self._nominal.time_constant_s)
        self._samples = JointIntervals(self._nominal, sample_s)
        self._torque_limit = spec.joints("actuator.torque_limit_nm")
        self._place = np.abs(np.linspace(-1.0, 1.0, spec.n_joints)) if spec.n_joints > 1 else np.zeros(1)
        loop = np.log(np.maximum(self._nominal.kp, 1e-9) / np.maximum(self._nominal.kd, 1e-9) * sample_s)
        reach = np.log(spec.joints("actuator.speed_limit_rad_s") * sample_s / 0.3)
        self._servo = np.clip(np.stack([loop, reach]), -2.0, 2.0)

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state with nothing seen."""
        window = np.zeros((n_worlds, self.n_joints, self.n_samples, SAMPLE_SIZE))
        return {**self._samples.initial_state(n_worlds), "window": window}

    def advance(self, state: ControllerState, measurement: Measurement, dt_s: float) -> FloatArray:
        """Take the measurement after ``dt_s`` [s] into ``state``; return lengths (W,) [s] of new samples, else 0."""
        due, asked, done, length_s = self._samples.advance(state, measurement, dt_s)
        if due.any():
            error = state["reference"] - measurement.joint_angle
            torque = self._nominal.kp * error - self._nominal.kd * measurement.joint_rate
            demand = np.clip(torque / self._torque_limit, -LARGEST_DEMAND, LARGEST_DEMAND)
            sample = np.stack([*(np.arcsinh(part / ANGLE_SCALE_RAD) for part in (asked, done, error)), demand], axis=-1)
            window = state["window"]
            window[due] = np.concatenate([window[due][:, :, 1:], sample[due][:, :, None]], axis=2)
        return length_s

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
