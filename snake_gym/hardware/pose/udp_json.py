"""Poses from the network, one JSON object per datagram: from motion capture, or a camera elsewhere.

    {"x_m": 1.2, "y_m": -0.3, "angle_rad": 0.7, "stamp_s": 1234.5}

World frame, head link's centre. For a spatial robot ``z_m`` may give its height, and ``up`` [x, y, z] the vertical in
the head's frame, as an inertial sensor has it; without them it is taken to lie level. ``stamp_s`` is optional and on
the sender's clock: only its differences are used, to discard datagrams that come out of order. The pose is dated by its
arrival.
"""

from __future__ import annotations

import contextlib
import math
import socket

import numpy as np
from pydantic import BaseModel

from snake_gym.config import ConfigError
from snake_gym.hardware.pose.source import NO_POSE, PoseSample, PoseSource

_LARGEST = 2048
_CLOCK_SET_BACK_S = 10.0
"""Step back of a sender's stamps that counts as a new clock [s]."""


class Datagram(BaseModel, allow_inf_nan=False):
    """Content of a datagram."""

    x_m: float
    y_m: float
    angle_rad: float
    stamp_s: float | None = None
    z_m: float | None = None
    up: tuple[float, float, float] | None = None

    def pose(self, now_s: float) -> PoseSample:
        """Return the pose, dated ``now_s`` [s]. Raises ValueError: ``up`` is no direction."""
        up = None
        if self.up is not None:
            up, length = np.array(self.up), math.hypot(*self.up)
            if length < 0.5:
                raise ValueError("no direction")
            up /= length
        return PoseSample(np.array([self.x_m, self.y_m]), self.angle_rad, now_s, True, self.z_m, up)


class UdpJson(PoseSource):
    """Pose from datagrams that arrive on a UDP port.

    Args:
        host, port: address to listen on; port 0: any that is free (see ``port``).
        stale_s: age beyond which a pose is not valid [s].
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 47800, stale_s: float = 0.5) -> None:
        self._stale_s = stale_s
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            self._socket.close()
            why = error.strerror or error
            raise ConfigError(f"pose.host {host!r}, pose.udp_port {port}: cannot listen there: {why}") from None
        self._host = host
        self.port: int = self._socket.getsockname()[1]
        """UDP port that it listens on."""
        self.n_refused = 0
        """Number of datagrams without a pose, or out of order."""
        self._pose = NO_POSE
        self._sent_s = -math.inf

    @property
    def trouble(self) -> str:
        """Reason for a missing pose; empty: none."""
        if self._pose is not NO_POSE:
            return ""
        if self.n_refused:
            return f"the {self.n_refused} datagrams on UDP {self._host}:{self.port} were no poses"
        return f"nothing arrives on UDP {self._host}:{self.port}"

    def read(self, now_s: float) -> PoseSample:
        with contextlib.suppress(OSError):  # nothing more has come, or it is closed
            while True:
                self._take(self._socket.recv(_LARGEST), now_s)
        return self._pose._replace(valid=now_s - self._pose.stamp_s <= self._stale_s)

    def close(self) -> None:
        self._socket.close()

    def _take(self, data: bytes, now_s: float) -> None:
        try:
            content = Datagram.model_validate_json(data)
            sent_s = self._sent_s if content.stamp_s is None else content.stamp_s
            if content.stamp_s is not None and 0.0 <= self._sent_s - sent_s < _CLOCK_SET_BACK_S:
                raise ValueError("out of order")
            self._pose, self._sent_s = content.pose(now_s), sent_s
        except ValueError:
            self.n_refused += 1
