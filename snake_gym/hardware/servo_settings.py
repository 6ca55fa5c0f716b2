"""What a servo's memory holds that its motion depends on: read, compared with a calibration's, checked before it moves.

A servo that was swapped, recentred, reset or set up otherwise since the calibration shows in these registers. A horn
that was put on elsewhere does not: only the joint's angle does (``safety.RangeWatch``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from snake_gym.hardware.encoding import STEPS_PER_TURN
from snake_gym.hardware.servo_bus import ServoBus

_FIRST, _LAST = "firmware_major", "mode"
_POSITION_MODE = 0
_WHOLE_RESOLUTION = 1
"""A servo with another ``angle_resolution`` moves by so many times what it is asked for."""


@dataclass(frozen=True)
class ServoSettings:
    """Counts of the registers of these names."""

    model: int
    firmware_major: int
    firmware_minor: int
    homing_offset: int
    min_angle_limit: int
    max_angle_limit: int
    mode: int
    phase: int
    angle_resolution: int

    def changes(self, found: ServoSettings) -> list[str]:
        """What differs in a servo that holds ``found``, one line each, without the servo's name."""
        now = asdict(found)
        return [
            f"the calibration says {name} {was}, the servo says {now[name]}: calibrate again "
            "(python -m snake_gym.hardware calibrate)"
            for name, was in asdict(self).items() if was != now[name]
        ]  # fmt: skip

    def faults(self, name: str, ends_steps: tuple[float, float]) -> list[str]:
        """What keeps the servo ``name`` from moving as it is told between two positions [steps], one line each."""
        if self.mode != _POSITION_MODE:
            return [f"{name} is in mode {self.mode}; expected {_POSITION_MODE}, position"]
        if self.angle_resolution != _WHOLE_RESOLUTION:
            return [f"{name} has angle_resolution {self.angle_resolution}; expected {_WHOLE_RESOLUTION}"]
        low, high = self.min_angle_limit, self.max_angle_limit
        if low == high == 0:  # it counts whole turns: no limits, and no place where its counts jump
            return []
        least, most = min(ends_steps), max(ends_steps)
        if least < -0.5 or most > STEPS_PER_TURN - 0.5:
            return [
                f"{name}: its range passes the encoder's zero, across which it does not drive; expected a calibration "
                "made with --recentre"
            ]
        if low > least + 1.0 or high < most - 1.0:
            return [
                f"{name} has angle limits {low} to {high}; expected at least {least:.0f} to {most:.0f}, between which "
                "the joint is to move"
            ]
        return []


def read_settings(bus: ServoBus, ids: Sequence[int]) -> dict[int, ServoSettings | None]:
    """What each servo holds, by ID; None: it does not answer."""
    names = ServoSettings.__dataclass_fields__
    found = bus.read_block(ids, _FIRST, _LAST).values
    return {
        one: None if told is None else ServoSettings(**{name: told[name] for name in names})
        for one, told in found.items()
    }
