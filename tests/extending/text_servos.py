"""Servos with a protocol of their own: the file that a user writes for them, a bus of eight methods and a table.

The protocol is text: ``R 3 132 4`` is answered by ``3 0 00080000`` (ID, faults, bytes), ``W 3 116 00080000`` by
nothing; ID 254 is for all. Registers, fault bits and modes are those of Dynamixel's XL430, but for the bus watchdog:
words of 4 bytes, two's complement, no lock, and a goal that leaves the torque as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from snake_gym.hardware.bus.bus import NO_ANSWER, PORT_GONE, BlockRead, BusPort, CycleTime, ServoInfo
from snake_gym.hardware.bus.clock import Clock, MonotonicClock
from snake_gym.hardware.bus.dynamixel import XL430
from snake_gym.hardware.bus.servo_bus import unpack
from snake_gym.hardware.bus.transport import PortGone, SerialTransport

ALL = 254
WAIT_S = 0.1
"""Longest wait for an answer [s]; the servos are a thread of a busy test."""


class TextBus:
    """Driver of text servos: a ``Bus``."""

    def __init__(self, port: BusPort, retries: int, reopens: bool) -> None:
        self.family, self.baud = port.family, port.baud
        self.port: BusPort | None = port
        self.clock: Clock = MonotonicClock()
        self._retries, self._line = retries, SerialTransport(port.device, port.baud)

    def ping(self, servo_id: int) -> ServoInfo | None:
        read = self.read_block([servo_id], "model", "firmware_major")
        values = read.values[servo_id]
        if values is None:
            return None
        return ServoInfo(servo_id, values["model"], (values["firmware_major"], 0), read.errors[servo_id])

    def read_block(self, ids: Sequence[int], *names: str, deadline_s: float | None = None) -> BlockRead:
        block = self.family.cover(names)
        found = BlockRead(self.clock.now(), dict.fromkeys(ids), {}, {})
        for servo_id in ids:
            answer = b""
            try:
                for _ in range(1 + self._retries):
                    request = f"R {servo_id} {block[0].address} {block[-1].end - block[0].address}"
                    answer = answer or self._ask(request.encode())
            except PortGone:
                found.failures[servo_id] = PORT_GONE
                continue
            if not answer:
                found.failures[servo_id] = NO_ANSWER
                continue
            _, faults, data = answer.split()
            found.values[servo_id] = unpack(block, bytes.fromhex(data.decode()))
            found.errors[servo_id] = self.family.faults_of(int(faults))
        return found

    def write_targets(self, ids: Sequence[int], position_steps: Sequence[int], speed: int | Sequence[int] = 0) -> bool:
        speeds = [speed] * len(ids) if isinstance(speed, int) else speed
        goals = zip(ids, speeds, position_steps, strict=True)
        return all(
            self._write(one, "goal_speed", int(fast)) and self._write(one, "goal_position", int(where))
            for one, fast, where in goals
        )

    def write_register(self, servo_id: int, name: str, value: int, acknowledged: bool = True) -> bool:
        if not self._write(servo_id, name, value) or not acknowledged:
            return not acknowledged
        held = self.read_block([servo_id], name).values[servo_id]
        return held is not None and held[name] == value

    def torque(self, ids: Sequence[int], on: bool) -> dict[int, bool]:
        return {one: self.write_register(one, "torque_enable", int(on)) for one in ids}

    def torque_off_all(self) -> bool:
        return self._write(ALL, "torque_enable", 0)

    def cycle_time(self, ids: Sequence[int]) -> CycleTime:
        return CycleTime(reading_s=0.001 * len(ids), goals_s=0.0005 * len(ids))

    def close(self) -> None:
        self._line.close()

    def _write(self, servo_id: int, name: str, value: int) -> bool:
        data = self.family.encode(name, value).hex()
        try:
            self._line.write(f"W {servo_id} {self.family.register(name).address} {data}\n".encode())
        except PortGone:
            return False
        return True

    def _ask(self, request: bytes) -> bytes:
        """Return the answer to a request, or nothing."""
        while self._line.read(4096, 0.0):
            pass
        self._line.write(request + b"\n")
        _, servo_id, _, n_bytes = request.split()
        heard, end_s = b"", self.clock.now() + WAIT_S
        while (left_s := end_s - self.clock.now()) > 0.0:
            heard += self._line.read(4096, left_s)
            for line in heard.split(b"\n")[:-1]:  # a late answer to an earlier request may come before
                words = line.split()
                if len(words) == 3 and words[0] == servo_id and len(words[2]) == 2 * int(n_bytes):
                    return line
        return b""


X_SERIES = replace(
    XL430, name="text_x", bus="text_servos:TextBus", protocol=1,
    registers=tuple(one for one in XL430.registers if one.name not in ("bus_watchdog", "unload_condition")),
    models=(replace(XL430.models[0], name="TX430"),),
)  # fmt: skip
