"""Guard process: it owns the port, so that torque goes off whatever happens to the process that moves the servos.

    python -m snake_gym.hardware.guard.guard FD          (started by ``client``, never by hand)

It serves one run (bus cycles: it sends each sample, and takes commands) or one ``wiggle`` or ``calibrate`` (single bus
calls). Torque goes off, also during bring-up, when

* the other process has shut its side of the socket or died, even by SIGKILL: the kernel then closes the socket;
* it says nothing for too long: it hangs;
* the emergency stop is tripped, a servo exceeds a limit, too many joints are lost, or the port stays away;
* the guard is ended by a signal (SIGTERM, SIGINT, SIGHUP).

If a servo or the port is away then, the guard keeps trying, even after the other process has ended. If the guard itself
is killed or hangs, the other process ends it, takes the port and switches the torque off (``client``). If both are
killed, ``estop`` does that, or a watchdog on the supply.

Messages are lists in JSON on a private pair of Unix sockets, with times of the machine's monotonic clock. The first one
holds the guard's settings. Then, to the guard:

* ``command``: the time when it was given [s], and joint references (J,) [rad];
* ``call``: a number, name and arguments of a bus call; the guard sends an ``answer`` with the number to each.

From the guard:

* ``sample``: a ``BodySample``; ``answer``: number and result of a call;
* ``stop``: the reason; ``news``: a line; ``alive``, while there is nothing else to say;
* ``farewell``: torque is off in all servos, and the guard ends.
"""

from __future__ import annotations

import contextlib
import gc
import json
import math
import os
import select
import signal
import socket
import sys
from types import FrameType
from typing import Any

from snake_gym.config import build, to_dict
from snake_gym.hardware.bus.bus import Bus, BusPort
from snake_gym.hardware.bus.transport import PortGone, SerialTransport
from snake_gym.hardware.calibration.calibration import Calibration
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.servo_body import ServoBody
from snake_gym.hardware.guard.torque_switch import BOARD_BAUD, TorqueSwitch

FAREWELL_S, PORT_FAREWELL_S = 5.0, 30.0
"""Longest times for which a guard that is no longer needed tries to switch the torque off [s]: while the port is there,
so that a dead servo does not block the next run, and while it is gone."""
_LOOK_S = 0.02
"""Time between signs of life, and between looks at the stop [s]."""
_ANSWER_SHARE = 0.2
"""Longest wait for the command that answers a sample, as a share of the period."""
_MOST = 100
"""Most messages taken in a row: a flood must not delay the cycles."""
_LARGEST = 1 << 17


def send(link: socket.socket, *message: Any) -> None:
    """Send a message. Raises BlockingIOError: the other process is busy with earlier ones; OSError: it is gone."""
    link.send(json.dumps(to_dict(message)).encode(), socket.MSG_DONTWAIT)


def receive(link: socket.socket, wait_s: float | None = None) -> list[Any] | None:
    """Return the next message; nothing if none comes within ``wait_s`` [s]; None if the other process is gone.

    Arrays arrive as lists, and the IDs in a dict as text.
    """
    if not select.select([link], [], [], wait_s)[0]:
        return []
    for _ in range(2):
        try:
            data = link.recv(_LARGEST)
            return list(json.loads(data)) if data else None
        except OSError:  # it left with messages unread: its own can still be read
            continue
    return None


class Guard:
    """Owner of the port, for the process at the other end of ``link``.

    Args:
        body: servo chain of a run; None: single bus calls are served.
        silence_s: time without a call, if only ``beat``, after which the other process hangs [s].
    """

    def __init__(
        self, link: socket.socket, bus: Bus, torque: TorqueSwitch, body: ServoBody | None = None,
        silence_s: float = math.inf,
    ) -> None:  # fmt: skip
        self._link, self._bus, self._torque, self._body, self._clock = link, bus, torque, body, bus.clock
        self._goodbye = select.poll()
        self._goodbye.register(link, select.POLLRDHUP)
        self._beat_s = -math.inf
        self._silence_s, self._heard_s = silence_s, self._clock.now()
        self._why: str | None = None
        """Reason to end."""

    def end(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: finish the present cycle, then switch the torque off."""
        self._why = "the guard was ended by a signal"

    def run(self) -> None:
        """Serve until the other process is gone or a signal comes; switch the torque off in any case."""
        try:
            if self._body is None:
                self._torque.check_stop()
            else:
                self._body.start(self._look)
            while self._listen(self.patience_s()) and self._why is None and self._turn():
                pass
        except BringUpError as error:
            self._why = str(error)
        except Exception as error:
            self._why = f"the guard failed: {error!r}"
            raise
        finally:
            self._leave()

    def patience_s(self) -> float:
        """Return the time to wait for a message now [s]: all answers of the next cycle have their time."""
        if self._body is None:
            return _LOOK_S
        left_s = self._body.next_cycle_s - self._clock.now()
        return max(0.0, min(_ANSWER_SHARE * self._body.period_s, left_s - self._body.sending_s))

    def _look(self) -> None:
        """Look for a reason to end the bring-up; called all the time. Raises BringUpError."""
        self._beat()
        if self._why is not None or self._goodbye.poll(0):
            raise BringUpError(self._why or "the other process has left")

    def _beat(self) -> None:
        """Say that the guard lives, if it has not just been said."""
        now = self._clock.now()
        if now - self._beat_s >= _LOOK_S:
            self._beat_s = now
            self._send("alive")

    def _tell_news(self) -> None:
        """Send the news, and the reason if the servos have been stopped."""
        for line in self._torque.take_news():
            self._send("news", line)
        if self._torque.stop_reason is not None:
            self._send("stop", self._torque.stop_reason)

    def _send(self, *message: Any) -> None:
        """Send a message, unless the other process sleeps and its buffer is full, or it is gone."""
        with contextlib.suppress(OSError):
            send(self._link, *message)

    def _listen(self, wait_s: float) -> bool:
        """Take the messages that have come, waiting for the first. Return False if the other process is gone."""
        for _ in range(_MOST):
            message = receive(self._link, wait_s)
            if message is None:
                return False
            if not message:
                break
            if self._body is None:
                self._serve(*message)
            else:
                _, stamp_s, reference = message
                if self._clock.now() - stamp_s <= self._body.limits.command_timeout_s:  # else it is not followed
                    self._body.command(reference)
            wait_s = 0.0
        return True

    def _turn(self) -> bool:
        """Do what is due after the messages. Return False once the guard is not needed any more."""
        body = self._body
        if body is None:
            self._mind_silence()
            self._torque.look()
            self._tell_news()
            self._beat()
            return True
        # After a long pause of this process the goal is stale: the cycle then finds that commands are late.
        if self._clock.now() - body.next_cycle_s < body.limits.command_timeout_s:
            body.send_goal()
        self._clock.sleep(body.next_cycle_s - self._clock.now())
        body.cycle()
        self._tell_news()  # a stop is known before its sample
        self._send("sample", body.sample())
        return body.stop_reason is None or body.torque_off_pending

    def _mind_silence(self) -> None:
        """Stop if torque may be on and nothing was asked for too long: also before a call that comes after a pause."""
        if self._torque.pending and self._clock.now() - self._heard_s > self._silence_s:
            self._torque.halt(f"nothing was asked for {self._silence_s:g} s")

    def _serve(self, _: str, number: int, name: str, *arguments: Any) -> None:
        """Answer a bus call. After a stop, one that gives torque is refused."""
        self._beat()
        self._mind_silence()
        moved: list[int] = []  # IDs of servos that may have torque after the call
        if name == "write_targets" or (name == "torque" and arguments[1]):
            moved = arguments[0]
        elif name == "write_register" and arguments[1] == "torque_enable" and arguments[2]:
            moved = [arguments[0]]
        answer: Any = name == "beat"
        if name == "torque" and not moved:
            answer = self._torque.off(arguments[0])
        elif name != "beat" and not (moved and self._torque.stop_reason is not None):
            self._torque.expect_on(moved)
            answer = getattr(self._bus, name)(*arguments)
        self._send("answer", number, answer)
        self._heard_s = self._clock.now()

    def _leave(self) -> None:
        """Switch the torque off until every servo confirms it or the time is up."""
        torque = self._torque
        try:
            torque.halt(self._why or "closed")
            self._tell_news()
            begun_s = self._clock.now()
            while torque.pending:
                if self._clock.now() - begun_s > (PORT_FAREWELL_S if torque.port_gone else FAREWELL_S):
                    break
                self._beat()
                self._clock.sleep(_LOOK_S)
                torque.look()
        finally:
            torque.close()
            self._tell_news()
        if torque.pending:
            with contextlib.suppress(OSError):  # the terminal may be closed
                print("guard: torque may still be on: use the hardware stop", file=sys.stderr)
        else:
            self._send("farewell")


def take_priority(priority: int) -> str:
    """Give this thread, and those that it starts, a real-time priority (1 to 99); 0 changes nothing. Return why it was
    refused; empty if it was given.

    Under the ordinary scheduler a cycle is occasionally tens of milliseconds late on a busy machine.
    """
    try:
        if priority:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def main(arguments: list[str]) -> int:
    """Run the guard process; its settings (``client.GuardClient``) come over the socket."""
    link = socket.socket(fileno=int(arguments[0]))
    settings: dict[str, Any] = (receive(link) or sys.exit(1))[0]
    device = settings["heartbeat"]
    try:
        bus = BusPort.of(settings["port"]).open(reopens=True)
        board = None if device is None else SerialTransport(device, BOARD_BAUD)
    except PortGone as error:
        send(link, "stop", str(error))
        send(link, "farewell")
        return 1
    stop, run = EmergencyStop(settings["latch"]), settings["body"]
    if run is None:
        torque = TorqueSwitch(bus, settings["ids"], stop, board, settings["what"])
        guard = Guard(link, bus, torque, silence_s=settings["silence_s"])
    else:
        calibration, limits = build(Calibration, run.pop("calibration")), build(SafetyLimits, run.pop("limits"))
        body = ServoBody(bus, calibration, limits, **run, stop=stop, board=board)
        guard = Guard(link, bus, body.torque, body)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, guard.end)
    refused = take_priority(settings["priority"])
    if refused:
        send(link, "news", f"no real-time priority for the guard ({refused}): cycles may be late")
    gc.collect()
    gc.freeze()  # a collection took 18 ms with the modules
    guard.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
