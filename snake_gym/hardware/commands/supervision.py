"""What stands beside everything that moves servos: signals, the emergency stop, and torque off at the end."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from snake_gym.config import ConfigError
from snake_gym.hardware.emergency_stop import EmergencyStop
from snake_gym.hardware.joint_wiggle import switch_off
from snake_gym.hardware.servo_bus import ServoBus


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
        for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            before[int(one)] = signal.signal(one, end)
    except ValueError:  # not the main thread
        pass
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def supervised(bus: ServoBus, ids: Sequence[int], stop: EmergencyStop, what: str) -> Iterator[Callable[[], str | None]]:
    """Move servos under supervision; whatever ends it, torque goes off, and the bus is closed.

    Gives what procedures ask all the time: why to stop, or None to go on.

    Args:
        what: is done, in a word.

    Raises:
        ConfigError: the stop is tripped, or could not be.
    """
    with contextlib.closing(bus), ending_by_signal():
        if stop.tripped:
            raise ConfigError(f"the emergency stop is tripped: {stop.reason}; {stop.how_to_clear}")
        if not stop.writable():
            raise ConfigError(f"the emergency stop could not be tripped: {stop.latch} cannot be written")
        there = [one for one in ids if bus.ping(one) is not None]
        stop.hold(what)
        try:
            yield lambda: stop.reason if stop.tripped else None
        finally:
            left = switch_off(bus, there)
            bus.torque(ids, False)  # one that was not there at the beginning may be by now
            if left:
                servos = ", ".join(map(str, left))
                print(f"torque is not known to be off in servos {servos}: USE THE HARDWARE STOP", file=sys.stderr)
            else:
                stop.release()
