"""Guard: the owner of the port switches the torque off, whatever happens to the process that moves the servos.

Torque goes off when

* the other process has shut its side of the socket or died, even by SIGKILL: the kernel then closes the socket;
* it says nothing for too long: it hangs;
* the emergency stop is tripped, a servo exceeds a limit, too many joints are lost, or the port stays away;
* the guard is ended by a signal (SIGTERM, SIGINT, SIGHUP).

The same holds during bring-up. If a servo or the port is away when the torque has to go off, the guard keeps trying,
even after the other process has ended.
"""

from __future__ import annotations

import contextlib
import math
import select
import socket
import sys
from types import FrameType
from typing import Any

from snake_gym.hardware.bus.bus import Bus
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.messages import receive, send
from snake_gym.hardware.guard.torque_switch import TorqueSwitch

FAREWELL_S, PORT_FAREWELL_S = 5.0, 30.0
"""Longest times for which a guard that is no longer needed tries to switch the torque off [s]: while the port is there,
so that a dead servo does not block the next run, and while it is gone."""
_RETRY_S = 0.02
_MOST = 100
"""Most messages taken in a row: a flood must not delay the cycles."""
_BEAT_S = 0.02
"""Time between heartbeats while there are no samples [s]."""


class Guard:
    """Owner of the port, for the process at the other end of ``link``."""

    def __init__(self, link: socket.socket, bus: Bus, torque: TorqueSwitch) -> None:
        self._link, self._bus, self._torque, self._clock = link, bus, torque, bus.clock
        self._goodbye = select.poll()
        self._goodbye.register(link, select.POLLRDHUP)
        self._beat_s = -math.inf
        self._why: str | None = None
        """Reason to end."""

    def start(self) -> None:
        """Bring the servos up. Raises BringUpError."""

    def patience_s(self) -> float:
        """Return the time to wait for a message now [s]."""
        raise NotImplementedError

    def take(self, kind: str, *content: Any) -> None:
        """Take a message."""

    def turn(self) -> bool:
        """Do what is due after the messages. Return False once the guard is not needed any more."""
        raise NotImplementedError

    def end(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: finish the present cycle, then switch the torque off."""
        self._why = "the guard was ended by a signal"

    def run(self) -> None:
        """Serve until the other process is gone or a signal comes; switch the torque off in any case."""
        try:
            self.start()
            while self._listen(self.patience_s()) and self._why is None and self.turn():
                pass
        except BringUpError as error:
            self._why = str(error)
        except Exception as error:
            self._why = f"the guard failed: {error!r}"
            raise
        finally:
            self._leave()

    def look(self) -> None:
        """Look for a reason to end the bring-up; call it all the time. Raises BringUpError."""
        self.beat()
        if self._why is not None or self._goodbye.poll(0):
            raise BringUpError(self._why or "the other process has left")

    def beat(self) -> None:
        """Say that the guard lives, if it has not just been said."""
        now = self._clock.now()
        if now - self._beat_s >= _BEAT_S:
            self._beat_s = now
            self.send("alive")

    def tell_news(self) -> None:
        """Send the news, and the reason if the servos have been stopped."""
        for line in self._torque.take_news():
            self.send("news", line)
        if self._torque.stop_reason is not None:
            self.send("stop", self._torque.stop_reason)

    def send(self, *message: Any) -> None:
        """Send a message, unless the other process sleeps and its buffer is full, or it is gone."""
        with contextlib.suppress(OSError):
            send(self._link, *message)

    def _listen(self, wait_s: float) -> bool:
        """Take the messages that have come, waiting for the first. Return False if the other process is gone."""
        for _ in range(_MOST):
            readable, _, _ = select.select([self._link], [], [], wait_s)
            if not readable:
                break
            message = receive(self._link)
            if message is None:
                return False
            self.take(*message)
            wait_s = 0.0
        return True

    def _leave(self) -> None:
        """Switch the torque off until every servo confirms it or the time is up."""
        torque = self._torque
        try:
            torque.halt(self._why or "closed")
            self.tell_news()
            begun_s = self._clock.now()
            while torque.pending:
                if self._clock.now() - begun_s > (PORT_FAREWELL_S if torque.port_gone else FAREWELL_S):
                    break
                self.beat()
                self._clock.sleep(_RETRY_S)
                torque.look()
        finally:
            self._bus.close()
            torque.heartbeat.close()
            self.tell_news()
        if torque.pending:
            with contextlib.suppress(OSError):  # the terminal may be closed
                print("guard: torque may still be on: use the hardware stop", file=sys.stderr)
        else:
            self.send("farewell")
