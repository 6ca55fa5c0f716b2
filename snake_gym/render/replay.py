"""Recorded motion, and a page that plays it: one HTML file with everything inside, policies side by side.

Frame: world x to the right, y up. The page holds whole millimetres and milliradians, and draws between samples by
linear interpolation.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.render.palette import CLASSICAL, FAULT_COLOURS, FAULT_NAMES, LEARNED
from snake_gym.render.replay_page import PAGE
from snake_gym.render.replay_player import PLAYER
from snake_gym.robot.spec import FloatArray, RobotSpec


@dataclass(frozen=True)
class Recording:
    """One episode of one policy, sampled at T times."""

    name: str
    kind: str
    """"learned" or "classical"."""
    spec: RobotSpec
    seed: int
    radius_m: float
    """How near a target has to be passed [m]."""
    targets_xy: FloatArray
    """(K, 2) [m]."""
    time_s: FloatArray
    """(T,) [s]."""
    link_angle: FloatArray
    """(T, N) [rad]."""
    head_xy: FloatArray
    """(T, 2) [m] centre of the head link."""
    point_xy: FloatArray
    """(T, 2) [m] the tracked point."""
    target: NDArray[np.int64]
    """(T,) index of the current target, equal to the number reached."""
    progress_m: FloatArray
    """(T,) [m]."""
    fault_kind: NDArray[np.int64]
    """(T, J) fault of each joint at that time, 0: healthy."""


@dataclass(frozen=True)
class Scene:
    """One scenario as several policies played it."""

    label: str
    recordings: tuple[Recording, ...]


def colours(kinds: Sequence[str]) -> list[str]:
    """A colour for each policy of the given kinds ("learned" or "classical"), in their order."""
    used = {"learned": 0, "classical": 0}
    chosen = []
    for kind in kinds:
        palette = LEARNED if kind == "learned" else CLASSICAL
        chosen.append(palette[used[kind] % len(palette)])
        used[kind] += 1
    return chosen


def replay_page(title: str, scenes: Sequence[Scene], note: str = "") -> str:
    """The page as text.

    Args:
        title: headline.
        scenes: at least one scenario, each with at least one recording.
        note: a line below the headline.
    """
    if not scenes or not all(scene.recordings for scene in scenes):
        raise ValueError("a replay needs at least one scene with at least one recording")
    data = {
        "faults": {str(kind): {"name": FAULT_NAMES[kind], "colour": FAULT_COLOURS[kind]} for kind in FAULT_COLOURS},
        "scenes": [_scene(scene) for scene in scenes],
    }
    # "</" would end the script element, "<!--" would start a comment in it.
    payload = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    page = PAGE.replace("{{title}}", html.escape(title)).replace("{{note}}", html.escape(note))
    return page.replace("{{player}}", PLAYER).replace("{{data}}", payload)


def _scene(scene: Scene) -> dict[str, Any]:
    chosen = colours([recording.kind for recording in scene.recordings])
    policies = [_policy(recording, colour) for recording, colour in zip(scene.recordings, chosen, strict=True)]
    return {"label": scene.label, "policies": policies}


def _policy(recording: Recording, colour: str) -> dict[str, Any]:
    last = min(int(recording.target.max()) + 1, len(recording.targets_xy) - 1)
    kinds = recording.fault_kind
    changes = [0, *(np.flatnonzero((kinds[1:] != kinds[:-1]).any(axis=1)) + 1).tolist()]
    return {
        "name": recording.name,
        "colour": colour,
        "half_mm": _whole(recording.spec.links("link_half_length_m")),
        "radius_mm": _whole(recording.radius_m),
        "targets_mm": _whole(recording.targets_xy[: last + 1]),
        "time_ms": _whole(recording.time_s),
        "angle_mrad": _whole(recording.link_angle),
        "head_mm": _whole(recording.head_xy),
        "point_mm": _whole(recording.point_xy),
        "target": recording.target.tolist(),
        "progress_mm": _whole(recording.progress_m),
        "faults": [[at, kinds[at].tolist()] for at in changes],
    }


def _whole(values: Any) -> Any:
    """Thousandths, rounded to whole numbers."""
    return np.rint(np.asarray(values) * 1000.0).astype(np.int64).tolist()
