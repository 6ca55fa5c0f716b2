"""Messages between the policy's process and the guard's, which owns the port: small packets on a Unix socket.

One datagram is one message; nothing is pickled. The first byte says what it is:

* ``U`` bring the robot up, if it is not: number (uint64);
* ``C`` command: number (uint64), when it was given [s] float64, joint references (J,) float64 [rad];
* ``S`` sample: number of the last message taken (uint64), stamp and begin of the cycle [s] float64, then joint angles,
  rates, references, load, temperature, voltage, current (J,) float64 each, then flags (J,) uint8 (bit 0 clamped, 1
  lost, 2 answered) and the servos' status bytes (J,);
* ``X`` stop: number of the last message taken (uint64), why;
* ``N`` news: text;
* ``H`` still there, on the way up or waiting: empty;
* ``F`` farewell: empty. Torque is off in all servos, and the guard ends.

Messages to the guard are numbered together. Both ends use the machine's monotonic clock, which all processes share. The
policy's process says goodbye by shutting down its direction of the socket, and hears the rest.
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

import numpy as np

from snake_gym.hardware.body import BodySample
from snake_gym.hardware.safety import ServoHealth
from snake_gym.robot.spec import FloatArray

_NUMBERED = struct.Struct("<cQ")
_COMMAND = struct.Struct("<cQd")
_SAMPLE = struct.Struct("<cQdd")
_SERIES = 7
LARGEST = 65536
"""Bytes of a message."""


class Command(NamedTuple):
    number: int
    stamp_s: float
    """[s] when it was given."""
    reference: FloatArray
    """(J,) [rad]."""


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends, for the policy and for the guard."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def pack_command(command: Command) -> bytes:
    return _COMMAND.pack(b"C", command.number, command.stamp_s) + np.asarray(command.reference, "<f8").tobytes()


def unpack_command(data: bytes, n_joints: int) -> Command | None:
    """The command in ``data``; None where it is none for this robot."""
    if len(data) != _COMMAND.size + 8 * n_joints or data[:1] != b"C":
        return None
    _, number, stamp = _COMMAND.unpack_from(data)
    return Command(number, stamp, np.frombuffer(data, "<f8", n_joints, _COMMAND.size).copy())


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
    """The sample in ``data`` and the number of the last message taken; None where it is none for this robot."""
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


def pack_numbered(kind: bytes, number: int, text: str = "") -> bytes:
    """``U`` or ``X``."""
    return _NUMBERED.pack(kind, number) + text.encode()[: LARGEST // 2]


def unpack_numbered(data: bytes) -> tuple[int, str] | None:
    """Number and text of ``U`` or ``X``; None where it is too short for one."""
    if len(data) < _NUMBERED.size:
        return None
    _, number = _NUMBERED.unpack_from(data)
    return number, data[_NUMBERED.size :].decode(errors="replace")
