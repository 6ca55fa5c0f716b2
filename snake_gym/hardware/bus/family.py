"""Servo families: addresses and encodings of the registers, and the models of a family.

Code above the bus asks for registers by name. A user's own family is a table of this kind (docs/extending.md); one with
packets unlike Feetech's and Dynamixel's names its bus. Behaviour expected of every family:

- Positions count from 0 to ``steps_per_turn`` - 1 and wrap.
- Registers below ``eeprom_end`` last. Where there is a ``lock``, a write there while it is 1 is gone after power-off.
- A goal may switch the torque on by itself, as Feetech's does; nothing relies on it, and none is sent after a stop.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field
from enum import IntFlag
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import Field

from snake_gym.config import ConfigError, Settings, choose
from snake_gym.config.settings import Count, Positive, PositiveCount
from snake_gym.plugins import load_object

Byte = Annotated[int, Field(ge=0, le=255)]
Bit = Annotated[int, Field(ge=0, le=31)]

OUR_BUS = "snake_gym.hardware.bus.servo_bus:open_bus"
"""Bus of families with packets of a known protocol."""
NEEDED = frozenset({
    "id", "baud_rate", "model", "torque_enable", "goal_position", "goal_speed", "torque_limit", "present_position",
    "present_speed", "present_load", "present_voltage", "present_temperature", "max_voltage",
})  # fmt: skip
"""Registers that a family must have to drive a robot."""
READING = (
    "present_position", "present_speed", "present_load", "present_voltage", "present_temperature", "present_current",
)  # fmt: skip
"""Registers read in every bus cycle, if there."""
GOAL = ("acceleration", "goal_position", "goal_time", "goal_speed")
"""Registers written with a goal, if there."""


class ServoError(IntFlag):
    """Faults that a servo may report, whatever its own code for them is."""

    VOLTAGE = 0x01
    ENCODER = 0x02
    HEAT = 0x04
    CURRENT = 0x08
    OVERLOAD = 0x20
    OTHER = 0x80


def describe_error(error: int) -> str:
    """Return the names of faults, such as "voltage, overload"; "" for none."""
    return ", ".join(bit.name.lower() for bit in ServoError if error & bit and bit.name)


class Encoding(Settings):
    """Conversion of a register's bytes into a count of ``scale`` in the register's unit."""

    size: Literal[1, 2, 4] = 1
    sign_bit: Bit | None = None
    """Number of the bit that makes the others a negative magnitude; None: there is none."""
    scale: Positive = 1.0
    """Unit per count."""
    byte_order: Literal["little", "big"] = "little"
    signed: bool = False
    """True: two's complement."""

    def check(self) -> None:
        if self.sign_bit is not None and (self.signed or not 1 <= self.sign_bit < 8 * self.size):
            most = 8 * self.size - 1
            raise ValueError(f"sign_bit is {self.sign_bit}; expected 1 to {most}, and none with two's complement")

    @property
    def max_value(self) -> int:
        """Largest count that can be written."""
        return int((1 << (8 * self.size - self.signed if self.sign_bit is None else self.sign_bit)) - 1)

    @property
    def min_value(self) -> int:
        return -self.max_value - 1 if self.signed else 0 if self.sign_bit is None else -self.max_value

    def encode(self, value: int) -> bytes:
        """Return the bytes of a count. Raises ValueError if it does not fit: overflow would reverse the joint."""
        if not self.min_value <= value <= self.max_value:
            raise ValueError(f"value is {value}; expected {self.min_value} to {self.max_value}")
        code = value if value >= 0 or self.sign_bit is None else -value | (1 << self.sign_bit)
        return code.to_bytes(self.size, self.byte_order, signed=self.signed)

    def decode(self, data: bytes) -> int:
        """Return the count in ``data`` (``size`` bytes). Minus zero is zero; bits above the sign are ignored."""
        code = int.from_bytes(data, self.byte_order, signed=self.signed)
        if self.sign_bit is None:
            return code
        magnitude = code & ((1 << self.sign_bit) - 1)
        return -magnitude if code >> self.sign_bit & 1 else magnitude


class Register(Settings):
    name: str
    address: Count
    encoding: Encoding = field(default_factory=Encoding)
    access: Literal["r", "rw"] = "rw"
    unit: str = ""
    """Unit of ``encoding.scale``: value in this unit = count * scale."""
    default: int = 0
    low: int | None = None
    high: int | None = None
    """Smallest and largest count with a meaning; None: limit of the encoding."""

    @property
    def end(self) -> int:
        """First address behind the register."""
        return self.address + self.encoding.size

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest count that may be written."""
        low = self.encoding.min_value if self.low is None else self.low
        return low, self.encoding.max_value if self.high is None else self.high


class ServoModel(Settings):
    """Type of servo, with the register defaults that differ from its family's."""

    name: str
    number: Count | None
    """Number in its ``model`` register; None: not published."""
    stall_torque_nm: Positive
    """Stall torque at the nominal voltage."""
    nominal_voltage_v: Positive
    no_load_speed_rad_s: Positive
    stall_current_a: Positive
    defaults: dict[str, int] = field(default_factory=dict)
    """Register defaults that differ from the family's."""

    def default(self, register: Register) -> int:
        return self.defaults.get(register.name, register.default)


class ServoFamily(Settings):
    """Registers, models and baud rates of one family of servos."""

    name: str
    registers: tuple[Register, ...]
    """Registers in the order of their addresses."""
    models: Annotated[tuple[ServoModel, ...], Field(min_length=1)]
    baud_rates: Annotated[tuple[PositiveCount, ...], Field(min_length=1)]
    """Baud rates, in the order of their codes in ``baud_rate``."""
    steps_per_turn: PositiveCount = 4096
    eeprom_end: Count = 40
    """First address with contents that are lost at power-off."""
    recentre_code: Byte | None = 128
    """Code of ``torque_enable`` that makes the present position half a turn; None: the servos have none."""
    position_mode: Count = 0
    """Code of ``mode`` in which a servo follows positions."""
    faults: dict[Literal["voltage", "encoder", "heat", "current", "overload"], Bit] = field(
        default_factory=lambda: {"voltage": 0, "encoder": 1, "heat": 2, "current": 3, "overload": 5}
    )
    """Number of each fault's bit in the servos' status byte."""
    protocol: Literal[1, 2] = 1
    """Number of the packets' form: see ``protocol``."""
    bus: str = OUR_BUS
    """``module:NAME`` of the function that opens the servos' bus: see ``BusPort.open``."""

    def check(self) -> None:
        needed = NEEDED if self.protocol == 1 else NEEDED | {"hardware_error"}
        missing = sorted(needed - {one.name for one in self.registers})
        if missing:
            raise ValueError(f"registers lack {', '.join(missing)}")
        for before, after in pairwise(self.registers):
            if after.address < before.end:
                raise ValueError(f"{after.name!r} begins at {after.address}, before the end of {before.name!r}")
        goal = [one.name for one in self.cover(GOAL)]
        if self.bus == OUR_BUS and not set(goal) <= set(GOAL):
            raise ValueError(f"registers {', '.join(goal)} would be written with a goal; expected none but {GOAL}")

    # --- registers -----------------------------------------------------------------------------------------------

    @cached_property
    def by_name(self) -> dict[str, Register]:
        return {one.name: one for one in self.registers}

    def register(self, name: str) -> Register:
        """Return the register of that name. Raises ConfigError if there is none."""
        return self.by_name.get(name) or self.by_name[choose(name, self.by_name, "register")]

    def scale(self, name: str) -> float:
        """Return the unit per count of a register."""
        return self.register(name).encoding.scale

    def full_count(self, name: str) -> int:
        """Return the count of 1 in the register's unit, such as the whole stall torque."""
        return round(1.0 / self.scale(name))

    def cover(self, names: Iterable[str]) -> tuple[Register, ...]:
        """Return the smallest block of registers that contains those of ``names`` which the family has."""
        wanted = [self.by_name[name].address for name in names if name in self.by_name]
        first, last = min(wanted), max(wanted)
        return tuple(one for one in self.registers if first <= one.address <= last)

    def encode(self, name: str, value: int) -> bytes:
        """Return the bytes that write ``value`` into a register. Raises ValueError: the register is read-only, or the
        value is outside its limits."""
        target = self.register(name)
        low, high = target.limits
        if target.access == "r":
            raise ValueError(f"register {name!r} is read-only")
        if not low <= value <= high:
            raise ValueError(f"{name} is {value}; expected {low} to {high}")
        return target.encoding.encode(value)

    def faults_of(self, code: int) -> ServoError:
        """Return the faults in a servo's status byte."""
        found = ServoError(0)
        for name, bit in self.faults.items():
            if code >> bit & 1:
                found |= ServoError[name.upper()]
                code ^= 1 << bit
        return found | ServoError.OTHER if code else found

    # --- angles, rates and models --------------------------------------------------------------------------------

    @cached_property
    def step_rad(self) -> float:
        """Angle of one step [rad]."""
        return 2.0 * math.pi / self.steps_per_turn

    @property
    def middle(self) -> int:
        """Position in the middle of the range."""
        return self.steps_per_turn // 2

    def steps(self, angle_rad: float) -> int:
        """Return the whole number of steps nearest to ``angle_rad`` [rad]."""
        return round(angle_rad * (self.steps_per_turn / (2.0 * math.pi)))

    def angle(self, steps: float) -> float:
        """Return the angle of ``steps`` [rad]."""
        return steps * self.step_rad

    def wrap(self, steps: int) -> int:
        """Return the same place on the circle, within half a turn of 0."""
        return (steps + self.steps_per_turn // 2) % self.steps_per_turn - self.steps_per_turn // 2

    def nearest_turn(self, steps: int, reference: int) -> int:
        """Return ``steps`` plus whole turns, nearest to ``reference``: unwraps an encoder that passed its zero."""
        return reference + self.wrap(steps - reference)

    def models_of(self, number: int) -> list[str]:
        """Return the names of the models with this ``number`` in their ``model`` register."""
        register = self.by_name["model"]
        return [one.name for one in self.models if number in (one.number, one.default(register))]

    def model_of(self, number: int) -> str:
        """Return the name of the model with this ``number``, for people."""
        return " or ".join(self.models_of(number)) or f"type {number}"


# --- families by name ------------------------------------------------------------------------------------------------

_FAMILIES: dict[str, ServoFamily] = {}


def register_servo_family(family: ServoFamily) -> ServoFamily:
    """Make a family and its models known by name. Raises ConfigError if another family has a model of the same name."""
    for other in _FAMILIES.values():
        shared = {one.name for one in other.models} & {one.name for one in family.models}
        if shared and other.name != family.name:
            raise ConfigError(f"servo models {', '.join(sorted(shared))} are of family {other.name!r} already")
    _FAMILIES[family.name] = family
    return family


def find_family(name: str) -> ServoFamily:
    """Return the family of that name, or the one that ``module:NAME`` names. Raises ConfigError."""
    if name in _FAMILIES:
        return _FAMILIES[name]
    if ":" not in name:
        choose(name, (*_FAMILIES, "module:NAME"), "servo family")
    found = load_object(name, "servo family")
    if not isinstance(found, ServoFamily):
        raise ConfigError(f"servo family {name!r} is a {type(found).__name__}; expected a ServoFamily")
    return register_servo_family(found)


def family_of_model(name: str) -> tuple[ServoFamily, ServoModel]:
    """Return family and model of the servo with that name, in any case. Raises ConfigError if it is unknown."""
    models = {one.name: (family, one) for family in _FAMILIES.values() for one in family.models}
    same = [key for key in models if key.lower() == name.lower()]
    return models[same[0] if same else choose(name, models, "servo model")]
