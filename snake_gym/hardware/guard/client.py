"""Policy's side of a servo chain whose port belongs to a guard process.

The guard runs the bus cycles; this side receives samples and sends references. If the guard dies or is silent for too
long, this side kills it, opens the port and switches the torque off, repeatedly until every servo confirms it. At the
end it waits for the guard's last messages. A guard that cannot reach all servos is left alone, to keep trying.
"""

from __future__ import annotations

import contextlib
import json
import math
import select
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from snake_gym.config import to_dict
from snake_gym.hardware.bus.bus import BusPort
from snake_gym.hardware.bus.clock import Clock, MonotonicClock
from snake_gym.hardware.bus.transport import PortGone
from snake_gym.hardware.calibration.calibration import Calibration
from snake_gym.hardware.guard.body import BodySample, BringUpError
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.process import LARGEST, Message, pack_command, unpack
from snake_gym.hardware.guard.servo_body import ServoBody
from snake_gym.hardware.guard.torque_off import RETRY_S, await_end, describe, start_partner, switch_off_port
from snake_gym.robot.spec import FloatArray

_BEGIN_S = 15.0
"""Longest time until the guard's first message [s]."""
_HUNG_S = 1.5
"""Longest time between two of its messages [s]: longer than a port that blocks can delay it."""
_LAST_LOOK_S = 0.1
"""Additional time after which a guard counts as hung: the whole machine may have paused [s]."""
_FAREWELL_S = 2.0
"""Longest wait for an end [s]: longer than it takes to notice that a guard hangs."""


class GuardedBody:
    """Servo chain whose port belongs to a guard process.

    Args:
        calibration, limits, period_s, speed_rad_s: as for ``ServoBody``.
        latch: file of the emergency stop; None: this user's default.
        priority: real-time priority of the guard process, 1 to 99; 0: none.
        heartbeat: serial device of the board on the servos' supply; None: there is none.
    """

    def __init__(
        self,
        port: BusPort,
        calibration: Calibration,
        limits: SafetyLimits,
        period_s: float = 0.02,
        speed_rad_s: FloatArray | float = math.inf,
        latch: Path | None = None,
        priority: int = 0,
        heartbeat: str | None = None,
    ) -> None:
        self.clock: Clock = MonotonicClock()
        self.watch: Callable[[BodySample], None] | None = None
        """Function called with every sample, once a bus cycle; its reference was sent before the sample was read."""
        self._port, self._calibration, self._period_s = port, calibration, period_s
        self.n_joints = len(calibration.joints)
        self._stop = EmergencyStop(latch)
        self._settings = json.dumps({
            "port": port.to_dict(), "calibration": to_dict(calibration), "limits": to_dict(limits),
            "period_s": period_s, "speed_rad_s": np.broadcast_to(speed_rad_s, (self.n_joints,)).tolist(),
            "latch": str(self._stop.latch), "priority": priority, "heartbeat": heartbeat,
        }).encode()  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._sample: BodySample | None = None
        self._number = self._taken = self._asked = 0
        """Numbers of the last message sent, the last that the guard has taken, and the last that asked for bring-up."""
        self._heard_s = -math.inf
        self._has_spoken = self._has_ended = False
        self.torque_off_owed = False
        """True while a servo is not known to have its torque off, though it should."""
        self._news: list[str] = []
        self.stop_reason: str | None = None
        """Reason why the torque is off; None: it is on, or the robot has not been started."""

    @property
    def guard_pid(self) -> int | None:
        """Process ID of the guard; None: there is no guard."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    def start(self) -> BodySample:
        """Bring the robot up, if it is not, and return a sample taken since. Raises BringUpError."""
        self._read(-math.inf, lambda: True)
        if self._link is not None and not self._ask_up():
            self._lose_guard("the guard process hangs")
        if self._link is None:
            self._launch()
            self._ask_up()
        self._read(math.inf, lambda: self.stop_reason is not None or self._taken >= self._asked)
        if self.stop_reason is not None or self._sample is None:
            raise BringUpError(self.stop_reason or "the guard process has ended")
        self.torque_off_owed = False
        return self._sample

    def command(self, reference: FloatArray) -> None:
        """Aim at joint references (J,) [rad] from now on."""
        self._number += 1
        now = self.clock.now()
        self._send(pack_command(self._number, now, reference))
        if now - self._heard_s > _HUNG_S:
            self._read(-math.inf, lambda: True)

    def run_until(self, when_s: float) -> BodySample:
        """Return the sample of ``when_s`` [s], or the newest one a period later."""
        cycle_s = when_s - 0.5 * self._period_s
        self._read(when_s + self._period_s, lambda: self._sample is not None and self._sample.cycle_s >= cycle_s)
        if self._sample is None:
            raise RuntimeError("run_until before start")
        if self._link is None:
            if self.torque_off_owed and self._try_off() == "":
                self._news.append("torque is off in all joints now")
            self.clock.sleep(when_s - self.clock.now())
        return self._sample

    def news(self) -> list[str]:
        """Return the events since the last call, one line each."""
        news, self._news = self._news, []
        return news

    def close(self) -> None:
        """End the guard, which switches the torque off, and read its last messages. May be called twice."""
        if self._link is not None:
            self._asked = self._number + 1  # the reason of its stop is ignored
            with contextlib.suppress(OSError):
                self._link.shutdown(socket.SHUT_WR)
            self._read(time.monotonic() + _FAREWELL_S, lambda: False)
            if self._link is not None:
                self._leave_guard()
        elif self.torque_off_owed and self.guard_pid is None:
            self._switch_off()
        self._sample = None

    # --- the guard's process -----------------------------------------------------------------------------------------

    def _launch(self) -> None:
        if self._process is not None and self._process.poll() is None:
            raise BringUpError(f"the last guard (process {self._process.pid}) still tries to switch the torque off")
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = start_partner("snake_gym.hardware.guard.process", theirs)
        self._heard_s, self._has_spoken, self._has_ended = time.monotonic(), False, False
        self._send(self._settings)

    def _ask_up(self) -> bool:
        """Ask the guard to bring the robot up. Return False if it takes no messages."""
        self._number += 1
        self._asked, self.stop_reason = self._number, None
        return self._send(Message(b"U", self._number).pack())

    def _send(self, data: bytes) -> bool:
        """Send a message. Return False if there is no guard, or it is busy with earlier ones."""
        if self._link is None:
            return False
        try:
            self._link.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            self._read(-math.inf, lambda: True)  # its last messages
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
        told = unpack(data)
        if told is None:
            return
        sample = told.sample(self.n_joints)
        if sample is not None:
            self._sample, self._taken = sample, told.number
            if self.watch is not None:
                self.watch(sample)
        elif told.kind == b"X" and told.number >= self._asked:
            self.stop_reason = self.stop_reason or told.text
        elif told.kind == b"N":
            self._news.append(told.text)
        elif told.kind == b"F":
            self._has_ended = True

    def _lose_guard(self, reason: str) -> None:
        """End a guard that has died or hangs, and switch the torque off unless it has reported that."""
        if self._link is None or self._process is None:
            return
        self._link.close()
        self._link = None
        if not self._has_ended:
            self._process.kill()
        if not await_end(self._process, _FAREWELL_S):
            self._process.kill()
        if not self._has_ended:
            if self.stop_reason is None:
                self.stop_reason = reason
            self._news.append(reason)
            if self._has_spoken:
                self._switch_off()

    def _leave_guard(self) -> None:
        """Leave a guard that is not done to switch the torque off by itself."""
        if self._link is None or self._process is None:
            return
        self._link.close()
        self._link = None
        if self._has_spoken:
            self._news.append(
                f"torque may still be on: use the hardware stop; the guard (process {self._process.pid}) goes on "
                "trying for a while and holds the port"
            )
            self.torque_off_owed = True
        else:
            self._process.kill()
        await_end(self._process)

    # --- without a guard ---------------------------------------------------------------------------------------------

    def _switch_off(self) -> None:
        """Switch the torque off, tried for a while; ``run_until`` and ``close`` try again what is left."""
        self.torque_off_owed = True
        self._stop.hold("run", describe(self._port, self._calibration.ids))
        give_up_s = time.monotonic() + _FAREWELL_S
        while why := self._try_off():
            if time.monotonic() > give_up_s:
                self._news.append(f"torque is not known to be off ({why}): use the hardware stop")
                return
            time.sleep(RETRY_S)

    def _try_off(self) -> str:
        """Switch the torque off in all servos. Return why that is not confirmed, or an empty string."""
        try:
            left = switch_off_port(self._port, self._calibration.ids)
        except PortGone as error:
            return str(error)
        silent = ", ".join(str(joint + 1) for joint, one in enumerate(self._calibration.ids) if one in left)
        self.torque_off_owed = bool(silent)
        if not silent:
            self._stop.release()
        return f"joints {silent} do not answer" if silent else ""


Body = ServoBody | GuardedBody
"""Servo chain, in this process or guarded by another one."""
