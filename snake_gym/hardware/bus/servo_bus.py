"""Servo bus for the code above it, which uses IDs, register names and counts instead of packets.

Every call returns the answers, and a reason for each servo that did not answer. Exceptions are raised only for wrong
arguments, before the first byte is sent.

- Reading asks all servos in one sync read. Servos that did not answer are asked again as long as the deadline leaves
  time. One that has been silent several times is left out and asked by itself now and then: a dead servo costs neither
  the others' answers nor the period.
- Commands to move (``write_targets``) are sent once, unacknowledged, and never repeated by the driver: the next
  control tick sends new ones. (A goal also switches torque on: see ``family``.)
- Other writes are acknowledged. If the acknowledgement is missing the register is read back; only if it holds another
  value is the write repeated. A servo that is set not to acknowledge can therefore be written as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from snake_gym.config import build, to_dict
from snake_gym.hardware.bus.clock import Clock, MonotonicClock
from snake_gym.hardware.bus.exchange import NO_ANSWER, NO_TIME, PORT_GONE, Answers, Line, LineCounters, LineTiming
from snake_gym.hardware.bus.family import ServoFamily, register_servo_family, unpack
from snake_gym.hardware.bus.feetech import FEETECH
from snake_gym.hardware.bus.protocol import BROADCAST_ID, MAX_ID, MAX_PARAMS, ping, read, sync_read, sync_write, write
from snake_gym.hardware.bus.transport import SerialTransport, Transport

SILENT = "silent"
_SILENT_AFTER = 3
"""Number of unanswered readings in a row after which a servo is left out of the common reading."""
_PROBE_INTERVAL_S = 0.25
"""Time between two requests to a servo that is left out [s]."""


class BusPort(NamedTuple):
    """Port, baud rate and family of the servos on a bus."""

    device: str
    """Serial device, such as ``/dev/ttyUSB0``."""
    baud: int = 1_000_000
    family: ServoFamily = FEETECH
    latency_s: float | None = None
    """Longest delay of an answer by adapter and computer [s]; None: the bus's own."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data from which ``of`` makes the port again, in another process."""
        return {**self._asdict(), "family": to_dict(self.family)}

    @classmethod
    def of(cls, data: dict[str, Any]) -> BusPort:
        return cls(**{**data, "family": register_servo_family(build(ServoFamily, data["family"]))})

    def open(self, timing: LineTiming | None = None, retries: int = 2, reopens: bool = False) -> ServoBus:
        """Open the bus for this process alone; ``reopens``: again after the port has vanished. Raises PortGone."""

        def transport() -> Transport:
            return SerialTransport(self.device, self.baud)

        if self.latency_s is not None:
            timing = LineTiming(latency_s=self.latency_s)
        bus = ServoBus(transport(), self.baud, None, timing, retries, transport if reopens else None, self.family)
        bus.port = self
        return bus


class ServoInfo(NamedTuple):
    """Model, firmware and error byte that a servo reports."""

    id: int
    model: int
    """Number of the servo's model."""
    firmware: tuple[int, int]
    error: int
    """Error byte: see ``protocol.ServoError``."""


class BlockRead(NamedTuple):
    """Values of the same registers of several servos."""

    stamp_s: float
    """Time when they were asked [s, monotonic clock]; each servo measures within the next milliseconds."""
    values: dict[int, dict[str, int] | None]
    """Counts by ID and register name; None: no answer."""
    errors: dict[int, int]
    """Error byte by ID, of the servos that answered."""
    failures: dict[int, str]
    """Reason for a missing answer, by ID; empty: all have answered."""


class ServoBus:
    """Servos that share a bus. Positions and speeds are counts of the servos' registers.

    Args:
        transport: an open port.
        clock: measures deadlines and stamps.
        retries: number of times that a servo is asked again within one call.
        reopen: opens the port anew after it has vanished; None: it stays gone.
    """

    def __init__(
        self,
        transport: Transport,
        baud: int = 1_000_000,
        clock: Clock | None = None,
        timing: LineTiming | None = None,
        retries: int = 2,
        reopen: Callable[[], Transport] | None = None,
        family: ServoFamily = FEETECH,
    ) -> None:
        self.clock: Clock = clock or MonotonicClock()
        self.baud, self.retries, self.family = baud, retries, family
        self.port: BusPort | None = None
        """Port that was opened for it; None: it is in memory."""
        self.line = Line(transport, baud, self.clock, timing or LineTiming(), reopen)
        self._return_delay_s: dict[int, float] = {}
        self._misses: dict[int, int] = {}
        self._next_probe_s: dict[int, float] = {}

    @property
    def counters(self) -> LineCounters:
        """Counts of the traffic on the line since the bus was made."""
        return self.line.counters

    @property
    def late(self) -> Counter[int]:
        """Number of answers that came too late, by servo ID."""
        return self.line.late

    def ping(self, servo_id: int) -> ServoInfo | None:
        """Return model and firmware of the servo with this ID, or None if no servo answers."""
        _check_ids([servo_id])
        self._expect([servo_id])
        for _ in range(1 + self.retries):
            answers = self.line.ask(ping(servo_id), {servo_id: 0}, self._default_deadline(1, 0))
            if answers.packets:
                break
        else:
            return None
        self._misses.pop(servo_id, None)
        found = self.read_block([servo_id], "firmware_major", "firmware_minor", "model", "return_delay")
        values = found.values[servo_id]
        if values is None:
            return None
        if "return_delay" in values:
            self._return_delay_s[servo_id] = values["return_delay"] * self.family.scale("return_delay")
        firmware = (values.get("firmware_major", 0), values.get("firmware_minor", 0))
        return ServoInfo(servo_id, values["model"], firmware, found.errors[servo_id])

    def read_block(self, ids: Sequence[int], *names: str, deadline_s: float | None = None) -> BlockRead:
        """Read, from all servos, the smallest block of registers that contains those of ``names``.

        Args:
            deadline_s: end of waiting and retries on the monotonic clock [s]; None: late enough for all retries.
        """
        _check_ids(ids)
        registers = self.family.cover(names)
        span = registers[0].address, registers[-1].end - registers[0].address
        stamp_s = self.clock.now()
        self._expect(ids)
        deadline_s = self._default_deadline(len(ids), span[1]) if deadline_s is None else deadline_s
        failures: dict[int, str] = dict.fromkeys(ids, SILENT)
        values: dict[int, dict[str, int] | None] = dict.fromkeys(ids)
        errors: dict[int, int] = {}
        common, due = self._split_silent(ids, stamp_s)
        rounds = [common] * (1 + self.retries) + [[servo_id] for servo_id in due]
        for k, wanted in enumerate(rounds):
            asked = [servo_id for servo_id in wanted if values[servo_id] is None]
            if not asked:
                continue
            is_retry = 0 < k <= self.retries
            if is_retry:  # the first of them may be dead and keep the others from answering: now it comes last
                asked = asked[1:] + asked[:1]
            answers = self._read_once(asked, span, deadline_s, is_retry)
            failures.update({i: why for i, why in answers.failures.items() if why != NO_TIME or failures[i] == SILENT})
            for servo_id, packet in answers.packets.items():
                values[servo_id] = unpack(registers, packet.params)
                errors[servo_id] = packet.error_or_instruction
                failures.pop(servo_id, None)
                self._misses.pop(servo_id, None)
        if not self.line.connected:
            failures = {servo_id: PORT_GONE for servo_id in ids if values[servo_id] is None}
        for servo_id, reason in failures.items():
            if servo_id in common and reason not in (PORT_GONE, NO_TIME):
                self._misses[servo_id] = self._misses.get(servo_id, 0) + 1
        return BlockRead(stamp_s, values, errors, failures)

    def write_targets(
        self,
        ids: Sequence[int],
        position_steps: Sequence[int],
        speed: int | Sequence[int] = 0,
    ) -> bool:
        """Send goals to all servos at once, unacknowledged and never repeated. Return False if the port is gone."""
        _check_ids(ids)
        counts = {
            name: [told] * len(ids) if isinstance(told, int) else [int(one) for one in told]
            for name, told in {"goal_position": position_steps, "goal_speed": speed}.items()
        }
        for name, told in counts.items():
            if len(told) != len(ids):
                raise ValueError(f"{len(told)} values of {name} for {len(ids)} servos")
        address, data = self.family.encode_goals(**counts)
        return self._send_all(address, list(zip(ids, data, strict=True)))

    def write_register(self, servo_id: int, name: str, value: int, acknowledged: bool = True) -> bool:
        """Write one register. Return True if it is known to hold the value (unacknowledged: if the packet was sent)."""
        _check_ids([servo_id])
        target, data = self.family.register(name), self.family.encode(name, value)
        if not acknowledged:  # as a sync write to one: a servo acknowledges a plain write whether asked to or not
            return self._send_all(target.address, [(servo_id, data)])
        request = write(servo_id, target.address, data)
        for attempt in range(1 + self.retries):
            self.counters.retries += int(attempt > 0)
            self._expect([servo_id])
            doubtful = self.line.may_be_mistaken(servo_id, request)
            answers = self.line.ask(request, {servo_id: 0}, self._default_deadline(1, 0))
            if name == "return_delay":
                self._return_delay_s.pop(servo_id, None)
            if servo_id in answers.packets and not doubtful:
                return True
            if PORT_GONE in answers.failures.values():
                return False
            holder = value if name == "id" else servo_id  # it may have changed its ID and its answer been lost
            found = self.read_block([holder], name).values[holder]
            if found is not None and found[name] == value:
                return True
        return False

    def torque(self, ids: Sequence[int], on: bool) -> dict[int, bool]:
        """Switch the torque of every servo, even if some fail. Return by ID True for servos that confirm it."""
        _check_ids(ids)
        name, value = "torque_enable", int(on)
        target, data = self.family.register(name), self.family.encode(name, value)
        known: dict[int, bool] = dict.fromkeys(ids, False)
        for _ in range(2 * (1 + self.retries)):
            rest = [servo_id for servo_id in ids if not known[servo_id]]
            if not rest or not self._send_all(target.address, [(servo_id, data) for servo_id in rest]):
                return known
            for servo_id in rest:  # a servo left out for its silence is asked as well
                self._misses.pop(servo_id, None)
            found = self.read_block(rest, name)
            known.update({i: v is not None and v[name] == value for i, v in found.values.items()})
        for servo_id in ids:
            if not known[servo_id]:
                known[servo_id] = self.write_register(servo_id, name, value)
        return known

    def torque_off_all(self) -> bool:
        """Tell every servo on the line, whatever its ID, to switch its torque off; none acknowledges. Return False if
        the port is gone."""
        target, data = self.family.register("torque_enable"), self.family.encode("torque_enable", 0)
        return self.line.send(write(BROADCAST_ID, target.address, data))

    def close(self) -> None:
        """Close the port. Torque stays as it is."""
        self.line.close()

    def _read_once(self, asked: list[int], span: tuple[int, int], deadline_s: float, is_retry: bool) -> Answers:
        """Read ``span`` (address, bytes) once, from as many servos as can be awaited until the deadline."""
        address, n_bytes = span
        now = self.clock.now()
        length, askable = self.line.choose_length(asked, n_bytes, self.family.table_end - address)
        spare_s = deadline_s - now + (0.5 if is_retry else 1.0) * self.line.timing.latency_s
        n_asked = len(askable)
        while n_asked and self.line.span_s(8 + n_asked, n_asked, length) > spare_s:
            n_asked -= 1
        in_time = askable[:n_asked]
        left_out = {i: NO_ANSWER if i not in askable else NO_TIME for i in asked if i not in in_time}
        if not in_time:
            return Answers(now, failures=left_out)
        request = read(in_time[0], address, length) if n_asked == 1 else sync_read(in_time, address, length)
        self.counters.retries += is_retry
        # If no time is left for another attempt, all of it goes into waiting for this one.
        after_s = deadline_s - now - self.line.span_s(len(request), n_asked, length)
        last = after_s < self.line.span_s(8, 1, length) - 0.5 * self.line.timing.latency_s
        answers = self.line.ask(request, dict.fromkeys(in_time, length), deadline_s, to_the_end=last)
        answers.failures.update(left_out)
        return answers

    def _send_all(self, address: int, blocks: list[tuple[int, bytes]]) -> bool:
        """Send blocks in as few sync writes as possible. Return False if the port is gone."""
        if not blocks:
            return self.line.connected
        per_packet = (MAX_PARAMS - 2) // (1 + len(blocks[0][1]))
        parts = range(0, len(blocks), per_packet)
        return all(self.line.send(sync_write(address, blocks[k : k + per_packet])) for k in parts)

    def return_delay_s(self, ids: Sequence[int]) -> float:
        """Return the longest time that one of these servos waits before it answers [s], as far as they have told it."""
        unknown_s = self.line.timing.return_delay_s
        return max((self._return_delay_s.get(i, unknown_s) for i in ids), default=unknown_s)

    def _expect(self, ids: Sequence[int]) -> None:
        self.line.return_delay_s = self.return_delay_s(ids)

    def _default_deadline(self, n_servos: int, n_bytes: int) -> float:
        span_s = self.line.span_s(8 + n_servos, n_servos, n_bytes)
        return self.clock.now() + (1 + self.retries) * (span_s + self.line.timing.latency_s)

    def _split_silent(self, ids: Sequence[int], now: float) -> tuple[list[int], list[int]]:
        """Return the servos to ask together, and a silent one, if any, whose turn to be asked alone has come."""
        silent = [servo_id for servo_id in ids if self._misses.get(servo_id, 0) >= _SILENT_AFTER]
        if len(silent) == len(ids):
            return list(ids), []
        due = [servo_id for servo_id in silent if now >= self._next_probe_s.get(servo_id, now)][:1]
        self._next_probe_s.update(dict.fromkeys(due, now + _PROBE_INTERVAL_S))
        return [servo_id for servo_id in ids if servo_id not in silent], due


def _check_ids(ids: Sequence[int]) -> None:
    if len(set(ids)) != len(ids):
        raise ValueError(f"servo ids are {list(ids)}; expected each once")
    wrong = [servo_id for servo_id in ids if not 0 <= servo_id <= MAX_ID]
    if wrong:
        raise ValueError(f"servo id is {wrong[0]}; expected 0 to {MAX_ID} ({BROADCAST_ID} is for all servos)")
