"""A servo chain that another process guards: a ``Body`` for the policy's side.

The guard owns the port and cycles it; here samples come in and references go out. ``run_until`` waits for the sample
of its time, so that the control ticks lie on the guard's cycles. If the guard dies or is silent for too long, this side
kills it, opens the port and switches the torque off, again and again as long as a servo has not said that it is.

At the end the guard's last words are waited for. A guard that cannot reach all servos is left alone, to go on trying.
"""

from __future__ import annotations

import contextlib
import math
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from snake_gym.hardware.bus.clock import Clock, MonotonicClock
from snake_gym.hardware.bus.servo_bus import BusPort
from snake_gym.hardware.bus.transport import PortGone
from snake_gym.hardware.calibration.calibration import Calibration
from snake_gym.hardware.safety.body import BodySample, BringUpError
from snake_gym.hardware.safety.checks import SafetyLimits
from snake_gym.hardware.safety.emergency_stop import default_latch, sweep
from snake_gym.hardware.safety.guard import (
    LARGEST,
    NO_PRIORITY,
    Command,
    pack_command,
    pack_numbered,
    pack_settings,
    pair,
    unpack_numbered,
    unpack_sample,
)
from snake_gym.hardware.safety.torque_off import RETRY_S, switch_off_port
from snake_gym.robot.spec import FloatArray

_BEGIN_S = 15.0
"""Longest time until the guard's first word [s]."""
_HUNG_S = 1.5
"""Longest time between two of its words [s]: longer than a port that blocks can hold it up."""
_LAST_LOOK_S = 0.1
"""Time on top after which a guard counts as hung: the whole machine may have paused [s]."""
_FAREWELL_S = 2.0
"""Longest time that an end is waited for [s]."""


class GuardedBody:
    """A ``Body`` whose port belongs to a guard process.

    Args:
        calibration, limits: as for ``ServoBody``.
        period_s: of a bus cycle [s].
        speed_rad_s: greatest speed of the servos, (J,) or one for all; inf: theirs.
        latch: file of the emergency stop; None: this machine's default.
        priority: real-time priority of the guard process, 1 to 99; 0: none.
    """

    def __init__(
        self,
        port: BusPort,
        calibration: Calibration,
        limits: SafetyLimits,
        period_s: float = 0.02,
        speed_rad_s: FloatArray | float = math.inf,
        latch: Path | None = None,
        priority: int = NO_PRIORITY,
    ) -> None:
        self.clock: Clock = MonotonicClock()
        self.watch: Callable[[BodySample], None] | None = None
        self._port, self._calibration, self._period_s = port, calibration, period_s
        speed = np.broadcast_to(np.asarray(speed_rad_s, dtype=np.float64), (self.n_joints,))
        self._latch = latch or default_latch()
        self._settings = pack_settings(port, calibration, limits, period_s, speed, self._latch, priority)
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._sample: BodySample | None = None
        self._number = self._taken = self._asked = 0
        """Numbers of the last message sent, the last that the guard has taken, and the last that asked to go up."""
        self._heard_s = -math.inf
        self._has_spoken = self._has_ended = False
        self._off_owed = False
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
        """Process of the guard; None: there is none."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    def start(self) -> BodySample:
        """Bring the robot up, if it is not; a sample that was taken since. Raises BringUpError."""
        self._read(-math.inf, lambda: True)
        if self._link is not None and not self._ask_up():
            self._lose_guard("the guard process hangs")
        if self._link is None:
            self._launch()
            self._ask_up()
        self._read(math.inf, lambda: self._stop_reason is not None or self._taken >= self._asked)
        if self._stop_reason is not None or self._sample is None:
            raise BringUpError(self._stop_reason or "the guard process has ended")
        self._off_owed = False
        return self._sample

    def command(self, reference: FloatArray) -> None:
        """Aim at joint references (J,) [rad] from now on."""
        self._number += 1
        now = self.clock.now()
        self._send(pack_command(Command(self._number, now, np.asarray(reference))))
        if now - self._heard_s > _HUNG_S:
            self._read(-math.inf, lambda: True)

    def run_until(self, when_s: float) -> BodySample:
        """The sample of ``when_s`` [s], or the newest one a period later."""
        cycle_s = when_s - 0.5 * self._period_s
        self._read(when_s + self._period_s, lambda: self._sample is not None and self._sample.cycle_s >= cycle_s)
        if self._sample is None:
            raise RuntimeError("run_until before start")
        if self._link is None:
            if self._off_owed and self._try_off() == "":
                self._news.append("torque is off in all joints now")
            self.clock.sleep(when_s - self.clock.now())
        return self._sample

    def news(self) -> list[str]:
        news, self._news = self._news, []
        return news

    def close(self) -> None:
        """Say goodbye to the guard, which switches the torque off, and hear its last words."""
        if self._link is not None:
            self._asked = self._number + 1  # its stop is no news
            with contextlib.suppress(OSError):
                self._link.shutdown(socket.SHUT_WR)
            self._read(time.monotonic() + _FAREWELL_S, lambda: False)
            if self._link is not None:
                self._leave_guard()
        elif self._off_owed:
            self._switch_off()
        self._sample = None

    # --- the guard's process -----------------------------------------------------------------------------------------

    def _launch(self) -> None:
        if self._process is not None and self._process.poll() is None:
            raise BringUpError(f"the last guard (process {self._process.pid}) still tries to switch the torque off")
        ours, theirs = pair()
        with theirs:
            command = [sys.executable, "-m", "snake_gym.hardware.safety.guard", str(theirs.fileno())]
            # A session of its own: Ctrl-C is for the policy, which then says goodbye. It may outlive the policy: nobody
            # who reads the policy's output shall wait for it.
            self._process = subprocess.Popen(
                command, pass_fds=[theirs.fileno()], start_new_session=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )  # fmt: skip
        self._link = ours
        self._heard_s, self._has_spoken, self._has_ended = time.monotonic(), False, False
        self._send(self._settings)

    def _ask_up(self) -> bool:
        """Ask the guard to bring the robot up; False: it takes no messages."""
        self._number += 1
        self._asked, self._stop_reason = self._number, None
        return self._send(pack_numbered(b"U", self._number))

    def _send(self, data: bytes) -> bool:
        """Send a message; False: there is no guard, or it is busy with earlier ones."""
        if self._link is None:
            return False
        try:
            self._link.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            self._read(-math.inf, lambda: True)  # its last words
            self._lose_guard("the guard process has died")
            return False
        return True

    def _read(self, give_up_s: float, has_come: Callable[[], bool]) -> None:
        """Take messages until ``has_come`` and no more are there, time is up [s], or the guard is gone."""
        while self._link is not None:
            now = time.monotonic()
            patience_s = self._heard_s + (_HUNG_S if self._has_spoken else _BEGIN_S) - now
            wait_s = 0.0 if has_come() else max(0.0, min(give_up_s - now, patience_s))
            if patience_s <= 0.0:
                wait_s = _LAST_LOOK_S
            readable, _, _ = select.select([self._link], [], [], wait_s)
            if not readable:
                if patience_s <= 0.0:
                    self._lose_guard("the guard process hangs")
                elif has_come() or time.monotonic() >= give_up_s:
                    return
                continue
            try:
                data = self._link.recv(LARGEST)
            except OSError:
                data = b""
            if data:
                self._take(data)
            else:
                self._lose_guard("the guard process has died")

    def _take(self, data: bytes) -> None:
        self._heard_s, self._has_spoken = time.monotonic(), True
        kind = data[:1]
        if kind == b"S":
            told = unpack_sample(data, self.n_joints)
            if told is not None:
                self._sample, self._taken = told
                if self.watch is not None:
                    self.watch(told[0])
        elif kind == b"X":
            stop = unpack_numbered(data)
            if stop is not None and stop[0] >= self._asked:
                self._stop_reason = self._stop_reason or stop[1]
        elif kind == b"N":
            self._news.append(data[1:].decode(errors="replace"))
        elif kind == b"F":
            self._has_ended = True

    def _lose_guard(self, reason: str) -> None:
        """End a guard that is gone or hangs, and do its last duty unless it has done that."""
        if self._link is None or self._process is None:
            return
        self._link.close()
        self._link = None
        if not self._has_ended:
            self._process.kill()
        try:
            self._process.wait(_FAREWELL_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            threading.Thread(target=self._process.wait, daemon=True).start()
        if not self._has_ended:
            if self._stop_reason is None:
                self._stop_reason = reason
            self._news.append(reason)
            if self._has_spoken:
                self._switch_off()

    def _leave_guard(self) -> None:
        """Let a guard that is not done do its duty without us."""
        if self._link is None or self._process is None:
            return
        self._link.close()
        self._link = None
        if self._has_spoken:
            self._news.append(
                f"torque is not known to be off in all joints: use the hardware stop; the guard (process "
                f"{self._process.pid}) goes on trying for a while and holds the port"
            )
        else:
            self._process.kill()
        threading.Thread(target=self._process.wait, daemon=True).start()

    # --- without a guard ---------------------------------------------------------------------------------------------

    def _switch_off(self) -> None:
        """Torque off, tried for a while; what is left is tried again in ``run_until`` and ``close``."""
        self._off_owed = True
        give_up_s = time.monotonic() + _FAREWELL_S
        while why := self._try_off():
            if time.monotonic() > give_up_s:
                self._news.append(f"torque is not known to be off ({why}): use the hardware stop")
                return
            time.sleep(RETRY_S)

    def _try_off(self) -> str:
        """Torque off in all servos; why that is not known, empty where it is."""
        try:
            left = switch_off_port(self._port, self._calibration.ids)
        except PortGone as error:
            return str(error)
        silent = ", ".join(str(joint + 1) for joint, one in enumerate(self._calibration.ids) if one in left)
        self._off_owed = bool(silent)
        if not silent:
            sweep(self._latch)
        return f"joints {silent} do not answer" if silent else ""
