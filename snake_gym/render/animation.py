"""Animated GIF of recorded motion, policies side by side, for places that show pictures but no pages."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import require
from snake_gym.envs.recording import Recording
from snake_gym.render.frames import FrameRenderer, Picture, ends_of, standing
from snake_gym.render.palette import LINE, policy_colours, rgb
from snake_gym.render.replay import Scene
from snake_gym.render.surroundings import surroundings_at

_GAP = 4
_COLOURS = 128


def scene_gif(
    scene: Scene, duration_s: float = 10.0, fps: float = 10.0, size: tuple[int, int] = (360, 300),
    max_bytes: int = 2_000_000,
) -> bytes:  # fmt: skip
    """Return the scene as an animated GIF that repeats.

    Args:
        scene: recordings, shown from left to right.
        duration_s: playing time of the GIF, whatever time the recordings took.
        fps: frames per second; lowered until the GIF is no larger than ``max_bytes``.
        size: width and height of each recording's panel [pixel].

    Raises:
        ConfigError: pygame or pillow is not installed.
    """
    require("an animation", "PIL")
    while True:
        data = _encode(_frames(scene, max(2, round(duration_s * fps)), size), 1000.0 / fps)
        if len(data) <= max_bytes or fps <= 2.0:
            return data
        fps *= max(0.5, 0.95 * max_bytes / len(data))


def _frames(scene: Scene, count: int, size: tuple[int, int]) -> list[NDArray[np.uint8]]:
    end_s = max(float(recording.time_s[-1]) for recording in scene.recordings)
    chosen = policy_colours([recording.kind for recording in scene.recordings])
    renderers = [
        FrameRenderer(recording.spec, size=size, head_colour=colour)
        for recording, colour in zip(scene.recordings, chosen, strict=True)
    ]
    gap = np.full((size[1], _GAP, 3), rgb(LINE), dtype=np.uint8)
    frames = []
    for time_s in np.linspace(0.0, end_s, count).tolist():
        panels: list[NDArray[np.uint8]] = []
        for recording, renderer in zip(scene.recordings, renderers, strict=True):
            panels += [_panel(recording, renderer, time_s), gap]
        frames.append(np.concatenate(panels[:-1], axis=1))
    return frames


def _panel(recording: Recording, renderer: FrameRenderer, time_s: float) -> NDArray[np.uint8]:
    at = min(int(np.searchsorted(recording.time_s, time_s - 1e-9)), recording.time_s.size - 1)
    last = min(int(recording.target.max()) + 1, len(recording.targets_xy) - 1)
    reached, angle, head = int(recording.target[at]), recording.link_angle[at], recording.head_xy[at]
    where = standing(reached, recording.targets_xy, recording.point_xy[at])
    text = [recording.name, f"{time_s:.1f} s   {recording.progress_m[at]:.2f} m   {where}"]
    seen = None
    if recording.around is not None:
        seen = surroundings_at(recording.around, at, head, float(angle[-1]), recording.spec)
    ends_xy = ends_of(recording.spec, angle, head) if recording.body is None else recording.body.ends_xy(at)
    return renderer.draw(
        Picture(
            ends_xy, recording.targets_xy[: last + 1], reached, recording.point_xy[: at + 1], recording.fault_kind[at],
            text, recording.radius_m, seen,
        )
    )  # fmt: skip


def _encode(frames: list[NDArray[np.uint8]], frame_ms: float) -> bytes:
    from PIL import Image

    # One palette for all frames, from a few of them: no flicker, and unchanged pixels compress to nothing.
    sample = np.concatenate(frames[:: max(1, len(frames) // 6)], axis=0)
    palette = Image.fromarray(sample).quantize(_COLOURS, dither=Image.Dither.NONE)
    images = [Image.fromarray(f).quantize(palette=palette, dither=Image.Dither.NONE) for f in frames]
    buffer, duration = io.BytesIO(), round(frame_ms)
    images[0].save(buffer, "GIF", save_all=True, append_images=images[1:], duration=duration, loop=0, optimize=False)
    return buffer.getvalue()
