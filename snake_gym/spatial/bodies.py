"""Robots as trees of rigid bodies: what a model file says of a spatial or planar chain, whatever its format.

The root is the head's base frame B; every other body hangs on an earlier one by a joint about its own z axis (wheels:
about its y axis), or is fixed to it. Units: m, kg, rad.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from snake_gym.robot.spec import RobotSpec
from snake_gym.spatial.spec import FrameSpec, SpatialSpec, Triple

AnyRobot = RobotSpec | SpatialSpec
ORIGIN: Triple = (0.0, 0.0, 0.0)
ALONG: dict[str, Triple] = {"x": (0.0, 0.5 * math.pi, 0.0), "y": (-0.5 * math.pi, 0.0, 0.0)}
"""Turn of a shape whose axis is its z onto an axis of its body."""
ShapeKind = Literal["capsule", "cylinder", "box", "wheel"]


class Shape(NamedTuple):
    """Shape for contacts and pictures, in the frame of its body."""

    kind: ShapeKind
    length: float
    """Along its own axis, without half spheres."""
    radius: float
    """Of capsules, cylinders and wheels."""
    box: tuple[float, float]
    """Width and height of boxes."""
    middle: Triple
    axis: Literal["x", "y"]
    """Axis of the body's frame that the shape lies along (a wheel: its axle)."""
    upright: Literal["y", "z"] = "z"
    """Axis of the body's frame along which a box is high: in the frame of a pitch joint z is lateral."""

    def box_sides(self) -> Triple:
        """Return the sides of a box along the axes of the body's frame."""
        width, height = self.box
        if self.axis == "y":
            return width, self.length, height
        return (self.length, width, height) if self.upright == "z" else (self.length, height, width)


class Motor(NamedTuple):
    """Joint with a servo."""

    number: int
    """Number of the joint, from the tail, from 0."""
    limit: float
    """Mechanical stop to either side; inf: none."""
    damping: float
    friction: float
    armature: float
    kp: float
    kd: float
    torque: float
    """Torque limit; inf: none."""
    speed: float
    """Speed limit; inf: none."""


class Body(NamedTuple):
    """Rigid body with the joint that it hangs on."""

    name: str
    parent: str | None
    """Name of the body that it hangs on; None: the root."""
    place: Triple
    """Origin of its frame at joint angle 0, in the parent's frame."""
    turn: Triple
    """Roll, pitch and yaw of its frame at joint angle 0, in the parent's frame."""
    motor: Motor | None
    """Servo of its joint."""
    axle_damping: float | None
    """Viscous friction of a wheel's free axle; None: no wheel. Without motor and axle the body is fixed."""
    mass: float
    com: Triple
    inertia: Triple
    """Moments about the centre of mass, along the body's axes."""
    shape: Shape | None


def list_bodies(spec: AnyRobot) -> list[Body]:
    """Return the bodies of a robot, the head first, parents before what hangs on them."""
    return _spatial(spec) if isinstance(spec, SpatialSpec) else _planar(spec)


def sensor_frames(spec: AnyRobot) -> dict[str, FrameSpec]:
    """Return the frames fixed on the head by name: C_1 and C_2 of the cameras, I of the inertial sensor."""
    if not isinstance(spec, SpatialSpec):
        return {}
    return {"camera_left": spec.camera_left, "camera_right": spec.camera_right, "imu": spec.imu}


def _motor(spec: AnyRobot, i: int, damping: float, armature: float) -> Motor:
    """Return the servo of joint ``i`` from 0 at the tail."""
    gains = [f"actuator.{name}" for name in ("kp", "kd", "torque_limit_nm", "speed_limit_rad_s")]
    stop, friction, *servo = (float(spec.joints(name)[i]) for name in ("joint_stop_rad", "joint_friction_nm", *gains))
    return Motor(i, stop, damping, friction, armature, *servo)


def _spatial(spec: SpatialSpec) -> list[Body]:
    length, n = spec.link_length_m, spec.n_joints
    kind: ShapeKind = "box" if spec.section == "box" else "capsule" if spec.rounded else "cylinder"
    inset = spec.radius_m if kind == "capsule" else 0.0
    """Half spheres at the robot's two ends lie within its length."""

    def shape(begin: float, end: float, axis: Literal["x", "y"], upright: Literal["y", "z"] = "z") -> Shape:
        middle = 0.5 * (begin + end)
        where = (middle, 0.0, 0.0) if axis == "x" else (0.0, middle, 0.0)
        return Shape(kind, max(end - begin, 1e-6), spec.radius_m, spec.box_m, where, axis, upright)

    head = shape(-spec.head_length_m + min(inset, spec.head_length_m), 0.0, "y")
    bodies = [
        Body("head", None, ORIGIN, ORIGIN, None, None, spec.head_mass_kg, spec.head_com(), spec.head_inertia(), head)
    ]
    bodies += _wheels(spec, "head", (0.0, -spec.head_length_m, 0.0), along_y=False)
    for k, axis in enumerate(spec.axes_from_head()):
        i = n - 1 - k
        motor = _motor(spec, i, spec.joint_damping_nms_rad, spec.joint_armature_kgm2)
        roll = -0.5 * math.pi if axis == "pitch" else 0.5 * math.pi if k > 0 else 0.0
        turn = (roll, 0.0, 0.5 * math.pi if k == 0 else 0.0)
        place = (0.0 if k == 0 else length, 0.0, 0.0)
        end = length - (min(inset, length) if k == n - 1 else 0.0)
        name = f"link_{i + 1}"
        parent = "head" if k == 0 else f"link_{i + 2}"
        bodies.append(
            Body(name, parent, place, turn, motor, None, spec.link_mass_kg, spec.link_com(), spec.link_inertia(),
                 shape(0.0, end, "x", "y" if axis == "pitch" else "z"))
        )  # fmt: skip
        if axis == "yaw":
            bodies += _wheels(spec, name, (length, 0.0, 0.0), along_y=True)
    return bodies


def _wheels(spec: SpatialSpec, parent: str, place: Triple, along_y: bool) -> list[Body]:
    """Return the pair below ``place`` of a body whose z is up, its axle along y or x."""
    wheels = spec.wheels
    if not wheels.pairs:
        return []
    x, y, z = place
    brackets = 2.0 * wheels.bracket_mass_kg
    small = brackets * wheels.radius_m**2
    bracket = Body(
        f"{parent}_bracket", parent, (x, y, z - wheels.drop_m), ORIGIN, None, None, brackets, ORIGIN,
        (small, small, small), None,
    )  # fmt: skip
    across = wheels.mass_kg * (3.0 * wheels.radius_m**2 + wheels.width_m**2) / 12.0
    inertia = (across, 0.5 * wheels.mass_kg * wheels.radius_m**2, across)
    disc = Shape("wheel", wheels.width_m, wheels.radius_m, (0.0, 0.0), ORIGIN, "y")
    pair = []
    for side, sign in (("left", 1.0), ("right", -1.0)):
        reach = 0.5 * sign * wheels.track_m
        where = (x, y + reach, z - wheels.drop_m) if along_y else (x + reach, y, z - wheels.drop_m)
        turn = ORIGIN if along_y else (0.0, 0.0, 0.5 * math.pi)
        pair.append(
            Body(f"{parent}_wheel_{side}", parent, where, turn, None, wheels.axle_damping_nms_rad, wheels.mass_kg,
                 ORIGIN, inertia, disc)
        )  # fmt: skip
    return [bracket, *pair] if brackets > 0.0 else pair


def _planar(spec: RobotSpec) -> list[Body]:
    """Return a planar chain in the same frames, from the head: all joints turn about the vertical."""
    half, mass, inertia = spec.links("link_half_length_m"), spec.links("link_mass_kg"), spec.inertia()
    radius = spec.links("link_radius_m")
    bodies = []
    for i in reversed(range(spec.n_links)):
        is_head = i == spec.n_links - 1
        moment = float(inertia[i])
        thin = min(0.5 * float(mass[i] * radius[i] ** 2), moment)
        core = max(2.0 * float(half[i]) - 2.0 * float(radius[i]), 1e-6)
        middle = (0.0, -float(half[i]), 0.0) if is_head else (float(half[i]), 0.0, 0.0)
        shape = Shape("capsule", core, float(radius[i]), (0.0, 0.0), middle, "y" if is_head else "x")
        motor = None if is_head else _motor(spec, i, 0.0, 0.0)
        first = i == spec.n_links - 2
        place = ORIGIN if is_head or first else (2.0 * float(half[i + 1]), 0.0, 0.0)
        bodies.append(
            Body("head" if is_head else f"link_{i + 1}", None if is_head else "head" if first else f"link_{i + 2}",
                 place, (0.0, 0.0, 0.5 * math.pi if first else 0.0), motor, None, float(mass[i]), middle,
                 (moment, thin, moment) if is_head else (thin, moment, moment), shape)
        )  # fmt: skip
    return bodies
