"""Settings: frozen dataclasses whose fields state their type and range, checked however an object is made.

    @dataclass(frozen=True)
    class Gait(Settings):
        amplitude_rad: Annotated[float, Range(0.0, math.pi)] = 0.3
        period_s: Positive = 2.0

        def check(self) -> None:      # conditions on several fields
            ...

A number is finite and at most ``LARGEST`` in size unless its range says otherwise.
"""

from __future__ import annotations

import math
import typing
from dataclasses import dataclass, fields
from functools import cache
from typing import Annotated, Any

from snake_gym.config.errors import ConfigError

LARGEST = 1e9
"""Largest size of a setting without a bound of its own, in its unit; beyond it, arithmetic overflows."""


@dataclass(frozen=True)
class Range:
    """Range of a number, as metadata of its type: ``Annotated[float, Range(0.0, 1.0)]``."""

    low: float = -math.inf
    high: float = math.inf
    without_low: bool = False
    """True if the number has to be larger than ``low``."""
    without_high: bool = False
    """True if the number has to be smaller than ``high``."""
    infinite: bool = False
    """True if the number may be infinite; otherwise it is at most ``LARGEST`` in size, or whole."""

    def admits(self, value: float) -> bool:
        """Return True if ``value`` is in the range; integers have no ``LARGEST``."""
        if isinstance(value, float) and not self.infinite and not abs(value) <= LARGEST:
            return False
        above = value > self.low if self.without_low else value >= self.low
        return above and (value < self.high if self.without_high else value <= self.high)

    def describe(self, kind: type) -> str:
        """Return the expected range of a float or int, for an error message: ``in (0, 1]``, ``finite and > 0``."""
        bounds = [f"{'>' if self.without_low else '>='} {self.low:g}"] if self.low > -math.inf else []
        bounds += [f"{'<' if self.without_high else '<='} {self.high:g}"] if self.high < math.inf else []
        if len(bounds) == 2:
            opening, closing = "(" if self.without_low else "[", ")" if self.without_high else "]"
            return f"in {opening}{self.low:g}, {self.high:g}{closing}"
        if self.infinite:
            return " ".join([*bounds, "(.inf for no limit)"])
        if kind is int:
            return " ".join(bounds)
        if not bounds:
            return f"finite, at most {LARGEST:g} in size"
        return f"finite and {bounds[0]}" + ("" if self.high < math.inf else f", at most {LARGEST:g}")


Positive = Annotated[float, Range(0.0, without_low=True)]
NonNegative = Annotated[float, Range(0.0)]
Limit = Annotated[float, Range(0.0, without_low=True, infinite=True)]
"""Positive bound on a quantity; infinite for none."""
Share = Annotated[float, Range(0.0, 1.0)]
PositiveShare = Annotated[float, Range(0.0, 1.0, without_low=True)]
Angle = Annotated[float, Range(-math.pi, math.pi)]
"""Angle [rad] of at most half a turn to either side."""
Count = Annotated[int, Range(0)]
PositiveCount = Annotated[int, Range(1)]


class Settings:
    """Base class of settings: every new object has its fields converted to their declared types and checked for range.

    Raises ConfigError, which is a ValueError, naming the field.
    """

    def __post_init__(self) -> None:
        from snake_gym.config.schema import coerce

        declared = declared_types(type(self))  # type: ignore[arg-type]
        for f in fields(self):  # type: ignore[arg-type]
            if f.init:
                object.__setattr__(self, f.name, coerce(declared[f.name], getattr(self, f.name), f.name))
        try:
            self.check()
        except ConfigError:
            raise
        except ValueError as error:
            raise ConfigError(error) from error

    def check(self) -> None:
        """Raise ValueError unless the fields, each in its range, are consistent."""


def check_order(settings: object, *names: str) -> None:
    """Raise ValueError unless the named fields do not decrease in this order."""
    values = [getattr(settings, name) for name in names]
    if values != sorted(values):
        told = ", ".join(f"{name} {value:g}" for name, value in zip(names[1:], values[1:], strict=True))
        raise ValueError(f"{names[0]} is {values[0]:g}, {told}; expected {' <= '.join(names)}")


@cache
def declared_types(cls: Any) -> dict[str, Any]:
    """Return field types of a dataclass by name, with the ranges that annotate them."""
    return typing.get_type_hints(cls, include_extras=True)
