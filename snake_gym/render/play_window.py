"""Window of a player: the picture of a robot, gauges of its joints, a spatial robot in space, and a panel of keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.envs.core import SnakeCore
from snake_gym.envs.vector_env import make_view
from snake_gym.render import palette
from snake_gym.render.frames import picture_of
from snake_gym.render.palette import rgb
from snake_gym.render.robot_window import SIZE, RobotWindow
from snake_gym.render.sketch import Sketch
from snake_gym.robot.spec import FloatArray

_COLUMN, _GAUGE = 22.0, 64.0
"""Largest width of a joint's gauge, and its height [pixel]."""


class PlayWindow(RobotWindow):
    """Window on the first world of an env. Raises ConfigError where pygame or a display is missing."""

    def __init__(self, core: SnakeCore, title: str = "snake_gym", panel: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(core.spec, title, panel)
        self._core = core
        self._view: Any = None
        self._drawn_at = (-1, -1)
        if core.spec.in_space:
            try:
                self._view = make_view(core, 0, "rgb_array")
            except ConfigError as error:
                self.message = str(error)
        self._limit = np.minimum(core.spec.joint_limit_rad, core.spec.joints("joint_stop_rad"))

    def show(
        self, theta: FloatArray, head_xy: FloatArray, trail: FloatArray, text: Sequence[str], selected: int,
        ends_xy: FloatArray | None = None,
    ) -> None:  # fmt: skip
        """Show the robot with link angles ``theta`` (N,) and head at ``head_xy`` (2,) [m], and its ``selected`` joint
        (an index). ``ends_xy`` (N + 1, 2) [m] are the links' ends of a spatial robot, from above."""
        picture = picture_of(self._core, 0, theta, head_xy, trail, text)
        if ends_xy is not None:
            picture = picture._replace(ends_xy=ends_xy)

        def draw_over(sketch: Sketch) -> None:
            at, ahead = self.camera.to_pixel(picture.ends_xy[selected + 1 : selected + 3])
            sketch.circle(at, 0.5 * float(np.hypot(*(ahead - at))), palette.INK, sketch.width(1.5))
            self._draw_gauges(sketch, selected)
            if self._view is not None:
                self._draw_in_space(sketch)

        self.show_picture(picture, draw_over)

    def _draw_in_space(self, sketch: Sketch) -> None:
        """Draw MuJoCo's picture of the robot in the lower right corner, anew after each control step."""
        now = (int(self._core.episode[0]), int(self._core.step_count[0]))
        if now != self._drawn_at:
            self._drawn_at = now
            self._frame = self.pygame.surfarray.make_surface(self._view.draw().swapaxes(0, 1))
        size = 0.4 * self.camera.pixels[0] * np.array([1.0, self._frame.get_height() / self._frame.get_width()])
        sketch.canvas.blit(self.pygame.transform.smoothscale(self._frame, size), self.camera.pixels - size)

    def _draw_gauges(self, sketch: Sketch, selected: int) -> None:
        """Draw for each joint, in the upper right corner, its angle and reference between its limits."""
        core, unit, draw = self._core, float(sketch.scale), self.pygame.draw
        n, failed = core.spec.n_joints, core.robot.acting_kind()[0].tolist()
        column = min(_COLUMN, 0.5 * SIZE[0] / n) * unit
        left, top, height = self.camera.pixels[0] - (n + 0.5) * column, 14.0 * unit, _GAUGE * unit
        title = sketch.font.render("joints: angle and reference (-) within limits", True, rgb(palette.INK))
        ground = (left - 0.3 * column, top - 8.0 * unit, (n + 0.6) * column, height + 44.0 * unit)
        draw.rect(sketch.canvas, rgb(palette.PAPER), ground, border_radius=sketch.width(4.0))
        share = np.stack([core.robot.joint_angle()[0], core.reference[0]])
        share = np.clip(share / np.where(np.isfinite(self._limit), self._limit, np.pi), -1.0, 1.0)
        middle = top + height / 2.0
        for i, (y, aim) in enumerate((middle - share.T * height / 2.0).tolist()):
            x = left + (i + 0.5) * column
            bar = (x - 0.3 * column, top, 0.6 * column, height)
            draw.rect(sketch.canvas, rgb(palette.GRID), bar)
            colour = self._fault_colours.get(failed[i], palette.MUTED) if failed[i] else palette.BODY
            draw.rect(sketch.canvas, rgb(colour), (bar[0], min(y, middle), bar[2], max(abs(y - middle), 2.0)))
            sketch.line((bar[0], y), (bar[0] + bar[2], y), palette.INK, 1.0)
            sketch.line((x - 0.45 * column, aim), (x + 0.45 * column, aim), palette.ORANGE, 2.0)
            if i == selected:
                draw.rect(sketch.canvas, rgb(palette.INK), bar, sketch.width(1.5))
            label = sketch.font.render(str(i + 1), True, rgb(palette.INK if i == selected else palette.MUTED))
            sketch.canvas.blit(label, (x - label.get_width() / 2.0, top + height + 4.0 * unit))
        right = self.camera.pixels[0] - 0.4 * column - title.get_width()
        sketch.canvas.blit(title, (right, top + height + 20.0 * unit))
