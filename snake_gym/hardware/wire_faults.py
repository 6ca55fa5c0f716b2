"""What goes wrong between a host and its servos, drawn at random or ordered for the next packet.

Rates are probabilities per packet, from one seeded generator, so a run can be repeated. The faults:

- ``lost``: a request is not heard, or an answer not sent;
- ``corrupted``: bytes of a request or an answer are changed, one to three of them;
- ``late``: an answer reaches the host after a delay (a stalled adapter hands it over late; the line itself is free);
- ``merged``: an answer is held back and handed over together with the next one;
- ``wrong_id``: an answer carries another servo's ID and a right checksum.

Faults of servos (dead, hot, overloaded, brown-out, encoder) are in ``servo_emulator``; a cable that is pulled in
``emulated_port`` and ``EmulatedBus.unplug``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from snake_gym.hardware.protocol import build

FaultName = Literal["lost", "corrupted", "late", "merged", "wrong_id"]
NAMES: tuple[FaultName, ...] = ("lost", "corrupted", "late", "merged", "wrong_id")


@dataclass
class WireFaults:
    """Rates of the faults, and how bad they are."""

    lost: float = 0.0
    """Per request and per answer."""
    corrupted: float = 0.0
    """Per request and per answer."""
    late: float = 0.0
    merged: float = 0.0
    wrong_id: float = 0.0
    late_min_s: float = 0.02
    late_max_s: float = 0.05
    seed: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """How often each has happened."""

    def __post_init__(self) -> None:
        for name in NAMES:
            rate = getattr(self, name)
            if not 0.0 <= rate <= 1.0:
                raise ValueError(f"rate of {name} is {rate:g}; expected 0 to 1")
        if not 0.0 <= self.late_min_s <= self.late_max_s:
            raise ValueError(f"late_min_s is {self.late_min_s:g}; expected 0 to late_max_s, {self.late_max_s:g}")
        self._rng = np.random.default_rng(self.seed)
        self._ordered: dict[tuple[FaultName, int | None], int] = {}

    def order(self, name: FaultName, servo_id: int | None = None, count: int = 1) -> None:
        """Let the fault happen to the next ``count`` answers (of that servo), whatever the rates."""
        if name not in NAMES:
            raise ValueError(f"fault is {name!r}; expected one of {', '.join(NAMES)}")
        self._ordered[name, servo_id] = self._ordered.get((name, servo_id), 0) + count

    def damage_request(self, data: bytes) -> bytes:
        """What the servos hear of a request: all of it, part of it changed, or nothing."""
        if self._happens("lost"):
            return b""
        return self._corrupt(data) if self._happens("corrupted") else data

    def damage_answer(self, servo_id: int, data: bytes) -> tuple[bytes, float, bool]:
        """What the host gets of an answer.

        Returns:
            the bytes, by how much they are late [s], and whether they wait for the next answer.
        """
        if self._happens("lost", servo_id):
            return b"", 0.0, False
        if self._happens("wrong_id", servo_id):
            data = build((servo_id + 1) % 0xFD, data[4], data[5:-1])
        if self._happens("corrupted", servo_id):
            data = self._corrupt(data)
        late = self._happens("late", servo_id)
        delay_s = float(self._rng.uniform(self.late_min_s, self.late_max_s)) if late else 0.0
        return data, delay_s, self._happens("merged", servo_id)

    def _happens(self, name: FaultName, servo_id: int | None = None) -> bool:
        rate: float = getattr(self, name)
        happens = rate > 0.0 and float(self._rng.random()) < rate
        for key in ((name, servo_id), (name, None)):
            if servo_id is not None and not happens and self._ordered.get(key, 0):
                self._ordered[key] -= 1
                happens = True
        self.counts[name] += happens
        return happens

    def _corrupt(self, data: bytes) -> bytes:
        damaged = bytearray(data)
        for at in self._rng.choice(len(damaged), size=min(len(damaged), int(self._rng.integers(1, 4))), replace=False):
            damaged[at] ^= int(self._rng.integers(1, 256))
        return bytes(damaged)
