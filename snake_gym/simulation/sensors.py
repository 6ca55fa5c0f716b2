"""From the true state to what the robot's sensors say; only here do noise, resolution and loss enter.

Encoders tell joint angles and rates, a pose source the head link's. The centre of mass is not sensed: it is worked out
from the measured head pose and joint angles with the nominal geometry, as on the real robot.

Encoders that fail are dead (the reading stays what it was), biased or noisy. Only the reading fails, as with servos
that regulate by a sensor of their own: the joint moves as commanded, what the policy or controller sees is wrong.
Faults of the servo itself (``faults``: slipped, misread, silent) are in what encoders are given to read.

Contact: each link feels the force of the obstacles on it, in its own frame (x along the link, y to its left), averaged
over the control step; then noise, dead band and saturation, per component.

Range scan: one scan per control step of beams spread evenly over the field of view, from the centre of the head link. A
beam gives the distance to the first obstacle, or ``max_range_m`` where the echo is further or lost (drop-out). The
robot's own body is not seen.

Muscles: gauges and load cells tell pressure and tension of each, without error.

Each sensor has random streams of its own: switching the noise of one on does not move another's.
"""

from __future__ import annotations

import math
from dataclasses import field, fields
from functools import cached_property
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import Settings
from snake_gym.config.settings import NonNegative, Positive, Share
from snake_gym.obstacles.ray_casting import cast_rays
from snake_gym.physics.faults import BIASED, DEAD, HEALTHY, NOISY, SLACK_S
from snake_gym.robot.measurement import Measurement, link_angles, turn_back, weigh_directions
from snake_gym.robot.protocol import Robot
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.faults import (
    IN_ORDER,
    EncoderFaultKind,
    FaultDistribution,
    FaultEvent,
    SensorError,
    SensorErrorSpread,
    draw_spread,
)
from snake_gym.simulation.sensor_errors import SensorErrors
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams, begin_streams

Bias = Annotated[float, Field(ge=-1e6, le=1e6)]
"""Error of an encoder, to either side [rad]."""


class EncoderFault(FaultEvent):
    """One encoder fault of a list. ``bias_rad`` is for biased, ``noise_rad`` and ``noise_rad_s`` for noisy. Numbers may
    be ranges [low, high]."""

    kind: EncoderFaultKind = "dead"
    """dead: the reading stays what it was, its rate is 0; biased: the angle errs by ``bias_rad``; noisy: ``noise_rad``
    and ``noise_rad_s`` are added."""
    bias_rad: Annotated[Bias | tuple[Bias, Bias], IN_ORDER] = 0.2
    """Error of the angle."""
    noise_rad: SensorErrorSpread = 0.1
    """Standard deviation that the angle has more."""
    noise_rad_s: SensorErrorSpread = 0.5
    """Standard deviation that the rate has more."""


class EncoderFaultConfig(FaultDistribution):
    """Encoder faults of an episode. The number of failed encoders is uniform in [n_min, n_max]."""

    group = "encoder_faults"
    part = "encoder"

    kinds: Annotated[tuple[EncoderFaultKind, ...], Field(min_length=1)] = ("dead",)
    """Each failed encoder draws one of these: dead (reading frozen, rate 0), biased, noisy."""
    events: tuple[EncoderFault, ...] = ()
    """A list of faults instead of drawn ones, each {joint, kind, onset_s, duration_s, bias_rad, noise_rad,
    noise_rad_s}; all but joint may be left out."""
    bias_rad: SensorErrorSpread = 0.2
    """Error of a biased encoder, to either side at random: a number, or [low, high]."""
    noise_rad: SensorErrorSpread = 0.1
    """Standard deviation that a noisy encoder's angle has more, likewise."""
    noise_rad_s: SensorErrorSpread = 0.5
    """The same of its rate."""


class SensorConfig(Settings):
    """Standard deviations of white noise, and the encoders' resolution; all zero: perfect sensors."""

    angle_noise_rad: SensorError = 0.0
    """Standard deviation of white noise on joint angles."""
    rate_noise_rad_s: SensorError = 0.0
    """Standard deviation of white noise on joint rates."""
    position_noise_m: SensorError = 0.0
    """Standard deviation of white noise on the head's position, along x and along y."""
    heading_noise_rad: SensorError = 0.0
    """Standard deviation of white noise on the head's angle."""
    encoder_step_rad: SensorError = 0.0
    """Joint angles are rounded to multiples of this (2 pi / 4096 for a 12 bit encoder)."""
    encoder_faults: EncoderFaultConfig = field(default_factory=EncoderFaultConfig)

    @cached_property
    def is_perfect(self) -> bool:
        """Whether sensors that have not failed tell the truth."""
        return not any(getattr(self, f.name) for f in fields(self) if f.name != "encoder_faults")


class ContactSensorConfig(Settings):
    """Force sensors of the links."""

    noise_n: NonNegative = 0.0
    """Standard deviation of white noise [N]."""
    threshold_n: NonNegative = 0.0
    """Smaller forces read as 0."""
    limit_n: Positive = 100.0
    """Larger forces read as this."""

    def check(self) -> None:
        """Raise ValueError where every force would read as 0."""
        if self.limit_n <= self.threshold_n:
            raise ValueError(f"limit_n is {self.limit_n:g}; expected > threshold_n {self.threshold_n:g}")


class RangeScanConfig(Settings):
    """The scanner on the head."""

    n_beams: Annotated[int, Field(ge=1, le=1024)] = 16
    """Number of beams, spread evenly over the field of view."""
    field_of_view_rad: Annotated[float, Field(ge=0.0, le=2.0 * math.pi)] = math.radians(240.0)
    """From the first beam on the right to the last one on the left, symmetric about the head's direction."""
    max_range_m: Annotated[float, Field(gt=0.0, le=1000.0)] = 2.0
    """Reach of a beam; a free one reads as this."""
    noise_m: NonNegative = 0.0
    """Standard deviation of white noise [m]."""
    dropout: Share = 0.0
    """Share of the echoes that are lost."""

    def beam_angles(self) -> FloatArray:
        """Directions of the beams (B,) [rad] relative to the head, right to left; in a full circle none twice."""
        n, view = self.n_beams, self.field_of_view_rad
        if n == 1:
            return np.zeros(1)
        if view >= 2.0 * math.pi:
            return np.asarray((np.arange(n) - (n - 1) / 2.0) * (2.0 * math.pi / n), dtype=np.float64)
        return np.asarray(np.linspace(-view / 2.0, view / 2.0, n), dtype=np.float64)


class EncoderFaultState(NamedTuple):
    """Encoder faults of the present episodes, (W, J) each; see ``EncoderFault``."""

    kind: NDArray[np.int64]
    onset_s: FloatArray
    end_s: FloatArray
    bias_rad: FloatArray
    noise_rad: FloatArray
    noise_rad_s: FloatArray
    last_rad: FloatArray
    """What each encoder last said before it died or fell silent; nan: nothing yet."""
    last_rad_s: FloatArray
    """The same of its rate."""


class Encoders:
    """The joint encoders of W worlds with J joints each, and their faults."""

    def __init__(self, config: EncoderFaultConfig, n_worlds: int, n_joints: int) -> None:
        config.check_joints(n_joints)
        self.config = config
        start = (HEALTHY, 0.0, np.inf, 0.0, 0.0, 0.0, np.nan, np.nan)
        self.faults = EncoderFaultState(*(np.full((n_worlds, n_joints), value) for value in start))
        self.streams = RandomStreams("encoders", n_worlds)

    def begin(
        self,
        seeds: NDArray[np.int64],
        episodes: NDArray[np.int64],
        rows: NDArray[np.int64],
        easier: EncoderFaultConfig | None = None,
    ) -> None:
        """Draw the faults of new episodes of the worlds ``rows``; arguments as of RandomStreams.

        ``easier``: settings with fewer faults than the encoders' own, instead of them.
        """
        config, faults = self.config if easier is None else easier, self.faults
        faults.last_rad[rows], faults.last_rad_s[rows] = np.nan, np.nan
        if not self.config.any:
            return
        self.streams.begin(seeds, episodes, rows)
        if not config.any:
            faults.kind[rows] = HEALTHY
            return
        if config.events:
            config.list_events(self.streams, [faults], rows)
            return
        n_joints = faults.kind.shape[1]
        faults.kind[rows], _, onset = config.draw(self.streams.uniform(1 + 3 * n_joints, rows))
        faults.onset_s[rows], faults.end_s[rows] = onset, onset + config.duration_s
        side = self.streams.uniform(n_joints, rows)
        bias = draw_spread(config.bias_rad, self.streams, "bias_rad", n_joints, rows)
        faults.bias_rad[rows] = np.where(side < 0.5, -bias, bias)
        faults.noise_rad[rows] = draw_spread(config.noise_rad, self.streams, "noise_rad", n_joints, rows)
        faults.noise_rad_s[rows] = draw_spread(config.noise_rad_s, self.streams, "noise_rad_s", n_joints, rows)

    def read(
        self,
        angle: FloatArray,
        rate: FloatArray,
        time_s: FloatArray,
        rows: Any = slice(None),
        silent: NDArray[np.bool_] | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Readings (M, J) of joints at ``angle`` [rad] and ``rate`` [rad/s] in worlds ``rows`` at ``time_s`` [s].

        Those that are ``silent`` (M, J) give their last ones again; None: none is.
        """
        if self.config.any:
            angle, rate = self._fail(angle, rate, time_s, rows)
        if silent is not None and silent.any():
            last, last_rate = self.faults.last_rad[rows], self.faults.last_rad_s[rows]
            stale = silent & ~np.isnan(last)
            angle, rate = np.where(stale, last, angle), np.where(stale, last_rate, rate)
        self.faults.last_rad[rows], self.faults.last_rad_s[rows] = angle, rate
        return angle, rate

    def _fail(
        self, angle: FloatArray, rate: FloatArray, time_s: FloatArray, rows: Any
    ) -> tuple[FloatArray, FloatArray]:
        """Readings of encoders with their faults."""
        faults = EncoderFaultState(*(values[rows] for values in self.faults))
        noise = self.streams.normal(2 * angle.shape[1], rows)
        of_angle, of_rate, dead = encoder_errors(faults, time_s, noise)
        angle, rate = angle + of_angle, rate + of_rate
        angle = np.where(dead & ~np.isnan(faults.last_rad), faults.last_rad, angle)
        return angle, np.where(dead, 0.0, rate)


def encoder_errors(
    faults: EncoderFaultState, time_s: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
    """Return what is added to angles [rad] and rates [rad/s], and which encoders are dead, (M, J) each, at times (M,).

    ``noise`` (M, 2 J): standard normal numbers.
    """
    time, (of_angle, of_rate) = time_s[:, None] + SLACK_S, np.split(noise, 2, axis=1)
    kind = np.where((time >= faults.onset_s) & (time < faults.end_s), faults.kind, HEALTHY)
    noisy = np.where(kind == NOISY, faults.noise_rad * of_angle, 0.0)
    of_angle = np.where(kind == BIASED, faults.bias_rad, noisy)
    return of_angle, np.where(kind == NOISY, faults.noise_rad_s * of_rate, 0.0), kind == DEAD


def measure(
    robot: SimulatedRobot,
    config: SensorConfig,
    streams: RandomStreams,
    rows: Any = slice(None),
    encoders: Encoders | None = None,
    errors: SensorErrors | None = None,
) -> Measurement:
    """One sample of encoders and pose source of the worlds of ``rows`` (M of them); fresh arrays (M, ...).

    ``encoders`` holds the encoder faults of the present episodes; None: all encoders are good. ``errors`` are those
    that vary from episode to episode; None: there are none.
    """
    state, n_joints = robot.state, robot.spec.n_joints
    are_good = robot.nominal_bodies and config.is_perfect and (encoders is None or not encoders.config.any)
    if errors is None:
        angle, rate, reads_truly = robot.read_servos(rows)
        head_xy, head_angle = state.head_xy[rows].copy(), state.link_angle[rows, -1].copy()
    else:
        angle, rate, head_xy, head_angle = errors.read(robot, rows)
    valid = np.ones(head_angle.size, dtype=bool)
    if errors is None and are_good and reads_truly:
        return Measurement(angle, rate, head_xy, head_angle, valid, state.centre_xy[rows].copy())
    if not config.is_perfect:
        noise = streams.normal(2 * n_joints + 3, rows)
        angle = angle + config.angle_noise_rad * noise[:, :n_joints]
        rate = rate + config.rate_noise_rad_s * noise[:, n_joints : 2 * n_joints]
        head_xy += config.position_noise_m * noise[:, -3:-1]
        head_angle += config.heading_noise_rad * noise[:, -1]
    if encoders is not None:
        angle, rate = encoders.read(angle, rate, state.time_s[rows], rows, robot.servos.silent[rows])
    if config.encoder_step_rad > 0.0:
        angle = np.rint(angle / config.encoder_step_rad) * config.encoder_step_rad
    sample = Measurement(angle, rate, head_xy, head_angle, valid)
    if errors is not None:
        return errors.settle(sample, robot, rows)
    centre_xy = sample.head_xy_w + weigh_directions(robot.nominal_weights, link_angles(sample))
    if are_good:  # where all is read as it is, the centre is the true one to the last bit
        is_true = (angle == robot.joint_angle()[rows]).all(axis=1)
        centre_xy[is_true] = state.centre_xy[rows][is_true]
    return sample._replace(centre_xy_w=centre_xy)


class SensorSuite:
    """All sensors of W simulated robots with J joints: encoders and pose source, and those that are not None.

    ``reveal_faults``: somebody tells which joints are failed.
    """

    def __init__(
        self,
        sensors: SensorConfig,
        n_worlds: int,
        n_joints: int,
        contact: ContactSensorConfig | None = None,
        range_scan: RangeScanConfig | None = None,
        reveal_faults: bool = False,
    ) -> None:
        self.sensors, self.contact, self.range_scan = sensors, contact, range_scan
        self.reveal_faults = reveal_faults
        self.encoders = Encoders(sensors.encoder_faults, n_worlds, n_joints)
        self.errors: SensorErrors | None = None
        """Errors that vary from episode to episode, as the env sets them; None: there are none."""
        has = {"sensors": sensors, "contact_sensor": contact, "range_scan": range_scan}
        self.streams = {name: RandomStreams(name, n_worlds) for name, config in has.items() if config is not None}
        self._beam_angle = range_scan.beam_angles() if range_scan is not None else np.zeros(0)

    def begin(
        self,
        seeds: NDArray[np.int64],
        episodes: NDArray[np.int64],
        rows: NDArray[np.int64],
        encoder_faults: EncoderFaultConfig | None = None,
    ) -> None:
        """New episodes in the worlds of ``rows``; arguments as of ``RandomStreams`` and ``Encoders.begin``."""
        begin_streams(self.streams.values(), seeds, episodes, rows)
        self.encoders.begin(seeds, episodes, rows, encoder_faults)

    def measure(self, robot: Robot, rows: Any = slice(None)) -> Measurement:
        """One sample of every sensor of the worlds of ``rows`` (M of them; all by default); fresh arrays (M, ...)."""
        planar = cast(SimulatedRobot, robot)
        sample = measure(planar, self.sensors, self.streams["sensors"], rows, self.encoders, self.errors)
        if planar.spec.actuator.kind == "muscle":
            pressure, tension = planar.state.muscle_pressure[rows].copy(), planar.muscle_tension(rows)
            sample = sample._replace(muscle_pressure=pressure, muscle_tension=tension)
        if self.contact is not None:
            sample = sample._replace(contact_force_l=self._feel(self.contact, planar, rows))
        if self.range_scan is not None:
            sample = sample._replace(range_m=self._scan(self.range_scan, planar, rows))
        return sample._replace(joint_failed=robot.failed_now()[rows]) if self.reveal_faults else sample

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that later samples depend on, by name: the arrays themselves."""
        arrays = {f"encoder/{name}": values for name, values in self.encoders.faults._asdict().items()}
        arrays |= self.encoders.streams.state_arrays("encoder")
        for name, streams in self.streams.items():
            arrays |= streams.state_arrays(f"stream/{name}")
        return arrays

    def _feel(self, config: ContactSensorConfig, robot: SimulatedRobot, rows: Any) -> FloatArray:
        """Sensed contact force (M, N, 2) [N], link frame."""
        force = robot.state.contact_force[rows]
        sensed = np.zeros_like(force)
        touched = np.flatnonzero((force[..., 0] != 0.0) | (force[..., 1] != 0.0))
        if touched.size:
            angle, force_w = robot.state.link_angle[rows].ravel()[touched], force.reshape(-1, 2)[touched]
            sensed.reshape(-1, 2)[touched] = turn_back(force_w, angle)
        if config.noise_n > 0.0:
            sensed += config.noise_n * self.streams["contact_sensor"].normal(force[0].size, rows).reshape(force.shape)
        if config.threshold_n > 0.0:
            sensed[np.abs(sensed) < config.threshold_n] = 0.0
        return sensed.clip(-config.limit_n, config.limit_n, out=sensed)

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
        return distance.clip(0.0, config.max_range_m, out=distance)
