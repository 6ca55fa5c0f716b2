"""Kinematics of a spatial chain: frames of base, links and sensors by Denavit-Hartenberg transforms (liu2024, eq. 1-6).

Frames are pairs of rotation (..., 3, 3) and origin (..., 3), in the base frame B or in the world. Joint angles are
(..., J), from the tail; frames of links come from the head, as the chain hangs on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import FloatArray
from snake_gym.spatial.spec import SpatialSpec


class Frames(NamedTuple):
    """Frames F, each within the same other frame."""

    rotation: FloatArray
    """(..., F, 3, 3), columns are the axes."""
    origin: FloatArray
    """(..., F, 3) [m]."""


def joint_frames(spec: SpatialSpec, joint_angle: FloatArray) -> Frames:
    """Return the frames J_1 to J_N (eq. 1-3), from the head, in the base frame B, for angles (..., J) [rad].

    Sums run along fixed axes only: a world alone and in a batch gives the same bits.
    """
    phi = np.asarray(joint_angle, np.float64)[..., ::-1]
    cos, sin = np.cos(phi), np.sin(phi)
    rotation = np.empty((*phi.shape, 3, 3))
    origin = np.empty((*phi.shape, 3))
    x, y, z = (np.broadcast_to(axis, (*phi.shape[:-1], 3)) for axis in np.eye(3))
    x, y = y, -x  # Rz(pi/2), the first joint's offset
    if spec.head_joint == "pitch":
        y, z = -z, y
    place = np.zeros((*phi.shape[:-1], 3))
    for k, axis in enumerate(spec.axes_from_head()):
        if k > 0:
            place = place + spec.link_length_m * x
            y, z = (-z, y) if axis == "pitch" else (z, -y)
        c, s = cos[..., k, None], sin[..., k, None]
        x, y = c * x + s * y, c * y - s * x
        rotation[..., k, :, 0], rotation[..., k, :, 1], rotation[..., k, :, 2] = x, y, z
        origin[..., k, :] = place
    return Frames(rotation, origin)


def rotation_of_quaternion(quaternion: FloatArray) -> FloatArray:
    """Return rotations (..., 3, 3) of unit quaternions (..., 4), scalar first."""
    w, x, y, z = np.moveaxis(np.asarray(quaternion, np.float64), -1, 0)
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def place_frames(frames: Frames, rotation: FloatArray, origin: FloatArray) -> Frames:
    """Return frames (..., F) of the base frame in the world, where that stands at ``origin`` (..., 3) [m], turned by
    ``rotation`` (..., 3, 3) (eq. 4-5)."""
    turned = sum(rotation[..., None, :, j, None] * frames.rotation[..., None, j, :] for j in range(3))
    moved = sum(rotation[..., None, :, j] * frames.origin[..., j, None] for j in range(3))
    return Frames(np.asarray(turned), np.asarray(moved) + origin[..., None, :])


class Posture(NamedTuple):
    """What follows from pose and joint angles of W robots, world frame."""

    centre: FloatArray
    """Centre of mass (W, 3) [m], by the nominal masses, without wheels."""
    axis: FloatArray
    """Directions of the links towards the head (W, N, 3), from the tail, the head last."""
    heading: FloatArray
    """Horizontal direction (W,) [rad] from the middle of the robot's rear half to that of its front half."""
    middle: FloatArray
    """Middles of the links (W, N, 3) [m], from the tail."""


def posture(spec: SpatialSpec, rotation: FloatArray, origin: FloatArray, joint_angle: FloatArray) -> Posture:
    """Return the posture of robots whose base frame stands at ``origin`` (W, 3) [m], turned by ``rotation`` (W, 3, 3).

    ``joint_angle`` (W, J) [rad] from the tail. The heading of a robot curled up so that its halves lie on each other is
    that of its head.
    """
    frames = place_frames(joint_frames(spec, joint_angle), rotation, origin)
    link_com, head_com = np.array(spec.link_com()), np.array(spec.head_com())
    coms = frames.origin + sum(frames.rotation[..., j] * link_com[j] for j in range(3))
    head = origin + sum(rotation[..., j] * head_com[j] for j in range(3))
    total = spec.head_mass_kg + spec.n_joints * spec.link_mass_kg
    centre = (spec.head_mass_kg * head + spec.link_mass_kg * coms.sum(axis=-2)) / total
    axis, middle = _lines(spec, frames, rotation, origin)
    ahead = axis[..., -1, :]
    half = spec.n_links // 2
    along = middle[..., -half:, :2].mean(axis=-2) - middle[..., :half, :2].mean(axis=-2)
    curled = np.hypot(along[..., 0], along[..., 1]) < 1e-6 * spec.length_m
    along = np.where(curled[..., None], ahead[..., :2], along)
    return Posture(centre, axis, np.arctan2(along[..., 1], along[..., 0]), middle)


def _lines(
    spec: SpatialSpec, frames: Frames, rotation: FloatArray, origin: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return directions and middles of the links (..., N, 3), from the tail, for the joints' frames in the world."""
    along, ahead = frames.rotation[..., ::-1, :, 0], -rotation[..., 1]
    axis = np.concatenate([-along, ahead[..., None, :]], axis=-2)
    head = origin + 0.5 * spec.head_length_m * ahead
    middle = np.concatenate(
        [frames.origin[..., ::-1, :] + 0.5 * spec.link_length_m * along, head[..., None, :]], axis=-2
    )
    return axis, middle


def link_frames(spec: SpatialSpec, rotation: FloatArray, origin: FloatArray, joint_angle: FloatArray) -> Frames:
    """Return the frames of the links (W, N), from the tail, in the world; arguments as for ``posture``.

    Each stands in its link's middle: x towards the head, z up where the straight robot lies as it begins.
    """
    frames = place_frames(joint_frames(spec, joint_angle), rotation, origin)
    axis, middle = _lines(spec, frames, rotation, origin)
    yaws = np.array([axis == "yaw" for axis in spec.axes_from_head()])[:, None]
    up = np.where(yaws, frames.rotation[..., 2], -frames.rotation[..., 1])[..., ::-1, :]
    up = np.concatenate([up, rotation[..., None, :, 2]], axis=-2)
    return Frames(np.stack([axis, np.cross(up, axis), up], axis=-1), middle)


def base_frame(spec: SpatialSpec, sample: Measurement) -> tuple[FloatArray, FloatArray]:
    """Return rotation (W, 3, 3) and origin (W, 3) [m] of the base frame, by the measured pose of the head.

    Where nothing tells the vertical the head is taken for level, and where nothing tells its height, for lying on 0.
    """
    zero = np.zeros_like(sample.head_angle)
    up = np.array([0.0, 0.0, 1.0]) if sample.head_up_h is None else sample.head_up_h
    side, rise, top = (zero + x for x in np.moveaxis(up, -1, 0))
    level = np.sqrt(np.maximum(1.0 - rise * rise, 1e-12))  # horizontal share of the direction ahead
    cos, sin = np.cos(sample.head_angle), np.sin(sample.head_angle)
    ahead = np.stack([level * cos, level * sin, -rise], axis=-1)
    left = np.stack([-sin, cos, zero], axis=-1)
    above = np.cross(ahead, left)
    z = (top / level)[:, None] * above - (side / level)[:, None] * left
    rotation = np.stack([np.cross(z, ahead), -ahead, z], axis=-1)
    height = zero + spec.rest_height_m if sample.head_z_w is None else sample.head_z_w
    middle = np.concatenate([sample.head_xy_w, height[:, None]], axis=1)
    return rotation, middle - 0.5 * spec.head_length_m * ahead


def link_ends(spec: SpatialSpec, rotation: FloatArray, origin: FloatArray, joint_angle: FloatArray) -> FloatArray:
    """Return the ends of the links (W, N + 1, 3) [m] in the world, tail first; arguments as for ``posture``."""
    links = link_frames(spec, rotation, origin, joint_angle)
    along = spec.links("link_half_length_m")[:, None] * links.rotation[..., 0]
    return np.concatenate([(links.origin - along)[..., :1, :], links.origin + along], axis=-2)


def wind_pose(spec: SpatialSpec, joint_angle: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return orientation (4,), scalar first, and origin (3,) [m] of the base frame of a robot wound around the z axis.

    The robot is bent to a spiral by ``joint_angle`` (J,) [rad], the head at its upper end, the lowest middle of a link
    at height 0. The spiral's axis is the direction that the links' directions lean to most evenly, through the middle
    of the circle that fits their middles best, by least squares.
    """
    still = posture(spec, np.eye(3)[None], np.zeros((1, 3)), joint_angle[None])
    axes, middles = still.axis[0], still.middle[0]
    spread = axes - axes.mean(axis=0)
    up = np.linalg.eigh(spread.T @ spread)[1][:, 0]
    if (middles[-1] - middles[0]) @ up < 0.0:
        up = -up
    ahead = np.cross(up, [1.0, 0.0, 0.0] if abs(up[0]) < 0.9 else [0.0, 1.0, 0.0])
    ahead /= np.linalg.norm(ahead)
    rotation = np.stack([ahead, np.cross(up, ahead), up])
    placed = middles @ rotation.T
    system = np.column_stack([2.0 * placed[:, :2], np.ones(len(placed))])
    x, y, _ = np.linalg.lstsq(system, (placed[:, :2] ** 2).sum(axis=1), rcond=None)[0]
    return quaternion_of(rotation), -np.array([x, y, placed[:, 2].min()])


def quaternion_of(rotation: FloatArray) -> FloatArray:
    """Return the unit quaternion (4,), scalar first, of a rotation (3, 3)."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = rotation
    squares = np.array([xx + yy + zz, xx - yy - zz, yy - xx - zz, zz - xx - yy])
    best = int(squares.argmax())
    a = 0.5 * np.sqrt(1.0 + squares[best])
    rows = (
        (a, (zy - yz) / (4 * a), (xz - zx) / (4 * a), (yx - xy) / (4 * a)),
        ((zy - yz) / (4 * a), a, (xy + yx) / (4 * a), (xz + zx) / (4 * a)),
        ((xz - zx) / (4 * a), (xy + yx) / (4 * a), a, (yz + zy) / (4 * a)),
        ((yx - xy) / (4 * a), (xz + zx) / (4 * a), (yz + zy) / (4 * a), a),
    )
    return np.array(rows[best])
