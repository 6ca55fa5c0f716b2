"""Spatial chains as plain frozen data: a head and links on joints that turn about the vertical and the lateral in turn.

Frames (liu2024, section 2; published models of SnakeSys). Base B at the head's rear joint: z up, the head extends along
-y, so that -y is ahead. Frame J_1 of the link behind the first joint: ``Rz(pi/2 + phi_1)`` in B, x towards the tail.
Each further frame stands ``link_length_m`` along x of the one before, turned about x by -pi/2 (into a pitch joint) or
+pi/2 (into a yaw joint), then about its own z by the joint angle (Denavit-Hartenberg parameters of Craig, Table 1).

Joints are counted from the tail here, as everywhere in this project; the paper counts from the head. A positive yaw
angle bends the robot to its right, a positive pitch angle turns what is behind the joint down.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from snake_gym.config import ConfigError, Settings, require
from snake_gym.config.settings import Limit, NonNegative, Positive
from snake_gym.robot.actuator_spec import ActuatorSpec, check_actuator
from snake_gym.robot.catalogue import load_any_robot
from snake_gym.robot.chain import Axis, ChainSpec, FloatArray
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import check_name

Triple = tuple[float, float, float]
PositiveTriple = tuple[Positive, Positive, Positive]
MAX_SPATIAL_JOINTS = 128
GAIT = {"kind": "multimodal", "mode": "SWL", "frequency_rad_s": 2.0}
"""Side winding, about three times as fast as published."""


class FrameSpec(Settings):
    """Frame fixed on the head, in the base frame B: cameras and inertial sensors."""

    xyz_m: Triple = (0.0, 0.0, 0.0)
    """Origin."""
    rpy_rad: Triple = (0.0, 0.0, 0.0)
    """Rotation ``Rz(yaw) Ry(pitch) Rx(roll)``, given as roll, pitch, yaw."""


class WheelSpec(Settings):
    """Pairs of passive wheels on axles below the head's tip and the rear ends of yaw links, for creeping."""

    pairs: bool = False
    """Whether the robot has them."""
    radius_m: Positive = 0.018
    """Radius of a wheel."""
    width_m: Positive = 0.005
    """Width of a wheel; it touches the ground as an ellipsoid of that width."""
    mass_kg: Positive = 0.0385
    """Mass of a wheel."""
    bracket_mass_kg: NonNegative = 0.0528
    """Mass of what holds a wheel."""
    track_m: Positive = 0.093
    """Distance between the wheels of a pair."""
    drop_m: Positive = 0.055
    """Distance of the axle below the link's axis."""
    axle_damping_nms_rad: NonNegative = 0.0
    """Viscous friction of a wheel on its axle."""


class SpatialSpec(ChainSpec):
    """Chain of a head and ``n_joints`` equal links, whose joints are yaw and pitch in turn."""

    in_space = True
    fault_kinds = ("locked", "free", "weak", "slow", "offset")
    default_controller: ClassVar[Mapping[str, Any]] = GAIT
    view = "snake_gym.spatial.frames:SpatialView"

    chain: Literal["spatial"] = "spatial"
    """What tells a spatial robot's file from a planar one's."""
    name: str = "spatial"
    """Name for results and messages."""
    source: str = "user defined"
    """Source of the numbers."""
    n_joints: Annotated[int, Field(ge=1, le=MAX_SPATIAL_JOINTS)] = 28
    """Number J of joints; there are J + 1 links, the head among them."""
    head_joint: Axis = "yaw"
    """Axis of the joint behind the head: yaw (vertical) or pitch (lateral); from there on they alternate."""
    link_length_m: Positive = 0.16
    """Distance between neighbouring joints."""
    head_length_m: Positive = 0.16
    """Length of the head ahead of its joint."""
    section: Literal["cylinder", "box"] = "cylinder"
    """Shape of links for contacts: cylinder (``radius_m``) or box (``box_m``)."""
    rounded: bool = True
    """Cylinders end in half spheres, the quickest shape; False: they are cut off."""
    radius_m: Positive = 0.055
    """Radius of cylinders."""
    box_m: tuple[Positive, Positive] = (0.11, 0.11)
    """Width and height of boxes."""
    link_mass_kg: Positive = 1.0
    """Mass of a link."""
    link_com_m: Triple | None = None
    """Centre of mass of a link in its joint's frame; None: its middle."""
    link_inertia_kgm2: PositiveTriple | None = None
    """Moments of inertia about it, along the axes of the joint's frame; None: those of a solid of this shape."""
    head_mass_kg: Positive = 1.0
    """Mass of the head."""
    head_com_m: Triple | None = None
    """Centre of mass of the head in the base frame; None: its middle."""
    head_inertia_kgm2: PositiveTriple | None = None
    """Moments of inertia about it, along the axes of the base frame; None: those of a solid of this shape."""
    wheels: WheelSpec = field(default_factory=WheelSpec)
    friction: NonNegative = 0.2
    """Coulomb coefficient between robot (links and wheels) and whatever it lies on."""
    camera_left: FrameSpec = field(default_factory=FrameSpec)
    camera_right: FrameSpec = field(default_factory=FrameSpec)
    imu: FrameSpec = field(default_factory=FrameSpec)
    actuator: ActuatorSpec = field(default_factory=lambda: ActuatorSpec(kp=50.0, kd=0.1))
    joint_limit_rad: Annotated[float, Field(gt=0.0, le=math.pi)] = math.radians(90.0)
    """Largest joint reference that a command may ask for."""
    joint_stop_rad: Limit = math.inf
    """Mechanical stop of the joints at plus and minus this angle; inf: none."""
    joint_damping_nms_rad: NonNegative = 0.1
    """Viscous friction of a joint, with power and without."""
    joint_friction_nm: NonNegative = 0.1
    """Dry friction of a joint, with power and without."""
    joint_armature_kgm2: NonNegative = 0.0
    """Inertia of a servo's rotor and gears, felt at the joint."""
    control_dt_s: Positive = 0.1
    """Control step: time from one command to the next."""
    sim_dt_s: Positive = 0.004
    """Physics step."""
    profile: Literal["ramp", "step"] = "ramp"
    """Way of a servo to a new reference: ramp: evenly until the end of the control step, or at its speed limit; step:
    at its speed limit."""
    solver: Literal["newton", "cg"] = "cg"
    """MuJoCo's solver of contacts: cg is the quicker one for long chains, newton the more exact one."""

    def check(self) -> None:
        """Raise ValueError for laws that the spatial physics does not have, and steps that do not fit."""
        check_name(self.name)
        actuator = self.actuator
        if actuator.kind != "position":
            raise ValueError(f"actuator.kind is {actuator.kind!r}; expected 'position' for a spatial robot")
        planar = ("delay_s", "supply_voltage_v", "torque_constant_nm_a", "muscle")
        changed = [name for name in planar if getattr(actuator, name) != getattr(ActuatorSpec(), name)]
        for name in (*actuator.imperfections, *changed):
            raise ValueError(f"actuator.{name} is set, which spatial physics does not have; expected the default")
        for name, inertia in (("link", self.link_inertia_kgm2), ("head", self.head_inertia_kgm2)):
            if inertia is not None and 2.0 * max(inertia) > sum(inertia):
                raise ValueError(
                    f"{name}_inertia_kgm2 is {list(inertia)}, which no body has; expected the largest moment to be at "
                    "most the sum of the others"
                )
        check_actuator(actuator, lambda name: self.joints(f"actuator.{name}"), self.joints("joint_stop_rad"))
        limit, stop = self.joint_limit_rad, self.joint_stop_rad
        if stop < limit:
            raise ValueError(f"joint_limit_rad is {limit:g}; expected at most joint_stop_rad, {stop:g}")
        if self.wheels.pairs and self.head_joint != "yaw":
            raise ValueError("head_joint is 'pitch'; expected 'yaw' with wheels.pairs, as wheels are below yaw links")
        _ = self.n_substeps

    @property
    def n_links(self) -> int:
        return self.n_joints + 1

    @property
    def length_m(self) -> float:
        """Length of the stretched robot [m]."""
        return self.head_length_m + self.n_joints * self.link_length_m

    @property
    def mass_kg(self) -> float:
        """Mass of the whole robot [kg], wheels included."""
        wheels = 2.0 * (self.wheels.bracket_mass_kg + self.wheels.mass_kg) if self.wheels.pairs else 0.0
        return self.head_mass_kg + self.n_joints * self.link_mass_kg + (self.n_joints + 3) // 2 * wheels

    @property
    def step_s(self) -> float:
        """Physics step [s]."""
        return self.sim_dt_s

    @property
    def rest_radius_m(self) -> float:
        """Half the height of a link's section [m]."""
        return self.radius_m if self.section == "cylinder" else 0.5 * self.box_m[1]

    @property
    def rest_height_m(self) -> float:
        """Height of the stretched robot's axis above the ground that it lies on [m]."""
        return self.wheels.drop_m + self.wheels.radius_m if self.wheels.pairs else self.rest_radius_m

    def axes_from_head(self) -> tuple[Axis, ...]:
        """Return the axis of each joint, from the head."""
        other: Axis = "pitch" if self.head_joint == "yaw" else "yaw"
        return tuple(self.head_joint if i % 2 == 0 else other for i in range(self.n_joints))

    def axes(self) -> tuple[Axis, ...]:
        """Return the axis of each joint, from the tail."""
        return self.axes_from_head()[::-1]

    def links(self, path: str) -> FloatArray:
        """Return half lengths, masses or radii (N,) of the links from the tail, by a planar robot's names.

        Pictures from above take the links for level.
        """
        own = {
            "link_half_length_m": (0.5 * self.link_length_m, 0.5 * self.head_length_m),
            "link_mass_kg": (self.link_mass_kg, self.head_mass_kg),
            "link_radius_m": (self.rest_radius_m, self.rest_radius_m),
        }
        link, head = own[path]
        return np.array([link] * self.n_joints + [head])

    def link_inertia(self) -> Triple:
        """Return a link's moments of inertia about its centre of mass [kg m^2], axes of the joint's frame (x along)."""
        if self.link_inertia_kgm2 is not None:
            return self.link_inertia_kgm2
        return self._solid(self.link_mass_kg, self.link_length_m)

    def head_inertia(self) -> Triple:
        """Return the head's moments of inertia about its centre of mass [kg m^2], axes of the base frame (y along)."""
        if self.head_inertia_kgm2 is not None:
            return self.head_inertia_kgm2
        along, wide, high = self._solid(self.head_mass_kg, self.head_length_m)
        return wide, along, high

    def link_com(self) -> Triple:
        """Return a link's centre of mass [m] in its joint's frame."""
        return self.link_com_m or (0.5 * self.link_length_m, 0.0, 0.0)

    def head_com(self) -> Triple:
        """Return the head's centre of mass [m] in the base frame."""
        return self.head_com_m or (0.0, -0.5 * self.head_length_m, 0.0)

    def _solid(self, mass: float, length: float) -> Triple:
        """Return moments of a solid of the links' section: about its axis, about the lateral, about the vertical."""
        if self.section == "cylinder":
            across = mass * (3.0 * self.radius_m**2 + length**2) / 12.0
            return 0.5 * mass * self.radius_m**2, across, across
        width, height = self.box_m
        return (
            mass * (width**2 + height**2) / 12.0,
            mass * (length**2 + height**2) / 12.0,
            mass * (length**2 + width**2) / 12.0,
        )

    # --- answers of every robot, see ``ChainSpec`` -------------------------------------------------------------------

    def servo_plant(self) -> str:
        require("the emulated robot", "mujoco")
        return "snake_gym.spatial.servo_plant:SpatialPlant"

    def locate(self, measurement: Measurement, up_h: FloatArray | None = None, z_w: float | None = None) -> Measurement:
        from snake_gym.spatial.kinematics import base_frame, posture

        up = np.array([0.0, 0.0, 1.0]) if up_h is None else up_h
        height = self.rest_height_m if z_w is None else z_w
        seen = measurement._replace(head_up_h=up[None], head_z_w=np.array([height]))
        shape = posture(self, *base_frame(self, seen), seen.joint_angle)
        return seen._replace(heading=shape.heading, centre_xy_w=shape.centre[:, :2].copy())

    def at_origin(self, joint_angle: FloatArray, joint_rate: FloatArray, point: str) -> Measurement:
        n_worlds = len(joint_angle)
        zero, still, valid = np.zeros((n_worlds, 2)), np.zeros(n_worlds), np.ones(n_worlds, bool)
        up = np.tile([0.0, 0.0, 1.0], (n_worlds, 1))
        return Measurement(
            joint_angle, joint_rate, zero, still, valid, zero, heading=still, head_up_h=up, head_z_w=still
        )

    def ends_xy(self, measurement: Measurement) -> FloatArray:
        from snake_gym.spatial.kinematics import base_frame, link_ends

        return link_ends(self, *base_frame(self, measurement), measurement.joint_angle)[..., :2]


def load_spatial_robot(
    robot: str | os.PathLike[str] | Mapping[str, Any] | ChainSpec, where: str = "robot"
) -> SpatialSpec:
    """Return the spatial robot of a YAML file, of settings, or as it is.

    Raises ConfigError, whose message starts from ``where``.
    """
    if isinstance(robot, Mapping):
        robot = {"chain": "spatial", **robot}
    spec = load_any_robot(robot, where=where)
    if not isinstance(spec, SpatialSpec):
        raise ConfigError(
            f"{where} is {spec.name}, a planar robot; expected the path of a spatial robot's YAML file, such as "
            "configs/robot/spatial/snake_robot_iii.yaml, or a group of its settings"
        )
    return spec
