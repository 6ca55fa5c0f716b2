"""From the true state to what the robot's sensors say: joint encoders and a pose source on the head link.

Only here do noise and resolution enter. The centre of mass is not sensed: it is worked out from the measured head pose
and joint angles with the nominal geometry, as on the real robot.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from snake_gym.robot.measurement import Measurement, centre_offset, link_angles
from snake_gym.simulation.encoders import EncoderFaultConfig, Encoders, check_size
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams


@dataclass(frozen=True)
class SensorConfig:
    """Standard deviations of white noise, and the encoders' resolution; all zero: perfect sensors."""

    angle_noise_rad: float = 0.0
    rate_noise_rad_s: float = 0.0
    position_noise_m: float = 0.0
    heading_noise_rad: float = 0.0
    encoder_step_rad: float = 0.0
    """Joint angles are rounded to multiples of this (2 pi / 4096 for a 12 bit encoder)."""
    encoder_faults: EncoderFaultConfig = field(default_factory=EncoderFaultConfig)

    def __post_init__(self) -> None:
        for name, value in self._sizes().items():
            check_size(f"sensors.{name}", value)

    def _sizes(self) -> dict[str, float]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "encoder_faults"}

    @property
    def is_perfect(self) -> bool:
        """Whether sensors that have not failed tell the truth."""
        return not any(self._sizes().values())


def measure(
    robot: SimulatedRobot,
    config: SensorConfig,
    streams: RandomStreams,
    rows: Any = slice(None),
    encoders: Encoders | None = None,
) -> Measurement:
    """One sample of every sensor of the worlds of ``rows`` (M of them; all by default); fresh arrays (M, ...).

    ``encoders`` holds the encoder faults of the present episodes; None: all encoders are good.
    """
    state = robot.state
    n_joints = robot.spec.n_joints
    angle, rate = robot.joint_angle()[rows], robot.joint_rate()[rows]
    head_xy, head_angle = state.head_xy[rows].copy(), state.link_angle[rows, -1].copy()
    valid = np.ones(head_angle.size, dtype=bool)
    encoders_good = encoders is None or not encoders.config.any
    if config.is_perfect and encoders_good:
        return Measurement(angle, rate, head_xy, head_angle, valid, state.centre_xy[rows].copy())
    if not config.is_perfect:
        noise = streams.normal(2 * n_joints + 3, rows)
        angle = angle + config.angle_noise_rad * noise[:, :n_joints]
        rate = rate + config.rate_noise_rad_s * noise[:, n_joints : 2 * n_joints]
        head_xy += config.position_noise_m * noise[:, -3:-1]
        head_angle += config.heading_noise_rad * noise[:, -1]
    if encoders is not None:
        angle, rate = encoders.read(angle, rate, state.time_s[rows], rows)
    if config.encoder_step_rad > 0.0:
        angle = np.rint(angle / config.encoder_step_rad) * config.encoder_step_rad
    sample = Measurement(angle, rate, head_xy, head_angle, valid)
    return sample._replace(centre_xy_w=head_xy + centre_offset(robot.spec, link_angles(sample)))
