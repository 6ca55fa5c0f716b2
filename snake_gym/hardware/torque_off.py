"""Torque that has to be off is switched off until the servos say so, however long they or the port are away."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from snake_gym.hardware.clock import Clock, VirtualClock
from snake_gym.hardware.emergency_stop import EmergencyStop
from snake_gym.hardware.servo_bus import FeetechBus, ServoBus
from snake_gym.hardware.transport import SerialTransport

FAREWELL_S, PORT_FAREWELL_S = 5.0, 30.0
"""How long a process goes on, once nobody is there any more, until all servos have said that torque is off [s]: while
the port is there, so that a dead servo does not keep it from the next run, and while it is gone."""
RETRY_S = 0.02
"""Between two attempts to open the port and switch off [s]."""

_RETRY_S = 0.1
"""Between two attempts [s]."""


def switch_off_port(port: str, baud: int, ids: Sequence[int]) -> list[int]:
    """Open the port and switch the torque off, once; the IDs of servos that have not said so. Raises PortGone."""
    bus = FeetechBus(SerialTransport(port, baud), baud)
    try:
        off = bus.torque(ids, False)
    finally:
        bus.close()
    return [one for one in ids if not off[one]]


class TorqueOff:
    """The servos of one bus whose torque may be on.

    Args:
        bus: theirs.
        clock: for the time between attempts.
        stop: told whether there are any, for whoever trips it; not where the clock is virtual: nothing real moves then.
    """

    def __init__(self, bus: ServoBus, clock: Clock, stop: EmergencyStop) -> None:
        self._bus, self._clock = bus, clock
        self._stop = None if isinstance(clock, VirtualClock) else stop
        self._asked_s = -math.inf
        self.owed: set[int] = set()
        """IDs of servos that may have their torque on."""

    def expect_on(self, ids: Iterable[int]) -> None:
        """These servos are about to be given torque or a goal."""
        self.owed.update(ids)
        if self.owed and self._stop is not None:
            self._stop.hold("run")

    def abandon(self, ids: Sequence[int]) -> None:
        """Switch all off, and these servos as well: they may have come with their torque on. One that is silent is told
        as well, and not waited for."""
        for servo_id in ids:
            self._bus.write_register(servo_id, "torque_enable", 0, acknowledged=False)
        found = self._bus.read_block(ids, "torque_enable", "torque_enable").values
        self.expect_on(servo_id for servo_id, told in found.items() if told is not None and told["torque_enable"])
        self.switch()

    def switch(self) -> None:
        """Switch all off; those that say so are done."""
        self._asked_s = self._clock.now()
        off = self._bus.torque(sorted(self.owed), False)
        self.owed -= {one for one, known in off.items() if known}
        if not self.owed and self._stop is not None:
            self._stop.release()

    def retry(self) -> bool:
        """Switch off what is still owed, now and then; whether that was the last."""
        if not self.owed or self._clock.now() - self._asked_s < _RETRY_S:
            return False
        self.switch()
        return not self.owed

    def insist(self, for_s: float) -> None:
        """Try for ``for_s`` [s] at most."""
        give_up_s = self._clock.now() + for_s
        while self.owed and self._clock.now() < give_up_s:
            self._clock.sleep(_RETRY_S)
            self.switch()
