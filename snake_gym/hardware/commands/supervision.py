"""What stands beside everything that moves servos: signals, the emergency stop, and torque off at the end."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

from snake_gym.config import ConfigError
from snake_gym.hardware.commands.options import open_bus
from snake_gym.hardware.connection import watch
from snake_gym.hardware.emergency_stop import EmergencyStop
from snake_gym.hardware.joint_wiggle import switch_off
from snake_gym.hardware.servo_bus import FeetechBus

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command."""


@contextlib.contextmanager
def ending_by_signal() -> Iterator[None]:
    """SIGTERM and SIGHUP end what runs as Ctrl-C does: torque off, log whole. The first one counts: those that follow
    must not cut the torque-off short."""
    ends = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ends
        if not ends:
            ends = True
            raise KeyboardInterrupt

    before: dict[int, Any] = {}
    try:
        for one in ENDING:
            before[int(one)] = signal.signal(one, end)
    except ValueError:  # not the main thread
        pass
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Supervised(NamedTuple):
    """Servos that may be moved."""

    bus: FeetechBus
    there: list[int]
    """IDs of those that answer."""
    interrupted: Callable[[], str | None]
    """What procedures ask all the time: why to stop, or None to go on."""


@contextlib.contextmanager
def supervised(port: str, baud: int, ids: Sequence[int], stop: EmergencyStop, what: str) -> Iterator[Supervised]:
    """Move servos under supervision; whatever ends it, SIGKILL included, torque goes off, and the port is free.

    Args:
        what: is done, in a word.

    Raises:
        ConfigError: the port cannot be opened, the stop is tripped, or could not be.
    """
    with contextlib.ExitStack() as closing:
        bus = closing.enter_context(contextlib.closing(open_bus(port, baud)))
        closing.enter_context(ending_by_signal())
        if stop.tripped:
            raise ConfigError(f"the emergency stop is tripped: {stop.reason}; {stop.how_to_clear}")
        if not stop.writable():
            raise ConfigError(f"the emergency stop could not be tripped: {stop.latch} cannot be written")
        there = [one for one in ids if bus.ping(one) is not None]
        watcher = watch(port, baud, there, stop, what) if there else None
        if watcher is not None:
            closing.callback(watcher.close)

        def interrupted() -> str | None:
            if stop.tripped:
                return stop.reason
            return None if watcher is None else watcher.trouble()

        stop.hold(what)
        try:
            yield Supervised(bus, there, interrupted)
        finally:
            left = switch_off(bus, there)
            bus.torque(ids, False)  # one that was not there at the beginning may be by now
            if left:
                servos = ", ".join(map(str, left))
                print(f"torque is not known to be off in servos {servos}: USE THE HARDWARE STOP", file=sys.stderr)
            else:
                stop.release()
