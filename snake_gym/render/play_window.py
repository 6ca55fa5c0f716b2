"""Window of somebody who plays: the picture of a robot, gauges of its joints, a panel of keys, and what he presses."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError
from snake_gym.render import palette
from snake_gym.render.frames import FrameRenderer, load_pygame
from snake_gym.render.palette import blend, rgb
from snake_gym.render.sketch import Sketch
from snake_gym.render.surroundings import Surroundings
from snake_gym.robot.spec import FloatArray, RobotSpec

SIZE = (960, 720)
FPS = 30
_COLUMN, _GAUGE = 22.0, 64.0
"""Largest width of a joint's gauge, and its height [pixel]."""


class Scene(NamedTuple):
    """What a frame shows; see ``FrameRenderer.draw`` for the first ones."""

    theta: FloatArray
    head_xy: FloatArray
    targets: FloatArray
    current: int
    trail: FloatArray
    failed: NDArray[np.int64]
    text: Sequence[str]
    radius_m: float
    surroundings: Surroundings | None
    joint_angle: FloatArray
    """(J,) [rad]."""
    reference: FloatArray
    """(J,) [rad] commanded angles."""
    selected: int
    """Index of the selected joint."""
    message: str
    """Text below; "" for none."""
    panel: Sequence[tuple[str, str]]
    """Keys and what they do, over the picture; () for none."""


class PlayWindow:
    """Window for one robot. Raises ConfigError where pygame or a display is missing."""

    def __init__(self, spec: RobotSpec) -> None:
        self.pygame = load_pygame()
        self._renderer = FrameRenderer(spec, size=SIZE)
        self.camera = self._renderer.camera
        self._limit = np.minimum(spec.joint_limit_rad, spec.joints("joint_stop_rad"))
        self._stop = spec.joints("joint_stop_rad")
        self._colours = palette.fault_colours()
        try:
            self.pygame.display.init()
            self._window = self.pygame.display.set_mode(SIZE)
        except self.pygame.error as error:
            self.pygame.display.quit()
            why = f"play cannot open a window ({error})"
            raise ConfigError(f"{why}; without a display, SDL_VIDEODRIVER=dummy makes one in memory") from None
        self._clock = self.pygame.time.Clock()

    def events(self) -> list[Any]:
        """Return what has been pressed since the last call."""
        return list(self.pygame.event.get())

    def key_name(self, event: Any) -> str:
        """Return pygame's name of a pressed key."""
        return str(self.pygame.key.name(event.key))

    def world_at(self, pixel: Any) -> FloatArray:
        """Return the place (2,) [m] under a pixel of the window."""
        return self.camera.to_world(np.asarray(pixel, np.float64) * Sketch.scale)

    def wait(self) -> float:
        """Wait until the next frame is due; return the time since the last one [s]."""
        return float(self._clock.tick(FPS)) / 1000.0

    def cut(self) -> None:
        """Begin another scene."""
        self._renderer.cut()

    def show(self, scene: Scene) -> None:
        """Show a frame."""
        frame = self._renderer.paint(*scene[:9], over=lambda sketch, joints: self._draw_over(sketch, joints, scene))
        self._window.blit(frame, (0, 0))
        self.pygame.display.flip()

    def pixels(self) -> NDArray[np.uint8]:
        """Return what the window shows (H, W, 3)."""
        return np.swapaxes(self.pygame.surfarray.array3d(self._window), 0, 1)

    def png(self) -> bytes:
        """Return what the window shows as a PNG file."""
        buffer = io.BytesIO()
        self.pygame.image.save(self._window, buffer, "play.png")
        return buffer.getvalue()

    def title(self, text: str) -> None:
        """Name the window."""
        self.pygame.display.set_caption(text)

    def close(self) -> None:
        """Close the window."""
        self.pygame.display.quit()

    def _draw_over(self, sketch: Sketch, joints: FloatArray, scene: Scene) -> None:
        self._draw_range(sketch, joints, scene)
        self._draw_gauges(sketch, scene)
        width, height = self.camera.pixels.tolist()
        if scene.message:
            label = sketch.font.render(scene.message, True, rgb(palette.VERMILION))
            sketch.label(label, ((width - label.get_width()) / 2.0, height - 2.5 * label.get_height()))
        if scene.panel:
            self._draw_panel(sketch, scene.panel)

    def _draw_range(self, sketch: Sketch, joints: FloatArray, scene: Scene) -> None:
        """Draw the selected joint with its number, and the directions that its limits let the link ahead have."""
        j = scene.selected
        at, link = joints[j + 1], float(np.hypot(*(joints[j + 2] - joints[j + 1])))
        for limit in (-self._limit[j], self._limit[j]):
            turned = scene.theta[j] + limit
            end = at + 1.6 * link * np.array([np.cos(turned), np.sin(turned)])
            start, tip = self.camera.to_pixel(np.stack([at, end]))
            sketch.dashed(start, tip, palette.VERMILION)
        pixel = self.camera.to_pixel(at)
        sketch.circle(pixel, 0.5 * link * self.camera.pixel_per_m, palette.INK, sketch.width(1.5))
        for i, middle in enumerate(self.number_pixels(joints, scene.theta, j)):
            label = sketch.font.render(str(i + 1), True, rgb(palette.INK if i == j else palette.MUTED))
            sketch.canvas.blit(label, middle - np.array(label.get_size()) / 2.0)

    def number_pixels(self, joints: FloatArray, theta: FloatArray, selected: int) -> FloatArray:
        """Return the middles of the joints' numbers (J, 2) [pixel], midway between the links to the right of a joint; of
        the selected one between the link behind and the line of a limit."""
        bend, share = np.diff(theta), np.full(len(theta) - 1, 0.3)
        bend[selected], share[selected] = -min(self._limit[selected], 0.75 * np.pi), 0.5
        angle = theta[:-1] + 0.5 * (bend - np.pi)
        link = self.camera.pixel_per_m * np.hypot(*(joints[2:] - joints[1:-1]).T)
        far = (share * link + 9.0 * Sketch.scale)[:, None]
        return self.camera.to_pixel(joints[1:-1]) + far * np.stack([np.cos(angle), -np.sin(angle)], axis=1)

    def _draw_gauges(self, sketch: Sketch, scene: Scene) -> None:
        """Draw for each joint, in the upper right corner, its angle and reference between its limits."""
        unit, n = float(sketch.scale), len(scene.joint_angle)
        column = min(_COLUMN, 0.5 * SIZE[0] / n) * unit
        left, top, height = self.camera.pixels[0] - (n + 0.5) * column, 14.0 * unit, _GAUGE * unit
        title = sketch.font.render("joints: angle and reference (-) within limits", True, rgb(palette.INK))
        ground = (left - 0.3 * column, top - 8.0 * unit, (n + 0.6) * column, height + 44.0 * unit)
        self.pygame.draw.rect(sketch.canvas, rgb(palette.PAPER), ground, border_radius=sketch.width(4.0))
        scale = np.where(np.isfinite(self._limit), self._limit, np.pi)
        for i in range(n):
            x, kind = left + (i + 0.5) * column, int(scene.failed[i])
            middle = top + height / 2.0

            def level(angle: float, i: int = i, middle: float = middle) -> float:
                return middle - float(np.clip(angle / scale[i], -1.0, 1.0)) * height / 2.0

            bar = (x - 0.3 * column, top, 0.6 * column, height)
            self.pygame.draw.rect(sketch.canvas, rgb(palette.GRID), bar)
            y, colour = level(float(scene.joint_angle[i])), self._colours.get(kind, palette.MUTED)
            colour = colour if kind else palette.BODY
            low = min(y, middle)
            self.pygame.draw.rect(sketch.canvas, rgb(colour), (bar[0], low, bar[2], max(abs(y - middle), 2.0)))
            sketch.line((bar[0], y), (bar[0] + bar[2], y), palette.INK, 1.0)
            aim = level(float(scene.reference[i]))
            sketch.line((x - 0.45 * column, aim), (x + 0.45 * column, aim), palette.ORANGE, 2.0)
            if i == scene.selected:
                self.pygame.draw.rect(sketch.canvas, rgb(palette.INK), bar, sketch.width(1.5))
            label = sketch.font.render(str(i + 1), True, rgb(palette.INK if i == scene.selected else palette.MUTED))
            sketch.canvas.blit(label, (x - label.get_width() / 2.0, top + height + 4.0 * unit))
        right = self.camera.pixels[0] - 0.4 * column - title.get_width()
        sketch.canvas.blit(title, (right, top + height + 20.0 * unit))

    def _draw_panel(self, sketch: Sketch, rows: Sequence[tuple[str, str]]) -> None:
        line = 1.3 * sketch.font.get_height()
        labels = [[sketch.font.render(text, True, rgb(palette.INK)) for text in row] for row in rows]
        first, second = (max(row[i].get_width() for row in labels) for i in (0, 1))
        width, height = first + second + 3.0 * line, line * (len(rows) + 1)
        x, y = (self.camera.pixels - np.array([width, height])) / 2.0
        ground = self.pygame.Surface((width, height))
        ground.fill(rgb(palette.PAPER))
        ground.set_alpha(235)
        sketch.canvas.blit(ground, (x, y))
        frame = blend(palette.INK, palette.PAPER, 0.5)
        self.pygame.draw.rect(sketch.canvas, rgb(frame), (x, y, width, height), sketch.width(1.0))
        for i, (keys, meaning) in enumerate(labels):
            sketch.canvas.blit(keys, (x + line, y + (i + 0.5) * line))
            sketch.canvas.blit(meaning, (x + 2.0 * line + first, y + (i + 0.5) * line))
