"""Torque of the servos of one bus: noted before it may go on, and switched off until every servo confirms it.

A board on the servos' supply may hear a heartbeat on a second serial port: ``+`` in every bus cycle while the torque
may be on, ``-`` once it is off in all servos. A board that has heard ``+`` and then nothing for too long takes the
supply away (docs/hardware.md has its program). So the bytes stop without ``-`` where the process that runs the bus is
killed or hangs, and where a robot has stopped but a servo has not said that it is limp.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Sequence

from snake_gym.hardware.bus.bus import PORT_GONE, WATCHDOG_S, Bus, BusPort
from snake_gym.hardware.bus.transport import PortGone, SerialTransport
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.emergency_stop import EmergencyStop

BEAT, REST = b"+", b"-"
BOARD_BAUD = 115_200
_FEED_S = 0.2 * WATCHDOG_S
"""Longest time between two packets to servos with a bus watchdog [s]."""
_AGAIN_S = 0.1
"""Time between two attempts to switch off what did not confirm it [s]."""


def switch_off_port(port: BusPort, ids: Sequence[int]) -> str:
    """Open the port and switch the torque off, once. Return why that is not confirmed; empty: all servos are limp."""
    try:
        with contextlib.closing(port.open()) as bus:
            off = bus.torque(ids, False)
    except PortGone as error:
        return str(error)
    left = [str(one) for one in ids if not off[one]]
    return f"servos {', '.join(left)} do not answer" if left else ""


class TorqueSwitch:
    """Torque of the servos of one bus, and the reasons to switch it off for good.

    Args:
        ids: IDs of the servos.
        stop: emergency stop; holds the port while torque may be on. Not on a bus in memory, where nothing real moves.
        board: port of the board on the supply; None: there is none.
        what: activity, in a word.
    """

    def __init__(
        self, bus: Bus, ids: Sequence[int], stop: EmergencyStop, board: SerialTransport | None = None,
        what: str = "run",
    ) -> None:  # fmt: skip
        self._bus, self._board, self._what = bus, board, what
        self._rests = True
        self._lock = None if bus.port is None else bus.port.to_dict() | {"ids": list(ids)}
        self._asked_s = -math.inf
        self.fed_s = -math.inf
        """Time of the last packet to all servos that may have torque, as far as known [s]."""
        self.stop = stop
        self.pending: set[int] = set()
        """IDs of servos that may have torque."""
        self._trouble: str | None = None
        """Reason why nothing may move any more: the board hears nothing."""
        self.port_gone = False
        """True if the port was away at the last attempt to switch off."""
        self.stop_reason: str | None = None
        """Reason why the torque is off; None: it may be on, or has not been needed yet."""
        self.news: list[str] = []
        """Events since the last ``take_news``, one line each."""

    def take_news(self) -> list[str]:
        """Return the events since the last call, one line each."""
        news = list(self.news)
        self.news.clear()
        return news

    def check_stop(self) -> None:
        """Raise BringUpError if the emergency stop is tripped, could not be, or the board hears nothing."""
        if self.stop.tripped:
            raise BringUpError(f"the emergency stop is tripped: {self.stop.reason}; {self.stop.how_to_clear}")
        if not self.stop.writable():
            raise BringUpError(f"the latch of the emergency stop, {self.stop.latch}, cannot be written")
        if self._trouble is not None:
            raise BringUpError(self._trouble)

    def expect_on(self, ids: Iterable[int]) -> None:
        """Note that these servos are about to be given torque or a goal."""
        self.pending.update(ids)
        if self.pending and self._lock is not None:
            self.stop.hold(self._what, self._lock)
        self.beat()

    def beat(self) -> None:
        """Tell the board, and servos with a bus watchdog, that somebody is in charge of what may have torque."""
        if self.pending:
            self._tell_board(BEAT)
            now = self._bus.clock.now()
            if now - self.fed_s > _FEED_S and "bus_watchdog" in self._bus.family.by_name:
                self.fed_s = now
                self._bus.read_block(sorted(self.pending), "torque_enable", deadline_s=now + _FEED_S)

    def look(self) -> None:
        """Beat, and stop if the emergency stop is tripped or the board hears nothing; after a stop, try again what is
        pending."""
        if self.stop_reason is None:  # else somebody is in charge only if the servos say that they are limp
            self.beat()
            if self._trouble is not None:
                self.halt(self._trouble)
            elif self.stop.tripped:
                self.halt(f"emergency stop: {self.stop.reason}")
        elif self.pending and self._bus.clock.now() - self._asked_s >= _AGAIN_S:
            self.off(sorted(self.pending))
            if not self.pending:
                self.news.append("torque is off in all servos now")

    def off(self, ids: Sequence[int]) -> dict[int, bool]:
        """Switch the torque of these servos off. Return by ID True for servos that confirm it."""
        self._asked_s = self._bus.clock.now()
        known = self._bus.torque(ids, False)
        self.pending -= {one for one in ids if known[one]}
        if self.pending:
            failures = self._bus.read_block(sorted(self.pending), "torque_enable").failures
            self.port_gone = set(failures.values()) == {PORT_GONE}
        else:
            if not self._rests:
                self._tell_board(REST)
            self.stop.release()
        return known

    def abandon(self, ids: Sequence[int]) -> None:
        """Switch off what may be on, and these servos, which may have torque from before. Silent ones are not
        awaited."""
        for servo_id in ids:
            self._bus.write_register(servo_id, "torque_enable", 0, acknowledged=False)
        found = self._bus.read_block(ids, "torque_enable").values
        self.expect_on(one for one, values in found.items() if values is not None and values["torque_enable"])
        self.off(sorted(self.pending))

    def close(self) -> None:
        """Free the ports; the torque stays as it is."""
        self._bus.close()
        if self._board is not None:
            self._board.close()

    def _tell_board(self, byte: bytes) -> None:
        self._rests = byte == REST
        if self._board is None or self._trouble is not None:
            return
        try:
            self._board.write(byte, wait_s=0.0)
        except PortGone as error:
            self._trouble = f"the heartbeat does not reach its board: {error}"

    def halt(self, reason: str, latch: bool = False) -> None:
        """Switch the torque off for good; ``latch``: and trip the emergency stop. The first reason counts."""
        if self.stop_reason is not None:
            return
        self.stop_reason = reason
        self.news.append(f"stopped: {reason}")
        self.off(sorted(self.pending))
        if self.pending:
            ids = ", ".join(map(str, sorted(self.pending)))
            self.news.append(f"torque is not known to be off in servos {ids}: use the hardware stop")
        if latch and not self.stop.trip(reason):
            self.news.append(f"the stop could not be latched in {self.stop.latch}")
