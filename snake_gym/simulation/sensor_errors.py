"""Delays, noise, biases and losses of encoders and pose source that vary, added to those of ``SensorConfig``.

Late readings lie on straight lines between those of whole control steps. Contact sensors and the scanner are not late.
The pose source loses the robot at random times and repeats the last pose meanwhile; ``pose_valid`` says so.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.physics.faults import SLACK_S
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams, nearly_normal, to_unit

if TYPE_CHECKING:
    from snake_gym.simulation.randomisation import DrawnQuantities

_PARTS = ("encoder", "pose")
_NOISE = ("angle_noise_rad", "rate_noise_rad_s", "position_noise_m", "heading_noise_rad")
SENSED = (
    "encoder_delay_s", "encoder_jitter_s", "pose_delay_s", "pose_jitter_s", "angle_noise_rad", "rate_noise_rad_s",
    "position_noise_m", "heading_noise_rad", "angle_bias_rad", "position_bias_m", "heading_bias_rad", "pose_loss_hz",
    "pose_outage_s",
)  # fmt: skip
"""Quantities that change readings."""


class SensorErrors:
    """Errors of readings in W worlds, as ``drawn`` for each episode."""

    def __init__(self, drawn: DrawnQuantities, spec: RobotSpec) -> None:
        config, n_worlds, n_read = drawn.config, drawn.n_worlds, 2 * spec.n_joints + 3
        self._drawn, self._dt_s = drawn, spec.control_dt_s
        longest = max(config.highest(part + "_delay_s") + config.highest(part + "_jitter_s") for part in _PARTS)
        is_late = any(name in config.ranges for name in SENSED[:4])
        depth = math.ceil(longest / self._dt_s) + 2 if is_late else 0
        self.past: FloatArray = np.zeros((n_worlds, depth, n_read))
        """Last readings without noise and bias (W, D, 2 J + 3), a ring: angles, rates, x, y, heading."""
        self.newest: NDArray[np.int64] = np.zeros(n_worlds, np.int64)
        """Place of the present readings in it (W,)."""
        self._fresh = np.ones(n_worlds, bool)
        self.lost_until_s: FloatArray = np.zeros(n_worlds)
        """Time at which the pose source finds the robot again (W,) [s]; in the past: it has it."""
        self.held_pose: FloatArray = np.zeros((n_worlds, 3))
        """Last valid pose (W, 3): x, y [m], angle [rad]."""
        self.streams = RandomStreams("randomisation of sensors", n_worlds)
        self._ids = np.arange(n_worlds)
        self._chance: FloatArray = np.zeros(0)
        self._loss_chance, self._outage_s = np.zeros(n_worlds), np.zeros(n_worlds)
        self._delay, self._jitter = np.zeros((n_worlds, 2)), np.zeros((n_worlds, 2))
        self._noise, self._bias = np.zeros((n_worlds, len(_NOISE))), np.zeros((n_worlds, n_read))

    def begin(self, seeds: NDArray[np.int64], episodes: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        """Begin new episodes of the worlds ``rows``; arguments as of ``RandomStreams``."""
        self.streams.begin(seeds, episodes, rows)
        self._fresh[rows] = True
        self.lost_until_s[rows] = 0.0

    def take_over(self, rows: NDArray[np.int64]) -> None:
        """Take over what was drawn for the worlds ``rows``."""
        drawn, n_joints = self._drawn, self._bias.shape[1] // 2 - 1
        for k, part in enumerate(_PARTS):
            self._delay[rows, k] = drawn[part + "_delay_s"][rows] / self._dt_s
            self._jitter[rows, k] = drawn[part + "_jitter_s"][rows] / self._dt_s
        for k, name in enumerate(_NOISE):
            self._noise[rows, k] = drawn[name][rows]
        self._loss_chance[rows] = -np.expm1(-drawn["pose_loss_hz"][rows] * self._dt_s)
        self._outage_s[rows] = drawn["pose_outage_s"][rows]
        self._bias[rows, :n_joints] = drawn["angle_bias_rad"][rows].reshape(-1, n_joints)
        self._bias[rows, -3:-1] = drawn["position_bias_m"][rows]
        self._bias[rows, -1] = drawn["heading_bias_rad"][rows]

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that later samples depend on, by name: the arrays themselves."""
        return {
            "sensor_error/past": self.past, "sensor_error/newest": self.newest,
            "sensor_error/lost_until_s": self.lost_until_s, "sensor_error/held_pose": self.held_pose,
            **self.streams.state_arrays("stream/sensor_error"),
        }  # fmt: skip

    def read(self, robot: SimulatedRobot, rows: Any) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return joint angles, joint rates (M, J), head positions (M, 2) and angles (M,) as read in worlds ``rows``."""
        state, ids, n_joints = robot.state, self._ids[rows], robot.spec.n_joints
        bits = self.streams.bits(3 + self._bias.shape[1], ids)
        u = to_unit(bits[:, :3])
        self._chance = u[:, 2]
        angle, rate, _ = robot.read_servos(ids)
        seen = np.concatenate([angle, rate, state.head_xy[ids], state.link_angle[ids, -1:]], axis=1)
        if (depth := self.past.shape[1]) > 0:
            newest = self.newest[ids] = (self.newest[ids] + 1) % depth
            self.past[ids[self._fresh[ids]]] = seen[self._fresh[ids], None]  # it was always so
            self.past[ids, newest] = seen
            for k, columns in enumerate((slice(0, 2 * n_joints), slice(2 * n_joints, None))):
                late = self._delay[ids, k] + self._jitter[ids, k] * u[:, k]
                whole = np.floor(late).astype(np.int64)
                later, earlier = (self.past[ids, (newest - whole - n) % depth, columns] for n in (0, 1))
                seen[:, columns] = later + (late - whole)[:, None] * (earlier - later)
        self._fresh[ids] = False
        noise = np.repeat(self._noise[ids], (n_joints, n_joints, 2, 1), axis=1)
        seen = seen + noise * nearly_normal(bits[:, 3:]) + self._bias[ids]
        return seen[:, :n_joints], seen[:, n_joints:-3], seen[:, -3:-1], seen[:, -1]

    def settle(self, sample: Measurement, robot: SimulatedRobot, rows: Any) -> Measurement:
        """Return the sample of the worlds ``rows`` with the last valid pose where it is lost, and with the centre."""
        ids, time_s = self._ids[rows], robot.state.time_s[rows]
        now = time_s + SLACK_S
        loses = (self._chance < self._loss_chance[ids]) & (time_s > 0.0) & (now >= self.lost_until_s[ids])
        self.lost_until_s[ids] = np.where(loses, time_s + self._outage_s[ids], self.lost_until_s[ids])
        valid = now >= self.lost_until_s[ids]
        pose = np.column_stack([sample.head_xy_w, sample.head_angle])
        pose = self.held_pose[ids] = np.where(valid[:, None], pose, self.held_pose[ids])
        theta = np.cumsum(np.column_stack([pose[:, 2], sample.joint_angle[:, ::-1]]), axis=1)
        along = np.stack([np.cos(theta), np.sin(theta)], axis=2) * robot.nominal_weights[::-1, None]
        centre = np.cumsum(np.concatenate([pose[:, None, :2], along], axis=1), axis=1)[:, -1]
        return sample._replace(head_xy_w=pose[:, :2], head_angle=pose[:, 2], pose_valid=valid, centre_xy_w=centre)
