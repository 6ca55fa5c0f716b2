"""Guard process: it owns the port, so that torque goes off whatever happens to the policy's process.

    python -m snake_gym.hardware.guard.process FD          (started by ``guarded_body``, never by hand)

It runs the bus cycles (``servo_body``), sends each sample to the policy's process and takes its commands. Torque goes
off when

* the policy's process has shut its side of the socket or died, even by SIGKILL: the kernel then closes the socket;
* no command has come for ``command_timeout_s``: the process hangs. Older commands are refused;
* the emergency stop is tripped, a servo exceeds a limit, too many joints are lost, or the port stays away;
* the guard is told to end (SIGTERM, SIGINT, SIGHUP).

The same holds during bring-up. If a servo or the port is away when the torque has to go off, the guard keeps trying,
even after the policy's process has ended.

If the guard itself is killed or hangs, the policy's process ends it, takes the port and switches the torque off
(``guarded_body``). If both are killed, or the cable is pulled, only a hardware stop is left.

Messages between the two are datagrams on a Unix socket; nothing is pickled. After the settings (JSON) all are a
``Message``, of one of these kinds:

* ``U`` bring-up: start the robot, if it is not up;
* ``C`` command: the time when it was given, joint references (J,) float64 [rad];
* ``S`` sample: its stamp and the start of its cycle, then the arrays of a ``BodySample``, (J,) float64 each;
* ``X`` stop: reason; ``N`` news: text; ``H`` heartbeat, during bring-up or while waiting;
* ``F`` farewell: torque is off in all servos, and the guard ends.

Both ends use the machine's monotonic clock, which all processes share. The policy's process ends the run by shutting
down its direction of the socket, and reads the rest.

The guard asks for a real-time priority: under the ordinary scheduler a cycle is occasionally tens of milliseconds late
on a busy machine. A process of that class must sleep most of the time, as the guard does, or nothing else runs.
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
import struct
import sys
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np

from snake_gym.config import build
from snake_gym.hardware.bus.bus import BusPort
from snake_gym.hardware.bus.transport import PortGone
from snake_gym.hardware.calibration.calibration import Calibration
from snake_gym.hardware.guard.body import BodySample, BringUpError
from snake_gym.hardware.guard.checks import SafetyLimits, ServoHealth
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.heartbeat import Heartbeat
from snake_gym.hardware.guard.servo_body import ServoBody
from snake_gym.hardware.guard.torque_off import FAREWELL_S, PORT_FAREWELL_S
from snake_gym.robot.spec import FloatArray


def spare_old_objects() -> None:
    """Exclude the objects made so far, above all modules, from garbage collections, which took 18 ms with them."""
    gc.collect()
    gc.freeze()


def take_priority(priority: int) -> str:
    """Give this thread, and those that it starts, a real-time priority (1 to 99); 0 changes nothing.

    Returns:
        Reason why it was refused; empty if it was given.
    """
    if priority == 0:
        return ""
    if not hasattr(os, "sched_setscheduler"):
        return "this system has none"
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


_HEAD = struct.Struct("<cQdd")
_N_ARRAYS = 12
LARGEST = 65536
"""Largest size of a datagram [bytes]."""


class Message(NamedTuple):
    """Message between the guard and the policy's process."""

    kind: bytes
    number: int = 0
    """Number of a message to the guard; in a message from the guard: the last number that it has taken."""
    stamp_s: float = 0.0
    cycle_s: float = 0.0
    data: bytes = b""

    def pack(self) -> bytes:
        return _HEAD.pack(*self[:4]) + self.data[: LARGEST // 2]

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace")

    def reference(self, n_joints: int) -> FloatArray | None:
        """Return the joint references (J,) [rad] of a command, or None if it is not a command for this robot."""
        if self.kind != b"C" or len(self.data) != 8 * n_joints:
            return None
        return np.frombuffer(self.data, "<f8").copy()

    def sample(self, n_joints: int) -> BodySample | None:
        """Return the sample, or None if it is not a sample of this robot."""
        if self.kind != b"S" or len(self.data) != 8 * n_joints * _N_ARRAYS:
            return None
        arrays = np.frombuffer(self.data, "<f8").reshape(_N_ARRAYS, n_joints).copy()
        angle, rate, reference, clamped, lost, answered, error, *readings = arrays
        health = ServoHealth(answered.astype(bool), error.astype(np.uint8), *readings)
        flags = clamped.astype(bool), lost.astype(bool)
        return BodySample(angle, rate, self.stamp_s, self.cycle_s, reference, *flags, health)


def unpack(data: bytes) -> Message | None:
    """Return the message in a datagram, or None if it is too short for one."""
    if len(data) < _HEAD.size:
        return None
    kind, number, stamp_s, cycle_s = _HEAD.unpack_from(data)
    return Message(kind, number, stamp_s, cycle_s, data[_HEAD.size :])


def pack_command(number: int, stamp_s: float, reference: FloatArray) -> bytes:
    return Message(b"C", number, stamp_s, data=np.asarray(reference, "<f8").tobytes()).pack()


def pack_sample(sample: BodySample, number: int) -> bytes:
    angle, rate, stamp_s, cycle_s, *rest, health = sample
    arrays = np.array([angle, rate, *rest, *health], "<f8")
    return Message(b"S", number, stamp_s, cycle_s, arrays.tobytes()).pack()


def pack_text(kind: bytes, text: str, number: int = 0) -> bytes:
    return Message(kind, number, data=text.encode()).pack()


_ANSWER_SHARE = 0.2
"""Longest wait for the command that answers a sample, as a share of the period."""
_MOST = 100
"""Most messages taken in a row, so that a flood of commands does not keep the guard from its cycles."""
_BEAT_S = 0.02
"""Time between heartbeats while there are no samples [s]."""


class Guard:
    """Guard of one run.

    Args:
        link: the socket to the policy's process.
        body: the servos.
        number: number of the message that asked for bring-up.
    """

    def __init__(self, link: socket.socket, body: ServoBody, number: int) -> None:
        self._link, self._body, self._number = link, body, number
        self._goodbye = select.poll()
        self._goodbye.register(link, select.POLLRDHUP)
        self._asked_up, self._is_up = True, False
        self._beat_s = -math.inf
        self._refuses = False
        self._ends = False
        self._why: str | None = None

    def end(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: finish the present cycle, then switch the torque off."""
        self._ends = True
        self._why = "the guard was told to end"

    def run(self) -> None:
        """Serve until the policy's process is gone or a signal comes; switch the torque off in any case."""
        body = self._body
        try:
            while self._listen(self.patience_s()) and not self._ends:
                if self._asked_up:
                    self._bring_up()
                elif self._is_up or body.torque_off_owed:
                    # After a long pause of this process the goal is stale: the cycle then finds that commands are late.
                    if body.clock.now() - body.next_cycle_s < body.limits.command_timeout_s:
                        body.send_goal()
                    self._cycle()
                else:
                    self._beat()
        except Exception as error:
            self._why = f"the guard failed: {error!r}"
            raise
        finally:
            self._leave()

    def _cycle(self) -> None:
        """Run the next cycle when it is due, and send its news and its sample."""
        body = self._body
        body.clock.sleep(body.next_cycle_s - body.clock.now())
        body.cycle()
        self._tell_news()
        if body.stop_reason is not None:
            self._send(pack_text(b"X", body.stop_reason, self._number))
        self._send(pack_sample(body.sample(), self._number))

    def _bring_up(self) -> None:
        self._asked_up = False
        try:
            self._beat()
            self._body.start(self._interrupted)
            self._is_up = True
        except BringUpError as error:
            self._is_up = False
            self._body.halt(str(error))  # what could not be switched off is owed from now on
            self._tell_news()
            self._send(pack_text(b"X", str(error), self._number))

    def _interrupted(self) -> str | None:
        """Return a reason to end the bring-up, or None."""
        self._beat()
        if self._ends:
            return self._why
        return "the policy's process has left" if self._goodbye.poll(0) else None

    def _leave(self) -> None:
        """Switch the torque off until every servo confirms it or the time is up."""
        body = self._body
        try:
            if self._why is not None:
                self._send(pack_text(b"X", self._why, self._number))
            body.halt(self._why or "closed")
            self._tell_news()
            begun_s = body.clock.now()
            while body.torque_off_owed:
                if body.clock.now() - begun_s > (PORT_FAREWELL_S if body.port_gone else FAREWELL_S):
                    break
                self._cycle()
        finally:
            body.close()
            self._tell_news()
        if body.torque_off_owed:
            with contextlib.suppress(OSError):  # the terminal may be closed
                print("guard: torque may still be on: use the hardware stop", file=sys.stderr)
        else:
            self._send(Message(b"F").pack())

    def patience_s(self) -> float:
        """Return the time to wait for a message now [s]."""
        if self._asked_up:
            return 0.0
        if not (self._is_up or self._body.torque_off_owed):
            return _BEAT_S
        left_s = self._body.next_cycle_s - self._body.clock.now()
        return max(0.0, min(_ANSWER_SHARE * self._body.period_s, left_s - self._body.sending_s))

    def _listen(self, wait_s: float) -> bool:
        """Take the messages that have come, waiting for the first. Return False if the other process is gone."""
        for _ in range(_MOST):
            readable, _, _ = select.select([self._link], [], [], wait_s)
            if not readable:
                break
            try:
                data = self._link.recv(LARGEST)
            except OSError:
                return False
            if not data:
                return False
            self._take(data)
            wait_s = 0.0
        return True

    def _take(self, data: bytes) -> None:
        told = unpack(data)
        if told is None:
            return
        if told.kind == b"U":
            self._number, self._asked_up = told.number, True
        reference = told.reference(self._body.n_joints)
        if reference is None:
            return
        self._number = told.number
        age_s = self._body.clock.now() - told.stamp_s
        is_old = age_s > self._body.limits.command_timeout_s
        if not is_old:
            self._body.command(reference)
        elif not self._refuses:
            self._send(pack_text(b"N", f"a command that was {age_s:.1f} s old was refused"))
        self._refuses = is_old

    def _tell_news(self) -> None:
        for line in self._body.news():
            self._send(pack_text(b"N", line))

    def _beat(self) -> None:
        now = self._body.clock.now()
        if now - self._beat_s >= _BEAT_S:
            self._beat_s = now
            self._send(Message(b"H").pack())

    def _send(self, data: bytes) -> None:
        # Full buffer: the other side sleeps, and gets the next one. No other side: the next recv reports that.
        with contextlib.suppress(OSError):
            self._link.send(data, socket.MSG_DONTWAIT)


def main(arguments: list[str]) -> int:
    """Run the guard process; its settings come over the socket."""
    link = socket.socket(fileno=int(arguments[0]))
    told, asked = json.loads(link.recv(LARGEST)), unpack(link.recv(LARGEST))
    if asked is None:
        return 1
    port = BusPort.of(told["port"])
    calibration, limits = build(Calibration, told["calibration"]), build(SafetyLimits, told["limits"])
    try:
        bus, heartbeat = port.open(reopens=True), Heartbeat(told["heartbeat"])
    except PortGone as error:
        for message in (pack_text(b"X", str(error), asked.number), Message(b"F").pack()):
            link.send(message)
        return 1
    speed = np.array(told["speed_rad_s"])
    stop = EmergencyStop(Path(told["latch"]))
    body = ServoBody(bus, calibration, limits, told["period_s"], speed, stop, heartbeat=heartbeat)
    refused = take_priority(told["priority"])
    if refused:
        link.send(pack_text(b"N", f"no real-time priority for the guard ({refused}): cycles may be late"))
    spare_old_objects()
    guard = Guard(link, body, asked.number)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, guard.end)
    guard.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
