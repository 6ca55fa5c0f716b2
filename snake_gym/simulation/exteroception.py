"""Sensors for what surrounds the robot: contact force on each link, and a range scan from the head.

Contact: each link feels the force of the obstacles on it, in its own frame (x along the link, y to its left), averaged
over the control step, as strain gauges below a link's shell do; then noise, dead band and saturation, per component.

Range scan: B beams spread evenly over the field of view, from the centre of the head link, as of a small laser scanner;
one scan per control step. A beam gives the distance to the first obstacle; without an echo within ``max_range_m``, or
when the echo is lost (drop-out), it gives ``max_range_m``. The robot's own body is not seen.

Each sensor has random streams of its own: switching the noise of one on does not move another's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.obstacles.ray_casting import cast_rays
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.encoders import Encoders
from snake_gym.simulation.sensors import SensorConfig, measure
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams


@dataclass(frozen=True)
class ContactSensorConfig:
    """Force sensors of the links."""

    noise_n: float = 0.0
    """Standard deviation of white noise [N]."""
    threshold_n: float = 0.0
    """Smaller forces read as 0."""
    limit_n: float = 100.0
    """Larger forces read as this."""

    def __post_init__(self) -> None:
        for name in ("noise_n", "threshold_n"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) >= 0.0):
                raise ValueError(f"contact_sensor.{name} is {getattr(self, name):g}; expected finite and >= 0")
        if not (math.isfinite(self.limit_n) and self.limit_n > self.threshold_n):
            raise ValueError(
                f"contact_sensor.limit_n is {self.limit_n:g}; expected finite and > threshold_n {self.threshold_n:g}"
            )


_LONGEST_BEAM_M = 1000.0


@dataclass(frozen=True)
class RangeScanConfig:
    """The scanner on the head."""

    n_beams: int = 16
    field_of_view_rad: float = math.radians(240.0)
    """From the first beam on the right to the last one on the left, symmetric about the head's direction."""
    max_range_m: float = 2.0
    noise_m: float = 0.0
    """Standard deviation of white noise [m]."""
    dropout: float = 0.0
    """Share of the echoes that are lost."""

    def __post_init__(self) -> None:
        if not 1 <= self.n_beams <= 1024:
            raise ValueError(f"range_scan.n_beams is {self.n_beams}; expected 1 to 1024")
        if not 0.0 <= self.field_of_view_rad <= 2.0 * math.pi:
            raise ValueError(f"range_scan.field_of_view_rad is {self.field_of_view_rad:g}; expected in [0, 2 pi]")
        if not 0.0 < self.max_range_m <= _LONGEST_BEAM_M:
            raise ValueError(
                f"range_scan.max_range_m is {self.max_range_m:g}; expected > 0 and at most {_LONGEST_BEAM_M:g}"
            )
        if not (math.isfinite(self.noise_m) and self.noise_m >= 0.0):
            raise ValueError(f"range_scan.noise_m is {self.noise_m:g}; expected finite and >= 0")
        if not 0.0 <= self.dropout <= 1.0:
            raise ValueError(f"range_scan.dropout is {self.dropout:g}; expected in [0, 1]")

    def beam_angles(self) -> FloatArray:
        """Directions of the beams (B,) [rad] relative to the head, from the right to the left.

        A full circle has its beams at equal angles, none twice.
        """
        n, view = self.n_beams, self.field_of_view_rad
        if n == 1:
            return np.zeros(1)
        if view >= 2.0 * math.pi:
            return np.asarray((np.arange(n) - (n - 1) / 2.0) * (2.0 * math.pi / n), dtype=np.float64)
        return np.asarray(np.linspace(-view / 2.0, view / 2.0, n), dtype=np.float64)


class SensorSuite:
    """All sensors of W simulated robots.

    Args:
        sensors: encoders and pose source.
        n_worlds: W.
        n_joints: J.
        contact: force sensors; None: the robot has none.
        range_scan: scanner; None: the robot has none.
    """

    def __init__(
        self,
        sensors: SensorConfig,
        n_worlds: int,
        n_joints: int,
        contact: ContactSensorConfig | None = None,
        range_scan: RangeScanConfig | None = None,
    ) -> None:
        self.sensors = sensors
        self.contact = contact
        self.range_scan = range_scan
        self.encoders = Encoders(sensors.encoder_faults, n_worlds, n_joints)
        has = {"sensors": sensors, "contact_sensor": contact, "range_scan": range_scan}
        self.streams = {name: RandomStreams(name, n_worlds) for name, config in has.items() if config is not None}
        self._beam_angle = range_scan.beam_angles() if range_scan is not None else np.zeros(0)

    def begin(self, seeds: NDArray[np.int64], episodes: NDArray[np.int64], rows: Any) -> None:
        """New episodes in the worlds of ``rows``; arguments as of ``RandomStreams``."""
        for streams in self.streams.values():
            streams.begin(seeds, episodes, rows)
        self.encoders.begin(seeds, episodes, rows)

    def measure(self, robot: SimulatedRobot, rows: Any = slice(None)) -> Measurement:
        """One sample of every sensor of the worlds of ``rows`` (M of them; all by default); fresh arrays (M, ...)."""
        sample = measure(robot, self.sensors, self.streams["sensors"], rows, self.encoders)
        if self.contact is not None:
            sample = sample._replace(contact_force_l=self._feel(self.contact, robot, rows))
        if self.range_scan is not None:
            sample = sample._replace(range_m=self._scan(self.range_scan, robot, rows))
        return sample

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that later samples depend on, by name: the arrays themselves."""
        arrays = {f"encoder/{name}": values for name, values in self.encoders.arrays().items()}
        for name, streams in self.streams.items():
            arrays |= {f"stream/{name}/key": streams.key, f"stream/{name}/counter": streams.counter}
        return arrays

    def _feel(self, config: ContactSensorConfig, robot: SimulatedRobot, rows: Any) -> FloatArray:
        """Sensed contact force (M, N, 2) [N], link frame."""
        force, angle = robot.state.contact_force[rows], robot.state.link_angle[rows]
        sensed = np.zeros_like(force)
        touched = force[..., 0] != 0.0
        touched |= force[..., 1] != 0.0
        cos, sin, force_xy = np.cos(angle[touched]), np.sin(angle[touched]), force[touched]
        along = cos * force_xy[:, 0] + sin * force_xy[:, 1]
        sensed[touched] = np.stack([along, cos * force_xy[:, 1] - sin * force_xy[:, 0]], axis=1)
        if config.noise_n > 0.0:
            sensed += config.noise_n * self.streams["contact_sensor"].normal(force[0].size, rows).reshape(force.shape)
        if config.threshold_n > 0.0:
            sensed[np.abs(sensed) < config.threshold_n] = 0.0
        return np.clip(sensed, -config.limit_n, config.limit_n, out=sensed)

    def _scan(self, config: RangeScanConfig, robot: SimulatedRobot, rows: Any) -> FloatArray:
        """Measured distances (M, B) [m]."""
        state, beams = robot.state, self._beam_angle
        feature = robot.obstacles.feature[rows]
        distance = cast_rays(feature, state.head_xy[rows], state.link_angle[rows, -1], beams, config.max_range_m)
        echo = distance < config.max_range_m
        if config.noise_m > 0.0:
            distance += config.noise_m * self.streams["range_scan"].normal(beams.size, rows) * echo
        if config.dropout > 0.0:
            distance[self.streams["range_scan"].uniform(beams.size, rows) < config.dropout] = config.max_range_m
        return np.clip(distance, 0.0, config.max_range_m, out=distance)
