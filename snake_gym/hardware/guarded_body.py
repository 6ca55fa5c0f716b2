"""A servo chain that another process guards: a ``Body`` for the policy's side.

The guard owns the port and cycles it; here samples come in and references go out. ``run_until`` waits for the sample
of its time, so that the control ticks lie on the guard's cycles. If the guard dies, this side opens the port and
switches the torque off.
"""

from __future__ import annotations

import json
import math
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np

from snake_gym.hardware.body import BodySample, BringUpError
from snake_gym.hardware.calibration import Calibration
from snake_gym.hardware.clock import Clock, MonotonicClock
from snake_gym.hardware.emergency_stop import default_latch
from snake_gym.hardware.guard_link import LARGEST, Command, pack_command, pair, unpack_sample
from snake_gym.hardware.safety import SafetyLimits
from snake_gym.hardware.scheduling import NONE
from snake_gym.hardware.servo_bus import FeetechBus
from snake_gym.hardware.transport import PortGone, SerialTransport
from snake_gym.robot.spec import FloatArray

_BRING_UP_S = 15.0
_FAREWELL_S = 2.0


class GuardedBody:
    """A ``Body`` whose port belongs to a guard process.

    Args:
        port, baud: of the bus.
        calibration, limits: as for ``ServoBody``.
        period_s: of a bus cycle [s].
        speed_rad_s: greatest speed of the servos; inf: theirs.
        latch: file of the emergency stop; None: this machine's default.
        priority: real-time priority of the guard process, 1 to 99; 0: none.
    """

    def __init__(
        self,
        port: str,
        baud: int,
        calibration: Calibration,
        limits: SafetyLimits,
        period_s: float = 0.02,
        speed_rad_s: float = math.inf,
        latch: Path | None = None,
        priority: int = NONE,
    ) -> None:
        self.clock: Clock = MonotonicClock()
        self.watch: Callable[[BodySample], None] | None = None
        self._port, self._baud, self._calibration, self._period_s = port, baud, calibration, period_s
        self._settings = json.dumps({
            "port": port, "baud": baud, "calibration": asdict(calibration), "limits": asdict(limits),
            "period_s": period_s, "speed_rad_s": speed_rad_s if math.isfinite(speed_rad_s) else None,
            "latch": str(latch or default_latch()), "priority": priority,
        }).encode()  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._sample: BodySample | None = None
        self._number = 0
        self._news: list[str] = []
        self._stop_reason: str | None = None

    @property
    def n_joints(self) -> int:
        return len(self._calibration.joints)

    @property
    def stop_reason(self) -> str | None:
        return self._stop_reason

    @property
    def guard_pid(self) -> int | None:
        """Of the guard process; None: there is none."""
        return None if self._process is None else self._process.pid

    def start(self) -> BodySample:
        """Start the guard, which brings the robot up. Raises BringUpError."""
        if self._process is None or self._stop_reason is not None:
            self.close()
            self._stop_reason = None
            ours, theirs = pair()
            with theirs:
                command = [sys.executable, "-m", "snake_gym.hardware.guard", str(theirs.fileno())]
                # A session of its own: Ctrl-C is for the policy, which then says goodbye.
                self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], start_new_session=True)
            self._link = ours
            ours.send(self._settings)
            self._await_sample(time.monotonic() + _BRING_UP_S, -math.inf)
            if self._sample is None:
                reason = self._stop_reason or f"the guard says nothing for {_BRING_UP_S:g} s"
                self.close()
                raise BringUpError(reason)
        assert self._sample is not None
        return self._sample

    def command(self, reference: FloatArray) -> None:
        """Aim at joint references (J,) [rad] from now on."""
        self._number += 1
        if self._link is not None:
            try:
                self._link.send(pack_command(Command(self._number, np.asarray(reference))), socket.MSG_DONTWAIT)
            except OSError:
                self._guard_is_gone()

    def run_until(self, when_s: float) -> BodySample:
        """The sample of ``when_s`` [s], or the newest one a period later."""
        self._await_sample(when_s + self._period_s, when_s - 0.5 * self._period_s)
        if self._sample is None:
            raise RuntimeError("run_until before start")
        return self._sample

    def news(self) -> list[str]:
        news, self._news = self._news, []
        return news

    def close(self) -> None:
        """Say goodbye to the guard, which switches the torque off."""
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._process is not None:
            try:
                self._process.wait(_FAREWELL_S)
            except subprocess.TimeoutExpired:
                self._process.terminate()
                try:
                    self._process.wait(_FAREWELL_S)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
                    self._switch_off()
            self._process = None
        self._sample = None

    def _await_sample(self, give_up_s: float, cycle_s: float) -> None:
        """Read messages until the sample of a cycle not before ``cycle_s`` has come, or there is no more time."""
        while self._link is not None:
            has_come = self._sample is not None and self._sample.cycle_s >= cycle_s
            wait = 0.0 if has_come else give_up_s - time.monotonic()
            readable, _, _ = select.select([self._link], [], [], max(0.0, wait))
            if not readable:
                return
            try:
                data = self._link.recv(LARGEST)
            except OSError:
                data = b""
            if not data:
                self._guard_is_gone()
                return
            self._take(data)
            if self._sample is None and self._stop_reason is not None:
                return

    def _take(self, data: bytes) -> None:
        kind = data[:1]
        if kind == b"S":
            told = unpack_sample(data, self.n_joints)
            if told is not None:
                self._sample = told[0]
                if self.watch is not None:
                    self.watch(told[0])
        elif kind == b"X":
            self._stop_reason = self._stop_reason or data[1:].decode(errors="replace")
        elif kind == b"N":
            self._news.append(data[1:].decode(errors="replace"))

    def _guard_is_gone(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None
        if self._stop_reason is None:
            self._stop_reason = "the guard process has died"
            self._news.append(self._stop_reason)
            self._switch_off()

    def _switch_off(self) -> None:
        """Torque off without a guard; the port may be locked until the kernel has buried it."""
        give_up_s = time.monotonic() + _FAREWELL_S
        while True:
            try:
                bus = FeetechBus(SerialTransport(self._port, self._baud), self._baud)
                break
            except PortGone as error:
                if time.monotonic() > give_up_s:
                    self._news.append(f"torque is not known to be off ({error}): use the hardware stop")
                    return
                time.sleep(0.01)
        off = bus.torque(self._calibration.ids, False)
        bus.close()
        if not all(off.values()):
            self._news.append("torque is not known to be off in all joints: use the hardware stop")
