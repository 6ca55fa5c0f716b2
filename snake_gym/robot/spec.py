"""What a robot is: geometry, masses, ground friction, actuators and timing, as plain frozen data.

Conventions (Liljebäck et al., used by sibilska2022): link 1 is the tail, link N the head; joint i sits between links i
and i+1; ``phi_i = theta_i - theta_{i+1}``; a link is ``2 l`` long. SI units and radians everywhere.

A field typed ``PerLink`` or ``PerJoint`` takes one number for all or one number for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
PerLink = float | tuple[float, ...]
PerJoint = float | tuple[float, ...]

ActuatorKind = Literal["acceleration", "torque", "position"]
IntegratorKind = Literal["implicit", "rk4"]
MAX_LINKS = 256


@dataclass(frozen=True)
class FrictionSpec:
    """Viscous anisotropic ground friction, acting at each link's centre (sibilska2022, eq. 14)."""

    tangential_ns_m: PerLink = 1.0
    """Along the link [N s/m]."""
    normal_ns_m: PerLink = 10.0
    """Across the link [N s/m]."""
    rotational_nms_rad: PerLink = 0.0
    """Against rotation about the link's centre [N m s/rad]."""


@dataclass(frozen=True)
class ActuatorSpec:
    """How a joint command becomes motion: ``u = feedforward + kp (phi_ref - phi) - kd phi_dot``.

    ``acceleration``: u is the joint acceleration itself (feedback-linearised robot; kp [1/s^2], kd [1/s]).
    ``torque``: u is the joint torque, clamped to ``torque_limit_nm`` (kp [N m/rad], kd [N m s/rad]).
    ``position``: a servo, u is the torque of a PD loop whose demanded rate ``kp/kd (phi_ref - phi)`` is clamped to
    ``speed_limit_rad_s`` and whose torque is clamped to ``torque_limit_nm``.
    """

    kind: ActuatorKind = "position"
    kp: PerJoint = 1.0
    kd: PerJoint = 1.0
    torque_limit_nm: PerJoint = math.inf
    speed_limit_rad_s: PerJoint = math.inf


@dataclass(frozen=True)
class RobotSpec:
    """A planar chain of rigid links with one actuated joint between neighbours."""

    name: str = "snake"
    source: str = "user defined"
    """Where the numbers come from."""
    n_links: int = 10
    link_half_length_m: PerLink = 0.07
    link_mass_kg: PerLink = 1.0
    link_inertia_kgm2: PerLink | None = None
    """About the link's centre; None: a uniform rod, m l^2 / 3."""
    friction: FrictionSpec = field(default_factory=FrictionSpec)
    actuator: ActuatorSpec = field(default_factory=ActuatorSpec)
    joint_limit_rad: float = math.radians(90.0)
    """Largest joint reference that a command may ask for; joints themselves have no stop."""
    free_joint_damping_nms_rad: PerJoint = 0.0
    """Viscous friction left in a joint whose actuator has lost power [N m s/rad]."""
    control_dt_s: float = 0.2
    sim_dt_s: float = 0.01
    integrator: IntegratorKind = "implicit"

    def __post_init__(self) -> None:
        if not 2 <= self.n_links <= MAX_LINKS:
            raise ValueError(f"robot.n_links is {self.n_links}; expected 2 to {MAX_LINKS}")
        for name in ("link_half_length_m", "link_mass_kg"):
            self._check(name, self.links(name), "> 0", lambda v: v > 0)
        self._check("link_inertia_kgm2", self.inertia(), "> 0", lambda v: v > 0)
        for f in fields(self.friction):
            self._check(f"friction.{f.name}", self.links(f"friction.{f.name}"), ">= 0", lambda v: v >= 0)
        for name in ("kp", "kd"):
            self._check(f"actuator.{name}", self.joints(f"actuator.{name}"), ">= 0", lambda v: v >= 0)
        for name in ("torque_limit_nm", "speed_limit_rad_s"):
            limit = self.joints(f"actuator.{name}")
            if not (limit > 0).all():
                raise ValueError(f"robot.actuator.{name} is {limit.min():g}; expected > 0 (.inf for no limit)")
        self._check("free_joint_damping_nms_rad", self.joints("free_joint_damping_nms_rad"), ">= 0", lambda v: v >= 0)
        if not 0 < self.joint_limit_rad <= math.pi:
            raise ValueError(f"robot.joint_limit_rad is {self.joint_limit_rad:g}; expected in (0, pi]")
        if self.actuator.kind == "position":
            slow = np.isfinite(self.joints("actuator.speed_limit_rad_s")) & (self.joints("actuator.kd") <= 0)
            if slow.any():
                raise ValueError("robot.actuator.kd is 0; a position servo with a speed limit needs kd > 0")
        _ = self.n_substeps

    def _check(self, name: str, values: FloatArray, expected: str, ok: Any) -> None:
        if not (np.isfinite(values) & ok(values)).all():
            raise ValueError(f"robot.{name} is {values.tolist()}; expected finite and {expected}")

    def _get(self, path: str) -> Any:
        value: Any = self
        for part in path.split("."):
            value = getattr(value, part)
        return value

    def _expand(self, path: str, n: int, what: str) -> FloatArray:
        value = np.asarray(self._get(path), dtype=np.float64)
        if value.ndim == 0:
            return np.full(n, float(value))
        if value.shape != (n,):
            raise ValueError(f"robot.{path} has {value.size} numbers; expected one, or {n} (one for each {what})")
        return value.copy()

    def links(self, path: str) -> FloatArray:
        """The per-link field ``path`` (dotted) as an array (N,)."""
        return self._expand(path, self.n_links, "link")

    def joints(self, path: str) -> FloatArray:
        """The per-joint field ``path`` (dotted) as an array (J,)."""
        return self._expand(path, self.n_joints, "joint")

    def inertia(self) -> FloatArray:
        """Moment of inertia of each link about its centre (N,) [kg m^2]."""
        if self.link_inertia_kgm2 is None:
            return self.links("link_mass_kg") * self.links("link_half_length_m") ** 2 / 3.0
        return self.links("link_inertia_kgm2")

    @property
    def n_joints(self) -> int:
        return self.n_links - 1

    @property
    def length_m(self) -> float:
        """Length of the stretched robot [m]."""
        return float(2.0 * self.links("link_half_length_m").sum())

    @property
    def n_substeps(self) -> int:
        """Physics steps per control step; raises unless control_dt / sim_dt is an integer."""
        if not (self.sim_dt_s > 0 and self.control_dt_s > 0):
            raise ValueError(f"robot.sim_dt_s is {self.sim_dt_s:g}, control_dt_s {self.control_dt_s:g}; expected > 0")
        ratio = self.control_dt_s / self.sim_dt_s
        n = round(ratio)
        if n < 1 or abs(ratio - n) > 1e-9 * ratio:
            raise ValueError(
                f"robot.control_dt_s / robot.sim_dt_s is {ratio:.6g}; expected an integer "
                f"(nearest: sim_dt_s = {self.control_dt_s / max(n, 1):.6g})"
            )
        return n
