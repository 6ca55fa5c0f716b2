"""Messages between the policy's process and the guard's, which owns the port: small packets on a Unix socket.

One datagram is one message; nothing is pickled. The first byte says what it is:

* ``C`` command: number (uint64), joint references (J,) float64 [rad];
* ``S`` sample: number of the last command taken (uint64), stamp and begin of the cycle [s] float64, then joint angles,
  rates, references, load, temperature, voltage, current (J,) float64 each, then flags (J,) uint8 (bit 0 clamped, 1
  lost, 2 answered) and the servos' status bytes (J,);
* ``N`` news and ``X`` stop: text.

Both ends use the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

import numpy as np

from snake_gym.hardware.body import BodySample
from snake_gym.hardware.safety import ServoHealth
from snake_gym.robot.spec import FloatArray

_COMMAND = struct.Struct("<cQ")
_SAMPLE = struct.Struct("<cQdd")
_SERIES = 7
LARGEST = 65536
"""Bytes of a message."""


class Command(NamedTuple):
    number: int
    reference: FloatArray
    """(J,) [rad]."""


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends, for the policy and for the guard."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def pack_command(command: Command) -> bytes:
    return _COMMAND.pack(b"C", command.number) + np.asarray(command.reference, "<f8").tobytes()


def unpack_command(data: bytes, n_joints: int) -> Command | None:
    """The command in ``data``; None where it is none for this robot."""
    if len(data) != _COMMAND.size + 8 * n_joints or data[:1] != b"C":
        return None
    _, number = _COMMAND.unpack_from(data)
    return Command(number, np.frombuffer(data, "<f8", n_joints, _COMMAND.size).copy())


def pack_sample(sample: BodySample, number: int) -> bytes:
    health = sample.health
    series = (
        sample.joint_angle, sample.joint_rate, sample.reference, health.load, health.temperature_c, health.voltage_v,
        health.current_a,
    )  # fmt: skip
    flags = sample.clamped.astype(np.uint8) | sample.lost.astype(np.uint8) << 1 | health.answered.astype(np.uint8) << 2
    head = _SAMPLE.pack(b"S", number, sample.stamp_s, sample.cycle_s)
    return head + np.concatenate(series).astype("<f8").tobytes() + flags.tobytes() + health.error.tobytes()


def unpack_sample(data: bytes, n_joints: int) -> tuple[BodySample, int] | None:
    """The sample in ``data`` and the number of the last command taken; None where it is none for this robot."""
    if len(data) != _SAMPLE.size + n_joints * (8 * _SERIES + 2) or data[:1] != b"S":
        return None
    _, number, stamp, cycle = _SAMPLE.unpack_from(data)
    values = np.frombuffer(data, "<f8", _SERIES * n_joints, _SAMPLE.size).reshape(_SERIES, n_joints).copy()
    flags = np.frombuffer(data, np.uint8, n_joints, _SAMPLE.size + 8 * _SERIES * n_joints)
    clamped, lost, answered = ((flags >> bit & 1).astype(bool) for bit in range(3))
    error = np.frombuffer(data, np.uint8, n_joints, len(data) - n_joints).copy()
    health = ServoHealth(answered, error, values[1], *values[3:])
    return BodySample(values[0], values[1], stamp, cycle, values[2], clamped, lost, health), number


def pack_text(kind: bytes, text: str) -> bytes:
    return kind + text.encode()[: LARGEST // 2]
