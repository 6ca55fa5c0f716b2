"""The memory of Feetech SMS/STS servos as data: registers, their encodings and defaults, and what the models differ in.

One table serves the whole family. Addresses 0-39 are EEPROM: while ``lock`` is 1 a write there acts at once but is gone
after power-off, while it is 0 it lasts. 40-55 are the control registers, 56-70 what the servo measures, 80-86 factory
settings. Sources: Feetech's memory tables of the STS and SMS series and its SDKs; the defaults are those of an STS3215.

Things that cost others a robot or an afternoon:

- Writing ``goal_position`` switches the torque on by itself. A goal sent late undoes a torque-off.
- Switching the torque on by ``torque_enable`` lets the servo hold where it is; its goal becomes the present position.
- ``torque_enable`` = 128 stores a new offset: the present position becomes 2048.
- ``goal_speed`` = 0 is the greatest speed (phase bit 3), not standstill; ``acceleration`` = 0 is no ramp.
- Both angle limits 0: positions are not limited, and count over several turns.
- present position = actual position - ``homing_offset``, modulo a turn.
- Baud codes 5-7 are listed differently by some public drivers: a servo set to one of them may be lost;
  ``WRITABLE_BAUD`` leaves them out.

Signed quantities are stored as a magnitude and a sign bit. Its place depends on the register (bit 15 for positions and
speeds, 10 for loads, 11 for the position offset), low byte first. Position codes count 4096 steps per turn and wrap;
what an angle difference means across the wrap is decided here and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from snake_gym.config import ConfigError, nearest

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


BAUD_RATES = (1_000_000, 500_000, 250_000, 128_000, 115_200, 76_800, 57_600, 38_400)
"""By code 0-7."""
WRITABLE_BAUD = BAUD_RATES[:5]
EEPROM_END = 40
TABLE_END = 87
"""First address behind the factory table."""
CALIBRATE_MIDDLE = 128
"""``torque_enable`` code that makes the present position 2048."""

_BYTE = Encoding(1)
_WORD = Encoding(2)
_STEP = 2.0 * math.pi / STEPS_PER_TURN


class Register(NamedTuple):
    """One register."""

    name: str
    address: int
    encoding: Encoding
    access: Literal["r", "rw"]
    unit: str = ""
    """Of ``encoding.scale``: value in this unit = count * scale."""
    default: int = 0
    low: int | None = None
    """Smallest count with a meaning; None: what the encoding holds."""
    high: int | None = None

    @property
    def size(self) -> int:
        return self.encoding.size

    @property
    def is_eeprom(self) -> bool:
        return self.address < EEPROM_END

    @property
    def limits(self) -> tuple[int, int]:
        """Counts that may be written."""
        low = self.encoding.min_value if self.low is None else self.low
        return low, self.encoding.max_value if self.high is None else self.high


def _angle(sign_bit: int | None) -> Encoding:
    return Encoding(2, sign_bit, _STEP)


_TENTH_VOLT = Encoding(1, None, 0.1)
_PERMILLE = Encoding(2, None, 1e-3)
_PERCENT = Encoding(1, None, 1e-2)
_TEN_MS = Encoding(1, None, 0.01)

REGISTERS: tuple[Register, ...] = (
    Register("firmware_major", 0, _BYTE, "r", default=3),
    Register("firmware_minor", 1, _BYTE, "r", default=10),
    Register("byte_order", 2, _BYTE, "r"),
    Register("model", 3, _WORD, "r", default=777),
    Register("id", 5, _BYTE, "rw", default=1, high=253),
    Register("baud_rate", 6, _BYTE, "rw", high=7),
    Register("return_delay", 7, Encoding(1, None, 2e-6), "rw", "s", high=254),
    Register("response_level", 8, _BYTE, "rw", default=1, high=1),
    Register("min_angle_limit", 9, _angle(15), "rw", "rad"),
    Register("max_angle_limit", 11, _angle(15), "rw", "rad", default=4095),
    Register("max_temperature", 13, _BYTE, "rw", "degC", default=70, high=100),
    Register("max_voltage", 14, _TENTH_VOLT, "rw", "V", default=140, high=254),
    Register("min_voltage", 15, _TENTH_VOLT, "rw", "V", default=40, high=254),
    Register("max_torque", 16, _PERMILLE, "rw", "of stall", default=1000, high=1000),
    Register("phase", 18, _BYTE, "rw", default=12),
    Register("unload_condition", 19, _BYTE, "rw", default=0x2C),
    Register("alarm_condition", 20, _BYTE, "rw", default=0x2F),
    Register("position_p", 21, _BYTE, "rw", default=32),
    Register("position_d", 22, _BYTE, "rw", default=32),
    Register("position_i", 23, _BYTE, "rw"),
    Register("min_start_torque", 24, Encoding(1, None, 1e-3), "rw", "of stall", default=16),
    Register("integral_limit", 25, _BYTE, "rw"),
    Register("cw_dead_band", 26, Encoding(1, None, _STEP), "rw", "rad", default=1, high=32),
    Register("ccw_dead_band", 27, Encoding(1, None, _STEP), "rw", "rad", default=1, high=32),
    Register("protection_current", 28, Encoding(2, None, 6.5e-3), "rw", "A", default=500, high=2047),
    Register("angle_resolution", 30, _BYTE, "rw", default=1, low=1, high=128),
    Register("homing_offset", 31, _angle(11), "rw", "rad"),
    Register("mode", 33, _BYTE, "rw", high=3),
    Register("protective_torque", 34, _PERCENT, "rw", "of stall", default=20, high=100),
    Register("protection_time", 35, _TEN_MS, "rw", "s", default=200, high=254),
    Register("overload_torque", 36, _PERCENT, "rw", "of stall", default=80, high=100),
    Register("speed_p", 37, _BYTE, "rw", default=10),
    Register("overcurrent_time", 38, _TEN_MS, "rw", "s", default=200, high=254),
    Register("speed_i", 39, _BYTE, "rw", default=10),
    Register("torque_enable", 40, _BYTE, "rw", high=CALIBRATE_MIDDLE),
    Register("acceleration", 41, Encoding(1, None, 100.0 * _STEP), "rw", "rad/s^2", high=254),
    Register("goal_position", 42, _angle(15), "rw", "rad"),
    Register("goal_time", 44, Encoding(2, 10, 1e-3), "rw", "of stall"),
    Register("goal_speed", 46, _angle(15), "rw", "rad/s"),
    Register("torque_limit", 48, _PERMILLE, "rw", "of stall", default=1000, high=1000),
    Register("lock", 55, _BYTE, "rw", default=1, high=1),
    Register("present_position", 56, _angle(15), "r", "rad"),
    Register("present_speed", 58, _angle(15), "r", "rad/s"),
    Register("present_load", 60, Encoding(2, 10, 1e-3), "r", "of stall"),
    Register("present_voltage", 62, _TENTH_VOLT, "r", "V"),
    Register("present_temperature", 63, _BYTE, "r", "degC"),
    Register("registered_write", 64, _BYTE, "r"),
    Register("status", 65, _BYTE, "r"),
    Register("moving", 66, _BYTE, "r"),
    Register("target_position", 67, _angle(15), "r", "rad"),
    Register("present_current", 69, Encoding(2, 15, 6.5e-3), "r", "A"),
    Register("speed_threshold", 80, _BYTE, "r", default=1),
    Register("control_period", 81, Encoding(1, None, 1e-3), "r", "s", default=1),
    Register("speed_unit", 82, _BYTE, "r", default=1),
    Register("time_unit", 83, _BYTE, "r"),
    Register("max_speed", 84, Encoding(1, None, 50.0 * _STEP), "r", "rad/s", default=67),
    Register("max_acceleration", 85, Encoding(1, None, 100.0 * _STEP), "r", "rad/s^2", default=254),
    Register("acceleration_factor", 86, _BYTE, "r", default=1),
)
"""In the order of their addresses."""

BY_NAME: dict[str, Register] = {register.name: register for register in REGISTERS}


class ServoModel(NamedTuple):
    """One type of servo: what it is called, how it differs from the table's defaults."""

    name: str
    number: int | None
    """What its ``model`` register says; None: not published."""
    factory_baud: int
    stall_torque_nm: float
    """At the nominal voltage."""
    nominal_voltage_v: float
    no_load_speed_rad_s: float
    stall_current_a: float
    defaults: dict[str, int]
    """Register defaults that differ from the table."""

    def default(self, register: Register) -> int:
        return self.defaults.get(register.name, register.default)


_KG_CM = 0.0980665
_SIXTH_TURN = math.pi / 3.0
MODELS: dict[str, ServoModel] = {
    # data sheet SM-8524-C001: 85 kg cm, 0.154 s / 60 deg, 5.6 A at 24 V, RS-485; its number is in no public table
    "SM8524BL": ServoModel(
        "SM8524BL", None, 115_200, 85 * _KG_CM, 24.0, _SIXTH_TURN / 0.154, 5.6,
        {"baud_rate": 4, "max_voltage": 252, "min_voltage": 90, "max_speed": 89, "model": 11272},
    ),
    # the 12 V sister; number as in LeRobot's table, speed and current taken from the 24 V one
    "SM8512BL": ServoModel(
        "SM8512BL", 11272, 115_200, 85 * _KG_CM, 12.0, _SIXTH_TURN / 0.154, 11.2,
        {"baud_rate": 4, "max_voltage": 140, "min_voltage": 90, "max_speed": 89, "model": 11272},
    ),
    # 12 V version (C018): 30 kg cm, 0.222 s / 60 deg, 2.7 A
    "STS3215": ServoModel("STS3215", 777, 1_000_000, 30 * _KG_CM, 12.0, _SIXTH_TURN / 0.222, 2.7, {}),
}  # fmt: skip


def model(name: str) -> ServoModel:
    """The servo model of that name, any case; ConfigError if there is none."""
    for key, found in MODELS.items():
        if key.lower() == name.lower():
            return found
    raise ConfigError(f"servo model is {name!r}; expected one of {', '.join(MODELS)}{_hint(name, MODELS)}")


def register(name: str) -> Register:
    """The register of that name; ConfigError if there is none."""
    try:
        return BY_NAME[name]
    except KeyError:
        raise ConfigError(f"register is {name!r}; expected one of {', '.join(BY_NAME)}{_hint(name, BY_NAME)}") from None


def _hint(name: str, choices: Iterable[str]) -> str:
    guess = nearest(name, choices)
    return f"; did you mean {guess!r}?" if guess else ""


def block(first: str, last: str) -> tuple[Register, ...]:
    """The registers from ``first`` to ``last``, both included.

    Raises:
        ConfigError: one does not exist, or ``last`` lies before ``first``.
    """
    begin, end = register(first).address, register(last).address
    if end < begin:
        raise ConfigError(f"register block ends at {last!r} ({end}), before {first!r} ({begin})")
    return tuple(r for r in REGISTERS if begin <= r.address <= end)


def block_span(registers: tuple[Register, ...]) -> tuple[int, int]:
    """First address and number of bytes of a block."""
    return registers[0].address, registers[-1].address + registers[-1].size - registers[0].address


def encode_register(target: Register, value: int) -> bytes:
    """The bytes that write ``value`` into a register.

    Raises:
        ValueError: the register is read-only, the value lies outside its limits, or it is a baud code that drivers
            disagree about.
    """
    low, high = target.limits
    if target.access == "r":
        raise ValueError(f"register {target.name!r} is read-only")
    if not low <= value <= high:
        raise ValueError(f"{target.name} is {value}; expected {low} to {high}")
    if target.name == "baud_rate" and value >= len(WRITABLE_BAUD):
        raise ValueError(
            f"baud_rate is {value} ({BAUD_RATES[value]} baud); expected 0 to {len(WRITABLE_BAUD) - 1}: "
            "drivers disagree about the higher codes, and a servo set to one may not be found again"
        )
    return target.encoding.encode(value)


def encode_each(target: Register, values: int | Sequence[int], n_servos: int) -> list[bytes]:
    """``encode_register`` for each of ``n_servos``; one value is for all of them."""
    listed = [values] * n_servos if isinstance(values, int) else [int(value) for value in values]
    if len(listed) != n_servos:
        raise ValueError(f"{len(listed)} values of {target.name} for {n_servos} servos")
    return [encode_register(target, value) for value in listed]


def unpack(registers: tuple[Register, ...], data: bytes) -> dict[str, int]:
    """The counts of a block that was read in one piece, by register name."""
    begin = registers[0].address
    return {r.name: r.encoding.decode(data[r.address - begin : r.address - begin + r.size]) for r in registers}
