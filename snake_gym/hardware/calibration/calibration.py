"""Calibration of a robot, kept on the host as JSON: servo, direction, zero and range of every joint.

``angle = direction * (steps - zero_steps) * 2 pi / steps_per_turn``, with the difference wrapped to half a turn, so
that a servo whose counter has passed the end of its turn reads right (no joint of a snake turns by more than that). The
file also says what the servos held: for other servos, or other offsets, it is not valid. Joint 1 is at the
tail; a positive angle bends the head-side link clockwise (phi_i = theta_i - theta_{i+1}).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import ConfigError, Settings, build, near_path, write_atomic
from snake_gym.config.errors import show
from snake_gym.config.files import read_file
from snake_gym.config.settings import Angle, PositiveCount
from snake_gym.hardware.bus.bus import BlockRead
from snake_gym.hardware.bus.family import ServoFamily, family_of_model
from snake_gym.hardware.bus.protocol import PROTOCOLS
from snake_gym.robot.spec import FloatArray

_WHOLE_RESOLUTION = 1
"""Required ``angle_resolution``: a higher one multiplies every motion."""
_TIME_BASED = 4
"""Bit of ``drive_mode`` with which the register of the goal's speed holds a time."""
IDENTITY = (
    "model", "firmware_major", "firmware_minor", "homing_offset", "min_angle_limit", "max_angle_limit", "phase",
    "angle_resolution", "drive_mode",
)  # fmt: skip
"""Registers that tell another servo, or another zero or range."""
SETUP = (
    "mode", "position_p", "position_i", "position_d", "cw_dead_band", "ccw_dead_band", "max_torque", "max_temperature",
    "min_voltage", "max_voltage", "unload_condition", "protection_current", "overcurrent_time", "protective_torque",
    "protection_time", "overload_torque",
)  # fmt: skip
"""Registers for how a servo moves and what protects it."""
Held = dict[str, int]
"""Counts of ``IDENTITY`` and ``SETUP`` in one servo, by register name, as far as its family has them."""


class Readable(Protocol):
    """Servos that can be read: a bus, or one behind a guard."""

    family: ServoFamily

    def read_block(self, ids: Sequence[int], *names: str) -> BlockRead: ...


def changes(held: Held, found: Held, servo_id: int) -> list[str]:
    """Return how a servo that holds ``found`` differs from what it ``held`` when it was calibrated, one line each. A
    horn that was remounted shows only in the joint's angle."""
    return [
        f"the calibration says {name} {was}, the servo says {found[name]}: "
        + (_AGAIN if name in IDENTITY else f"set it back: register write {name} {was} --id {servo_id}")
        for name, was in held.items() if found.get(name, was) != was
    ]  # fmt: skip


def reach(held: Held, family: ServoFamily) -> tuple[float, float]:
    """Return the least and greatest position [steps] to which a servo drives: its angle limits, within one turn; all of
    them if it counts whole turns, which it does without angle limits."""
    low, high = held.get("min_angle_limit", 0), held.get("max_angle_limit", 0)
    return (-math.inf, math.inf) if low == high == 0 else (max(low, 0), min(high, family.steps_per_turn - 1))


def faults(held: Held, name: str, ends_steps: tuple[float, float] | None, family: ServoFamily) -> list[str]:
    """Return reasons why the servo ``name`` could not move as asked between two positions [steps], or, where they are
    None, between any."""
    mode, resolution = held.get("mode", family.position_mode), held.get("angle_resolution", _WHOLE_RESOLUTION)
    if mode != family.position_mode:
        return [f"{name} is in mode {mode}; expected {family.position_mode}, position"]
    if resolution != _WHOLE_RESOLUTION:
        return [f"{name} has angle_resolution {resolution}; expected {_WHOLE_RESOLUTION}"]
    if held.get("drive_mode", 0) & _TIME_BASED:
        return [f"{name} has drive_mode {held['drive_mode']}, in which speeds are times; expected {_TIME_BASED} less"]
    low, high = reach(held, family)
    least, most = (low, high) if ends_steps is None else sorted(ends_steps)
    if low <= least + 1.0 and most - 1.0 <= high:
        return []
    if least < -0.5 or most > family.steps_per_turn - 0.5:
        return [f"{name}: its range passes the encoder's zero, across which it does not drive; {_AGAIN}"]
    return [
        f"{name} has angle limits {low:.0f} to {high:.0f}; expected at least {least:.0f} to {most:.0f}, between which "
        "the joint is to move"
    ]


def read_held(bus: Readable, ids: Sequence[int]) -> dict[int, Held | None]:
    """Return what each servo holds, by ID; None if it does not answer."""
    names = [name for name in (*IDENTITY, *SETUP) if name in bus.family.by_name]
    found = bus.read_block(ids, *names).values
    return {one: values and {name: values[name] for name in names} for one, values in found.items()}


FORMAT = 2
_AGAIN = "calibrate again (python -m snake_gym.hardware calibrate)"


class JointCalibration(Settings):
    servo_id: Annotated[int, Field(ge=0, le=PROTOCOLS[1].max_id)]
    direction: int
    """Sense in which the servo counts: 1 or -1."""
    zero_steps: int
    """Servo position of the straight joint."""
    low_rad: Angle
    high_rad: Angle
    """Least and largest joint angle that may be asked for."""
    held: Held | None = None
    """What the servo held when it was calibrated; None: it is not compared."""

    def check(self) -> None:
        if self.direction not in (1, -1):
            raise ValueError(f"direction of servo {self.servo_id} is {self.direction}; expected 1 or -1")
        if not self.low_rad < self.high_rad:
            raise ValueError(f"low_rad of servo {self.servo_id} is {self.low_rad:g}; expected < {self.high_rad:g}")


class Calibration(Settings):
    """Calibration of the joints of one robot, tail first; its arrays are (J,)."""

    joints: tuple[JointCalibration, ...]
    model: str
    """Model of the servos, as named in their family."""
    steps_per_turn: PositiveCount
    made: str = ""
    """Date of the calibration."""

    def check(self) -> None:
        ids = [joint.servo_id for joint in self.joints]
        if not ids or len(set(ids)) < len(ids):
            raise ValueError(f"servo ids are {ids}; expected at least one, each once")
        for k, joint in enumerate(self.joints):
            if not 0 <= joint.zero_steps < self.steps_per_turn:
                raise ValueError(
                    f"joints[{k}].zero_steps is {joint.zero_steps}; expected 0 to {self.steps_per_turn - 1}"
                )

    @cached_property
    def family(self) -> ServoFamily:
        """Family of the servos. Raises ConfigError if no known family has the model."""
        return family_of_model(self.model)[0]

    @property
    def ids(self) -> tuple[int, ...]:
        """Servo ID of each joint, tail first."""
        return tuple(joint.servo_id for joint in self.joints)

    @property
    def low_rad(self) -> FloatArray:
        return np.array([joint.low_rad for joint in self.joints])

    @property
    def high_rad(self) -> FloatArray:
        return np.array([joint.high_rad for joint in self.joints])

    @property
    def direction(self) -> NDArray[np.int64]:
        return np.array([joint.direction for joint in self.joints], dtype=np.int64)

    @property
    def zero_steps(self) -> NDArray[np.int64]:
        return np.array([joint.zero_steps for joint in self.joints], dtype=np.int64)

    @property
    def rad_per_step(self) -> float:
        return 2.0 * math.pi / self.steps_per_turn

    def angles(self, steps: FloatArray) -> FloatArray:
        """Return joint angles (J,) [rad] in [-pi, pi) for servo positions (J,) [steps]; NaN stays NaN."""
        half = self.steps_per_turn / 2.0
        away = np.mod(np.asarray(steps, dtype=np.float64) - self.zero_steps + half, self.steps_per_turn) - half
        return np.asarray(self.direction * away * self.rad_per_step)

    def rates(self, counts: FloatArray) -> FloatArray:
        """Return joint rates (J,) [rad/s] for counts (J,) of ``present_speed``."""
        return np.asarray(self.direction * np.asarray(counts, dtype=np.float64) * self.family.scale("present_speed"))

    def goal_speeds(self, speed_rad_s: FloatArray | float) -> list[int]:
        """Return counts (J,) of ``goal_speed`` for greatest speeds [rad/s], (J,) or one for all; inf: 0, no limit."""
        speeds = np.broadcast_to(np.asarray(speed_rad_s, dtype=np.float64), (len(self.joints),))
        counts = (speeds / self.family.scale("goal_speed")).tolist()
        most = self.family.register("goal_speed").limits[1]
        return [min(max(1, round(one)), most) if math.isfinite(one) else 0 for one in counts]

    def steps(self, angle_rad: FloatArray, near_steps: FloatArray | None = None) -> NDArray[np.int64]:
        """Return servo positions (J,) [steps] for joint angles (J,) [rad].

        Args:
            near_steps: (J,) present positions: of all positions that mean the angle, the nearest is returned, so that a
                servo in multi-turn mode does not unwind. None: in [0, steps_per_turn).
        """
        wanted = self.zero_steps + np.rint(self.direction * np.asarray(angle_rad) / self.rad_per_step)
        if near_steps is None:
            return np.mod(wanted, self.steps_per_turn).astype(np.int64)
        turns = np.rint((np.asarray(near_steps, dtype=np.float64) - wanted) / self.steps_per_turn)
        return (wanted + turns * self.steps_per_turn).astype(np.int64)

    def within(self, limit_rad: float) -> Calibration:
        """Return this calibration with ranges no wider than +-``limit_rad`` [rad]."""
        joints = tuple(
            replace(joint, low_rad=max(joint.low_rad, -limit_rad), high_rad=min(joint.high_rad, limit_rad))
            for joint in self.joints
        )
        return replace(self, joints=joints)

    def save(self, path: str | Path) -> None:
        """Write the file, atomically."""
        write_atomic(path, json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n")


def straight_chain(ids: Sequence[int], limit_rad: float, model: str = "STS3215") -> Calibration:
    """Return a first guess of a calibration: zeros in mid-range, and all joints turning the same way."""
    family, _ = family_of_model(model)
    joints = tuple(JointCalibration(int(one), 1, family.middle, -limit_rad, limit_rad) for one in ids)
    return Calibration(joints, model, family.steps_per_turn)


def load_calibration(path: str | Path) -> Calibration:
    """Read a file that ``save`` wrote. Raises ConfigError that names the fault."""
    try:
        content: Any = json.loads(read_file(path))
    except FileNotFoundError:
        guess = near_path(path)
        advice = f"did you mean {str(guess)!r}?" if guess else "make it: python -m snake_gym.hardware calibrate"
        raise ConfigError(f"calibration {path} does not exist; {advice}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"calibration {path} cannot be read: {error}; expected the JSON that calibrate writes"
        ) from None
    number = content.pop("format", None) if isinstance(content, dict) else None
    if number != FORMAT:
        raise ConfigError(f"calibration {path} is in format {show(number)}; expected {FORMAT}: {_AGAIN}")
    calibration = build(Calibration, content, f"calibration {path}")
    unknown = [str(joint.servo_id) for joint in calibration.joints if joint.held is None]
    if unknown:
        raise ConfigError(f"calibration {path} does not say what servos {', '.join(unknown)} held; {_AGAIN}")
    return calibration
