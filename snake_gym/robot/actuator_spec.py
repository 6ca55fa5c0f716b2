"""Actuators of joints as plain frozen data: control law, limits, imperfections, and pairs of muscles.

Sign: ``phi_i = theta_i - theta_{i+1}``, link 1 the tail; seen towards the head, a positive joint angle bends the robot
to the right.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config.settings import Limit, NonNegative, Positive, Settings

PositivePerJoint = Positive | tuple[Positive, ...]
NonNegativePerJoint = NonNegative | tuple[NonNegative, ...]
LimitPerJoint = Limit | tuple[Limit, ...]
ActuatorKind = Literal["acceleration", "torque", "position", "muscle"]
STEEPEST_BRAID_RAD = math.acos(1.0 / math.sqrt(3.0))
"""Braid angle (54.7 degrees) at which a muscle no longer contracts."""


class MuscleSpec(Settings):
    """Antagonistic pair of pneumatic (McKibben) muscles, one on each side of the joint.

    Geometry (haghshenas2022, eq. 1-9): each muscle spans from ``half_width_m`` beside the axis of one link,
    ``attachment_m`` before the joint, to the same point of the next link behind it. Static force (Chou, Hannaford,
    Measurement and modeling of McKibben pneumatic artificial muscles, IEEE Trans. Robotics and Automation 12(1), 1996;
    in this form Tondu, Lopez, IEEE Control Systems 20(2), 2000)::

        F = p pi r^2 (a (1 - eps)^2 - b),  a = 3 / tan^2 alpha,  b = 1 / sin^2 alpha,  eps = 1 - length / rest_length

    with r and alpha the radius and braid angle at rest. It vanishes at ``eps = 1 - 1 / (sqrt(3) cos alpha)``; a muscle
    never pushes. The thread of the braid is straight at ``rest_length / cos alpha``: no muscle gets longer than that.
    """

    attachment_m: Positive = 0.05
    """Distance h_2 from the joint to the muscle's ends, along the link."""
    half_width_m: Positive = 0.025
    """Distance w from the link's axis to the muscle's ends."""
    rest_length_m: Positive = 0.1
    """Length without pressure and load."""
    radius_m: Positive = 0.005
    """Radius of the muscle at rest."""
    braid_angle_rad: Annotated[float, Field(ge=1e-3, lt=STEEPEST_BRAID_RAD)] = math.radians(38.0)
    """Angle between the braid's threads and the muscle's axis at rest."""
    max_pressure_pa: Positive = 3.0e5
    """Gauge pressure of the supply."""
    base_pressure_pa: NonNegative = 5.0e4
    """Gauge pressure of both muscles without a torque request (co-contraction); it sets the joint's stiffness."""
    pressure_lag_s: NonNegative = 0.05
    """Time constant of the valves' first-order lag from command to pressure; 0: no lag."""
    damping_nms_rad: NonNegative = 0.0
    """Viscous friction of the braids and bladders, felt at the joint."""

    def check(self) -> None:
        """Raise ValueError if the co-contraction asks for more than the supply gives."""
        if self.base_pressure_pa > self.max_pressure_pa:
            raise ValueError(
                f"base_pressure_pa is {self.base_pressure_pa:g}; expected at most max_pressure_pa, "
                f"{self.max_pressure_pa:g}"
            )

    @property
    def force_coefficients(self) -> tuple[float, float]:
        """Coefficients (a, b) of the force law [1]."""
        return 3.0 / math.tan(self.braid_angle_rad) ** 2, 1.0 / math.sin(self.braid_angle_rad) ** 2

    @property
    def most_tension_n(self) -> float:
        """Force at the length at rest and the supply's pressure."""
        a, b = self.force_coefficients
        return self.max_pressure_pa * math.pi * self.radius_m**2 * (a - b)

    @property
    def shortest_m(self) -> float:
        """Length at which the force vanishes: no muscle contracts further by itself."""
        return self.rest_length_m / (math.sqrt(3.0) * math.cos(self.braid_angle_rad))

    @property
    def longest_m(self) -> float:
        """Length at which the braid's threads are straight."""
        return self.rest_length_m / math.cos(self.braid_angle_rad)

    def check_range(self, stop_rad: float) -> None:
        """Raise ValueError unless both muscles keep their lengths and levers up to the joint stop ``stop_rad``."""
        centre = 2.0 * math.atan2(self.half_width_m, self.attachment_m)
        if not stop_rad < centre:
            raise ValueError(
                f"joint_stop_rad is {stop_rad:g}; expected below {centre:.4g}, where a muscle loses its lever"
            )
        along = self.attachment_m * math.cos(0.5 * stop_rad)
        across = self.half_width_m * math.sin(0.5 * stop_rad)
        ends = ((2.0 * (along - across), self.shortest_m, -1), (2.0 * (along + across), self.longest_m, 1))
        for length, limit, sign in ends:
            if sign * (length - limit) > 0.0:
                raise ValueError(
                    f"joint_stop_rad is {stop_rad:g}: a muscle is {length:.4g} m long there; expected "
                    f"{self.shortest_m:.4g} to {self.longest_m:.4g} m (rest_length_m, braid_angle_rad)"
                )


class ActuatorSpec(Settings):
    """Law from joint command to motion: ``u = feedforward + kp (phi_ref - phi) - kd phi_dot``.

    ``acceleration``: u is the joint acceleration itself (feedback-linearised robot; kp [1/s^2], kd [1/s]).
    ``torque``, ``position``: u is the joint torque (kp [N m/rad], kd [N m s/rad]), clamped to ``torque_limit_nm``; the
    rate that the loop demands, ``kp/kd (phi_ref - phi)``, is clamped to ``speed_limit_rad_s``. The speed limit does not
    act on ``feedforward``, a commanded torque. References of ``position`` may be late (``delay_s``).
    ``muscle``: u is the torque asked of a pair of muscles (see ``MuscleSpec``), which follow as far as pressures allow.

    The imperfections below the limits apply to ``position`` and ``torque`` joints; each is off by default.
    """

    kind: ActuatorKind = "position"
    """acceleration: joints accelerate as commanded; torque: a PD law commands the torque; position: a servo follows its
    reference; muscle: pairs of pneumatic muscles."""
    kp: NonNegativePerJoint = 1.0
    """Gain of the joint's angle error."""
    kd: NonNegativePerJoint = 1.0
    """Gain of the joint's rate error."""
    torque_limit_nm: LimitPerJoint = math.inf
    """Largest torque of the actuator; inf: no limit."""
    speed_limit_rad_s: LimitPerJoint = math.inf
    """Largest rate that the servo's loop demands; inf: no limit."""
    dead_band_rad: NonNegativePerJoint = 0.0
    """Largest error to which the loop does not react but brakes only; a larger error counts from there."""
    delay_s: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0
    """Delay of the references of ``position`` joints: host, bus and the servo's own loop."""
    backlash_rad: NonNegativePerJoint = 0.0
    """Play of the gears from one flank to the other: no torque passes within it; a flank only pushes."""
    no_load_speed_rad_s: LimitPerJoint = math.inf
    """Speed at which the torque limit has fallen linearly to 0 (line of a DC motor); inf: it does not fall."""
    supply_voltage_v: Positive = 12.0
    """Open-circuit voltage of the supply that all joints share."""
    supply_resistance_ohm: NonNegative = 0.0
    """Resistance of the supply and its wires: current lowers the voltage, and with it torque and speed limits."""
    torque_constant_nm_a: PositivePerJoint = 1.0
    """Joint torque per ampere drawn from the supply."""
    muscle: MuscleSpec = field(default_factory=MuscleSpec)
    """Muscles of ``kind: muscle``."""

    @property
    def imperfections(self) -> tuple[str, ...]:
        """Names of the imperfections that are on."""
        on = {
            "dead_band_rad": np.max(self.dead_band_rad) > 0.0,
            "backlash_rad": np.max(self.backlash_rad) > 0.0,
            "no_load_speed_rad_s": np.min(self.no_load_speed_rad_s) < math.inf,
            "supply_resistance_ohm": self.supply_resistance_ohm > 0.0,
        }
        return tuple(name for name, is_on in on.items() if is_on)


def check_actuator(actuator: ActuatorSpec, joints: Callable[[str], NDArray[np.float64]], joint_stop: Any) -> None:
    """Raise ValueError unless the settings of ``actuator`` go together.

    Args:
        joints: gives a per-joint setting by its name as an array (J,).
        joint_stop: (J,) [rad].
    """
    if actuator.kind in ("position", "torque"):
        slow = np.isfinite(joints("speed_limit_rad_s")) & (joints("kd") <= 0)
        if slow.any():
            raise ValueError(f"robot.actuator.kd is 0; a {actuator.kind} servo with a speed limit needs kd > 0")
    if actuator.delay_s > 0.0 and actuator.kind != "position":
        raise ValueError(
            f"robot.actuator.delay_s is set, but robot.actuator.kind is {actuator.kind!r}; expected 'position', or 0"
        )
    _check_imperfections(actuator, joints)
    unlimited = {
        "muscle": "muscles are limited by muscle.max_pressure_pa and slowed by muscle.pressure_lag_s",
        "acceleration": "its acceleration is what is commanded, whatever torque that takes",
    }
    for name in ("torque_limit_nm", "speed_limit_rad_s"):
        if actuator.kind in unlimited and np.isfinite(joints(name)).any():
            raise ValueError(
                f"robot.actuator.{name} is set, but robot.actuator.kind is {actuator.kind!r}; expected .inf "
                f"({unlimited[actuator.kind]})"
            )
    if actuator.kind == "muscle":
        try:
            actuator.muscle.check_range(float(np.max(joint_stop)))
        except ValueError as error:
            raise ValueError(f"robot.{error}") from None


def _check_imperfections(actuator: ActuatorSpec, joints: Callable[[str], NDArray[np.float64]]) -> None:
    if actuator.kind not in ("position", "torque") and actuator.imperfections:
        raise ValueError(
            f"robot.actuator.{actuator.imperfections[0]} is set, but robot.actuator.kind is {actuator.kind!r}; "
            "expected 'position' or 'torque', or no such setting"
        )
    needs_limit = [name for name in ("no_load_speed_rad_s", "supply_resistance_ohm") if name in actuator.imperfections]
    if needs_limit and not np.isfinite(joints("torque_limit_nm")).all():
        raise ValueError(f"robot.actuator.torque_limit_nm is inf; {needs_limit[0]} scales it: expected finite")
