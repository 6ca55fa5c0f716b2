"""Table of the quantities that vary from episode to episode: their ranges, and what they change in the true robots.

Body: a link's inertia follows its mass and the square of its length. A payload sits at the middle of one link, each
with the same chance. Ground: friction is scaled, viscous and Coulomb alike; a slope, downhill in any direction, adds to
that of the robot's settings. Supply: its voltage scales torque limits, speed limits and no-load speeds, as of a DC
motor; its resistance stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic_core import core_schema

from snake_gym.config import Settings
from snake_gym.robot.spec import GRAVITY_M_S2, FloatArray
from snake_gym.simulation.fault_kinds import Law

STEEPEST_RAD = math.pi / 4.0
"""Steepest slope of the ground, that of the robot's settings included."""
Write = Callable[[Any, FloatArray, FloatArray], None]
"""Function that changes parameters (M, ...) in place by drawn values (M, n) and by numbers (M, k) on their place."""


class Range(Settings):
    """Range {low, high} of a quantity, which is drawn uniformly from it; an end left out is the nominal value."""

    low: float
    """Lowest value."""
    high: float
    """Highest value."""


@dataclass(frozen=True)
class Quantity:
    """A quantity that varies."""

    name: str
    unit: str
    meaning: str
    write: Write | None = None
    """What it does to a robot's parameters; None: sensors, commands or the ground read it by name."""
    lowest: float = 0.0
    """Least value that ``low`` may have."""
    highest: float = 1e3
    """Greatest value that ``high`` may have."""
    nominal: float = 0.0
    """Value that changes nothing."""
    per: Literal["link", "joint"] | int = 1
    """Values of a world: one for each link or joint, or their number."""
    places: int = 0
    """Numbers in [0, 1) that it needs too: direction, phases, or which link."""
    paths: tuple[str, ...] = ()
    """Settings of the robot that it scales, one of which has to be more than 0."""
    limits: tuple[str, ...] = ()
    """Limits of the robot that it scales, one of which has to be finite."""
    partner: str = ""
    """Quantity without which it has no effect."""
    law: Law | None = None
    """Law of the physics that it needs."""

    def check(self, given: Range) -> Range:
        """Return the range. Raises ValueError for ends out of bounds or out of order."""
        for end, value in (("low", given.low), ("high", given.high)):
            if not self.lowest <= value <= self.highest:
                raise ValueError(f"{self.name}.{end} is {value:g}; expected in [{self.lowest:g}, {self.highest:g}]")
        if given.low > given.high:
            raise ValueError(f"{self.name}.low is {given.low:g}, high {given.high:g}; expected low <= high")
        return given

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        ends = {"low": self.nominal, "high": self.nominal}
        schema = core_schema.no_info_after_validator_function(self.check, handler(source))
        return core_schema.no_info_before_validator_function(
            lambda given: ends | dict(given) if isinstance(given, Mapping) else given, schema
        )

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        end = {"type": "number", "minimum": self.lowest, "maximum": self.highest, "default": self.nominal}
        return {"type": "object", "properties": {"low": end, "high": end}, "additionalProperties": False}


def scale(*names: str) -> Write:
    """Return a function that multiplies parameters by the values; those that a robot does not have are skipped."""

    def write(params: Any, values: FloatArray, place: FloatArray) -> None:
        for name in names:
            if (array := getattr(params, name, None)) is not None:
                array *= values if array.ndim > 1 else values[:, 0]

    return write


def add(name: str, factor: float = 1.0) -> Write:
    """Return a function that adds the values, times ``factor``, to a parameter."""

    def write(params: Any, values: FloatArray, place: FloatArray) -> None:
        array = getattr(params, name)
        array += factor * values

    return write


def scale_length(params: Any, values: FloatArray, place: FloatArray) -> None:
    """Scale links."""
    params.half_length[:] *= values
    params.inertia[:] *= values**2


def load_link(params: Any, values: FloatArray, place: FloatArray) -> None:
    """Put a payload at the middle of one link; both turn about their common centre."""
    payload, n_links = values[:, 0], params.mass.shape[1]
    at = np.arange(payload.size), np.minimum((place[:, 0] * n_links).astype(np.int64), n_links - 1)
    bare = params.mass[at]
    params.mass[at] += payload
    apart = params.ahead[at] * params.half_length[at]
    params.inertia[at] += bare * payload / (bare + payload) * apart**2
    params.ahead[at] *= bare / (bare + payload)


def incline(params: Any, values: FloatArray, place: FloatArray) -> None:
    """Incline the ground."""
    downhill = 2.0 * np.pi * place[:, 0]
    along = np.stack([np.cos(downhill), np.sin(downhill)], axis=1)
    params.body_acc[:] += GRAVITY_M_S2 * np.sin(values[:, 0])[:, None] * along


def scale_voltage(params: Any, values: FloatArray, place: FloatArray) -> None:
    """Scale what the motors can do; a lower voltage sags more, by Ohm's law."""
    scale("torque_limit", "speed_limit", "no_load_speed")(params, values, place)
    if hasattr(params, "sag_per_nm"):
        params.sag_per_nm[:] /= values


def _factor(name: str, of: str, write: Write, **more: Any) -> Quantity:
    return Quantity(name, "1", f"Factor of {of}", write, 0.01, 100.0, 1.0, **more)


def _delay(name: str, meaning: str) -> Quantity:
    return Quantity(name, "s", meaning, highest=1.0)


def _bias(name: str, unit: str, of: str, per: Literal["joint"] | int = 1) -> Quantity:
    return Quantity(name, unit, f"Constant error of {of}", lowest=-1e3, per=per)


_NOISE = "Standard deviation of white noise on"
_ALONG = ("friction.tangential_ns_m", "friction.tangential_coulomb")
_ACROSS = ("friction.normal_ns_m", "friction.normal_coulomb")
_TURNING = ("friction.rotational_nms_rad", "friction.rotational_coulomb_nm")
_TORQUE, _SPEED = "actuator.torque_limit_nm", "actuator.speed_limit_rad_s"
_ROWS = (
    _factor(
        "friction_along", "ground friction along the links, of spatial robots in all directions; one for the world",
        scale("c_t", "coulomb_t", "contact_friction"), paths=_ALONG,
    ),
    _factor("friction_across", "ground friction across the links; one for the world", scale("c_n", "coulomb_n"),
            paths=_ACROSS),
    _factor("friction_turning", "ground friction against rotation; one for the world", scale("c_r", "coulomb_r"),
            paths=_TURNING),
    Quantity("patches", "1", "Largest change of friction from place to place, as a share", highest=0.999, places=3,
             paths=(*_ALONG, *_ACROSS, *_TURNING)),
    Quantity("slope_rad", "rad", "Slope of the ground, downhill in any direction", incline, highest=STEEPEST_RAD,
             places=1),
    _factor("mass", "each link's mass", scale("mass", "inertia"), per="link"),
    _factor("link_length", "each link's length", scale_length, per="link"),
    Quantity("payload_kg", "kg", "Payload on one link", load_link, places=1),
    _factor("servo_gain", "each joint's kp", scale("kp"), per="joint", paths=("actuator.kp",)),
    _factor("servo_damping", "each joint's kd", scale("kd"), per="joint", paths=("actuator.kd",)),
    _factor("torque_limit", "each joint's torque limit", scale("torque_limit"), per="joint", limits=(_TORQUE,)),
    _factor("speed_limit", "each joint's speed limit", scale("speed_limit"), per="joint", limits=(_SPEED,)),
    _factor(
        "supply_voltage", "the supply's voltage, and so of torque and speed limits and no-load speeds", scale_voltage,
        limits=(_TORQUE, _SPEED),
    ),
    Quantity("backlash_rad", "rad", "More backlash of each joint", add("play", 0.5), per="joint", law="imperfect"),
    Quantity("joint_friction_nm", "N m", "More dry friction of each joint", add("joint_friction"), per="joint",
             law="joint_friction"),
    _delay("command_delay_s", "More delay of the commands"),
    _delay("command_jitter_s", "Largest further delay of the commands, drawn anew for each"),
    _delay("encoder_delay_s", "Delay of joint angles and rates"),
    _delay("encoder_jitter_s", "Largest further delay of joint angles and rates, drawn anew in each control step"),
    _delay("pose_delay_s", "Delay of the head's pose"),
    _delay("pose_jitter_s", "Largest further delay of the head's pose, drawn anew in each control step"),
    Quantity("angle_noise_rad", "rad", f"{_NOISE} joint angles"),
    Quantity("rate_noise_rad_s", "rad/s", f"{_NOISE} joint rates"),
    Quantity("position_noise_m", "m", f"{_NOISE} the head's position"),
    Quantity("heading_noise_rad", "rad", f"{_NOISE} the head's angle"),
    _bias("angle_bias_rad", "rad", "each joint angle, as of a horn on the wrong tooth or a poor calibration", "joint"),
    _bias("position_bias_m", "m", "the head's position along x and along y", 2),
    _bias("heading_bias_rad", "rad", "the head's angle, as of a tag glued on askew"),
    Quantity("pose_loss_hz", "1/s", "How often the pose source loses the robot", partner="pose_outage_s"),
    Quantity("pose_outage_s", "s", "How long it has lost it each time", partner="pose_loss_hz"),
    Quantity("push_hz", "1/s", "How often the robot is pushed", partner="push_m_s"),
    Quantity("push_m_s", "m/s", "Change of speed that a push gives", partner="push_hz"),
    _factor("friction_backward", "ground friction along links that move tail first, as of scales; one for the world",
            scale("backward"), paths=_ALONG, law="one_way"),
    Quantity("mass_ahead", "1", "Distance of each link's centre of mass ahead of its middle, as a share of half its "
             "length", add("ahead"), -0.9, 0.9, per="link"),
)  # fmt: skip
QUANTITIES: dict[str, Quantity] = {quantity.name: quantity for quantity in _ROWS}
"""All quantities by name, in the order of their draws."""
