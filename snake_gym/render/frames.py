"""Pictures of one robot on its course, drawn with pygame: an array for videos, or a window to watch.

The camera keeps the robot and its current target in view; a target too far away to be shown is pointed at from the
edge. ``rgb_array`` needs no display and leaves the SDL settings of the process alone.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snake_gym.config import ConfigError, choose, require
from snake_gym.envs.core import SnakeCore
from snake_gym.envs.recording import observe_surroundings
from snake_gym.render import palette
from snake_gym.render.palette import blend, rgb
from snake_gym.render.sketch import Camera, Sketch
from snake_gym.render.surroundings import Surroundings, draw_above, draw_below, surroundings_at
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.fault_kinds import name_of_code

RenderMode = Literal["rgb_array", "human"]

_BODY_WIDTH = 0.42
"""Width of the drawn body as a share of a link's length."""
_TRAIL_POINTS = 400


class FrameRenderer:
    """Renderer of frames of one robot.

    Args:
        spec: robot, for the link lengths.
        mode: "rgb_array" returns frames; "human" shows them in a window as well.
        size: width and height of a frame [pixel].
        fps: frame rate of "human"; None: real time, one frame per control step.
        head_colour: "#RRGGBB" of the head and the trail.

    Raises:
        ConfigError: pygame is not installed, or "human" has no display.
    """

    def __init__(
        self, spec: RobotSpec, mode: RenderMode = "rgb_array", size: tuple[int, int] = (640, 480),
        fps: float | None = None, head_colour: str = palette.BLUE,
    ) -> None:  # fmt: skip
        self.mode = choose(mode, get_args(RenderMode), "render_mode")
        self.size = (int(size[0]), int(size[1]))
        if min(self.size) < 64:
            raise ConfigError(f"the frame size is {self.size}; expected at least 64 x 64 pixels")
        self._pygame = load_pygame()
        self._fps = fps if fps is not None else 1.0 / spec.control_dt_s
        self._head_colour = head_colour
        self._fault_colours = palette.fault_colours()
        self._half_length = spec.links("link_half_length_m")
        self._body_m = _BODY_WIDTH * 2.0 * float(self._half_length.mean())
        self._sketch = Sketch(self._pygame, self.size, spec.length_m)
        self._camera = self._sketch.camera
        self.window: Any = None
        if self.mode == "human":
            self._open_window()

    def draw(self, *scene: Any, **more: Any) -> NDArray[np.uint8]:
        """Return the frame (H, W, 3) that ``paint`` paints of the same arguments; "human" shows it as well."""
        frame = self.paint(*scene, **more)
        if self.window is not None:
            self._show(frame)
        return np.ascontiguousarray(np.swapaxes(self._pygame.surfarray.array3d(frame), 0, 1))

    def paint(
        self, theta: ArrayLike, head_xy: ArrayLike, targets: ArrayLike, current: int, trail: ArrayLike = (),
        failed: ArrayLike = (), text: Sequence[str] = (), radius_m: float = 0.1,
        surroundings: Surroundings | None = None, over: Callable[[Sketch, FloatArray], None] | None = None,
        ends_xy: FloatArray | None = None,
    ) -> Any:  # fmt: skip
        """Return one frame, a surface of pygame.

        Args:
            theta: (N,) [rad] link angles, world frame, tail first.
            head_xy: (2,) [m] centre of the head link.
            targets: (K, 2) [m].
            current: index of the target the robot goes to; targets before it are drawn as reached. K: all are.
            trail: (T, 2) [m] past positions of the robot, oldest first.
            failed: (J,) fault kind of each joint now (0: healthy), or True where it has failed.
            text: lines for the upper left corner.
            radius_m: distance at which a target counts as reached [m].
            surroundings: obstacles around the robot and its sensing of them.
            over: what draws on top of all, with the ends of the links (N + 1, 2) [m].
            ends_xy: (N + 1, 2) [m] ends of the links, from the tail's tip; None: those that follow from ``theta``.
        """
        angle = np.asarray(theta, dtype=np.float64)
        goals = np.asarray(targets, dtype=np.float64).reshape(-1, 2)
        joints = self._joints(angle, np.asarray(head_xy, dtype=np.float64)) if ends_xy is None else ends_xy
        kinds = np.asarray(failed, dtype=np.int64).ravel() if np.size(failed) else np.zeros(angle.size - 1, np.int64)
        if kinds.size != angle.size - 1:
            raise ValueError(f"failed has {kinds.size} entries; expected {angle.size - 1}, one for each joint")
        self._camera.follow(joints, goals[current] if 0 <= current < len(goals) else None)
        self._sketch.canvas.fill(rgb(palette.PAPER))
        self._sketch.grid()
        if surroundings is not None:
            draw_below(self._sketch, surroundings)
        self._draw_targets(goals, current, radius_m)
        self._draw_trail(np.asarray(trail, dtype=np.float64).reshape(-1, 2))
        self._draw_robot(joints, kinds)
        if surroundings is not None:
            draw_above(self._sketch, surroundings, (joints[:-1] + joints[1:]) / 2.0)
        if 0 <= current < len(goals):
            self._sketch.point_at(goals[current])
        elif not len(goals) and surroundings is not None:
            self._sketch.point_at(surroundings.aim_xy)
        self._sketch.scale_bar()
        self._draw_text(text, kinds)
        if over is not None:
            over(self._sketch, joints)
        return self._pygame.transform.smoothscale(self._sketch.canvas, self.size)

    @property
    def camera(self) -> Camera:
        """The camera; its pixels are those of a canvas ``Sketch.scale`` times as large as a frame."""
        return self._camera

    def cut(self) -> None:
        """Begin another scene: the camera moves to the robot at once."""
        self._camera.cut()

    def close(self) -> None:
        """Close the window. May be called more than once."""
        if self.window is not None:
            self.window = None
            self._pygame.display.quit()

    def _joints(self, theta: FloatArray, head_xy: FloatArray) -> FloatArray:
        """Return the ends of the links (N + 1, 2) [m], from the tail's tip to the head's tip."""
        if theta.size != self._half_length.size:
            raise ValueError(f"theta has {theta.size} angles; this renderer draws {self._half_length.size} links")
        step = 2.0 * self._half_length[:, None] * np.stack([np.cos(theta), np.sin(theta)], axis=1)
        tip = head_xy + step[-1] / 2.0
        ends = np.vstack([np.zeros(2), np.cumsum(step, axis=0)])
        return np.asarray(tip + ends - ends[-1])

    def _draw_targets(self, targets: FloatArray, current: int, radius_m: float) -> None:
        sketch, path = self._sketch, self._camera.to_pixel(targets)
        for start, end in pairwise(path):
            sketch.dashed(start, end, blend(palette.MUTED, palette.PAPER, 0.35))
        radius = max(radius_m * self._camera.pixel_per_m, sketch.width(4.0))
        for index, at in enumerate(path):
            colour = palette.GREEN if index < current else palette.ORANGE if index == current else palette.MUTED
            fill = 0.55 if index < current else 0.35 if index == current else 0.1
            sketch.circle(at, radius, blend(colour, palette.PAPER, fill))
            sketch.circle(at, radius, colour, sketch.width(1.5))
            if index == current:
                sketch.circle(at, sketch.width(2.5), colour)

    def _draw_trail(self, trail: FloatArray) -> None:
        for index, (start, end) in enumerate(pairwise(self._camera.to_pixel(trail))):
            colour = blend(self._head_colour, palette.PAPER, 0.15 + 0.5 * (index + 1) / (len(trail) - 1))
            self._sketch.capsule(start, end, self._sketch.width(2.0), colour)

    def _draw_robot(self, joints: FloatArray, kinds: NDArray[np.int64]) -> None:
        sketch, pixels = self._sketch, self._camera.to_pixel(joints)
        body = self._body_m * self._camera.pixel_per_m
        edge = sketch.width(1.5)
        for inset, tail, head in ((0.0, palette.INK, palette.INK), (2.0 * edge, palette.BODY, self._head_colour)):
            for index, (start, end) in enumerate(pairwise(pixels)):
                is_head = index == len(joints) - 2
                width = body * (1.15 if is_head else 1.0) - inset
                sketch.capsule(start, end, max(width, 1.0), head if is_head else tail)
        neck, tip = pixels[-2:]
        along = (tip - neck) / max(float(np.hypot(*(tip - neck))), 1e-9)
        side = np.array([-along[1], along[0]])
        for sign in (-1.0, 1.0):  # eyes
            sketch.circle(tip + 0.05 * body * along + sign * 0.28 * body * side, 0.15 * body, palette.PAPER)
        for at, kind in zip(pixels[1:-1], kinds, strict=True):
            if kind:
                sketch.circle(at, 0.62 * body + edge, palette.INK)
                sketch.circle(at, 0.62 * body, self._fault_colours.get(int(kind), palette.MUTED))
            else:
                sketch.circle(at, 0.24 * body, palette.JOINT)

    def _draw_text(self, text: Sequence[str], kinds: NDArray[np.int64]) -> None:
        sketch = self._sketch
        x, y = 12 * sketch.scale, 10 * sketch.scale
        for line in text:
            label = sketch.font.render(line, True, rgb(palette.INK))
            sketch.label(label, (x, y))
            y += round(1.15 * label.get_height())
        y = int(self._camera.pixels[1]) - 12 * sketch.scale
        for kind in sorted(set(kinds[kinds != 0].tolist())):
            numbers = ", ".join(str(j + 1) for j in np.flatnonzero(kinds == kind))
            plural = "s" if "," in numbers else ""
            label = sketch.font.render(f"{name_of_code(kind)}: joint{plural} {numbers}", True, rgb(palette.INK))
            y -= round(1.25 * label.get_height())
            radius = label.get_height() * 0.36
            at = (x + radius, y + label.get_height() / 2)
            sketch.label(label, (x + 3 * radius, y), 3 * radius)
            sketch.circle(at, radius + sketch.width(1.0), palette.INK)
            sketch.circle(at, radius, self._fault_colours.get(kind, palette.MUTED))

    def _open_window(self) -> None:
        try:
            self._pygame.display.init()
            self.window = self._pygame.display.set_mode(self.size)
        except self._pygame.error as error:
            self._pygame.display.quit()
            why = f"no window can be opened ({error})"
            raise ConfigError(f"{why}; expected a display, render_mode 'rgb_array' or SDL_VIDEODRIVER=dummy") from None
        self._pygame.display.set_caption("snake_gym")
        self._clock = self._pygame.time.Clock()

    def _show(self, frame: Any) -> None:
        """Show the frame for its duration. A window that the user closes stays closed; frames are still returned."""
        if any(event.type == self._pygame.QUIT for event in self._pygame.event.get()):
            self.close()
            return
        self.window.blit(frame, (0, 0))
        self._pygame.display.flip()
        self._clock.tick(self._fps)


class WorldView:
    """View of world ``world`` of ``core`` in mode "rgb_array" or "human", with the trail of its tracked point."""

    def __init__(self, core: SnakeCore, world: int, mode: RenderMode) -> None:
        self._core = core
        self._world = world
        self._renderer = FrameRenderer(core.spec, mode)
        self._trail: list[NDArray[np.float64]] = []
        self._time_s = -1.0

    def draw(self) -> NDArray[np.uint8]:
        """Return the present frame (H, W, 3)."""
        core, world = self._core, self._world
        state, task = core.robot.state, core.task
        point, time_s, head_xy = task.point(state)[world], float(state.time_s[world]), state.head_xy[world]
        if time_s < self._time_s:
            self._trail.clear()
            self._renderer.cut()
        if time_s != self._time_s:
            self._trail = [*self._trail[1 - _TRAIL_POINTS :], point.copy()]
        self._time_s = time_s
        failed = core.robot.acting_kind()[world]
        around = observe_surroundings(core, world)
        contact, seen = "", None
        if around is not None:
            if around.features.size:
                contact = f"   contact {float(np.hypot(*around.force_w[0].T).sum()):.0f} N"
            seen = surroundings_at(around, 0, head_xy, state.link_angle[world, -1], core.spec)
        text = [
            f"{time_s:.1f} s",
            f"progress {task.progress_m[world]:.2f} m   "
            + (task.caption(world) or standing(int(task.index[world]), task.targets_xy[world], point)),
            f"failed joints {np.count_nonzero(failed)}{contact}",
        ]
        return self._renderer.draw(
            state.link_angle[world], head_xy, task.targets_xy[world], int(task.index[world]), np.array(self._trail),
            failed, text, task.radius_m, seen,
        )  # fmt: skip

    def close(self) -> None:
        """Free the window or surface."""
        self._renderer.close()


def standing(reached: int, targets_xy: ArrayLike, point_xy: ArrayLike) -> str:
    """Return as text the progress of a robot at point_xy (2,) [m] through its targets_xy (K, 2) [m]."""
    targets = np.asarray(targets_xy, dtype=np.float64)
    if not len(targets):
        return ""
    if len(targets) > 1:
        return f"{reached} target{'' if reached == 1 else 's'}"
    if reached:
        return "goal reached"
    return f"{float(np.hypot(*(targets[0] - np.asarray(point_xy)))):.2f} m to the goal"


def load_pygame() -> Any:
    """Import and return pygame, silently. Raises ConfigError, with what to install, if it is missing."""
    require("rendering", "pygame")
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pygame imports a deprecated part of setuptools
        return importlib.import_module("pygame")
