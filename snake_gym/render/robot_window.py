"""Window for driving a robot: its picture, lines of text, a message and a panel of keys."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from snake_gym.render import palette
from snake_gym.render.frames import FrameRenderer, Picture
from snake_gym.render.palette import blend, rgb
from snake_gym.render.sketch import Sketch
from snake_gym.robot.chain import ChainSpec, FloatArray

SIZE = (960, 720)
FPS = 30


class RobotWindow(FrameRenderer):
    """Window on one robot, with a ``panel`` of keys and their use. Raises ConfigError without pygame or a display."""

    def __init__(self, spec: ChainSpec, title: str = "snake_gym", panel: Sequence[tuple[str, str]] = ()) -> None:
        self.message = ""
        """Line shown below."""
        self.helping = False
        """True: the panel is shown."""
        self._panel = panel
        super().__init__(spec, "human", SIZE)
        self.pygame.display.set_caption(title)

    def world_at(self, pixel: Any) -> FloatArray:
        """Return the place (2,) [m] under a pixel of the window."""
        return self.camera.to_world(np.asarray(pixel, np.float64) * Sketch.scale)

    def wait(self) -> float:
        """Wait until the next frame is due; return the time since the last one [s]."""
        return float(self._clock.tick(FPS)) / 1000.0

    def show_picture(self, picture: Picture, over: Callable[[Sketch], None] | None = None) -> None:
        """Show the picture, what ``over`` draws on it, the message, and the panel."""

        def draw_over(sketch: Sketch) -> None:
            if over is not None:
                over(sketch)
            width, height = self.camera.pixels.tolist()
            if self.message:
                label = sketch.font.render(self.message, True, rgb(palette.VERMILION))
                sketch.label(label, (max((width - label.get_width()) / 2.0, 0.0), height - 2.5 * label.get_height()))
            if self.helping:
                self._draw_panel(sketch)

        self.window.blit(self.paint(picture, draw_over), (0, 0))
        self.pygame.display.flip()

    def png(self) -> bytes:
        """Return what the window shows as a PNG file."""
        buffer = io.BytesIO()
        self.pygame.image.save(self.window, buffer, "window.png")
        return buffer.getvalue()

    def _draw_panel(self, sketch: Sketch) -> None:
        line = 1.3 * sketch.font.get_height()
        labels = [[sketch.font.render(text, True, rgb(palette.INK)) for text in row] for row in self._panel]
        first, second = (max(row[i].get_width() for row in labels) for i in (0, 1))
        width, height = first + second + 3.0 * line, line * (len(labels) + 1)
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
