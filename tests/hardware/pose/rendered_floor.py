"""Pictures of tags as a camera would take them: pinhole with lens distortion, blur, noise, things in the way.

Every pixel's ray is followed to the head tag's plane, then to the floor; this shares no code with the reader but
OpenCV's prints of the tags.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import cv2
import numpy as np

from snake_gym.hardware.pose.april_tags import CameraConfig, FloorTag

GREY, DARK = 190.0, 110.0
PRINTS = cv2.aruco.getPredefinedDictionary(cv2.aruco.DICT_APRILTAG_36h11)


@dataclass(frozen=True)
class Lens:
    """A camera at ``position``, tilted from looking straight down."""

    width: int = 960
    height: int = 720
    focal: float = 800.0
    k1: float = 0.0
    k2: float = 0.0
    position: tuple[float, float, float] = (0.5, 0.0, 1.8)
    tilt_rad: float = 0.0
    turn_rad: float = 0.3

    @property
    def matrix(self) -> tuple[float, float, float, float]:
        return self.focal, self.focal, 0.5 * self.width + 3.0, 0.5 * self.height - 5.0

    def rotation(self) -> np.ndarray:
        """World from camera (x right, y down, z forward)."""
        down = np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, -1.0]])
        c, s = math.cos(self.tilt_rad), math.sin(self.tilt_rad)
        tilt = np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
        c, s = math.cos(self.turn_rad), math.sin(self.turn_rad)
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        return turn @ tilt @ down

    @functools.lru_cache(maxsize=4)  # noqa: B019
    def rays(self, fine: int) -> np.ndarray:
        """Directions (H, W, 3) of the pixels, ``fine`` times as many each way, world frame."""
        fx, fy, cx, cy = self.matrix
        u = (np.arange(self.width * fine) + 0.5) / fine - 0.5
        v = (np.arange(self.height * fine) + 0.5) / fine - 0.5
        x, y = np.meshgrid((u - cx) / fx, (v - cy) / fy)
        gx, gy = x.copy(), y.copy()
        for _ in range(6):  # the undistorted point whose distorted one this is
            r2 = gx**2 + gy**2
            stretch = 1.0 + self.k1 * r2 + self.k2 * r2**2
            gx, gy = x / stretch, y / stretch
        return np.stack([gx, gy, np.ones_like(gx)], axis=-1) @ self.rotation().T


@functools.lru_cache(maxsize=16)
def render(
    config: CameraConfig, lens: Lens, xy: tuple[float, float], angle: float, hidden: tuple[int, ...] = (), fine: int = 2
) -> np.ndarray:
    """The picture (H, W) uint8 with the head link at ``xy`` [m], ``angle`` [rad]; ``hidden``: tags half covered."""
    rays, eye = lens.rays(fine), np.array(lens.position)
    picture = np.full(rays.shape[:2], GREY)
    head = config.head
    cos, sin = math.cos(angle), math.sin(angle)
    at = (
        xy[0] + cos * head.forward_m - sin * head.left_m,
        xy[1] + sin * head.forward_m + cos * head.left_m,
    )
    lying = [(tag, 0.0) for tag in config.floor]
    lying.append((FloorTag(head.id, at[0], at[1], angle + head.angle_rad, head.size_m), head.height_m))
    for tag, height in lying:
        distance = (height - eye[2]) / rays[..., 2]
        x, y = eye[0] + distance * rays[..., 0] - tag.x_m, eye[1] + distance * rays[..., 1] - tag.y_m
        rows, columns = np.nonzero((np.abs(x) < tag.size_m) & (np.abs(y) < tag.size_m) & (distance > 0))
        x, y = x[rows, columns], y[rows, columns]
        c, s = math.cos(tag.angle_rad), math.sin(tag.angle_rad)
        right, up = (c * x + s * y) / tag.size_m + 0.5, (-s * x + c * y) / tag.size_m + 0.5
        paper = (np.abs(right - 0.5) < 0.625) & (np.abs(up - 0.5) < 0.625)
        ink = (np.abs(right - 0.5) < 0.5) & (np.abs(up - 0.5) < 0.5)
        cell = cv2.aruco.generateImageMarker(PRINTS, tag.id, 80)[
            np.clip(((1.0 - up) * 80).astype(int), 0, 79), np.clip((right * 80).astype(int), 0, 79)
        ]
        shade = np.where(ink, 20.0 + 215.0 * (cell > 127), 235.0)
        if tag.id in hidden:
            shade = np.where(right + 0.3 * up > 0.55, DARK, shade)
        picture[rows[paper], columns[paper]] = shade[paper]
    return cv2.resize(picture, (lens.width, lens.height), interpolation=cv2.INTER_AREA).round().astype(np.uint8)


def spoil(picture: np.ndarray, blur: float = 0.0, smear: int = 0, noise: float = 0.0, seed: int = 0) -> np.ndarray:
    """Out of focus by ``blur`` [pixels], moving by ``smear`` [pixels], noisy by ``noise`` [grey levels]."""
    spoilt = picture.astype(np.float32)
    if blur:
        spoilt = cv2.GaussianBlur(spoilt, (0, 0), blur)
    if smear:
        spoilt = cv2.filter2D(spoilt, -1, np.full((1, smear), 1.0 / smear, np.float32))
    spoilt += np.random.default_rng(seed).normal(0.0, noise, spoilt.shape).astype(np.float32) if noise else 0.0
    return np.clip(spoilt, 0, 255).astype(np.uint8)
