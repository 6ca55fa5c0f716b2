"""Torque-off, repeated until the servos confirm it, however long they or the port are away."""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from snake_gym.hardware.bus.bus import Bus, BusPort
from snake_gym.hardware.bus.transport import PortGone
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.heartbeat import Heartbeat

FAREWELL_S, PORT_FAREWELL_S = 5.0, 30.0
"""Longest times for which a process that is no longer needed tries to switch the torque off [s]: while the port is
there, so that a dead servo does not block the next run, and while it is gone."""
RETRY_S = 0.02
"""Time between two attempts to open the port and switch off [s]."""
_AGAIN_S = 0.1
"""Time between two attempts on a bus that is open [s]."""


def describe(port: BusPort, ids: Sequence[int]) -> dict[str, Any]:
    """Return what it takes to switch servos off, for another process; ``port_of`` reads it."""
    return {**port.to_dict(), "ids": list(ids)}


def port_of(servos: dict[str, Any]) -> BusPort:
    """Return the port of servos that ``describe`` has described."""
    return BusPort.of(servos)


def switch_off_port(port: BusPort, ids: Sequence[int]) -> list[int]:
    """Open the port and switch the torque off, once. Return IDs of servos that do not confirm it. Raises PortGone."""
    with contextlib.closing(port.open()) as bus:
        off = bus.torque(ids, False)
    return [one for one in ids if not off[one]]


class TorqueOff:
    """Servos of one bus whose torque may be on.

    Args:
        ids: all servos of the robot.
        stop: holds the port while there are any; not used on a bus in memory, where nothing real moves.
        heartbeat: beats while there are any.
    """

    def __init__(self, bus: Bus, ids: Sequence[int], stop: EmergencyStop, heartbeat: Heartbeat | None = None) -> None:
        self._bus, self._clock = bus, bus.clock
        self._stop = stop
        self._servos = None if bus.port is None else describe(bus.port, ids)
        self.heartbeat = Heartbeat() if heartbeat is None else heartbeat
        self._asked_s = -math.inf
        self.owed: set[int] = set()
        """IDs of servos whose torque may be on."""

    def expect_on(self, ids: Iterable[int]) -> None:
        """Note that these servos are about to be given torque or a goal."""
        self.owed.update(ids)
        if self.owed and self._servos is not None:
            self._stop.hold("run", self._servos)
        self.beat()

    def beat(self) -> None:
        """Tell the board on the supply that somebody is in charge of servos whose torque may be on."""
        if self.owed:
            self.heartbeat.beat()

    def abandon(self, ids: Sequence[int]) -> None:
        """Switch off all, and these servos as well, whose torque may have been on before. Silent ones are not
        awaited."""
        for servo_id in ids:
            self._bus.write_register(servo_id, "torque_enable", 0, acknowledged=False)
        found = self._bus.read_block(ids, "torque_enable").values
        self.expect_on(servo_id for servo_id, told in found.items() if told is not None and told["torque_enable"])
        self.switch()

    def switch(self) -> None:
        """Switch the torque of all off; servos that confirm it are no longer owed."""
        self._asked_s = self._clock.now()
        off = self._bus.torque(sorted(self.owed), False)
        self.owed -= {one for one, known in off.items() if known}
        if not self.owed:
            self.heartbeat.rest()
            self._stop.release()

    def retry(self) -> bool:
        """Switch off at intervals what is still owed. Return True if that was the last."""
        if not self.owed or self._clock.now() - self._asked_s < _AGAIN_S:
            return False
        self.switch()
        return not self.owed


def start_partner(module: str, link: socket.socket, *words: str) -> subprocess.Popen[bytes]:
    """Start a process that runs ``module`` with ``link``, whose descriptor precedes ``words``; ``link`` is closed here.

    It has its own session, since Ctrl-C is for this process. It may live longer, so it does not keep this one's output
    open.
    """
    with link:
        return subprocess.Popen(
            [sys.executable, "-m", module, str(link.fileno()), *words],
            pass_fds=[link.fileno()], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip


def await_end(process: subprocess.Popen[bytes], wait_s: float = 0.0) -> bool:
    """Wait up to ``wait_s`` [s] for a process to end. Return False if the wait goes on in the background."""
    try:
        process.wait(wait_s)
    except subprocess.TimeoutExpired:
        threading.Thread(target=process.wait, daemon=True).start()
        return False
    return True


_READY, _GOODBYE = b"R", b"F"
_ENDED = "the process that would switch the torque off if this one dies has ended"
_BEGIN_S = 15.0
"""Longest time that the process may take to start [s]."""
_END_S = 2.0
"""Longest time that it may take to end [s]."""


class TorqueWatch:
    """Process that switches the torque off if this one dies, for code that moves servos without a guard.

    The kernel closes the socket between the two, whatever ends this process, SIGKILL included. Where a servo or the
    port is away, the process keeps trying as the guard does. If both are killed, ``estop`` or a hardware stop is left.

    Args:
        ids: servos whose torque goes off if this process dies.
        stop: emergency stop, told in that case that torque is on, and later that it is off.
        what: activity of this process, in a word.

    Raises OSError: the process does not start.
    """

    def __init__(self, port: BusPort, ids: Sequence[int], stop: EmergencyStop, what: str) -> None:
        self._link, theirs = socket.socketpair()
        self._process = start_partner("snake_gym.hardware.guard.torque_off", theirs, port.device, what)
        told = {"servos": describe(port, ids), "latch": str(stop.latch.absolute())}
        self._link.settimeout(_BEGIN_S)
        try:
            self._link.sendall(json.dumps(told).encode() + b"\n")
            if self._link.recv(1) != _READY:
                raise OSError(_ENDED)
        except BaseException:
            self.close()
            raise

    def trouble(self) -> str | None:
        """Return a reason why nothing may be moved any more, or None. Takes microseconds."""
        return None if self._process.poll() is None else _ENDED

    def close(self) -> None:
        """End the watch, once the torque is off or nothing more can be done about it. May be called twice."""
        with contextlib.suppress(OSError):
            self._link.send(_GOODBYE)
        self._link.close()
        await_end(self._process, _END_S)


def _switch_off_for(what: str, port: BusPort, ids: Sequence[int], stop: EmergencyStop) -> list[int]:
    """Switch the torque off for a process that has died, until every servo confirms it or patience has run out. Return
    the IDs of those that have not."""
    stop.hold(what, describe(port, ids))
    begun_s, left, is_gone = time.monotonic(), list(ids), False
    while left and time.monotonic() - begun_s < (PORT_FAREWELL_S if is_gone else FAREWELL_S):
        try:
            left, is_gone = switch_off_port(port, left), False
        except PortGone:
            is_gone = True
        if left:
            time.sleep(RETRY_S)
    if not left:
        stop.release()
    return left


def main(arguments: Sequence[str]) -> int:
    """Run the watching process. It ends with the watched one: signals that are meant for both do not end it before."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    descriptor, _, what = arguments
    link = socket.socket(fileno=int(descriptor))
    line = link.makefile().readline()
    if not line:  # it has died before anything could move
        return 0
    told = json.loads(line)
    port, ids = port_of(told["servos"]), told["servos"]["ids"]
    with contextlib.suppress(OSError):
        link.send(_READY)
        if link.recv(1) == _GOODBYE:
            return 0
    left = _switch_off_for(what, port, ids, EmergencyStop(Path(told["latch"])))
    if left:
        with contextlib.suppress(OSError):  # the terminal may be closed
            print(
                f"{what} died; torque is not known to be off in servos {', '.join(map(str, left))}: "
                "USE THE HARDWARE STOP", file=sys.stderr,
            )  # fmt: skip
    return int(bool(left))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    os._exit(code)  # end at once: the watched process waits for it
