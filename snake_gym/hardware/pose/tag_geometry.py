"""Where a tag is, from its corners in an image and those of tags on the floor. Pure geometry, without OpenCV.

Frames: the world's x-y plane is the floor, z points up to the camera; image points are x right, y down. A tag's frame
has its origin in the tag's centre, x to the right and y up on the upright print; corners are numbered as on the print:
top left, top right, bottom right, bottom left.

The floor gives a homography H with ``s (u, v, 1) = H (x, y, 1)``. In normalised image coordinates (distortion and
camera matrix taken out) ``H = [r1 r2 t]`` up to scale, with r1, r2 the first columns of the camera's rotation
(Zhang, A flexible new technique for camera calibration, IEEE PAMI 22(11), 2000, eq. 2 and section 3.1), so the plane
at height h above the floor has ``H_h = [r1 r2 t + h r3]``, ``r3 = r1 x r2``: that is how a tag that lies higher than
the floor is put in its place. In plain pixels only the floor itself can be mapped.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from snake_gym.robot.spec import FloatArray

_UPRIGHT = np.array([[-0.5, 0.5], [0.5, 0.5], [0.5, -0.5], [-0.5, -0.5]])


class PlanePose(NamedTuple):
    """A tag in a horizontal plane."""

    xy_m: FloatArray
    """(2,) [m] its centre."""
    angle_rad: float
    """Direction of its x axis."""
    misfit_m: float
    """Root mean square distance of its corners from those of a square of its size."""


def tag_corners(size_m: float, xy_m: FloatArray, angle_rad: float) -> FloatArray:
    """Corners (4, 2) [m] of a tag of side ``size_m``, world frame."""
    cos, sin = math.cos(angle_rad), math.sin(angle_rad)
    return size_m * _UPRIGHT @ np.array([[cos, sin], [-sin, cos]]) + np.asarray(xy_m)


def fit_homography(plane_xy: FloatArray, image_uv: FloatArray) -> FloatArray:
    """H (3, 3) from points (K, 2) [m] of a plane and their images (K, 2), K >= 4.

    The linear solution on shifted and scaled points (Hartley, In defense of the eight-point algorithm, IEEE PAMI
    19(6), 1997), then Gauss-Newton on the distances in the image. Raises ValueError where the points give none.
    """
    plane_scale, image_scale = _normaliser(plane_xy), _normaliser(image_uv)
    p, q = _apply(plane_scale, plane_xy), _apply(image_scale, image_uv)
    rows = []
    for (x, y), (u, v) in zip(p.tolist(), q.tolist(), strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y, -u])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y, -v])
    _, sizes, directions = np.linalg.svd(np.array(rows, dtype=np.float64))
    if len(rows) < 8 or sizes[7] < 1e-9 * sizes[0]:
        raise ValueError(f"{len(plane_xy)} points give no homography; expected at least 4, no three in line")
    h: FloatArray = directions[-1] / directions[-1][-1]
    for _ in range(4):
        h = _refined(h, p, q)
    homography = np.asarray(np.linalg.inv(image_scale) @ h.reshape(3, 3) @ plane_scale, dtype=np.float64)
    return np.asarray(homography / np.linalg.norm(homography))


def _refined(h: FloatArray, p: FloatArray, q: FloatArray) -> FloatArray:
    """One Gauss-Newton step on the image distances, last entry held at 1."""
    homogeneous = np.column_stack([p, np.ones(len(p))])
    top, weight = homogeneous @ h.reshape(3, 3).T, homogeneous @ h[6:]
    found = top[:, :2] / weight[:, None]
    slope = np.zeros((len(p), 2, 8))
    slope[:, 0, 0:3] = slope[:, 1, 3:6] = homogeneous / weight[:, None]
    for axis in range(2):
        slope[:, axis, 6:8] = -found[:, axis, None] * p / weight[:, None]
    step = np.linalg.lstsq(slope.reshape(-1, 8), (q - found).reshape(-1), rcond=None)[0]
    return np.append(h[:8] + step, 1.0)


def raise_plane(homography: FloatArray, height_m: float) -> FloatArray:
    """Homography of the plane ``height_m`` above the floor, from that of the floor in normalised image coordinates."""
    columns = homography.T.copy()
    scale = 0.5 * (np.linalg.norm(columns[0]) + np.linalg.norm(columns[1]))
    columns /= scale if columns[2, 2] > 0.0 else -scale  # the floor lies before the camera
    # The nearest pair of columns of a rotation: noise leaves them neither equally long nor square to each other.
    u, _, v = np.linalg.svd(columns[:2].T, full_matrices=False)
    first, second = np.asarray(u @ v, dtype=np.float64).T
    upwards = np.cross(first, second)
    return np.column_stack([columns[0], columns[1], columns[2] + height_m * upwards])


def to_plane(homography: FloatArray, image_uv: FloatArray) -> FloatArray:
    """Points (K, 2) [m] of the plane whose images are ``image_uv`` (K, 2)."""
    return _apply(np.asarray(np.linalg.inv(homography), dtype=np.float64), image_uv)


def to_image(homography: FloatArray, plane_xy: FloatArray) -> FloatArray:
    """Images (K, 2) of points (K, 2) [m] of the plane."""
    return _apply(homography, plane_xy)


def fit_square(corners_m: FloatArray, size_m: float) -> PlanePose:
    """The tag of side ``size_m`` whose corners are nearest to ``corners_m`` (4, 2) (Procrustes without scale)."""
    centre = corners_m.mean(axis=0)
    arms, square = corners_m - centre, size_m * _UPRIGHT
    sine = float((square[:, 0] * arms[:, 1] - square[:, 1] * arms[:, 0]).sum())
    cosine = float((square * arms).sum())
    angle = math.atan2(sine, cosine)
    off = corners_m - tag_corners(size_m, centre, angle)
    return PlanePose(centre, angle, math.sqrt(float((off**2).sum(axis=1).mean())))


def _apply(matrix: FloatArray, points: FloatArray) -> FloatArray:
    homogeneous = np.column_stack([points, np.ones(len(points))]) @ matrix.T
    return np.asarray(homogeneous[:, :2] / homogeneous[:, 2:])


def _normaliser(points: FloatArray) -> FloatArray:
    """Similarity that puts points (K, 2) around the origin, at a mean distance of 1.4."""
    centre = points.mean(axis=0)
    distance = float(np.hypot(*(points - centre).T).mean())
    scale = math.sqrt(2.0) / max(distance, 1e-12)
    return np.array([[scale, 0.0, -scale * centre[0]], [0.0, scale, -scale * centre[1]], [0.0, 0.0, 1.0]])
