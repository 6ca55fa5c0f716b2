"""From an emergency stop, or the death of a process, to the torque off in all servos of a guarded run.

The servos are emulated by another process behind a pseudo terminal, with the wire times of the real bus; it says when
the last of them has switched its torque off. A run moves them, something happens at a random moment of the bus cycle,
and the time until then is taken, again and again::

    python benchmarks/emergency_stop.py --stops 100                  # the latch appears
    python benchmarks/emergency_stop.py --stops 100 --how kill-run   # SIGKILL to the run: its guard has to see it
    python benchmarks/emergency_stop.py --stops 100 --how kill-guard # SIGKILL to the guard: the run has to see it

Printed: percentiles of that time [ms]. Exit code 1: the longest was longer than ``WITHIN_S``. Tests do not ask that,
since no test is to need an idle machine.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from snake_gym.emulator.bus import EmulatedBus, EmulatedServo
from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.bus.bus import BusPort
from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.client import GuardedBody
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.guard import take_priority
from snake_gym.hardware.robot.connection import ConnectionConfig

ROOT = Path(__file__).resolve().parents[1]
N_SERVOS = 9
_LOOK_S = 0.0005
_PATIENCE_S = 10.0
PRIORITY = ConnectionConfig.priority
WITHIN_S = {"latch": 0.5, "kill-run": 0.5, "kill-guard": 1.0}
"""Longest accepted time [s]."""


def emulate(pipe: Connection) -> None:
    """The other process: servos; asked "off", it sends when the torque was off in all of them."""
    refused = take_priority(PRIORITY)
    servos = [EmulatedServo(i + 1) for i in range(N_SERVOS)]
    bus = EmulatedBus(servos, clock=MonotonicClock(), step_s=0.005)
    with EmulatedPort(bus) as port:
        pipe.send((port.port, refused))
        while pipe.recv() == "off":
            give_up_s = time.monotonic() + _PATIENCE_S
            while _is_on(bus) and time.monotonic() < give_up_s:
                time.sleep(_LOOK_S)
            pipe.send(math.inf if _is_on(bus) else time.monotonic())


def _is_on(bus: EmulatedBus) -> bool:
    with bus.lock:
        return any(servo.memory.get("torque_enable") == 1 for servo in bus.servos)


class Gait:
    """Moves the servos slowly, with a command every bus cycle."""

    def __init__(self, body: GuardedBody) -> None:
        self.body, self._joints = body, np.arange(body.n_joints)
        self._begin_s = self._when_s = body.clock.now()

    def move(self, until: Callable[[], bool]) -> None:
        """Go on until something has happened."""
        while not until():
            phase = 2.0 * math.pi * 0.2 * (self._when_s - self._begin_s)
            self.body.command(0.45 * (np.sin(phase - 0.6 * self._joints) - np.sin(-0.6 * self._joints)))
            self._when_s += 0.02
            self.body.run_until(self._when_s)


def begin(body: GuardedBody) -> Gait:
    """Bring the robot up; the guard of the run before may still be about to give the port back."""
    give_up_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            body.start()
            return Gait(body)
        except BringUpError as error:
            if time.monotonic() > give_up_s:
                sys.exit(f"the robot does not come up: {error}")
            time.sleep(0.05)


def go_on(gait: Gait, seconds: float) -> None:
    """Move for ``seconds``; ends the program where the robot stops."""
    enough_s = time.monotonic() + seconds
    gait.move(lambda: time.monotonic() > enough_s)
    if gait.body.stop_reason is not None:
        sys.exit(f"stopped: {gait.body.stop_reason}")


def run_until_killed(pipe: Connection, port: str, latch: Path) -> None:
    """A run in a process of its own; it says when it moves."""
    gait = begin(make_body(port, latch))
    go_on(gait, 0.2)
    pipe.send("moves")
    go_on(gait, math.inf)


def make_body(port: str, latch: Path) -> GuardedBody:
    chain = straight_chain(range(1, N_SERVOS + 1), 1.5)
    return GuardedBody(BusPort(port), chain, SafetyLimits(ramp_time_s=0.1), latch=latch, priority=PRIORITY)


def start(target: Callable[..., None], *arguments: Any) -> tuple[Connection, Any]:
    """Return this end of the pipe of a new process, and the process."""
    spawn = multiprocessing.get_context("spawn")
    pipe, theirs = spawn.Pipe()
    process = spawn.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()
    return pipe, process


def kill_run(servos: Connection, port: str, latch: Path, wait_s: float) -> float:
    """Start a run and kill it after ``wait_s`` [s] of motion; how long the torque stayed on [s]."""
    pipe, process = start(run_until_killed, port, latch)
    try:
        pipe.recv()
    except EOFError:
        sys.exit("the run has ended by itself")
    time.sleep(wait_s)
    servos.send("off")
    begun_s = time.monotonic()
    process.kill()
    off_s: float = servos.recv()
    process.join()
    return off_s - begun_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stops", type=int, default=25)
    parser.add_argument("--how", choices=tuple(WITHIN_S), default="latch")
    options = parser.parse_args()
    pipe, process = start(emulate)
    port, refused = pipe.recv()
    rng = np.random.default_rng(0)
    off_ms = []
    with tempfile.TemporaryDirectory() as folder:
        latch = Path(folder) / "estop"
        body = make_body(port, latch)
        try:
            for _ in tqdm(range(options.stops), unit="stop", mininterval=5.0):
                if options.how == "kill-run":
                    off_ms.append(1e3 * kill_run(pipe, port, latch, rng.uniform(0.0, 0.1)))
                    continue
                gait = begin(body)
                go_on(gait, rng.uniform(0.5, 0.6))
                time.sleep(rng.uniform(0.0, 0.02))
                pipe.send("off")
                begun_s = time.monotonic()
                if options.how == "latch":
                    EmergencyStop(latch).trip("benchmark")
                else:
                    os.kill(body.guard_pid or sys.exit("the guard has ended by itself"), signal.SIGKILL)
                    gait.move(pipe.poll)
                off_ms.append(1e3 * (pipe.recv() - begun_s))
                body.run_until(body.clock.now() + 0.05)
                EmergencyStop(latch).clear()
        finally:
            body.close()
    pipe.send("end")
    process.join(5.0)
    found = {f"{share} %": round(float(np.percentile(off_ms, share)), 1) for share in (50, 90, 99, 100)}
    print(f"torque off after [ms]: {found}; load average {os.getloadavg()[0]:.1f}. {refused}")
    if max(off_ms) > 1e3 * WITHIN_S[options.how]:
        sys.exit(f"torque was off after {max(off_ms):.0f} ms at worst; expected {1e3 * WITHIN_S[options.how]:.0f} ms")


if __name__ == "__main__":
    main()
