"""Servos behind a guard process, which owns their port: the side of the process that moves them.

If the guard dies or is silent for too long, this side kills it, opens the port and switches the torque off, repeatedly
until every servo confirms it. A guard that cannot reach all servos at the end is left alone, to keep trying.
"""

from __future__ import annotations

import contextlib
import math
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from snake_gym.config import ConfigError
from snake_gym.hardware.bus.bus import BlockRead, BusPort, ServoInfo
from snake_gym.hardware.bus.clock import Clock, MonotonicClock
from snake_gym.hardware.bus.family import ServoError
from snake_gym.hardware.calibration.calibration import Calibration
from snake_gym.hardware.guard.body import BodySample, BringUpError
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.guard import receive, send
from snake_gym.hardware.guard.own_body import OwnBody
from snake_gym.hardware.guard.servo_body import ServoBody
from snake_gym.hardware.guard.torque_switch import switch_off_port
from snake_gym.robot.spec import FloatArray

_BEGIN_S = 15.0
"""More patience with the guard's first message [s]."""
_HUNG_S = 1.5
"""Longest time between its messages [s], though a port may block."""
_LAST_LOOK_S = 0.1
"""Last wait, as the whole machine may have paused [s]."""
_FAREWELL_S = 2.0
"""Longest wait for its end [s], longer than ``_HUNG_S``."""
_RETRY_S = 0.02
"""Time between two attempts to open the port and switch off [s]."""
SILENCE_S = 1.0
"""Time without a call after which the guard of a ``GuardedBus`` switches off [s]."""
GUARD: tuple[str, ...] = ("snake_gym.hardware.guard.guard",)
"""Module of the guard process; tests put one before it."""


class GuardClient:
    """Process that has a guard.

    Args:
        stop: emergency stop that the guard obeys.
        what: activity, in a word.
        heartbeat: serial device of the board on the servos' supply; None: there is none.
        settings: of the guard; see ``guard.main``.
    """

    def __init__(
        self, port: BusPort, ids: Sequence[int], stop: EmergencyStop, what: str, heartbeat: str | None,
        settings: dict[str, Any],
    ) -> None:  # fmt: skip
        self._port, self._ids, self._stop, self._what = port, list(ids), stop, what
        self._settings = {
            "port": port.to_dict(), "ids": self._ids, "latch": stop.latch, "what": what, "heartbeat": heartbeat,
            "body": None, "priority": 0, **settings,
        }  # fmt: skip
        self.clock: Clock = MonotonicClock()
        self._process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._heard_s = -math.inf
        self._has_ended = False
        self.torque_off_pending = False
        """True while a servo is not known to have its torque off, though it should."""
        self._news: list[str] = []
        self._answer: tuple[Any, ...] = (0, None)
        self._sample: BodySample | None = None
        self.watch: Callable[[BodySample], None] | None = None
        """Function called with every sample, once a bus cycle; its reference was sent before the sample was read."""
        self.stop_reason: str | None = None
        """Reason why the torque is off; None: it is on, or the servos have not been started."""

    @property
    def guard_pid(self) -> int | None:
        """Process ID of the guard; None: there is no guard."""
        return None if self._process is None or self._process.poll() is not None else self._process.pid

    def news(self) -> list[str]:
        """Return the events since the last call, one line each."""
        news, self._news = self._news, []
        return news

    def close(self) -> None:
        """End the guard, which switches the torque off, and read its last messages. May be called twice."""
        if self._link is not None:
            self.stop_reason = self.stop_reason or ""  # the guard's farewell is no stop
            with contextlib.suppress(OSError):
                self._link.shutdown(socket.SHUT_WR)
            self._read(time.monotonic() + _FAREWELL_S, lambda: False)
            if self._link is not None and self._process is not None:  # left alone, to switch the torque off by itself
                self._link.close()
                self._link, self.torque_off_pending = None, True
                who = f"the guard (process {self._process.pid}) goes on trying for a while and holds the port"
                self._news.append(f"torque may still be on: use the hardware stop; {who}")
                _await_end(self._process)
        elif self.torque_off_pending and self.guard_pid is None:
            self._switch_off()
        self.stop_reason, self._sample = self.stop_reason or None, None

    def _launch(self) -> None:
        if self._process is not None and not _await_end(self._process, _FAREWELL_S):
            raise BringUpError(f"the last guard (process {self._process.pid}) still tries to switch the torque off")
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:  # a session of its own, as Ctrl-C is for this process, and no hold on this one's output
            self._process = subprocess.Popen(
                [sys.executable, "-m", *GUARD, str(theirs.fileno())],
                pass_fds=[theirs.fileno()], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        self._heard_s, self._has_ended = time.monotonic() + _BEGIN_S, False
        self.stop_reason = None
        self._send(self._settings)

    def _send(self, *message: Any) -> None:
        """Send a message, unless there is no guard, or it is busy with earlier ones."""
        if self._link is None:
            return
        try:
            send(self._link, *message)
        except BlockingIOError:
            pass
        except OSError:
            self._read(-math.inf, lambda: True)  # its last messages
            self._lose_guard("the guard process has died")

    def _read(self, give_up_s: float, has_come: Callable[[], bool]) -> None:
        """Take messages until ``has_come`` and no more are there, time is up [s], or the guard is gone."""
        while self._link is not None:
            now = time.monotonic()
            patience_s = self._heard_s + _HUNG_S - now
            wait_s = 0.0 if has_come() else max(0.0, min(give_up_s - now, patience_s))
            if patience_s <= 0.0:
                wait_s = _LAST_LOOK_S
            message = receive(self._link, wait_s)
            if message is None:
                self._lose_guard("the guard process has died")
            elif message:
                self._heard_s = time.monotonic()
                self._take(*message)
            elif patience_s <= 0.0:
                self._lose_guard("the guard process hangs")
            elif has_come() or time.monotonic() >= give_up_s:
                return

    def _take(self, kind: str, *content: Any) -> None:
        if kind == "stop" and self.stop_reason is None:
            self.stop_reason = content[0]
        elif kind == "news":
            self._news += content
        elif kind == "farewell":
            self._has_ended = True
        elif kind == "answer":
            self._answer = content
        elif kind == "sample":
            self._sample = BodySample.of(content[0])
            if self.watch is not None:
                self.watch(self._sample)

    def _lose_guard(self, reason: str) -> None:
        """End a guard that has died or hangs, and switch the torque off unless it has reported that."""
        if self._link is None or self._process is None:
            return
        self._link.close()
        self._link = None
        if not self._has_ended:
            self._process.kill()
        if not _await_end(self._process, _FAREWELL_S):
            self._process.kill()
        if not self._has_ended:
            self.stop_reason = self.stop_reason or reason
            self._news.append(f"stopped: {reason}")
            self._switch_off()

    def _switch_off(self) -> None:
        """Switch the torque off without a guard, tried for a while; what is left has to be tried again."""
        self.torque_off_pending = True
        self._stop.hold(self._what, self._port.to_dict() | {"ids": self._ids})
        give_up_s = time.monotonic() + _FAREWELL_S
        while why := self._try_off():
            if time.monotonic() > give_up_s:
                self._news.append(f"torque is not known to be off ({why}): use the hardware stop")
                return
            time.sleep(_RETRY_S)

    def _try_off(self) -> str:
        why = switch_off_port(self._port, self._ids)
        self.torque_off_pending = bool(why)
        if not why:
            self._stop.release()
        return why


def _await_end(process: subprocess.Popen[bytes], wait_s: float = 0.0) -> bool:
    """Wait up to ``wait_s`` [s] for a process to end. Return False if the wait goes on in the background."""
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        threading.Thread(target=process.wait, daemon=True).start()
        return False
    return True


class GuardedBody(GuardClient):
    """Servo chain behind a guard, for the control loop; one guard from each bring-up to the next stop.

    Args:
        calibration, limits, period_s, speed_rad_s: as for ``ServoBody``.
        latch: file of the emergency stop; None: this user's default.
        priority: real-time priority of the guard process, 1 to 99; 0: none.
        heartbeat: serial device of the board on the servos' supply; None: there is none.
    """

    def __init__(
        self, port: BusPort, calibration: Calibration, limits: SafetyLimits, period_s: float = 0.02,
        speed_rad_s: FloatArray | float = math.inf, latch: Path | None = None, priority: int = 0,
        heartbeat: str | None = None,
    ) -> None:  # fmt: skip
        self.n_joints, self._period_s = len(calibration.joints), period_s
        body = {"calibration": calibration, "limits": limits, "period_s": period_s, "speed_rad_s": speed_rad_s}
        settings = {"body": body, "priority": priority}
        super().__init__(port, calibration.ids, EmergencyStop(latch), "run", heartbeat, settings)

    def start(self) -> BodySample:
        """Bring the robot up, if it is not, and return a sample taken since. Raises BringUpError."""
        self._read(-math.inf, lambda: True)
        if self._link is None or self._sample is None or self.stop_reason is not None:
            self.close()
            self._launch()
            self._read(math.inf, lambda: self._sample is not None or self.stop_reason is not None)
        else:
            self.command(self._sample.reference)
            self.run_until(self.clock.now() + self._period_s)
        if self.stop_reason is not None or self._sample is None:
            raise BringUpError(self.stop_reason or "the guard process has ended")
        self.torque_off_pending = False
        return self._sample

    def command(self, reference: FloatArray) -> None:
        """Aim at joint references (J,) [rad] from now on."""
        now = self.clock.now()
        self._send("command", now, reference)
        if now - self._heard_s > _HUNG_S:
            self._read(-math.inf, lambda: True)

    def run_until(self, when_s: float) -> BodySample:
        """Return the sample of ``when_s`` [s], or the newest one a period later."""
        cycle_s = when_s - 0.5 * self._period_s
        self._read(when_s + self._period_s, lambda: self._sample is not None and self._sample.cycle_s >= cycle_s)
        if self._sample is None:
            raise RuntimeError("run_until before start")
        if self._link is None:
            if self.torque_off_pending and self._try_off() == "":
                self._news.append("torque is off in all servos now")
            self.clock.sleep(when_s - self.clock.now())
        return self._sample


class GuardedBus(GuardClient):
    """Single servos behind a guard, with calls of a ``Bus``; a context in which they may be moved.

    While torque may be on, something has to be called at least every ``SILENCE_S``, if only ``interrupted``. After a
    stop a call that would give torque returns False.

    Raises ConfigError, as the context is entered: a port cannot be opened, the stop is tripped or cannot be.
    """

    def __init__(
        self, port: BusPort, ids: Sequence[int], stop: EmergencyStop, what: str, heartbeat: str | None = None
    ) -> None:
        super().__init__(port, ids, stop, what, heartbeat, {"silence_s": SILENCE_S})
        self.baud, self.family = port.baud, port.family
        self._number = 0
        """Number of the last call: the answer to one that a signal cut short is not taken for the next."""

    def __enter__(self) -> GuardedBus:
        self._launch()
        self._call("beat")
        if self.stop_reason is not None:
            self.close()
            raise ConfigError(self.stop_reason)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        for line in self.news():
            if not line.startswith("stopped: "):
                print(line, file=sys.stderr)

    def interrupted(self) -> str | None:
        """Return the reason why nothing may be moved any more, or None. Takes less than a millisecond."""
        self._call("beat")
        return self.stop_reason

    def ping(self, servo_id: int) -> ServoInfo | None:
        found = self._call("ping", servo_id)
        if found is None:
            return None
        one, model, firmware, error, ambiguous = found
        return ServoInfo(one, model, tuple(firmware), ServoError(error), ambiguous)

    def read_block(self, ids: Sequence[int], *names: str) -> BlockRead:
        found = self._call("read_block", ids, *names)
        if found is None:
            return BlockRead(self.clock.now(), dict.fromkeys(ids), {}, dict.fromkeys(ids, "no guard"))
        stamp_s, *by_id = found
        values, errors, failures = ({int(one): value for one, value in each.items()} for each in by_id)
        return BlockRead(stamp_s, values, {one: ServoError(error) for one, error in errors.items()}, failures)

    def write_targets(self, ids: Sequence[int], position_steps: Sequence[int], speed: int = 0) -> bool:
        return bool(self._call("write_targets", ids, position_steps, speed))

    def write_register(self, servo_id: int, name: str, value: int, acknowledged: bool = True) -> bool:
        return bool(self._call("write_register", servo_id, name, value, acknowledged))

    def torque(self, ids: Sequence[int], on: bool) -> dict[int, bool]:
        known = {}
        for one in ids:  # one by one, as the guard is silent for as long as a dead servo takes
            answer = self._call("torque", [one], on)
            is_off_without_guard = self._link is None and not self.torque_off_pending
            known[one] = answer[str(one)] if answer else not on and is_off_without_guard
        return known

    def _call(self, name: str, *arguments: Any) -> Any:
        """Return the result of a bus call in the guard; None if there is no guard any more."""
        self._number += 1
        self._send("call", self._number, name, *arguments)
        self._read(math.inf, lambda: self._answer[0] == self._number)
        return self._answer[1] if self._answer[0] == self._number else None


Body = ServoBody | GuardedBody | OwnBody
"""Servo chain, in this process or guarded by another one, or joints of the user's own."""
