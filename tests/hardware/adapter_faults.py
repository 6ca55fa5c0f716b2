"""Faults of adapters that only the driver's own tests need: late answers, merged ones, and those of another servo."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from snake_gym.config.settings import NonNegative, Share
from snake_gym.hardware.bus.protocol import Packet, build, wire_time_s
from snake_gym.hardware.emulator.bus import EmulatedBus, WireFaults


@dataclass
class AdapterFaults(WireFaults):
    """Faults of the wire and of the adapter, and those that are ordered whatever the rates."""

    late: Share = 0.0
    """Probability that an answer is delayed, as by a stalled adapter; the line itself is free."""
    merged: Share = 0.0
    """Probability that an answer is held back and handed over together with the next one."""
    wrong_id: Share = 0.0
    """Probability that an answer carries another servo's ID and a right checksum."""
    late_min_s: NonNegative = 0.02
    late_max_s: NonNegative = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ordered: dict[tuple[str, int], int] = {}

    def order(self, name: str, servo_id: int, count: int = 1) -> None:
        """Cause the fault in the next ``count`` answers of that servo."""
        self._ordered[name, servo_id] = self._ordered.get((name, servo_id), 0) + count

    def happens(self, name: str, servo_id: int) -> bool:
        if self._happens(name):
            return True
        is_ordered = self._ordered.get((name, servo_id), 0) > 0
        self._ordered[name, servo_id] = max(0, self._ordered.get((name, servo_id), 0) - 1)
        self.counts[name] += is_ordered
        return is_ordered

    def delay_s(self) -> float:
        return float(self._rng.uniform(self.late_min_s, self.late_max_s))


class FaultyBus(EmulatedBus):
    """Emulated bus behind an adapter with ``AdapterFaults``."""

    faults: AdapterFaults

    def __init__(self, servos: Any, faults: WireFaults | None = None, **more: Any) -> None:
        told = {} if faults is None else {name: getattr(faults, name) for name in ("lost", "corrupted", "seed")}
        self._held = b""
        super().__init__(servos, faults=faults if isinstance(faults, AdapterFaults) else AdapterFaults(**told), **more)

    def _deliver(self, servo_id: int, answer: bytes, end_s: float) -> None:
        faults = self.faults
        if faults.happens("lost", servo_id):
            return
        if faults.happens("wrong_id", servo_id):
            answer = build((servo_id + 1) % 0xFD, answer[4], answer[5:-1])
        if faults.happens("corrupted", servo_id):
            answer = faults._corrupt(answer)
        delay_s = faults.delay_s() if faults.happens("late", servo_id) else 0.0
        held, self._held = self._held + answer, b""
        if faults.happens("merged", servo_id):
            self._held = held
            return
        self._outbox.add(end_s - wire_time_s(len(held), self.baud) + delay_s, held)

    def _execute(self, packet: Packet, at_s: float) -> None:
        super()._execute(packet, at_s)
        if self._held:
            self._outbox.add(self._answers_end_s, self._held)
            self._held = b""
