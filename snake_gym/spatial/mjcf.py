"""Model files of robots for MuJoCo (MJCF), written from their specification.

Spatial robots are free bodies in gravity on a ground. All contacts have one law, dry friction in elliptic cones with
MuJoCo's shortest time constant: its friction opposes the slip half of that later; by default, 20 ms, it goes astray.
Planar robots slide in the plane, velocity actuators at their links' middles for viscous ground friction.

Servos of spatial robots have the torque-speed line of a DC motor that planar ones may have (``physics.imperfections``):
in the direction of motion at most ``limit (1 - |rate| / speed limit)``, against it ``limit``; beyond the speed limit
the motor brakes. MuJoCo knows constant limits only, so the line is the sum of two actuators, each joint's sum held
within its limit: with b = limit / speed limit (0 without a limit) the servo gives ``kp error - (kd - b) rate`` within
its limit, and the back electromotive force ``-b rate``. Within the line b cancels, and the law is that of the gains.
"""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.robot.recorded_body import Ground
from snake_gym.robot.spec import RobotSpec
from snake_gym.spatial.bodies import ALONG, AnyRobot, Body, Shape, list_bodies, sensor_frames
from snake_gym.spatial.ground import GroundSpec, make_ground
from snake_gym.spatial.spec import SpatialSpec

Element = ElementTree.Element
ROBOT_BIT, GROUND_BIT = "1", "2"
"""Contact bits: the robot's shapes meet the ground's and not each other."""
LONGEST_PLANAR_STEP_S = 0.25e-3
"""Physics step at which MuJoCo is stable with planar robots' stiff servos."""
CAMERA_FOV_DEG = 60.0
"""Vertical field of view of the head's cameras; our choice."""
CONTACT_STEPS = 2.0
"""Time constant of contacts and their friction, in physics steps."""


def write_mjcf(spec: AnyRobot, ground: GroundSpec | Ground | None = None, shade: bool = False) -> str:
    """Return the MJCF of a robot, a spatial one on ``ground`` (None: flat), as text.

    ``shade``: with lights, sky and colours for pictures. Raises ConfigError for a planar robot whose friction or
    actuators MuJoCo has no such law for.
    """
    root = ElementTree.Element("mujoco", model=spec.name)
    _add(root, "compiler", angle="radian", eulerseq="XYZ", autolimits="true", boundmass=0.0, boundinertia=0.0)
    world = ElementTree.Element("worldbody")
    actuators, sensors, assets = (ElementTree.Element(name) for name in ("actuator", "sensor", "asset"))
    is_spatial = spec.in_space
    _options(root, spec)
    if shade:
        _shade(root, assets, world)
    if isinstance(spec, SpatialSpec):
        contact = {"friction": (spec.friction, 0.0, 0.0), "solref": (CONTACT_STEPS * spec.step_s, 1.0)}
        _add(_add(root, "default"), "geom", condim=3, **contact)
        shapes = ground if isinstance(ground, Ground) else make_ground(ground or GroundSpec())
        _lay(shapes, assets, world, shade)
    made: dict[str, Element] = {}
    for body in list_bodies(spec):
        _hang(body, made, world, spec, shade)
    for name, frame in sensor_frames(spec).items():
        roll, pitch, yaw = frame.rpy_rad
        _add(made["head"], "site", name=name, pos=frame.xyz_m, quat=quaternion(roll, pitch, yaw), size=0.005)
        if name != "imu":  # MuJoCo's cameras look along their -z, y up
            turn = quaternion(roll + math.pi, pitch, yaw)
            _add(made["head"], "camera", name=name, pos=frame.xyz_m, quat=turn, fovy=CAMERA_FOV_DEG)
    motors = sorted((body.motor for body in list_bodies(spec) if body.motor), key=lambda motor: motor.number)
    for motor in motors:
        limits = {"forcerange": (-motor.torque, motor.torque)} if math.isfinite(motor.torque) else {}
        named = {"name": f"servo_{motor.number + 1}", "joint": f"joint_{motor.number + 1}"}
        if is_spatial:
            law = (0.0, *servo_bias(motor.kp, motor.kd, back_emf(motor.torque, motor.speed)))
            _add(actuators, "general", **named, gainprm=motor.kp, biastype="affine", biasprm=law, **limits)
            _add(sensors, "jointactuatorfrc", name=f"torque_{motor.number + 1}", joint=named["joint"])
        else:
            _add(actuators, "position", **named, kp=motor.kp, kv=motor.kd, **limits)
    for motor in motors if is_spatial else ():
        name, joint = f"back_emf_{motor.number + 1}", f"joint_{motor.number + 1}"
        _add(actuators, "velocity", name=name, joint=joint, kv=back_emf(motor.torque, motor.speed))
    if isinstance(spec, RobotSpec):
        _drag(spec, made, actuators)
    for part in (assets, world, actuators, sensors):
        if len(part):
            root.append(part)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def back_emf(torque_limit: float, speed_limit: float) -> float:
    """Return the slope [N m s/rad] of a servo's torque-speed line; 0 where there is no limit."""
    return torque_limit / speed_limit if math.isfinite(torque_limit) else 0.0


def servo_bias(kp: float, kd: float, slope: float) -> tuple[float, float]:
    """Return what MuJoCo's affine bias of a servo multiplies its angle and its rate by.

    Of equal gains on reference and angle, MuJoCo would take a positive second number for a damping ratio: they differ
    in the last bit.
    """
    return -kp * (1.0 + 2.0**-52), slope - kd


def quaternion(roll: float, pitch: float, yaw: float) -> tuple[float, float, float, float]:
    """Return the unit quaternion, scalar first, of ``Rz(yaw) Ry(pitch) Rx(roll)``."""
    (cr, sr), (cp, sp), (cy, sy) = ((math.cos(0.5 * a), math.sin(0.5 * a)) for a in (roll, pitch, yaw))
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


def _text(value: object) -> str:
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, tuple | list | np.ndarray):
        return " ".join(repr(float(number)) for number in value)
    return str(value)


def _add(parent: Element, tag: str, **attributes: object) -> Element:
    named = {name.rstrip("_"): _text(value) for name, value in attributes.items()}
    return ElementTree.SubElement(parent, tag, named)


def _options(root: Element, spec: AnyRobot) -> None:
    is_spatial = spec.in_space
    still = {} if is_spatial else {"gravity": (0.0, 0.0, 0.0)}
    step_s = spec.step_s if is_spatial else min(spec.step_s, LONGEST_PLANAR_STEP_S)
    solver = "CG" if isinstance(spec, SpatialSpec) and spec.solver == "cg" else "Newton"
    option = _add(
        root, "option", timestep=step_s, integrator="implicitfast", cone="elliptic", solver=solver,
        jacobian="sparse", iterations=30, ls_iterations=20, tolerance=1e-6, **still,
    )  # fmt: skip
    # grounds change between episodes: no tree of bounding boxes may be kept of them
    # and a state that is no longer finite shall say so, not begin anew
    flags = {"midphase": "disable", "autoreset": "disable"} if is_spatial else {"contact": "disable"}
    _add(option, "flag", **flags)


def _hang(body: Body, made: dict[str, Element], world: Element, spec: AnyRobot, shade: bool) -> None:
    parent = world if body.parent is None else made[body.parent]
    element = _add(parent, "body", name=body.name, pos=body.place, quat=quaternion(*body.turn))
    made[body.name] = element
    if body.parent is None and isinstance(spec, SpatialSpec):
        _add(element, "freejoint", name="base")
    elif body.parent is None:
        for name, kind, axis in (("x", "slide", "1 0 0"), ("y", "slide", "0 1 0"), ("turn", "hinge", "0 0 1")):
            _add(element, "joint", name=name, type=kind, axis=axis)
    elif body.motor is not None:
        motor = body.motor
        limits = {"range": (-motor.limit, motor.limit)} if math.isfinite(motor.limit) else {}
        if isinstance(spec, SpatialSpec) and math.isfinite(motor.torque):
            limits["actuatorfrcrange"] = (-motor.torque, motor.torque)
        _add(
            element, "joint", name=f"joint_{motor.number + 1}", type="hinge", axis="0 0 1", damping=motor.damping,
            frictionloss=motor.friction, armature=motor.armature, **limits,
        )  # fmt: skip
    elif body.axle_damping is not None:
        _add(element, "joint", name=f"{body.name}_axle", type="hinge", axis="0 1 0", damping=body.axle_damping)
    _add(element, "inertial", pos=body.com, mass=body.mass, diaginertia=body.inertia)
    if body.shape is not None:
        _draw(element, body.shape, spec, shade, body)


def _draw(element: Element, shape: Shape, spec: AnyRobot, shade: bool, body: Body) -> None:
    attributes: dict[str, object] = {"pos": shape.middle, "contype": ROBOT_BIT, "conaffinity": GROUND_BIT}
    if shade:
        dark = body.motor is not None and body.motor.number % 2 == 0
        rgba = (0.16, 0.16, 0.18, 1.0) if shape.kind == "wheel" else (0.93, 0.55, 0.2, 1.0)
        attributes["rgba"] = rgba if body.motor or shape.kind == "wheel" else (0.75, 0.16, 0.2, 1.0)
        if dark:
            attributes["rgba"] = (0.2, 0.35, 0.55, 1.0)
    if shape.kind == "box":
        size = tuple(0.5 * side for side in shape.box_sides())
        _add(element, "geom", type="box", size=size, **attributes)
        return
    quat = quaternion(*ALONG[shape.axis])
    if shape.kind == "wheel":
        radii = (shape.radius, shape.radius, 0.5 * shape.length)
        _add(element, "geom", type="ellipsoid", size=radii, quat=quat, **attributes)
    else:
        _add(element, "geom", type=shape.kind, size=(shape.radius, 0.5 * shape.length), quat=quat, **attributes)


def _drag(spec: RobotSpec, made: dict[str, Element], actuators: Element) -> None:
    """Add the viscous friction of a planar robot's links on the ground. Raises ConfigError for what has no such law."""
    if spec.actuator.kind not in ("position", "torque"):
        raise ConfigError(f"robot {spec.name} has actuators of kind {spec.actuator.kind}; expected position or torque")
    left_out = [*spec.actuator.imperfections, *(["delay_s"] if spec.actuator.delay_s > 0.0 else [])]
    if left_out:
        raise ConfigError(
            f"robot {spec.name} has actuator.{left_out[0]}, which the model file has no law for; expected servos "
            f"without {', '.join(left_out)}"
        )
    if spec.has_coulomb_friction or spec.has_one_way_friction:
        raise ConfigError(
            f"robot {spec.name} has Coulomb or one-way friction along its links, which MuJoCo has no law for; expected "
            "viscous friction alone (friction.*_coulomb 0, friction.backward 1)"
        )
    along, across = spec.links("friction.tangential_ns_m"), spec.links("friction.normal_ns_m")
    turning, half = spec.links("friction.rotational_nms_rad"), spec.links("link_half_length_m")
    for i in range(spec.n_links):
        is_head = i == spec.n_links - 1
        place = (0.0, -float(half[i]), 0.0) if is_head else (float(half[i]), 0.0, 0.0)
        _add(made["head" if is_head else f"link_{i + 1}"], "site", name=f"ground_{i + 1}", pos=place, size=0.005)
        ways = {"along": (along[i], "0 1 0 0 0 0" if is_head else "1 0 0 0 0 0")}
        ways["across"] = (across[i], "1 0 0 0 0 0" if is_head else "0 1 0 0 0 0")
        ways["turning"] = (turning[i], "0 0 0 0 0 1")
        for way, (rate, gear) in ways.items():
            if rate > 0.0:
                _add(actuators, "velocity", name=f"{way}_{i + 1}", site=f"ground_{i + 1}", gear=gear, kv=float(rate))


def _lay(ground: Ground, assets: Element, world: Element, shade: bool) -> None:
    """Add the ground's shapes."""
    attributes: dict[str, object] = {"contype": GROUND_BIT, "conaffinity": ROBOT_BIT}
    colour: dict[str, object] = {"rgba": (0.55, 0.62, 0.5, 1.0)} if shade else {}
    if ground.heights_m is None:
        look: dict[str, object] = {"material": "floor"} if shade else {}
        _add(world, "geom", name="ground", type="plane", size="50 50 1", **attributes, **look)
    else:
        heights = ground.heights_m
        low, high = ground.span_m or (float(heights.min()), float(heights.max()))
        rise = max(high - low, 1e-3)
        rows, columns = heights.shape
        _add(
            assets, "hfield", name="heights", nrow=rows, ncol=columns,
            size=(0.5 * ground.size_m[0], 0.5 * ground.size_m[1], rise, 0.5),
            elevation=((heights - low) / rise).ravel(),
        )  # fmt: skip
        _add(
            world, "geom", name="ground", type="hfield", hfield="heights", pos=(*ground.middle_m, low),
            **attributes, **colour,
        )  # fmt: skip
    stone: dict[str, object] = {"rgba": (0.5, 0.48, 0.46, 1.0)} if shade else {}
    for i, pole in enumerate(ground.poles):
        _add(
            world, "geom", name=f"pole_{i + 1}", type="capsule", pos=pole.middle, size=(pole.radius, pole.half_length),
            **attributes, **stone,
        )  # fmt: skip


def _shade(root: Element, assets: Element, world: Element) -> None:
    visual = _add(root, "visual")
    _add(visual, "global", offwidth=1280, offheight=720)
    _add(visual, "map", znear=2e-4)  # of the ground's size: cameras on the head are near it
    _add(visual, "quality", shadowsize=2048)
    _add(assets, "texture", type="skybox", builtin="gradient", rgb1="0.85 0.9 1", rgb2="1 1 1", width=64, height=384)
    _add(
        assets, "texture", name="tiles", type="2d", builtin="checker", rgb1="0.86 0.86 0.84", rgb2="0.78 0.78 0.76",
        width=256, height=256,
    )  # fmt: skip
    _add(assets, "material", name="floor", texture="tiles", texrepeat="100 100", reflectance="0.05")
    _add(world, "light", pos="0 0 6", dir="0.2 0.1 -1", directional="true", diffuse="0.7 0.7 0.7")
