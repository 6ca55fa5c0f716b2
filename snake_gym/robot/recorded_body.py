"""Recorded motion of a robot in space and the ground below it, as pictures need them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from snake_gym.robot.chain import FloatArray


class Pole(NamedTuple):
    """Upright cylinder with round ends."""

    middle: tuple[float, float, float]
    radius: float
    half_length: float


class Ground(NamedTuple):
    """Shapes of a ground, world frame [m]."""

    heights_m: FloatArray | None = None
    """(rows along y, columns along x) heights of a field; None: a plane at 0."""
    size_m: tuple[float, float] = (0.0, 0.0)
    """Sides of the field along x and y."""
    middle_m: tuple[float, float] = (0.0, 0.0)
    poles: tuple[Pole, ...] = ()
    span_m: tuple[float, float] | None = None
    """Lowest and highest height that the field may be given later; None: those that it has."""


FLAT = Ground()


@dataclass(frozen=True)
class RecordedBody:
    """Motion and shape of a robot that moves in space: N links, J = N - 1 joints, world frame, z up."""

    link_xyz: FloatArray
    """(T, N, 3) [m] middles of the links, tail first."""
    link_quaternion: FloatArray
    """(T, N, 4) orientations of the links (w, x, y, z); a link's x axis points along it, towards the head."""
    joint_angle: FloatArray
    """(T, J) [rad] joint angles."""
    joint_axis: tuple[Literal["y", "z"], ...]
    """Axis of each joint in the frame of the link behind it: z of a yaw, y of a pitch joint."""
    joint_limit_rad: FloatArray
    """(J,) largest angle to either side; inf: none."""
    half_length_m: FloatArray
    """(N,) half of the distance between a link's ends."""
    section_m: tuple[float, float]
    """Width and height of a link."""
    rounded: bool = True
    """True for links that are round, False for boxes."""
    ground: Ground = FLAT

    def ends_xy(self, at: int) -> FloatArray:
        """Return the links' ends (N + 1, 2) [m] from above in the sample ``at``, from the tail's tip."""
        w, x, y, z = self.link_quaternion[at].T
        along = np.stack([1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z)], axis=1) * self.half_length_m[:, None]
        middle = self.link_xyz[at, :, :2]
        return np.vstack([middle[:1] - along[:1], middle + along])
