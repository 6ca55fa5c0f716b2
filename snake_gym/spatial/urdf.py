"""Model files of robots for ROS and its relatives (URDF), written from their specification.

Frames are those of ``spatial.spec``. URDF has no half spheres, gains or ground: capsules become cylinders, and
what is not said there (gains of the servos, dry friction of the ground) is not in the file.
"""

from __future__ import annotations

import math
from xml.etree import ElementTree

from snake_gym.spatial.bodies import ALONG, AnyRobot, Body, Shape, list_bodies, sensor_frames

UNLIMITED = 1e3
"""Torque [N m] and speed [rad/s] that stand for no limit, which URDF has no word for."""


def write_urdf(spec: AnyRobot) -> str:
    """Return the URDF of a robot as text; its root link is the head."""
    root = ElementTree.Element("robot", name=spec.name)
    for body in list_bodies(spec):
        _link(root, body)
        if body.parent is not None:
            _joint(root, body)
    for name, frame in sensor_frames(spec).items():
        ElementTree.SubElement(root, "link", name=name)
        joint = ElementTree.SubElement(root, "joint", name=f"{name}_mount", type="fixed")
        _pair(joint, "head", name)
        ElementTree.SubElement(joint, "origin", xyz=_text(frame.xyz_m), rpy=_text(frame.rpy_rad))
    ElementTree.indent(root)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _text(numbers: tuple[float, ...]) -> str:
    return " ".join(repr(float(number)) for number in numbers)


def _pair(joint: ElementTree.Element, parent: str, child: str) -> None:
    ElementTree.SubElement(joint, "parent", link=parent)
    ElementTree.SubElement(joint, "child", link=child)


def _link(root: ElementTree.Element, body: Body) -> None:
    link = ElementTree.SubElement(root, "link", name=body.name)
    inertial = ElementTree.SubElement(link, "inertial")
    ElementTree.SubElement(inertial, "origin", xyz=_text(body.com), rpy="0 0 0")
    ElementTree.SubElement(inertial, "mass", value=repr(float(body.mass)))
    ixx, iyy, izz = (repr(float(moment)) for moment in body.inertia)
    ElementTree.SubElement(inertial, "inertia", ixx=ixx, ixy="0", ixz="0", iyy=iyy, iyz="0", izz=izz)
    if body.shape is not None:
        for part in ("visual", "collision"):
            _shape(ElementTree.SubElement(link, part), body.shape)


def _shape(part: ElementTree.Element, shape: Shape) -> None:
    turn = (0.0, 0.0, 0.0) if shape.kind == "box" else ALONG[shape.axis]
    ElementTree.SubElement(part, "origin", xyz=_text(shape.middle), rpy=_text(turn))
    geometry = ElementTree.SubElement(part, "geometry")
    if shape.kind == "box":
        ElementTree.SubElement(geometry, "box", size=_text(shape.box_sides()))
    else:
        ElementTree.SubElement(geometry, "cylinder", radius=repr(shape.radius), length=repr(float(shape.length)))


def _joint(root: ElementTree.Element, body: Body) -> None:
    assert body.parent is not None
    motor = body.motor
    kind = "continuous" if body.axle_damping is not None else "fixed"
    if motor is not None:
        kind = "revolute" if math.isfinite(motor.limit) else "continuous"
    name = f"{body.name}_mount" if motor is None else f"joint_{motor.number + 1}"
    joint = ElementTree.SubElement(root, "joint", name=name, type=kind)
    _pair(joint, body.parent, body.name)
    ElementTree.SubElement(joint, "origin", xyz=_text(body.place), rpy=_text(body.turn))
    if motor is None:
        if body.axle_damping is not None:
            ElementTree.SubElement(joint, "axis", xyz="0 1 0")
            ElementTree.SubElement(joint, "dynamics", damping=repr(body.axle_damping), friction="0")
        return
    ElementTree.SubElement(joint, "axis", xyz="0 0 1")
    ElementTree.SubElement(joint, "dynamics", damping=repr(motor.damping), friction=repr(motor.friction))
    limits = {"effort": _bounded(motor.torque), "velocity": _bounded(motor.speed)}
    if kind == "revolute":
        limits |= {"lower": repr(-motor.limit), "upper": repr(motor.limit)}
    ElementTree.SubElement(joint, "limit", limits)


def _bounded(limit: float) -> str:
    return repr(min(float(limit), UNLIMITED))
