"""Bus of servos with packets of a known protocol.

Exceptions are raised only for wrong values, before the first byte is sent.

- Reading asks all servos in one sync read, and those that did not answer again while the deadline leaves time. One that
  was silent several times is asked by itself, now and then, so that it costs the others neither answers nor period.
  Where one answers again, all are asked together again.
- Goals are sent once, unacknowledged, and never repeated: the next control tick sends new ones.
- Other writes are not acknowledged either: the register is read back, and written again if it holds another value.
- Servos with a bus watchdog have it set before their torque goes on: without a packet for ``WATCHDOG_S`` they stop.
- In protocol 2 an answer says only that there are faults; those servos are asked for them in a second reading.
- Two servos with one ID answer at once and garble each other, unless their answers are the same to the last bit; with
  different return delays both are heard. ``ping`` compares what differs between any two: positions.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from snake_gym.hardware.bus.bus import (
    GARBLED,
    NO_ANSWER,
    NO_TIME,
    PORT_GONE,
    WATCHDOG_S,
    BlockRead,
    BusPort,
    CycleTime,
    ServoInfo,
)
from snake_gym.hardware.bus.clock import Clock, MonotonicClock
from snake_gym.hardware.bus.family import GOAL, READING, Register, ServoError, ServoFamily
from snake_gym.hardware.bus.feetech import FEETECH
from snake_gym.hardware.bus.line import Line
from snake_gym.hardware.bus.protocol import BROADCAST_ID, MAX_PARAMS, PROTOCOLS, wire_time_s
from snake_gym.hardware.bus.transport import SerialTransport, Transport

_SILENT_AFTER = 3
"""Unanswered readings in a row after which a servo is left out."""
_PROBE_INTERVAL_S = 0.25
"""Time between two requests to a servo left out [s]."""
_TWIN_S, _TWIN_READINGS = 0.0015, 2
"""Time for a second servo with the same ID to answer [s], and readings that have to be garbled for it."""
_ALERT = 0x80
"""Bit of an answer's error in protocol 2: the servo has a fault."""
_IDENTITY = ("firmware_major", "firmware_minor", "model", "return_delay")


def open_bus(port: BusPort, retries: int, reopens: bool) -> ServoBus:
    """Open the bus behind a serial device. Raises PortGone."""

    def transport() -> Transport:
        return SerialTransport(port.device, port.baud)

    reopen = transport if reopens else None
    bus = ServoBus(transport(), port.baud, None, port.latency_s, retries, reopen, port.family)
    bus.port = port
    return bus


def wire_times(n_servos: int, baud: int, family: ServoFamily, return_delay_s: float = 0.0) -> CycleTime:
    """Return the times on the wire of a bus cycle of ``n_servos``."""
    reading, goal, protocol = family.cover(READING), family.cover(GOAL), PROTOCOLS[family.protocol]
    answer = protocol.overhead_bytes + reading[-1].end - reading[0].address
    block = 1 + goal[-1].end - goal[0].address
    per_packet = (MAX_PARAMS - 2 * protocol.word_bytes) // block
    head = protocol.request_bytes + 2 * protocol.word_bytes
    return CycleTime(
        wire_time_s(head + n_servos * (1 + answer), baud) + n_servos * return_delay_s,
        wire_time_s(math.ceil(n_servos / per_packet) * head + n_servos * block, baud),
        return_delay_s,
    )


def unpack(registers: Sequence[Register], data: bytes) -> dict[str, int]:
    """Return the counts of a block that was read in one piece, by register name."""
    begin = registers[0].address
    return {one.name: one.encoding.decode(data[one.address - begin : one.end - begin]) for one in registers}


class ServoBus:
    """Driver of the servos on one line: a ``Bus``.

    Args:
        transport: an open port.
        baud: baud rate that ``transport`` was opened with.
        clock: None: the monotonic clock.
        latency_s, reopen: see ``Line``.
        retries: times that an unanswered request is repeated, for a reading as long as its deadline leaves time.
    """

    def __init__(
        self,
        transport: Transport,
        baud: int = 1_000_000,
        clock: Clock | None = None,
        latency_s: float | None = None,
        retries: int = 2,
        reopen: Callable[[], Transport] | None = None,
        family: ServoFamily = FEETECH,
    ) -> None:
        self.clock: Clock = MonotonicClock() if clock is None else clock
        self.baud, self.retries, self.family = baud, retries, family
        self.port: BusPort | None = None
        self._protocol = PROTOCOLS[family.protocol]
        self.line = Line(transport, baud, self.clock, latency_s, reopen, self._protocol)
        self._faults: dict[int, ServoError] = {}
        has_watchdog = "bus_watchdog" in family.by_name
        self._watchdog = round(WATCHDOG_S / family.scale("bus_watchdog")) if has_watchdog else 0
        self._misses: Counter[int] = Counter()
        self._next_probe_s: dict[int, float] = {}

    def ping(self, servo_id: int) -> ServoInfo | None:
        for _ in range(_TWIN_READINGS):
            live = self.read_block([servo_id], *READING, twin_s=_TWIN_S)
            if live.failures.get(servo_id) != GARBLED:
                break
        else:
            return ServoInfo(servo_id, 0, (0, 0), ServoError(0), ambiguous=True)
        if live.failures:
            return None
        values = self.read_block([servo_id], *_IDENTITY).values[servo_id]
        if values is None:
            return None
        if "return_delay" in values:
            self.line.return_delay_s[servo_id] = values["return_delay"] * self.family.scale("return_delay")
        firmware = (values.get("firmware_major", 0), values.get("firmware_minor", 0))
        return ServoInfo(servo_id, values["model"], firmware, live.errors[servo_id])

    def read_block(
        self, ids: Sequence[int], *names: str, deadline_s: float | None = None, twin_s: float = 0.0
    ) -> BlockRead:
        """As ``Bus.read_block``; ``twin_s``: see ``Line.read``."""
        registers = self.family.cover(names)
        address, n_bytes = registers[0].address, registers[-1].end - registers[0].address
        stamp_s = self.clock.now()
        if deadline_s is None:
            deadline_s = stamp_s + (1 + self.retries) * (self.line.span_s(ids, n_bytes) + self.line.wait_s)
        common, due = self._split_silent(ids, stamp_s)
        failures = {servo_id: NO_TIME if servo_id in common else NO_ANSWER for servo_id in ids}
        found = BlockRead(stamp_s, dict.fromkeys(ids), {}, failures)
        rounds = [common] * (1 + self.retries) + [[servo_id] for servo_id in due]
        for k, wanted in enumerate(rounds):
            asked = [servo_id for servo_id in wanted if found.values[servo_id] is None]
            if not asked:
                continue
            is_retry = 0 < k <= self.retries
            if is_retry:  # the first of them may be dead and keep the others from answering: now it comes last
                asked = asked[1:] + asked[:1]
            longest = self.family.registers[-1].end - address
            answers = self.line.read(asked, address, n_bytes, longest, deadline_s, is_retry, twin_s)
            for servo_id, answer in answers.items():
                if not isinstance(answer, str):
                    found.values[servo_id] = unpack(registers, answer.params)
                    code, is_plain = answer.error_or_instruction, self.family.protocol == 1
                    alerted = ServoError.OTHER if code & _ALERT else ServoError(0)
                    found.errors[servo_id] = self.family.faults_of(code) if is_plain else alerted
                    del failures[servo_id]
                    if self._misses.pop(servo_id, 0) >= _SILENT_AFTER:
                        self._misses.clear()  # what silenced several is over
                elif answer != NO_TIME:
                    failures[servo_id] = answer
        self._ask_alerted(found, deadline_s)
        if PORT_GONE in failures.values():
            failures.update(dict.fromkeys(failures, PORT_GONE))
        self._misses.update(one for one, why in failures.items() if one in common and why not in (NO_TIME, PORT_GONE))
        return found

    def write_targets(self, ids: Sequence[int], position_steps: Sequence[int], speed: int | Sequence[int] = 0) -> bool:
        speeds = [speed] * len(ids) if isinstance(speed, int) else speed
        registers = self.family.cover(GOAL)
        blocks = []
        for servo_id, position, one_speed in zip(ids, position_steps, speeds, strict=True):
            goal = {"goal_position": position, "goal_speed": one_speed}
            parts = [self.family.encode(one.name, int(goal.get(one.name, 0))) for one in registers]
            blocks.append((servo_id, b"".join(parts)))
        return self._send_all(registers[0].address, blocks)

    def write_register(self, servo_id: int, name: str, value: int, acknowledged: bool = True) -> bool:
        target, data = self.family.register(name), self.family.encode(name, value)
        for _ in range(1 + self.retries):
            # As a sync write to one: a servo acknowledges a plain write whether asked to or not.
            if not self._send_all(target.address, [(servo_id, data)]):
                return False
            if not acknowledged:
                return True
            if name == "return_delay":
                self.line.return_delay_s.pop(servo_id, None)
            holder = value if name == "id" else servo_id
            held = self.read_block([holder], name).values[holder]
            if held is not None and held[name] == value:
                return True
        return False

    def torque(self, ids: Sequence[int], on: bool) -> dict[int, bool]:
        name, value = "torque_enable", int(on)
        wanted = {"bus_watchdog": self._watchdog, name: value} if on and self._watchdog else {name: value}
        known: dict[int, bool] = dict.fromkeys(ids, False)
        for _ in range(2 * (1 + self.retries)):
            rest = [servo_id for servo_id in ids if not known[servo_id]]
            if not rest or not self._send_torque(rest, value):
                return known
            for servo_id in rest:  # a servo left out for its silence is asked as well
                self._misses.pop(servo_id, None)
            known.update(dict.fromkeys(rest, True))
            for register, count in wanted.items():
                for servo_id, held in self.read_block(rest, register).values.items():
                    known[servo_id] &= held is not None and held[register] == count
        for servo_id in ids:
            if not known[servo_id] and len(wanted) == 1:
                known[servo_id] = self.write_register(servo_id, name, value)
        return known

    def torque_off_all(self) -> bool:
        target, data = self.family.register("torque_enable"), self.family.encode("torque_enable", 0)
        return self.line.send(self._protocol.write(BROADCAST_ID, target.address, data))

    def cycle_time(self, ids: Sequence[int]) -> CycleTime:
        times = wire_times(len(ids), self.baud, self.family, self.line.longest_return_delay_s(ids))
        return times._replace(latency_s=self.line.latency_s)

    def close(self) -> None:
        self.line.close()

    def _ask_alerted(self, found: BlockRead, deadline_s: float) -> None:
        """Ask the servos that say that they have faults for these."""
        alerted = [servo_id for servo_id, error in found.errors.items() if error]
        if self.family.protocol == 1 or not alerted:
            return
        address, longest = self.family.register("hardware_error").address, self.family.registers[-1].end
        for servo_id, answer in self.line.read(alerted, address, 1, longest - address, deadline_s).items():
            if not isinstance(answer, str):
                self._faults[servo_id] = self.family.faults_of(answer.params[0])
        found.errors.update({servo_id: self._faults.get(servo_id, ServoError.OTHER) for servo_id in alerted})

    def _send_torque(self, ids: Sequence[int], value: int) -> bool:
        """Switch the torque; set the bus watchdog before, and clear it after torque-off. Return False: no port."""
        writes = [("torque_enable", value)]
        if self._watchdog:
            armed = [("bus_watchdog", 0), ("bus_watchdog", self._watchdog)]  # 0 clears an earlier stop
            writes = armed + writes if value else writes + armed[:1]
        for name, count in writes:
            target, data = self.family.register(name), self.family.encode(name, count)
            if not self._send_all(target.address, [(servo_id, data) for servo_id in ids]):
                return False
        return True

    def _send_all(self, address: int, blocks: list[tuple[int, bytes]]) -> bool:
        """Send blocks in as few sync writes as possible. Return False if the port is gone."""
        protocol = self._protocol
        per_packet = (MAX_PARAMS - 2 * protocol.word_bytes) // (1 + len(blocks[0][1])) if blocks else 1
        parts = range(0, len(blocks), per_packet)
        return all(self.line.send(protocol.sync_write(address, blocks[k : k + per_packet])) for k in parts)

    def _split_silent(self, ids: Sequence[int], now: float) -> tuple[list[int], list[int]]:
        """Return the servos to ask together, and the silent one, if any, to ask alone now."""
        silent = [servo_id for servo_id in ids if self._misses[servo_id] >= _SILENT_AFTER]
        if len(silent) == len(ids):
            return list(ids), []
        due = [servo_id for servo_id in silent if now >= self._next_probe_s.get(servo_id, now)][:1]
        self._next_probe_s.update(dict.fromkeys(due, now + _PROBE_INTERVAL_S))
        return [servo_id for servo_id in ids if servo_id not in silent], due
