"""Heading from an inertial sensor on the head, over a serial line; the position is dead reckoning along that heading.

Protocol: UART-RVC of the BNO08x family (115200 baud, 100 packets a second, no commands needed), from its data sheet:

    AA AA | index | yaw pitch roll (int16, 0.01 degree) | acceleration x y z (int16, mg) | 3 reserved | checksum

little-endian, 19 bytes; the checksum is the low byte of the sum from index to the reserved bytes. The first yaw is
taken for the heading at the start. Its sense depends on the mounting of the sensor and is a setting.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from snake_gym.hardware.bus.transport import PortGone, Transport
from snake_gym.hardware.pose.dead_reckoning import DeadReckoning
from snake_gym.hardware.pose.source import NO_POSE, PoseSample, PoseSource
from snake_gym.robot.spec import FloatArray

HEADER = b"\xaa\xaa"
PACKET_BYTES = 19
_LARGEST_BUFFER = 4096
_YAW_UNIT = math.radians(0.01)


class RvcParser:
    """Parser that finds packets in a stream of bytes, among any others."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[float]:
        """Return the yaw [rad], as the sensor counts it, of every packet that ``data`` completes."""
        self._buffer += data
        found: list[float] = []
        while True:
            at = self._buffer.find(HEADER)
            if at < 0:
                del self._buffer[:-1]
                return found
            del self._buffer[:at]
            if len(self._buffer) < PACKET_BYTES:
                return found
            body, checksum = self._buffer[2 : PACKET_BYTES - 1], self._buffer[PACKET_BYTES - 1]
            is_whole = sum(body) & 0xFF == checksum
            if is_whole:
                found.append(struct.unpack_from("<h", body, 1)[0] * _YAW_UNIT)
            del self._buffer[: PACKET_BYTES if is_whole else 1]


class SerialImu(PoseSource):
    """Pose with the heading of an inertial sensor and a position by dead reckoning.

    Args:
        transport: the sensor's open port.
        reckoning: dead reckoning, with the robot's start and its nominal model.
        stale_s: time without a packet after which the pose is not valid [s].
        direction: -1 where the sensor's yaw grows clockwise seen from above, else 1.
    """

    def __init__(
        self, transport: Transport, reckoning: DeadReckoning, stale_s: float = 0.2, direction: int = -1
    ) -> None:
        self._transport: Transport | None = transport
        self._reckoning, self._stale_s, self._direction = reckoning, stale_s, direction
        self._parser = RvcParser()
        self._offset: float | None = None
        self._yaw = 0.0
        self._stamp_s = -math.inf

    @property
    def trouble(self) -> str:
        """Reason for a missing pose; empty: none."""
        if self._transport is None:
            return "the sensor's port has vanished"
        return "no packet from the sensor (UART-RVC mode, 115200 baud)" if self._offset is None else ""

    def follow(self, joint_angle: FloatArray, joint_rate: FloatArray, stamp_s: float) -> None:
        self._reckoning.follow(joint_angle, joint_rate, stamp_s)
        self._listen(stamp_s)
        if self._offset is not None:
            pose = self._reckoning.read(stamp_s)
            self._reckoning.place(pose.xy_w, self._heading())

    def read(self, now_s: float) -> PoseSample:
        self._listen(now_s)
        pose = self._reckoning.read(now_s)
        fresh = now_s - self._stamp_s <= self._stale_s
        if self._offset is None or not np.isfinite(pose.stamp_s):
            return NO_POSE._replace(xy_w=pose.xy_w.copy(), angle=pose.angle)
        return PoseSample(pose.xy_w.copy(), self._heading(), max(self._stamp_s, pose.stamp_s), fresh)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def _listen(self, now_s: float) -> None:
        if self._transport is None:
            return
        try:
            data = self._transport.read(_LARGEST_BUFFER, 0.0)
        except PortGone:
            self.close()
            return
        for yaw in self._parser.feed(data):
            if self._offset is None:
                self._offset = self._reckoning.read(now_s).angle - self._direction * yaw
                self._yaw = yaw
            # Continuous over whole turns.
            self._yaw += math.remainder(yaw - self._yaw, 2.0 * math.pi)
            self._stamp_s = now_s

    def _heading(self) -> float:
        return (self._offset or 0.0) + self._direction * self._yaw
