"""Specification of a robot: geometry, masses, ground friction, actuators and timing, as plain frozen data.

Conventions (Liljebäck et al., used by sibilska2022): link 1 is the tail, link N the head; joint i sits between links i
and i+1; ``phi_i = theta_i - theta_{i+1}``; a link is ``2 l`` long. SI units and radians everywhere.

A field with a type such as ``LimitPerJoint`` or ``FactorPerLink`` takes one number for all or one for each.
"""

from __future__ import annotations

import math
import re
from dataclasses import field, fields, replace
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from snake_gym.config.errors import ConfigError, show
from snake_gym.config.settings import NonNegative, Positive, Settings, Share
from snake_gym.robot.actuator_spec import (
    ActuatorKind,
    ActuatorSpec,
    LimitPerJoint,
    MuscleSpec,
    NonNegativePerJoint,
    check_actuator,
)
from snake_gym.robot.chain import MAX_SUBSTEPS, ChainSpec, FloatArray
from snake_gym.robot.measurement import Measurement, centre_offset, link_angles, mean_angle

__all__ = [
    "GRAVITY_M_S2", "MAX_LINKS", "ActuatorKind", "ActuatorSpec", "ContactSpec", "FloatArray", "FrictionSpec",
    "MuscleSpec", "RobotSpec",
]  # fmt: skip

PositivePerLink = Positive | tuple[Positive, ...]
NonNegativePerLink = NonNegative | tuple[NonNegative, ...]
BackwardFactor = Annotated[float, Field(ge=0.01, le=100.0)]
FactorPerLink = BackwardFactor | tuple[BackwardFactor, ...]

CoulombAxes = Literal["independent", "coupled"]
ContactModel = Literal["stiff", "rigid"]
MAX_LINKS = 256
HalfLength = Annotated[float, Field(ge=1e-6, le=1e3)]
Radius = Annotated[float, Field(ge=0.0, le=1e3)]
GRAVITY_M_S2 = 9.81


class FrictionSpec(Settings):
    """Anisotropic ground friction at each link's centre: a viscous part, a Coulomb part, or both.

    The force along the link is ``f_t = -(c_t + mu_t m g / s_t) v_t``, across it likewise. With ``coulomb_axes``
    independent, s is the speed along that axis (irani2015, eq. 4-5: each wheel axis has its own sign function);
    coupled, it is the speed of the link's centre (haghshenas2022, eq. 34-35). At rest, dry friction holds up to mu m g.
    A link that moves tail first has f_t ``backward`` times as large.
    """

    tangential_ns_m: NonNegativePerLink = 1.0
    """Viscous coefficient c_t along the link [N s/m]."""
    normal_ns_m: NonNegativePerLink = 10.0
    """Viscous coefficient c_n across the link [N s/m]."""
    rotational_nms_rad: NonNegativePerLink = 0.0
    """Viscous coefficient of rotation about the link's centre [N m s/rad]."""
    tangential_coulomb: NonNegativePerLink = 0.0
    """Coulomb coefficient mu_t along the link [1]."""
    normal_coulomb: NonNegativePerLink = 0.0
    """Coulomb coefficient mu_n across the link [1]."""
    rotational_coulomb_nm: NonNegativePerLink = 0.0
    """Dry friction torque against rotation about the link's centre [N m]."""
    coulomb_axes: CoulombAxes = "independent"
    """independent: Coulomb forces along and across a link follow from the speed along each axis; coupled: both follow
    from the speed of the link's centre."""
    backward: FactorPerLink = 1.0
    """Factor of all friction along the link where it moves tail first, as of scales [1]."""


class ContactSpec(Settings):
    """Contact law between links, capsules of ``link_radius_m``, and obstacles.

    ``stiff``: a unilateral spring and damper at each contact, taken implicitly (for learning). ``rigid``:
    complementarity between normal velocity and impulse (the reference; wang, eq. 11-19, through the whole chain).
    """

    model: ContactModel = "stiff"
    """stiff: a spring and damper at each contact; rigid: no overlap, by impulses."""
    stiffness_n_m: Positive = 5.0e5
    """Spring at each ``stiff`` contact [N/m]."""
    damping_ns_m: NonNegative | None = None
    """Damper at each ``stiff`` contact [N s/m]; None: 20 sqrt(stiffness times mass of the robot), so that an impact
    gives back the share ``restitution`` only."""
    restitution: Share = 0.0
    """Share of the normal velocity that an impact gives back."""
    friction_ns_m: NonNegative = 0.0
    """Viscous friction along the obstacle's surface [N s/m] (wang, eq. 22)."""
    friction_coulomb: NonNegative = 0.0
    """Coulomb coefficient along the obstacle's surface [1]."""


THINNEST_M = 1e-3
"""Least radius of links among obstacles [m]."""
LONGEST_CONTACT_STEP_S = 0.01
"""Longest physics step among obstacles [s]: what motors do within a longer one is not foreseen."""
_LARGEST_STEP_S, _LEAST_LAG_S = 0.005, 0.002
"""Bounds of a step that is chosen, and of the lag of servos that it depends on."""
_COULOMB_SHARE = 0.01
"""Share of a Coulomb robot's times that its step is."""
_COARSE = 2.5
"""Factor by which a named step may exceed the one to choose without a note."""


def check_name(name: str) -> None:
    """Raise ValueError unless a robot's name can be that of a folder: tuned gaits are found by it."""
    if not re.fullmatch(r"\w[\w .-]*", name):
        raise ValueError(f"name is {show(name)}; expected letters, digits, spaces and _ . -, a letter or digit first")


class RobotSpec(ChainSpec):
    """Planar chain of rigid links with one actuated joint between neighbours."""

    name: str = "snake"
    """Name for results and messages."""
    source: str = "user defined"
    """Source of the numbers."""
    n_links: Annotated[int, Field(ge=2, le=MAX_LINKS)] = 10
    """Number N of links; there are N - 1 joints."""
    link_half_length_m: HalfLength | tuple[HalfLength, ...] = 0.07
    """Half the length of each link, from the tail."""
    link_mass_kg: PositivePerLink = 1.0
    """Mass of each link."""
    link_inertia_kgm2: PositivePerLink | None = None
    """Moment of inertia about the link's centre; None: that of a uniform rod, m l^2 / 3."""
    link_radius_m: Radius | tuple[Radius, ...] = 0.03
    """Radius of the capsule that a link is for obstacles, and for other links."""
    links_touch: bool = True
    """true: links that are no neighbours stop where they meet; false: they pass through each other."""
    friction: FrictionSpec = field(default_factory=FrictionSpec)
    incline_rad: Annotated[float, Field(gt=-math.pi / 2, lt=math.pi / 2)] = 0.0
    """Slope of the ground."""
    incline_direction_rad: float = 0.0
    """Downhill direction in the world's x-y plane."""
    contact: ContactSpec = field(default_factory=ContactSpec)
    actuator: ActuatorSpec = field(default_factory=ActuatorSpec)
    joint_limit_rad: Annotated[float, Field(gt=0.0, le=math.pi)] = math.radians(90.0)
    """Largest joint reference that a command may ask for."""
    joint_stop_rad: LimitPerJoint = math.inf
    """Mechanical stop of the joint at plus and minus this angle; inf: none."""
    free_joint_damping_nms_rad: NonNegativePerJoint = 0.0
    """Viscous friction left in a joint whose actuator has lost power [N m s/rad]."""
    joint_friction_nm: NonNegativePerJoint = 0.0
    """Dry friction of the joint and its gears [N m], with power and without."""
    control_dt_s: Positive = 0.2
    """Control step: time from one command to the next."""
    sim_dt_s: Positive | None = None
    """Physics step; None: chosen from ground, sizes and servos (see ``step_s``)."""

    def check(self) -> None:
        """Raise ValueError unless lists have a number per link or joint, and the actuator suits the rest."""
        check_name(self.name)
        for name in ("link_half_length_m", "link_mass_kg", "link_radius_m"):
            self.links(name)
        if not (self.inertia() > 0.0).all():  # given none, it follows from mass and length
            raise ValueError(f"link_inertia_kgm2 is {self.inertia().tolist()}; expected > 0")
        for f in fields(self.friction):
            if f.name != "coulomb_axes":
                self.links(f"friction.{f.name}")
        along = self.links("friction.tangential_ns_m") + self.links("friction.tangential_coulomb")
        if self.has_one_way_friction and not along.any():
            raise ValueError(
                f"friction.backward is {self.friction.backward}; expected 1 without friction along the links "
                "(tangential_ns_m, tangential_coulomb)"
            )
        for name in ("free_joint_damping_nms_rad", "joint_friction_nm", "joint_stop_rad"):
            self.joints(name)
        for f in fields(self.actuator):
            if isinstance(getattr(self.actuator, f.name), tuple):
                self.joints(f"actuator.{f.name}")
        check_actuator(self.actuator, lambda name: self.joints(f"actuator.{name}"), self.joints("joint_stop_rad"))
        if self.links_touch and self.actuator.kind == "acceleration":
            raise ValueError(
                "links_touch is True; expected False with actuator.kind 'acceleration': joints that move as commanded, "
                "whatever torque it takes, stop at nothing"
            )
        _ = self.n_substeps

    def check_among_obstacles(self) -> None:
        """Raise ConfigError for joints that yield to nothing, links too thin, or a step too long for contacts."""
        if self.actuator.kind == "acceleration":
            raise ConfigError(
                "robot.actuator.kind is 'acceleration'; expected 'torque', 'position' or 'muscle' among obstacles, as "
                "no wall holds joints that move as commanded whatever torque it takes"
            )
        thinnest = float(self.links("link_radius_m").min())
        if thinnest < THINNEST_M:
            raise ConfigError(f"robot.link_radius_m is {thinnest:g}; expected at least {THINNEST_M:g} among obstacles")
        if self.step_s > LONGEST_CONTACT_STEP_S:
            expected = f"at most {LONGEST_CONTACT_STEP_S:g} among obstacles"
            raise ConfigError(f"robot.sim_dt_s is {self.step_s:g}; expected {expected}")

    @cached_property
    def step_s(self) -> float:
        """Physics step [s]: ``sim_dt_s``, or the largest part of the control step within the one to choose."""
        if self.sim_dt_s is not None:
            return self.sim_dt_s
        return self.control_dt_s / min(math.ceil(self.control_dt_s / self._step_to_choose_s() - 1e-9), MAX_SUBSTEPS)

    def _step_to_choose_s(self) -> float:
        """Return the largest step [s] at which random robots keep their way within 2 %, 5 % at worst (docs/physics.md).

        Two times tell it. Lag: that of the servo nearest to its reference, k_d / k_p. Slide: that in which Coulomb
        friction m g mu stops a link within its half length l, sqrt(l / (mu g)), or its rotation within a radian.
        """
        kp, kd = self.joints("actuator.kp"), self.joints("actuator.kd")
        lag = float(np.divide(kd, kp, out=np.full_like(kp, math.inf), where=kp > 0.0).min())
        if self.actuator.kind == "muscle":
            lag = min(lag, self.actuator.muscle.pressure_lag_s)
        lag = max(lag, _LEAST_LAG_S)
        step = min(_LARGEST_STEP_S, 0.5 * lag)
        if self.has_coulomb_friction:
            along = self.coulomb_force("tangential") * np.maximum(self.links("friction.backward"), 1.0)
            force = np.maximum(along, self.coulomb_force("normal"))
            fastest = (force / (self.links("link_mass_kg") * self.links("link_half_length_m"))).max()
            fastest = max(fastest, (self.links("friction.rotational_coulomb_nm") / self.inertia()).max())
            slide = 1.0 / math.sqrt(fastest)
            step = min(step, _COULOMB_SHARE * math.sqrt(min(lag, slide) * slide))
        return step

    def step_note(self) -> str | None:
        """Return the line on a named step that is much coarser than the one to choose; None if it is not."""
        chosen = replace(self, sim_dt_s=None).step_s
        if self.step_s <= _COARSE * chosen:
            return None
        return (
            f"robot.sim_dt_s is {self.step_s:g}; without it, it would be {chosen:.3g}: ways may be off by more than 5 %"
        )

    def links(self, path: str) -> FloatArray:
        """Return the per-link field ``path`` (dotted) as an array (N,)."""
        return self._expand(path, self.n_links, "link")

    def inertia(self) -> FloatArray:
        """Return the moment of inertia of each link about its centre (N,) [kg m^2]."""
        if self.link_inertia_kgm2 is None:
            return self.links("link_mass_kg") * self.links("link_half_length_m") ** 2 / 3.0
        return self.links("link_inertia_kgm2")

    def coulomb_force(self, axis: str) -> FloatArray:
        """Return the largest Coulomb force of each link on the ground (N,) [N]; axis "tangential" or "normal"."""
        weight = self.links("link_mass_kg") * GRAVITY_M_S2 * math.cos(self.incline_rad)
        return self.links(f"friction.{axis}_coulomb") * weight

    @property
    def contact_damping_ns_m(self) -> float:
        """Damper at each contact [N s/m] of the stiff model."""
        if self.contact.damping_ns_m is not None:
            return self.contact.damping_ns_m
        return 20.0 * math.sqrt(self.contact.stiffness_n_m * float(self.links("link_mass_kg").sum()))

    def supply_sag_per_nm(self) -> FloatArray:
        """Return the share of the supply's voltage that its resistance takes per joint torque (J,) [1/(N m)]."""
        actuator = self.actuator
        per_ampere = actuator.supply_resistance_ohm / actuator.supply_voltage_v
        return per_ampere / self.joints("actuator.torque_constant_nm_a")

    @property
    def has_coulomb_friction(self) -> bool:
        names = ("tangential_coulomb", "normal_coulomb", "rotational_coulomb_nm")
        return any(bool((self.links(f"friction.{name}") > 0).any()) for name in names)

    @property
    def has_one_way_friction(self) -> bool:
        return bool((self.links("friction.backward") != 1.0).any())

    @property
    def body_acceleration(self) -> FloatArray:
        """Pull of gravity along an inclined ground (2,) [m/s^2], world frame."""
        direction = np.array([math.cos(self.incline_direction_rad), math.sin(self.incline_direction_rad)])
        return GRAVITY_M_S2 * math.sin(self.incline_rad) * direction

    @property
    def n_joints(self) -> int:
        return self.n_links - 1

    @property
    def length_m(self) -> float:
        """Length of the stretched robot [m]."""
        return float(2.0 * self.links("link_half_length_m").sum())

    def locate(self, measurement: Measurement, up_h: FloatArray | None = None, z_w: float | None = None) -> Measurement:
        centre = measurement.head_xy_w + centre_offset(self, link_angles(measurement))
        return measurement._replace(centre_xy_w=centre)

    def at_origin(self, joint_angle: FloatArray, joint_rate: FloatArray, point: str) -> Measurement:
        n_worlds = len(joint_angle)
        zero, valid = np.zeros((n_worlds, 2)), np.ones(n_worlds, bool)
        sample = Measurement(joint_angle, joint_rate, zero, np.zeros(n_worlds), valid, zero)
        sample = sample._replace(head_angle=-mean_angle(sample))
        centre = centre_offset(self, link_angles(sample))
        return sample._replace(centre_xy_w=centre) if point == "head" else sample._replace(head_xy_w=-centre)
