"""Recorded motion of spatial robots on their grounds, for pages and pictures."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from snake_gym.robot.recorded_body import Ground, RecordedBody
from snake_gym.robot.spec import FloatArray
from snake_gym.spatial.kinematics import link_frames
from snake_gym.spatial.spec import SpatialSpec


def record_body(
    spec: SpatialSpec, ground: Ground, rotation: FloatArray, origin: FloatArray, joint_angle: FloatArray
) -> RecordedBody:
    """Return what happened to a robot on ``ground``, from T poses of its base frame and joint angles (T, J) [rad].

    ``rotation`` (T, 3, 3) and ``origin`` (T, 3) [m] as for ``kinematics.posture``.
    """
    links = link_frames(spec, rotation, origin, joint_angle)
    round_links = spec.section == "cylinder"
    return RecordedBody(
        link_xyz=links.origin,
        link_quaternion=Rotation.from_matrix(links.rotation.reshape(-1, 3, 3))
        .as_quat(scalar_first=True)
        .reshape(*links.origin.shape[:2], 4),
        joint_angle=joint_angle,
        joint_axis=tuple("z" if axis == "yaw" else "y" for axis in spec.axes()),
        joint_limit_rad=np.full(spec.n_joints, spec.joint_limit_rad),
        half_length_m=spec.links("link_half_length_m"),
        section_m=(2.0 * spec.radius_m, 2.0 * spec.radius_m) if round_links else spec.box_m,
        rounded=round_links,
        ground=_crop(ground, links.origin),
    )


def _crop(ground: Ground, places: FloatArray, margin_m: float = 3.0) -> Ground:
    """Return the ground with that part of its height field which lies around ``places`` (..., 3) [m]."""
    heights = ground.heights_m
    if heights is None:
        return ground
    shape, size, middle = np.array(heights.shape[::-1]), np.array(ground.size_m), np.array(ground.middle_m)
    cell = size / (shape - 1)
    corner = middle - size / 2.0
    around = places[..., :2].reshape(-1, 2)
    first = np.clip(np.floor((around.min(axis=0) - margin_m - corner) / cell).astype(int), 0, shape - 2)
    last = np.clip(np.ceil((around.max(axis=0) + margin_m - corner) / cell).astype(int), first + 1, shape - 1)
    low, high = corner + cell * first, corner + cell * last
    return ground._replace(
        heights_m=heights[first[1] : last[1] + 1, first[0] : last[0] + 1],
        size_m=tuple((high - low).tolist()), middle_m=tuple(((low + high) / 2.0).tolist()),
    )  # fmt: skip
