"""One world of the core as a picture: collects what the renderer shows."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.envs.core import SnakeCore
from snake_gym.physics.faults import HEALTHY

_TRAIL_POINTS = 400


class WorldView:
    """Draws world ``world`` of ``core`` in mode "rgb_array" or "human", with the trail of its tracked point."""

    def __init__(self, core: SnakeCore, world: int, mode: Literal["rgb_array", "human"]) -> None:
        from snake_gym.render.frames import FrameRenderer

        self._core = core
        self._world = world
        self._renderer: Any = FrameRenderer(core.spec, mode)
        self._trail: list[NDArray[np.float64]] = []
        self._time_s = -1.0

    def draw(self) -> NDArray[np.uint8]:
        """The present frame (H, W, 3)."""
        from snake_gym.render.frames import standing
        from snake_gym.render.replay import observe_surroundings

        core, world = self._core, self._world
        state, task = core.robot.state, core.task
        if state.time_s[world] < self._time_s:
            self._trail.clear()
            self._renderer.cut()
        if state.time_s[world] != self._time_s:
            self._trail = [*self._trail[1 - _TRAIL_POINTS :], task.point(state)[world].copy()]
        self._time_s = float(state.time_s[world])
        failed = np.where(core.robot.failed_now()[world], core.robot.faults.kind[world], HEALTHY)
        around = observe_surroundings(core, world)
        force = 0.0 if around is None else float(np.hypot(*around.force_w[0].T).sum())
        where = standing(int(task.index[world]), task.targets_xy[world], task.point(state)[world])
        text = [
            f"{self._time_s:.1f} s",
            f"progress {task.progress_m[world]:.2f} m   {where}",
            f"failed joints {np.count_nonzero(failed)}" + ("" if around is None else f"   contact {force:.0f} N"),
        ]
        frame: NDArray[np.uint8] = self._renderer.draw(
            state.link_angle[world], state.head_xy[world], task.targets_xy[world], int(task.index[world]),
            np.array(self._trail), failed, text, task.radius_m,
            None if around is None else around.at(0, state.head_xy[world], state.link_angle[world, -1], core.spec),
        )  # fmt: skip
        return frame

    def close(self) -> None:
        """Free the window or surface."""
        self._renderer.close()
