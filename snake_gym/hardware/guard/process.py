"""Guard process: it owns the port, so that torque goes off whatever happens to the process that moves the servos.

    python -m snake_gym.hardware.guard.process FD          (started by ``client``, never by hand)

It serves one run (``RunGuard``: bus cycles) or one ``wiggle`` or ``calibrate`` (``BenchGuard``: single bus calls), and
ends with the torque off; ``guard`` says when. If the guard itself is killed or hangs, the other process ends it, takes
the port and switches the torque off (``client``). If both are killed, ``estop`` does that, or a watchdog on the supply.

The guard asks for a real-time priority: under the ordinary scheduler a cycle is occasionally tens of milliseconds late
on a busy machine. A process of that class must sleep most of the time, as the guard does, or nothing else runs.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
from typing import Any

from snake_gym.config import build
from snake_gym.hardware.bus.bus import BusPort
from snake_gym.hardware.bus.transport import PortGone
from snake_gym.hardware.calibration.calibration import Calibration
from snake_gym.hardware.guard.bench import BenchGuard
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.guard import Guard
from snake_gym.hardware.guard.heartbeat import Heartbeat
from snake_gym.hardware.guard.messages import receive, send
from snake_gym.hardware.guard.servo_body import ServoBody
from snake_gym.hardware.guard.torque_switch import TorqueSwitch

_ANSWER_SHARE = 0.2
"""Longest wait for the command that answers a sample, as a share of the period."""


def take_priority(priority: int) -> str:
    """Give this thread, and those that it starts, a real-time priority (1 to 99); 0 changes nothing. Return why it was
    refused; empty if it was given."""
    try:
        if priority:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


class RunGuard(Guard):
    """Guard of a run: it runs the bus cycles, sends each sample, and takes commands."""

    def __init__(self, link: socket.socket, body: ServoBody) -> None:
        super().__init__(link, body.bus, body.torque)
        self._body = body

    def start(self) -> None:
        self._body.start(self.look)

    def patience_s(self) -> float:
        left_s = self._body.next_cycle_s - self._clock.now()
        return max(0.0, min(_ANSWER_SHARE * self._body.period_s, left_s - self._body.sending_s))

    def take(self, kind: str, *content: Any) -> None:
        stamp_s, reference = content
        if self._clock.now() - stamp_s <= self._body.limits.command_timeout_s:  # else it is not followed
            self._body.command(reference)

    def turn(self) -> bool:
        body = self._body
        # After a long pause of this process the goal is stale: the cycle then finds that commands are late.
        if self._clock.now() - body.next_cycle_s < body.limits.command_timeout_s:
            body.send_goal()
        self._clock.sleep(body.next_cycle_s - self._clock.now())
        body.cycle()
        self.tell_news()
        self.send("sample", body.sample())
        return body.stop_reason is None or body.torque_off_pending


def main(arguments: list[str]) -> int:
    """Run the guard process; its settings (``client.GuardClient``) come over the socket."""
    link = socket.socket(fileno=int(arguments[0]))
    settings: dict[str, Any] = (receive(link) or sys.exit(1))[0]
    port = BusPort.of(settings["port"])
    try:
        bus, heartbeat = port.open(reopens=True), Heartbeat(settings["heartbeat"])
    except PortGone as error:
        send(link, "stop", str(error))
        send(link, "farewell")
        return 1
    guard: Guard
    stop, body = EmergencyStop(settings["latch"]), settings["body"]
    if body is None:
        names = {one: f"servo {one}" for one in settings["ids"]}
        torque = TorqueSwitch(bus, names, stop, heartbeat, settings["what"])
        guard = BenchGuard(link, bus, torque, settings["silence_s"])
    else:
        calibration, limits = build(Calibration, body.pop("calibration")), build(SafetyLimits, body.pop("limits"))
        guard = RunGuard(link, ServoBody(bus, calibration, limits, **body, stop=stop, heartbeat=heartbeat))
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
