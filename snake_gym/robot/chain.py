"""Base of all robots' specifications: the questions that a chain of links on servo joints answers, in whatever space.

A specification answers for itself, so that nobody asks for its class. The answers here are those of a planar chain.
Links and joints are counted from the tail. SI units and radians everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.config.settings import Settings

if TYPE_CHECKING:
    from snake_gym.robot.actuator_spec import ActuatorSpec
    from snake_gym.robot.measurement import Measurement

FloatArray = NDArray[np.float64]
Axis = Literal["yaw", "pitch"]
MAX_SUBSTEPS = 100_000
"""Most physics steps of one control step: about a second of computing time."""


class ChainSpec(Settings):
    """Chain of N links with J = N - 1 actuated joints."""

    in_space: ClassVar[bool] = False
    """True for robots that leave the plane: their head has a height and a vertical."""
    fault_kinds: ClassVar[tuple[str, ...] | None] = None
    """Kinds of faults that its joints can have; None: all."""
    default_controller: ClassVar[Mapping[str, Any]] = {"kind": "sjc"}
    """Settings of the controller below policies and drivers."""
    view: ClassVar[str] = "snake_gym.render.frames:WorldView"
    """Class that draws one world of a core: ``module:NAME``."""

    if TYPE_CHECKING:  # fields or properties of the subclasses

        @property
        def name(self) -> str: ...
        @property
        def n_links(self) -> int: ...
        @property
        def n_joints(self) -> int: ...
        @property
        def actuator(self) -> ActuatorSpec: ...
        @property
        def joint_limit_rad(self) -> float: ...
        @property
        def control_dt_s(self) -> float: ...
        @property
        def step_s(self) -> float: ...
        @property
        def length_m(self) -> float: ...

    @property
    def n_substeps(self) -> int:
        """Physics steps per control step; raises ValueError unless that is a whole number."""
        ratio = self.control_dt_s / self.step_s
        n = min(max(round(ratio), 1), MAX_SUBSTEPS)
        if abs(ratio - n) > 1e-9 * ratio:
            raise ValueError(
                f"control_dt_s / sim_dt_s is {ratio:.6g}; expected an integer from 1 to {MAX_SUBSTEPS} "
                f"(nearest: sim_dt_s = {self.control_dt_s / n:.6g})"
            )
        return n

    def step_note(self) -> str | None:
        """Return the line on a physics step that is much coarser than the one to choose; None if it is not."""
        return None

    def axes(self) -> Sequence[Axis]:
        """Return the axis of each joint, from the tail: yaw (vertical) or pitch (lateral)."""
        axis: Axis = "yaw"
        return [axis] * self.n_joints

    def joints(self, path: str) -> FloatArray:
        """Return the per-joint field ``path`` (dotted) as an array (J,)."""
        return self._expand(path, self.n_joints, "joint")

    def _expand(self, path: str, n: int, what: str) -> FloatArray:
        value: Any = self
        for part in path.split("."):
            value = getattr(value, part)
        values = np.array(value, dtype=np.float64)
        if values.ndim == 0:
            return np.full(n, float(values))
        if values.shape != (n,):
            raise ValueError(f"robot.{path} has {values.size} numbers; expected one, or {n} (one for each {what})")
        return values

    def links(self, path: str) -> FloatArray:
        """Return the per-link field ``path`` (dotted) as an array (N,)."""
        raise NotImplementedError

    def servo_plant(self) -> str:
        """Return the class of its body behind emulated servos: ``module:NAME``. Raises ConfigError: not installed."""
        return "snake_gym.simulation.servo_plant:RobotPlant"

    def locate(self, measurement: Measurement, up_h: FloatArray | None = None, z_w: float | None = None) -> Measurement:
        """Return a measurement with what follows from pose and joint angles by the nominal robot: its centre of mass.

        ``up_h`` (3,) direction of the vertical in the head's frame and ``z_w`` [m] height of the head: of robots in
        space, whose heading follows too; None: not measured, the head is level, or lies on the ground.
        """
        raise NotImplementedError

    def at_origin(self, joint_angle: FloatArray, joint_rate: FloatArray, point: str) -> Measurement:
        """Return the measurement of robots with these angles [rad] and rates [rad/s] (W, J) that head along x.

        Their ``point`` ("head" or "centre") is at the origin.
        """
        raise NotImplementedError

    def ends_xy(self, measurement: Measurement) -> FloatArray | None:
        """Return the links' ends (W, N + 1, 2) [m] from above, tail first; None: link angles tell them all."""
        return None
