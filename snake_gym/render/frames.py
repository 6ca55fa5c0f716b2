"""Pictures of one robot on its course, drawn with pygame: an array for videos, or a window to watch.

The camera keeps the robot and its current target in view; a target too far away to be shown is pointed at from the
edge. ``rgb_array`` needs no display and leaves the SDL settings of the process alone.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from snake_gym.config import ConfigError, require
from snake_gym.envs.core import SnakeCore
from snake_gym.envs.recording import observe_surroundings
from snake_gym.render import palette
from snake_gym.render.palette import blend, rgb
from snake_gym.render.sketch import Sketch
from snake_gym.render.surroundings import Surroundings, draw_above, draw_below, surroundings_at
from snake_gym.robot.chain import ChainSpec, FloatArray
from snake_gym.simulation.fault_kinds import name_of_code

RenderMode = Literal["rgb_array", "human"]

_BODY_WIDTH = 0.42
"""Width of the drawn body as a share of a link's length."""
_TRAIL_POINTS = 400
NOWHERE: FloatArray = np.zeros((0, 2))
"""No places."""


class Picture(NamedTuple):
    """One robot at one moment, world frame."""

    ends_xy: FloatArray
    """(N + 1, 2) [m] ends of the links, from the tail's tip; see ``ends_of``."""
    targets_xy: FloatArray = NOWHERE
    """(K, 2) [m]."""
    current: int = 0
    """Index of the target the robot goes to; targets before it are drawn as reached. K: all are."""
    trail_xy: FloatArray = NOWHERE
    """(T, 2) [m] past positions of the robot, oldest first."""
    failed: NDArray[np.int64] | None = None
    """(J,) kind of each joint's fault now, 0: healthy; None: all are."""
    text: Sequence[str] = ()
    """Lines for the upper left corner."""
    radius_m: float = 0.1
    """Distance at which a target counts as reached [m]."""
    around: Surroundings | None = None
    """Obstacles around the robot and its sensing of them."""


class FrameRenderer:
    """Renderer of frames of one robot.

    Args:
        spec: robot, for the link lengths.
        mode: "rgb_array" returns frames; "human" shows them in a window as well, in real time.
        size: width and height of a frame [pixel].
        head_colour: "#RRGGBB" of the head and the trail.

    Raises:
        ConfigError: pygame is not installed, or "human" has no display.
    """

    def __init__(
        self, spec: ChainSpec, mode: RenderMode = "rgb_array", size: tuple[int, int] = (640, 480),
        head_colour: str = palette.BLUE,
    ) -> None:  # fmt: skip
        self.size = size
        self.pygame = load_pygame()
        self._fps = 1.0 / spec.control_dt_s
        self._head_colour = head_colour
        self._fault_colours = palette.fault_colours()
        self._body_m = _BODY_WIDTH * 2.0 * float(spec.links("link_half_length_m").mean())
        self._sketch = Sketch(self.pygame, self.size, spec.length_m)
        self.camera = self._sketch.camera
        """Its pixels are those of a canvas ``Sketch.scale`` times as large as a frame."""
        self.window: Any = None
        if mode == "human":
            self._open_window()

    def draw(self, picture: Picture) -> NDArray[np.uint8]:
        """Return the frame (H, W, 3); "human" shows it as well."""
        frame = self.paint(picture)
        if self.window is not None:
            self._show(frame)
        return np.ascontiguousarray(np.swapaxes(self.pygame.surfarray.array3d(frame), 0, 1))

    def paint(self, picture: Picture, over: Callable[[Sketch], None] | None = None) -> Any:
        """Return one frame, a surface of pygame; ``over`` draws on top of all."""
        joints, goals, current, around = picture.ends_xy, picture.targets_xy, picture.current, picture.around
        kinds = np.zeros(len(joints) - 2, np.int64) if picture.failed is None else picture.failed
        target = goals[current] if 0 <= current < len(goals) else None
        self.camera.follow(joints, target)
        self._sketch.canvas.fill(rgb(palette.PAPER))
        self._sketch.grid()
        if around is not None:
            draw_below(self._sketch, around)
        self._draw_targets(goals, current, picture.radius_m)
        self._draw_trail(picture.trail_xy)
        self._draw_robot(joints, kinds)
        if around is not None:
            draw_above(self._sketch, around, (joints[:-1] + joints[1:]) / 2.0)
        if target is not None:
            self._sketch.point_at(target)
        elif not len(goals) and around is not None:
            self._sketch.point_at(around.aim_xy)
        self._sketch.scale_bar()
        self._draw_text(picture.text, kinds)
        if over is not None:
            over(self._sketch)
        return self.pygame.transform.smoothscale(self._sketch.canvas, self.size)

    def close(self) -> None:
        """Close the window. May be called more than once."""
        if self.window is not None:
            self.window = None
            self.pygame.display.quit()

    def _draw_targets(self, targets: FloatArray, current: int, radius_m: float) -> None:
        sketch, path = self._sketch, self.camera.to_pixel(targets)
        for start, end in pairwise(path):
            sketch.line(start, end, blend(palette.MUTED, palette.PAPER, 0.35))
        radius = max(radius_m * self.camera.pixel_per_m, sketch.width(4.0))
        for index, at in enumerate(path):
            colour = palette.GREEN if index < current else palette.ORANGE if index == current else palette.MUTED
            fill = 0.55 if index < current else 0.35 if index == current else 0.1
            sketch.circle(at, radius, blend(colour, palette.PAPER, fill))
            sketch.circle(at, radius, colour, sketch.width(1.5))
            if index == current:
                sketch.circle(at, sketch.width(2.5), colour)

    def _draw_trail(self, trail: FloatArray) -> None:
        for index, (start, end) in enumerate(pairwise(self.camera.to_pixel(trail))):
            colour = blend(self._head_colour, palette.PAPER, 0.15 + 0.5 * (index + 1) / (len(trail) - 1))
            self._sketch.capsule(start, end, self._sketch.width(2.0), colour)

    def _draw_robot(self, joints: FloatArray, kinds: NDArray[np.int64]) -> None:
        sketch, pixels = self._sketch, self.camera.to_pixel(joints)
        body = self._body_m * self.camera.pixel_per_m
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
        y = int(self.camera.pixels[1]) - 12 * sketch.scale
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
            self.pygame.display.init()
            self.window = self.pygame.display.set_mode(self.size)
        except self.pygame.error as error:
            self.pygame.display.quit()
            why = f"no window can be opened ({error})"
            raise ConfigError(f"{why}; expected a display, render_mode 'rgb_array' or SDL_VIDEODRIVER=dummy") from None
        self.pygame.display.set_caption("snake_gym")
        self._clock = self.pygame.time.Clock()

    def _show(self, frame: Any) -> None:
        """Show the frame for its duration. A window that the user closes stays closed; frames are still returned."""
        if any(event.type == self.pygame.QUIT for event in self.pygame.event.get()):
            self.close()
            return
        self.window.blit(frame, (0, 0))
        self.pygame.display.flip()
        self._clock.tick(self._fps)


class WorldView:
    """View of world ``world`` of ``core`` in mode "rgb_array" or "human", with the trail of its tracked point."""

    def __init__(self, core: SnakeCore, world: int, mode: RenderMode) -> None:
        self._core = core
        self._world = world
        self._renderer = FrameRenderer(core.spec, mode)
        self._trail: deque[FloatArray] = deque(maxlen=_TRAIL_POINTS)
        self._time_s = -1.0

    def draw(self) -> NDArray[np.uint8]:
        """Return the present frame (H, W, 3)."""
        core, world = self._core, self._world
        state = core.robot.state
        point, time_s, head_xy = core.point_xy[world], float(state.time_s[world]), state.head_xy[world]
        if time_s < self._time_s:
            self._trail.clear()
            self._renderer.camera.cut()
        if time_s != self._time_s:
            self._trail.append(point.copy())
        self._time_s = time_s
        failed = np.count_nonzero(core.robot.acting_kind()[world])
        force_n = float(np.hypot(*state.contact_force[world].T).sum())
        contact = f"   contact {force_n:.0f} N" if force_n > 0.0 else ""
        text = [f"{time_s:.1f} s", progress_text(core, world), f"failed joints {failed}{contact}"]
        picture = picture_of(core, world, state.link_angle[world], head_xy, np.array(self._trail), text)
        return self._renderer.draw(picture)

    def close(self) -> None:
        """Free the window or surface."""
        self._renderer.close()


def ends_of(spec: ChainSpec, link_angle: FloatArray, head_xy: FloatArray) -> FloatArray:
    """Return the ends of the links (N + 1, 2) [m], from the tail's tip to the head's tip.

    ``link_angle`` (N,) [rad], world frame, tail first; ``head_xy`` (2,) [m] centre of the head link.
    """
    step = 2.0 * spec.links("link_half_length_m")[:, None] * np.stack([np.cos(link_angle), np.sin(link_angle)], axis=1)
    tip = np.asarray(head_xy) + step[-1] / 2.0
    ends = np.vstack([np.zeros(2), np.cumsum(step, axis=0)])
    return np.asarray(tip + ends - ends[-1])


def picture_of(
    core: SnakeCore, world: int, link_angle: FloatArray, head_xy: FloatArray, trail_xy: FloatArray, text: Sequence[str]
) -> Picture:
    """Return the picture of one world now, its planar robot at ``link_angle`` (N,) [rad] and ``head_xy`` (2,) [m]."""
    task, around = core.task, observe_surroundings(core, world)
    seen = None if around is None else surroundings_at(around, 0, head_xy, float(link_angle[-1]), core.spec)
    return Picture(
        ends_of(core.spec, link_angle, head_xy), task.targets_xy[world], int(task.index[world]), trail_xy,
        core.robot.acting_kind()[world], text, task.radius_m, seen,
    )  # fmt: skip


def progress_text(core: SnakeCore, world: int) -> str:
    """Return as text how far the robot of one world has come, and what is next."""
    task, scenery = core.task, core.task.scenery(world)
    caption = "" if scenery is None else scenery.caption
    where = caption or standing(int(task.index[world]), task.targets_xy[world], core.point_xy[world])
    return f"progress {task.record['progress_m'][world]:.2f} m   {where}"


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
