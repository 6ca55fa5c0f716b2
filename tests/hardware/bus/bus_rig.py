"""Emulated buses on a virtual clock, with a driver at the other end."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, NamedTuple

from snake_gym.hardware.bus.exchange import LineTiming
from snake_gym.hardware.bus.servo_bus import ServoBus
from snake_gym.hardware.bus.transport import PortGone
from snake_gym.hardware.emulator.bus import EmulatedServo, HostEnd, WireFaults
from tests.hardware.adapter_faults import FaultyBus

ALL = list(range(1, 14))


class Spy:
    """A transport that keeps what went through it."""

    def __init__(self, end: HostEnd) -> None:
        self.end = end
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)
        self.end.write(data)

    def read(self, max_bytes: int, timeout_s: float) -> bytes:
        return self.end.read(max_bytes, timeout_s)

    def close(self) -> None:
        self.end.close()


class Rig(NamedTuple):
    """An emulated bus and a driver for it."""

    bus: FaultyBus
    driver: ServoBus
    spy: Spy

    def now(self) -> float:
        return self.bus.clock.now()

    def wait(self, duration_s: float) -> None:
        """Let time pass; what arrives meanwhile waits in the host's buffer."""
        self.bus.clock.sleep(duration_s)
        with contextlib.suppress(PortGone):
            self.spy.end.listen()
        self.bus.advance_to(self.now())


def make_rig(
    ids: Sequence[int] = ALL,
    faults: WireFaults | None = None,
    settings: dict[str, int] | None = None,
    echo: bool = False,
    reopens: bool = False,
    timing: LineTiming | None = None,
    **more: Any,
) -> Rig:
    """13 servos on a virtual clock and a driver; ``reopens``: the driver opens the port anew when it is gone."""
    bus = FaultyBus([EmulatedServo(i, settings=settings) for i in ids], faults=faults, echo=echo, **more)
    spy = Spy(bus.host_transport())

    def reopen() -> Spy:
        spy.end = bus.host_transport()
        return spy

    driver = ServoBus(spy, clock=bus.clock, timing=timing, reopen=reopen if reopens else None)
    return Rig(bus, driver, spy)
