"""Robot: what envs, tasks, sensors and costs may ask of W simulated bodies of one specification, planar or spatial."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from snake_gym.robot.chain import ChainSpec, FloatArray
from snake_gym.robot.recorded_body import RecordedBody


class Robot(Protocol):
    """W simulated robots with N links and J joints, counted from the tail; world frame, SI units, radians."""

    spec: ChainSpec
    """Nominal robot: all that controllers and policies know."""
    n_worlds: int
    state: Any
    """Moving state, a named tuple of arrays written in place. Of every robot: ``link_angle`` (W, N) [rad] horizontal
    directions towards the head, ``centre_xy`` (W, 2) [m] and ``centre_vel`` (W, 2) [m/s] of the centre of mass,
    ``head_xy`` (W, 2) [m] middle of the head, ``time_s`` (W,) [s] and ``work_j`` (W,) [J] since the reset,
    ``joint_torque`` (W, J) [N m], ``stood_still`` (W,) steps without solution, ``self_overlap_m`` and ``overlap_now_m``
    (W,) [m] of two links since the reset and now."""
    params: Any
    """True parameters, a named tuple of arrays (W, ...), ``torque_limit`` (W, J) [N m] of every robot among them."""
    faults: Any
    """First fault of each joint, ``physics.state.FaultState`` of arrays (W, J)."""
    second_faults: Any
    """Second faults, likewise."""
    servos: Any
    """Commands, readings and loads of the servos, ``simulation.fault_effects.ServoState`` of arrays (W, J)."""
    feedforward: Any
    """Torques or accelerations added to what servos ask for (W, J); None: a spatial robot."""
    delay: Any
    """Queue of references that act late, with their array ``waiting``; None: references act at once."""

    def set_shape(
        self,
        joint_angle: FloatArray,
        head_angle: FloatArray,
        point_xy: FloatArray,
        point: str = "head",
        mask: NDArray[np.bool_] | None = None,
    ) -> None:
        """Place the M robots of ``mask`` (W,) at rest, time and work at zero, bent by ``joint_angle`` (M, J) [rad].

        ``head_angle`` (M,) [rad] and the place ``point_xy`` (M, 2) [m] of ``point`` ("head" or "centre"): world frame.
        Raises ConfigError where a robot cannot be.
        """

    def step(self, reference: FloatArray, *, mask: NDArray[np.bool_] | None = None) -> None:
        """Advance the worlds of ``mask`` (W,) by one control step; ``reference`` (W, J) [rad] are joint angles."""

    def joint_angle(self) -> FloatArray:
        """Return the joint angles (W, J) [rad]."""

    def joint_rate(self) -> FloatArray:
        """Return the joint rates (W, J) [rad/s]."""

    def heading(self) -> FloatArray:
        """Return the horizontal direction of the body (W,) [rad]."""

    def turning_rate(self) -> FloatArray:
        """Return its rate (W,) [rad/s]."""

    def motion(self) -> tuple[FloatArray, ...]:
        """Return what has to be finite, arrays (W, ...)."""

    def acting_kinds(self) -> NDArray[np.int64]:
        """Return the kinds of each joint's first and second fault that act at the present time (2, W, J); 0: none."""

    def acting_kind(self) -> NDArray[np.int64]:
        """Return the kind of fault of each joint that acts at the present time (W, J), of two the first; 0: none."""
        first, second = self.acting_kinds()
        return np.where(first == 0, second, first)

    def failed_now(self) -> NDArray[np.bool_]:
        """Return a mask (W, J) of the joints that are failed at the present time."""
        return np.asarray(self.acting_kind() != 0)

    def allow_faults(self, kinds: Iterable[str]) -> None:
        """Switch on the laws that faults of these ``kinds`` need. Raises ConfigError for what it cannot have."""
        return None

    def has_registered_faults(self) -> bool:
        """Return True while ``servos.command`` is kept by the robot itself."""

    def note_torques(self) -> None:
        """Keep the mean square of each motor's torque, ``servos.torque_square``."""
        return None

    def take_pressures(self) -> None:
        """Let muscles get the pressures in ``state.pressure_command`` alone, without the loops of their joints."""
        return None

    def restored(self) -> None:
        """Make the rest follow after ``state`` and ``faults`` were written to."""

    def pose(self) -> Mapping[str, FloatArray]:
        """Return what a recording keeps of each moment next to link angles and head, arrays (W, ...) by name."""
        return {}

    def recorded_body(self, world: int, poses: Mapping[str, FloatArray]) -> RecordedBody | None:
        """Return the motion in space of one world's robot, from T of its ``poses`` (T, ...); None: a planar robot."""
        return None
