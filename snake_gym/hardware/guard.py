"""The guard: a process of its own that owns the port, so that torque goes off whatever becomes of the policy.

    python -m snake_gym.hardware.guard FD          (started by ``guarded_body``, never by hand)

It cycles the servos (``servo_body``) at the bus's rate, sends each sample to the policy's process and takes its
commands. Torque goes off when

* the policy's process has died, even by SIGKILL: the socket between them is closed by the kernel;
* no command has come for ``command_timeout_s``: it hangs;
* the emergency stop is tripped, a servo is sick, too many joints are lost, the port stays away;
* the guard is told to end (SIGTERM, SIGINT, SIGHUP).

If the guard itself is killed, the policy's process takes the port and switches the torque off (``guarded_body``); if
both are killed, or the cable is pulled, only a hardware stop is left.
"""

from __future__ import annotations

import contextlib
import json
import select
import signal
import socket
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from snake_gym.config import build
from snake_gym.hardware.body import BringUpError
from snake_gym.hardware.calibration import Calibration
from snake_gym.hardware.clock import MonotonicClock
from snake_gym.hardware.emergency_stop import EmergencyStop
from snake_gym.hardware.guard_link import LARGEST, pack_sample, pack_text, unpack_command
from snake_gym.hardware.safety import SafetyLimits
from snake_gym.hardware.scheduling import spare_old_objects, take_priority
from snake_gym.hardware.servo_body import ServoBody
from snake_gym.hardware.servo_bus import FeetechBus
from snake_gym.hardware.transport import PortGone, SerialTransport

_ANSWER_SHARE = 0.2
"""Share of a period for which a cycle waits for the command that answers its sample,"""
_SENDING_S = 0.002
"""unless the next cycle is due: sending the goals takes so long."""


class Guard:
    """One run.

    Args:
        link: the socket to the policy's process.
        body: the servos.
    """

    def __init__(self, link: socket.socket, body: ServoBody) -> None:
        self._link, self._body = link, body
        self._number = 0
        self._ends = False

    def end(self, number: int, frame: FrameType | None) -> None:
        """Signal handler: finish the present cycle, then torque off."""
        self._ends = True

    def run(self) -> None:
        """Until the policy's process is gone or a signal comes; torque off in any case."""
        body = self._body
        try:
            body.start()
            self._send(pack_text(b"N", "up"))
            while not self._ends and self._listen(0.0):
                body.clock.sleep(body.next_cycle_s - body.clock.now())
                body.cycle()
                self._report()
                left_s = body.next_cycle_s - body.clock.now()
                if not self._listen(max(0.0, min(_ANSWER_SHARE * body.period_s, left_s - _SENDING_S))):
                    break
                body.send_goal()
        except BringUpError as error:
            self._send(pack_text(b"X", str(error)))
        finally:
            body.close()

    def _listen(self, wait_s: float) -> bool:
        """Take the commands that have come, waiting for the first; False: nobody is there any more."""
        while True:
            readable, _, _ = select.select([self._link], [], [], wait_s)
            if not readable:
                return True
            try:
                data = self._link.recv(LARGEST)
            except OSError:
                return False
            if not data:
                return False
            command = unpack_command(data, self._body.n_joints)
            if command is not None:
                self._number = command.number
                self._body.command(command.reference)
            wait_s = 0.0

    def _report(self) -> None:
        for line in self._body.news():
            self._send(pack_text(b"N", line))
        if self._body.stop_reason is not None:
            self._send(pack_text(b"X", self._body.stop_reason))
        self._send(pack_sample(self._body.sample(), self._number))

    def _send(self, data: bytes) -> None:
        # Full: the other side sleeps, and gets the next one. Gone: the next recv tells.
        with contextlib.suppress(OSError):
            self._link.send(data, socket.MSG_DONTWAIT)


def settings_of(told: dict[str, Any]) -> tuple[Calibration, SafetyLimits, dict[str, Any]]:
    """The parts of the first message. Raises ConfigError."""
    rest = {name: told[name] for name in ("port", "baud", "period_s", "speed_rad_s", "latch", "priority")}
    return build(Calibration, told["calibration"]), build(SafetyLimits, told["limits"]), rest


def main(arguments: list[str]) -> int:
    """The process: everything else comes over the socket."""
    link = socket.socket(fileno=int(arguments[0]))
    calibration, limits, rest = settings_of(json.loads(link.recv(LARGEST)))
    port, baud = rest["port"], int(rest["baud"])
    try:
        transport = SerialTransport(port, baud)
    except PortGone as error:
        link.send(pack_text(b"X", str(error)))
        return 1
    clock = MonotonicClock()
    bus = FeetechBus(transport, baud, clock, reopen=lambda: SerialTransport(port, baud))
    speed = float("inf") if rest["speed_rad_s"] is None else rest["speed_rad_s"]
    body = ServoBody(bus, calibration, limits, clock, rest["period_s"], speed, EmergencyStop(Path(rest["latch"])))
    refused = take_priority(int(rest["priority"]))
    if refused:
        link.send(pack_text(b"N", f"no real-time priority for the guard ({refused}): cycles may be late"))
    spare_old_objects()
    guard = Guard(link, body)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, guard.end)
    guard.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
