"""Poses from the network, one JSON object per datagram: from motion capture, or a camera elsewhere.

    {"x_m": 1.2, "y_m": -0.3, "angle_rad": 0.7, "stamp_s": 1234.5}

World frame, head link's centre. Of a spatial robot ``z_m`` may tell its height, and ``up`` [x, y, z] the vertical in
the head's frame, as an inertial sensor has it; without them it is taken to lie level. ``stamp_s`` is optional and on
the sender's clock: only its differences are used, to discard datagrams that come out of order. The pose is dated by its
arrival.

Only one sender counts, with one socket: poses from another address are ignored while those of the first are fresh.
"""

from __future__ import annotations

import errno
import json
import math
import socket
from typing import Any

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.hardware.pose.source import NO_POSE, PoseSample, PoseSource

_LARGEST = 2048


class UdpJson(PoseSource):
    """Pose from datagrams that arrive on a UDP port.

    Args:
        host, port: address to listen on; port 0: any that is free (see ``port``).
        stale_s: age beyond which a pose is not valid [s].
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 47800, stale_s: float = 0.5) -> None:
        self._stale_s = stale_s
        self._socket: socket.socket | None = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind((host, port))
        except (OSError, OverflowError) as error:
            self._socket.close()
            taken = getattr(error, "errno", None) == errno.EADDRINUSE
            why = "another program does (a run still going?): end it or set another pose.udp_port" if taken else error
            raise ConfigError(f"pose.host {host!r}, pose.udp_port {port}: cannot listen there: {why}") from None
        self._host = host
        self.port: int = self._socket.getsockname()[1]
        """UDP port that it listens on."""
        self.n_refused = 0
        """Number of datagrams that were no poses, or out of order."""
        self._pose = NO_POSE
        self._sender: tuple[str, int] | None = None
        self._sender_s = -math.inf

    @property
    def trouble(self) -> str:
        """Reason for a missing pose; empty: none."""
        if self._sender is not None:
            return ""
        if self.n_refused:
            return f"the {self.n_refused} datagrams on UDP {self._host}:{self.port} were no poses"
        return f"nothing arrives on UDP {self._host}:{self.port}"

    def read(self, now_s: float) -> PoseSample:
        while self._socket is not None:
            try:
                data, sender = self._socket.recvfrom(_LARGEST)
            except OSError:
                break
            self._take(data, sender, now_s)
        return self._pose._replace(valid=now_s - self._pose.stamp_s <= self._stale_s)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _take(self, data: bytes, sender: tuple[str, int], now_s: float) -> None:
        try:
            told: Any = json.loads(data)
            x, y, angle = (float(told[name]) for name in ("x_m", "y_m", "angle_rad"))
            sent = float(told.get("stamp_s", math.inf))
            height = told.get("z_m")
            up = None if told.get("up") is None else np.array([float(part) for part in told["up"]])
            numbers = (x, y, angle, *(() if height is None else (float(height),)), *(() if up is None else up.tolist()))
            if not all(map(math.isfinite, numbers)) or math.isnan(sent):
                raise ValueError("not finite")
            if up is not None and (up.shape != (3,) or not np.linalg.norm(up) > 0.5):
                raise ValueError("no direction")
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            self.n_refused += 1
            return
        if sender != self._sender:
            if now_s - self._pose.stamp_s <= self._stale_s:
                return
            self._sender, self._sender_s = sender, -math.inf
        if sent <= self._sender_s and self._sender_s - sent < 10.0:
            self.n_refused += 1
            return
        self._sender_s = -math.inf if math.isinf(sent) else sent
        up = None if up is None else up / np.linalg.norm(up)
        self._pose = PoseSample(np.array([x, y]), angle, now_s, True, None if height is None else float(height), up)
