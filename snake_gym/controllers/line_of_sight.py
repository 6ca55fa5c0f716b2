r"""Line-of-sight guidance: a path becomes a moving target for every controller that steers.

Model (Fossen, Handbook of Marine Craft Hydrodynamics and Motion Control, 2011, as used by haghshenas2022, section 3):
the heading wanted is the path's direction minus ``atan(cross-track error / look-ahead)``, the direction from the robot
to the point ``lookahead_m`` ahead of the place on the path nearest to it: along the path's tangent there
(``ahead: tangent``, the law as published) or along the path itself (``ahead: path``, which begins to turn before a
corner). Paths are polylines in the world frame, the same for all W robots; the nearest place is looked for near the
last one, so that a path may cross itself.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from snake_gym.config import Settings
from snake_gym.controllers.base import ControllerState
from snake_gym.obstacles.polyline import Path
from snake_gym.robot.measurement import Goal
from snake_gym.robot.spec import FloatArray


class LineOfSightConfig(Settings):
    """Settings of path following."""

    lookahead_m: Annotated[float, Field(ge=1e-6, le=1e6)] = 1.5
    """Distance from the nearest place to the target [m]; haghshenas2022: 2.5 robot lengths."""
    ahead: Literal["tangent", "path"] = "tangent"
    """Line along which the target lies ahead: the tangent at the nearest place, or the path."""


class LineOfSight:
    """Guidance of W robots to goals on a path. State: ``arc_m`` (W,) nearest arc length, NaN at the start."""

    def __init__(self, path: Path, config: LineOfSightConfig | None = None) -> None:
        self.path = path
        self.config = LineOfSightConfig() if config is None else config

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state without a known place: guidance begins at the nearest one on the whole path."""
        return {"arc_m": np.full(n_worlds, np.nan), "cross_track_m": np.zeros(n_worlds)}

    def goal(self, point_xy: FloatArray, state: ControllerState) -> Goal:
        """Return the target for robots with tracked points at (W, 2) [m], world frame; advance ``state`` in place.

        It is inactive at the end of an open path.
        """
        ahead = self.config.lookahead_m
        arc, cross = self.path.nearest(point_xy, state["arc_m"], ahead)
        state["arc_m"][:], state["cross_track_m"][:] = arc, cross
        if self.config.ahead == "path":
            target = self.path.place(arc + ahead)
        else:
            target = self.path.place(arc) + ahead * self.path.tangent(arc)
        return Goal(target, np.full(len(arc), True) if self.path.closed else arc < self.path.length_m)
