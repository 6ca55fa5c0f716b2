"""The seam to the servos: a bus is a protocol of eight methods, asked by IDs, register names and counts.

Guard, calibration and commands know nothing of packets. ``servo_bus.ServoBus`` speaks with servos of Feetech and
Dynamixel. For another protocol, a family names a bus of its own (``ServoFamily.bus``; docs/extending.md). No method
raises because of servos or port: what fails is in the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from snake_gym.config import build, to_dict
from snake_gym.hardware.bus import dynamixel as dynamixel  # known by name
from snake_gym.hardware.bus.clock import Clock
from snake_gym.hardware.bus.family import ServoError, ServoFamily, register_servo_family
from snake_gym.hardware.bus.feetech import FEETECH
from snake_gym.plugins import absolute_name, load_object

NO_ANSWER, GARBLED, NO_TIME, PORT_GONE = "no answer", "garbled", "no time left", "port gone"
"""Reasons for a missing answer."""


class ServoInfo(NamedTuple):
    """Model, firmware and faults that a servo reports."""

    id: int
    model: int
    """Number of the servo's model."""
    firmware: tuple[int, int]
    error: ServoError
    ambiguous: bool = False
    """True: two servos or more answer, and nothing else is known."""


class BlockRead(NamedTuple):
    """Values of the same registers of several servos."""

    stamp_s: float
    """Time when they were asked [s, monotonic clock]; each servo measures within the next milliseconds."""
    values: dict[int, dict[str, int] | None]
    """Counts by ID and register name; None: no answer."""
    errors: dict[int, ServoError]
    """Faults by ID, of the servos that answered."""
    failures: dict[int, str]
    """Reason for a missing answer, by ID; empty: all have answered."""


WATCHDOG_S = 0.3
"""Time without a packet after which servos with a bus watchdog stop by themselves [s]."""
READING_SHARE = 0.7
"""Share of a bus period after which a reading ends."""
ADAPTER_S = 0.001
"""Least time that a USB adapter adds: one frame [s]."""
SLOW_S = 0.004
"""Delay of answers that a message calls slow [s]."""
_CYCLE_SHARE = 0.9
"""Share of the period for reading and goals."""
_PERIOD_STEP_S = 0.005
"""Step of the periods that a message proposes [s]."""


class CycleTime(NamedTuple):
    """Times that the readings and goals of a bus cycle take."""

    reading_s: float
    """Time for which a reading of all servos keeps the line busy [s], return delays included."""
    goals_s: float
    """Time for which the goals of all keep it busy [s]."""
    return_delay_s: float = 0.0
    """Longest time for which a servo waits before it answers [s]."""
    latency_s: float = 0.0
    """Median delay of an answer by adapter and computer [s]."""

    @property
    def shortest_period_s(self) -> float:
        """Least bus period [s] in which servos can be read and sent their goals."""
        reading = self.reading_s + max(ADAPTER_S, self.latency_s)
        return max(reading / READING_SHARE, (reading + self.goals_s) / _CYCLE_SHARE)

    @property
    def round_period_s(self) -> float:
        """Period [s] to propose: the shortest one, rounded up."""
        return _PERIOD_STEP_S * math.ceil(self.shortest_period_s / _PERIOD_STEP_S)

    def too_short(self, period_s: float, n_servos: int, baud: int) -> str | None:
        """Return a message that the cycle exceeds ``period_s`` [s], with a period that suffices; None if it fits."""
        if period_s >= self.shortest_period_s:
            return None
        delays = f"return delay {1e6 * self.return_delay_s:.0f} us, answers after {1e3 * self.latency_s:.1f} ms"
        needed = f"{n_servos} servos at {baud} baud need {1e3 * self.shortest_period_s:.1f} ms a cycle ({delays})"
        return f"connection.period_s is {period_s:g}; expected >= {self.round_period_s:g}: {needed}"


class Bus(Protocol):
    """Servos on one line."""

    family: ServoFamily
    baud: int
    clock: Clock
    port: BusPort | None
    """Port that was opened for it; None: it is in memory."""

    def ping(self, servo_id: int) -> ServoInfo | None:
        """Return model and firmware of the servo with this ID, or None if no servo answers."""

    def read_block(self, ids: Sequence[int], *names: str, deadline_s: float | None = None) -> BlockRead:
        """Read the registers of ``names``, as far as the family has them, from all servos; others may come with them.

        Args:
            deadline_s: end of waiting and retries [s, on ``clock``]; None: late enough for all retries.
        """

    def write_targets(self, ids: Sequence[int], position_steps: Sequence[int], speed: int | Sequence[int] = 0) -> bool:
        """Send goals once, never repeated; ``speed`` in counts of ``goal_speed``. Return False if the port is gone."""

    def write_register(self, servo_id: int, name: str, value: int, acknowledged: bool = True) -> bool:
        """Write one register. Return True if it is known to hold the value (unacknowledged: if the packet was sent)."""

    def torque(self, ids: Sequence[int], on: bool) -> dict[int, bool]:
        """Switch the torque of every servo, even if some fail. Return by ID True for servos that confirm it."""

    def torque_off_all(self) -> bool:
        """Tell all servos to switch their torque off; none acknowledges. Return False if the port is gone."""

    def cycle_time(self, ids: Sequence[int]) -> CycleTime:
        """Return the times of a bus cycle of these servos."""

    def close(self) -> None:
        """Close the port. Torque stays as it is."""


class BusPort(NamedTuple):
    """Port, baud rate and family of the servos on a bus."""

    device: str
    """Serial device, such as ``/dev/ttyUSB0``."""
    baud: int = 1_000_000
    family: ServoFamily = FEETECH
    latency_s: float | None = None
    """Longest delay of an answer by adapter and computer [s]; None: it is measured."""

    def open(self, retries: int = 2, reopens: bool = False) -> Bus:
        """Open the bus for this process alone; ``reopens``: again after the port has vanished. Raises PortGone."""
        opens: Callable[[BusPort, int, bool], Bus] = load_object(self.family.bus, "bus of the servo family")
        return opens(self, retries, reopens)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which ``of`` makes the port again, in a process in another folder too.

        Raises ConfigError: the family's bus cannot be loaded.
        """
        load_object(self.family.bus, "bus of the servo family")
        return {**self._asdict(), "family": {**to_dict(self.family), "bus": absolute_name(self.family.bus)}}

    @classmethod
    def of(cls, data: dict[str, Any]) -> BusPort:
        """Return the port in ``data``, its family known by name from then on."""
        family = register_servo_family(build(ServoFamily, data["family"]))
        return cls(data["device"], data["baud"], family, data.get("latency_s"))


def say_twins(servo_id: int) -> str:
    """Return what is wrong if two servos share an ID, and what to do."""
    return (
        f"two servos (or more) answer as {servo_id}: give each its own id (python -m snake_gym.hardware scan --assign)"
    )


def set_lock(bus: Bus, servo_id: int, closed: bool) -> bool:
    """Open or close a servo's memory. Return True if it is so; families without ``lock`` have nothing to open."""
    return "lock" not in bus.family.by_name or bus.write_register(servo_id, "lock", int(closed))


def set_back(bus: Bus, ids: Sequence[int], name: str, wrong: int, right: int) -> list[int]:
    """Write ``right`` into a register of the servos that hold ``wrong``. Return their IDs; families may lack it."""
    if name not in bus.family.by_name:
        return []
    held = {one: values[name] for one, values in bus.read_block(ids, name).values.items() if values is not None}
    return [one for one, count in held.items() if count == wrong and bus.write_register(one, name, right)]
