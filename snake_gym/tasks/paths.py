"""Paths to follow: their settings, and the polylines that they become in each episode.

A path begins at the origin. Behind its end comes a run-out, along which what is shown of it goes on: the next lap of a
closed path, the straight continuation of an open one.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from snake_gym.config import ConfigError, Settings
from snake_gym.config.errors import show
from snake_gym.config.files import read_file
from snake_gym.physics.state import FloatArray
from snake_gym.tasks.task import FARTHEST_M, Coordinate

Size = Annotated[float, Field(ge=0.01, le=1e6)]
MOST_POINTS = 5_000
"""Largest number of points of a recorded path; every world holds all of them."""
MOST_BENDS = 256
_CIRCLE_POINTS = 257
"""Points of a circle; its chords are nearer to it than 1e-4 of its radius."""
_BEND_POINTS = 16
"""Points of a spline in each bend."""


_KINDS = {
    "length_m": ("line", "spline"), "radius_m": ("circle",), "side_m": ("square",), "side": ("circle", "square"),
    "bend_every_m": ("spline",), "max_bend_rad": ("spline",), "points": ("recorded",), "file": ("recorded",),
    "closed": ("recorded",),
}  # fmt: skip
"""Settings that only some kinds of path have -> those kinds."""


class PathConfig(Settings):
    """Shape of the path, and how it lies before the robot."""

    kind: Literal["line", "circle", "square", "spline", "recorded"] = "spline"
    """line; circle and square: one lap; spline: random bends, anew in each episode; recorded: points or file."""
    length_m: Size = 20.0
    """Length of a line or spline."""
    radius_m: Size = 1.5
    """Radius of a circle."""
    side_m: Size = 2.5
    """Side of a square, which begins at a corner."""
    bend_every_m: Size = 1.5
    """Length of each bend of a spline."""
    max_bend_rad: Annotated[float, Field(ge=0.0, le=math.pi)] = 1.0
    """Largest change of direction in a bend; the smallest radius is bend_every_m / (1.5 max_bend_rad)."""
    points: tuple[tuple[Coordinate, Coordinate], ...] = ()
    """[m] corners of a recorded path; it is moved to the robot, its first piece in the direction of the path."""
    file: str | None = None
    """CSV file of such points in place of them: lines x,y; it is read once, and its content becomes points."""
    closed: bool = False
    """Recorded path: from its last point it goes back to its first one, and the path is one lap."""
    side: Literal["left", "right", "random"] = "random"
    """Circle and square: to which side they turn: left, right, or random (drawn for each episode)."""
    max_turn_rad: Annotated[float, Field(ge=0.0, le=math.pi)] = 0.5
    """Largest angle between the robot's heading and the path's first direction, random in each episode."""

    def check(self) -> None:
        self._check_kind()
        if self.file is not None:
            if self.points:
                raise ValueError("path.points and path.file are given; expected one of them")
            # From here on the settings alone say what the path is, wherever they go and whatever becomes of the file.
            object.__setattr__(self, "points", read_points(self.file))
            object.__setattr__(self, "file", None)
        if self.kind == "recorded":
            self._check_points()
        if self.kind == "spline" and self.length_m / self.bend_every_m > MOST_BENDS:
            raise ValueError(
                f"path.bend_every_m is {self.bend_every_m:g} for length_m {self.length_m:g}; expected at least "
                f"{self.length_m / MOST_BENDS:g}, for {MOST_BENDS} bends"
            )

    def _check_kind(self) -> None:
        """Raise ValueError for a setting that the path's kind has no use for."""
        for field in dataclasses.fields(self):
            kinds = _KINDS.get(field.name, (self.kind,))
            if self.kind not in kinds and getattr(self, field.name) != field.default:
                raise ValueError(
                    f"path.{field.name} is given for path.kind {self.kind}; expected path.kind {' or '.join(kinds)}"
                )

    def _check_points(self) -> None:
        if not 2 <= len(self.points) <= MOST_POINTS:
            raise ValueError(
                f"path.points has {len(self.points)} entries for path.kind recorded; expected 2 to {MOST_POINTS}"
            )
        corners = [*self.points, self.points[0]] if self.closed else self.points
        length = np.hypot(*np.diff(np.array(corners), axis=0).T)
        if length.min() < 1e-6:
            i = int(length.argmin())
            raise ValueError(f"path.points[{i}] is {list(corners[i])}, as the next one; expected different neighbours")

    @property
    def is_closed(self) -> bool:
        """Whether the path is a lap."""
        return self.kind in ("circle", "square") or self.closed


def read_points(file: str) -> tuple[tuple[float, float], ...]:
    """Return the points of a CSV file: lines ``x,y``; empty ones, ``#`` comments and a header ``x,y`` are left out.

    Raises ConfigError, naming file and line.
    """
    points: list[tuple[float, float]] = []
    try:
        lines = read_file(file).decode("utf-8-sig").splitlines()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"path.file is {show(file)} ({reason}); expected a CSV file with lines x,y [m]") from None
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.startswith("#") and line.replace(" ", "") != "x,y":
            try:
                x, y = map(float, line.split(","))
            except ValueError:
                x = y = math.nan
            if not (abs(x) <= FARTHEST_M and abs(y) <= FARTHEST_M):
                most = f"numbers x,y of at most {FARTHEST_M:g}"
                raise ConfigError(f"path.file {file}, line {number} is {show(line)}; expected {most}")
            points.append((x, y))
    return tuple(points)


class PathMaker:
    """Maker of paths with a run-out of at least ``ahead_m`` [m] (of a closed path: one lap)."""

    def __init__(self, config: PathConfig, ahead_m: float) -> None:
        self._ahead_m = ahead_m
        self.n_bends = math.ceil(config.length_m / config.bend_every_m) if config.kind == "spline" else 0
        self.n_random = 2 + self.n_bends
        """Random numbers for a path."""
        self._shape = _shape(config)
        self.n_points = 1 + max(200, _BEND_POINTS * self.n_bends) if self._shape is None else len(self._shape)
        """Points of the path itself."""
        self.n_route = 2 * self.n_points - 1 if config.is_closed else self.n_points + 1
        """Points with those of the run-out."""
        step = np.zeros((0, 2)) if self._shape is None else np.diff(self._shape, axis=0)
        self.length_m = config.length_m if self._shape is None else float(np.hypot(step[:, 0], step[:, 1]).sum())
        """Length of the path itself [m]."""

    def make(self, config: PathConfig, heading: FloatArray, u: FloatArray) -> FloatArray:
        """Return M paths with run-outs (M, n_route, 2) [m] for robots at the origin, ``heading`` (M,) [rad].

        ``config``: the maker's settings, or easier ones; ``u`` (M, n_random): random numbers in [0, 1).
        """
        plain = (
            self._draw_spline(config, u[:, 2:])
            if self._shape is None
            else np.repeat(self._shape[None], heading.size, 0)
        )
        left = np.ones(heading.size)
        if config.kind in ("circle", "square") and config.side != "left":
            left = np.where((u[:, 1] < 0.5) & (config.side == "random"), 1.0, -1.0)
        turned = heading + config.max_turn_rad * (2.0 * u[:, 0] - 1.0)
        cos, sin = np.cos(turned)[:, None], np.sin(turned)[:, None]
        x, y = plain[..., 0], plain[..., 1] * left[:, None]
        path = np.stack([cos * x - sin * y, sin * x + cos * y], axis=-1)
        if config.is_closed:
            return np.concatenate([path, path[:, 1:]], axis=1)
        last = path[:, -1] - path[:, -2]
        beyond = path[:, -1] + last * (self._ahead_m / np.hypot(last[:, 0], last[:, 1]))[:, None]
        return np.concatenate([path, beyond[:, None]], axis=1)

    def _draw_spline(self, config: PathConfig, u: FloatArray) -> FloatArray:
        """Return curves (M, n_points, 2); their direction is a random cubic spline of the arc length, at first 0."""
        n = self.n_points - 1
        direction = np.zeros((len(u), self.n_bends + 1))
        direction[:, 1:] = np.cumsum(config.max_bend_rad * (2.0 * u - 1.0), axis=1)
        place = (np.arange(n) + 0.5) * (config.length_m / n) / config.bend_every_m
        bend = np.minimum(place.astype(np.int64), self.n_bends - 1)
        share = np.clip(place - bend, 0.0, 1.0)
        before, after = direction[:, bend], direction[:, bend + 1]
        angle = before + (after - before) * (share * share * (3.0 - 2.0 * share))
        curve = np.zeros((len(u), self.n_points, 2))
        step = config.length_m / n
        curve[:, 1:, 0] = np.cumsum(step * np.cos(angle), axis=1)
        curve[:, 1:, 1] = np.cumsum(step * np.sin(angle), axis=1)
        return curve


def _shape(config: PathConfig) -> FloatArray | None:
    """Return the points (P, 2) [m] of a path from the origin along x, going round to the left; None for a spline."""
    if config.kind == "spline":
        return None
    if config.kind == "line":
        return np.array([[0.0, 0.0], [config.length_m, 0.0]])
    if config.kind == "circle":
        angle = np.linspace(0.0, 2.0 * math.pi, _CIRCLE_POINTS)
        return config.radius_m * np.stack([np.sin(angle), 1.0 - np.cos(angle)], axis=1)
    if config.kind == "square":
        return config.side_m * np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
    points = np.array([*config.points, config.points[0]] if config.closed else config.points)
    points = points - points[0]
    along = points[1] / np.hypot(*points[1])
    return points @ np.array([[along[0], -along[1]], [along[1], along[0]]])
