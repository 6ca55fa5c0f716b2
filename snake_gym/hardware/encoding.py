"""Register codes to numbers and back: sign-magnitude words, scales, and positions on a circle. Pure functions.

Feetech servos store signed quantities as a magnitude and a sign bit, whose place depends on the register (bit 15 for
positions and speeds, 10 for loads, 11 for the position offset), low byte first. Position codes count 4096 steps per
turn and wrap; what an angle difference means across the wrap is decided here and nowhere else.
"""

from __future__ import annotations

import math
from typing import NamedTuple

STEPS_PER_TURN = 4096


class Encoding(NamedTuple):
    """How a register's bytes make a number: ``value = code`` or sign and magnitude, times ``scale`` in its unit."""

    size: int = 1
    """Bytes."""
    sign_bit: int | None = None
    """None: unsigned."""
    scale: float = 1.0
    """Unit per count."""

    @property
    def max_value(self) -> int:
        """The largest count that can be written."""
        return (1 << (8 * self.size if self.sign_bit is None else self.sign_bit)) - 1

    @property
    def min_value(self) -> int:
        return 0 if self.sign_bit is None else -self.max_value

    def encode(self, value: int) -> bytes:
        """The bytes of a count, low byte first.

        Raises:
            ValueError: the count does not fit. (Letting it overflow would set the sign bit and turn the joint round.)
        """
        if not self.min_value <= value <= self.max_value:
            raise ValueError(f"value is {value}; expected {self.min_value} to {self.max_value}")
        code = value if self.sign_bit is None else encode_sign_magnitude(value, self.sign_bit)
        return code.to_bytes(self.size, "little")

    def decode(self, data: bytes) -> int:
        """The count in ``data``, which is exactly ``size`` bytes."""
        if len(data) != self.size:
            raise ValueError(f"{len(data)} bytes; expected {self.size}")
        code = int.from_bytes(data, "little")
        return code if self.sign_bit is None else decode_sign_magnitude(code, self.sign_bit)


def encode_sign_magnitude(value: int, sign_bit: int) -> int:
    """The code of a signed value; ``abs(value)`` must lie below ``2 ** sign_bit``."""
    magnitude = abs(value)
    if magnitude >> sign_bit:
        raise ValueError(f"value is {value}; expected {1 - (1 << sign_bit)} to {(1 << sign_bit) - 1}")
    return magnitude | (1 << sign_bit) if value < 0 else magnitude


def decode_sign_magnitude(code: int, sign_bit: int) -> int:
    """The signed value of a code. Minus zero is zero; bits above the sign bit have no meaning and are ignored."""
    magnitude = code & ((1 << sign_bit) - 1)
    return -magnitude if code >> sign_bit & 1 else magnitude


def wrap_steps(steps: int, turn: int = STEPS_PER_TURN) -> int:
    """The same place on the circle, in [-turn/2, turn/2)."""
    return (steps + turn // 2) % turn - turn // 2


def nearest_turn(steps: int, reference: int, turn: int = STEPS_PER_TURN) -> int:
    """``steps`` plus whole turns, as near to ``reference`` as it gets: unwraps an encoder that passed its zero."""
    return reference + wrap_steps(steps - reference, turn)


def steps_to_rad(steps: float, turn: int = STEPS_PER_TURN) -> float:
    return steps * (2.0 * math.pi / turn)


def rad_to_steps(angle_rad: float, turn: int = STEPS_PER_TURN) -> int:
    """The nearest whole step."""
    return round(angle_rad * (turn / (2.0 * math.pi)))
