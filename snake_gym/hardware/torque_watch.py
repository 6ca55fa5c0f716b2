"""A process that waits for another one to die, and switches the torque off then: for what moves servos unguarded.

    python -m snake_gym.hardware.torque_watch FD PORT BAUD IDS LATCH WHAT      (started by ``TorqueWatch``)

The socket between the two is closed by the kernel, whatever ends the other process, SIGKILL included; the port is free
then. Where a servo or the port is away, this process goes on trying as the guard does. If both are killed only a
hardware stop is left.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from snake_gym.hardware.emergency_stop import EmergencyStop
from snake_gym.hardware.torque_off import FAREWELL_S, PORT_FAREWELL_S, RETRY_S, switch_off_port
from snake_gym.hardware.transport import PortGone

_READY, _GOODBYE = b"R", b"F"
_ENDED = "the process that would switch the torque off if this one dies has ended"
_BEGIN_S = 15.0
"""How long it may take to begin [s],"""
_END_S = 2.0
"""and to end."""


class TorqueWatch:
    """Watches this process, from now until ``close``.

    Args:
        port, baud: of the bus.
        ids: servos whose torque goes off if this process dies.
        stop: told then that there is torque, and that it is off.
        what: this process does, in a word.

    Raises:
        OSError: it does not start.
    """

    def __init__(self, port: str, baud: int, ids: Sequence[int], stop: EmergencyStop, what: str) -> None:
        self._link, theirs = socket.socketpair()
        with theirs:
            words = [str(theirs.fileno()), port, str(baud), ",".join(map(str, ids)), str(stop.latch.absolute()), what]
            # A session of its own: Ctrl-C is for who is watched. Nobody who reads that one's output shall wait for it.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "snake_gym.hardware.torque_watch", *words], pass_fds=[theirs.fileno()],
                start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            )  # fmt: skip
        self._link.settimeout(_BEGIN_S)
        try:
            if self._link.recv(1) != _READY:
                raise OSError(_ENDED)
        except BaseException:
            self.close()
            raise

    def trouble(self) -> str | None:
        """Why nothing may be moved any more; None: it is watched. Takes microseconds."""
        return None if self._process.poll() is None else _ENDED

    def close(self) -> None:
        """The torque is off, or nobody can do more about it: nothing is left to watch. May be called twice."""
        with contextlib.suppress(OSError):
            self._link.send(_GOODBYE)
        self._link.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            threading.Thread(target=self._process.wait, daemon=True).start()


def switch_off_for(port: str, baud: int, ids: Sequence[int], stop: EmergencyStop, what: str) -> list[int]:
    """Torque off on behalf of a process that has died, until every servo has said so or patience has run out; the IDs
    of those that have not."""
    stop.hold(what)
    begun_s, left, is_gone = time.monotonic(), list(ids), False
    while left and time.monotonic() - begun_s < (PORT_FAREWELL_S if is_gone else FAREWELL_S):
        try:
            left, is_gone = switch_off_port(port, baud, left), False
        except PortGone:
            is_gone = True
        if left:
            time.sleep(RETRY_S)
    if not left:
        stop.release()
    return left


def main(arguments: Sequence[str]) -> int:
    """The process. It ends with the other one: signals that are meant for both do not end it before."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    descriptor, port, baud, ids, latch, what = arguments
    link = socket.socket(fileno=int(descriptor))
    with contextlib.suppress(OSError):
        link.send(_READY)
        if link.recv(1) == _GOODBYE:
            return 0
    left = switch_off_for(port, int(baud), [int(one) for one in ids.split(",")], EmergencyStop(Path(latch)), what)
    if left:
        with contextlib.suppress(OSError):  # the terminal may be closed
            servos = ", ".join(map(str, left))
            print(
                f"{what} died; torque is not known to be off in servos {servos}: USE THE HARDWARE STOP", file=sys.stderr
            )
    return int(bool(left))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    os._exit(code)  # who is watched waits for it
