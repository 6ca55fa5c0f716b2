"""Recorded motion, and a page that plays it: one HTML file with everything inside, policies side by side.

Frame: world x to the right, y up. The page holds whole millimetres and milliradians, and draws between samples by
linear interpolation.
"""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.envs.core import SnakeCore
from snake_gym.render.outlines import outline
from snake_gym.render.palette import fault_colours, fault_name, policy_colours
from snake_gym.render.replay_page import PAGE
from snake_gym.render.replay_player import PLAYER
from snake_gym.render.replay_surroundings import SURROUNDINGS
from snake_gym.render.surroundings import Surroundings, beam_ends, force_arrows
from snake_gym.robot.spec import FloatArray, RobotSpec


@dataclass(frozen=True)
class RecordedSurroundings:
    """What was around the robot of a recording, and what it sensed of it."""

    features: FloatArray
    """(k, 6) obstacles, see ``physics.state.Obstacles``."""
    route_xy: FloatArray
    """(r, 2) [m] the way to the goal."""
    aim_xy: FloatArray
    """(T, 2) [m] the place that the robot was told to go to."""
    beam_angle: FloatArray
    """(B,) [rad] directions of the scanner's beams relative to the head."""
    max_range_m: float
    """Reach of the scanner."""
    range_m: FloatArray
    """(T, B) [m] what it measured."""
    force_w: FloatArray
    """(T, N, 2) [N] contact force on each link, world frame."""

    def at(self, moment: int, head_xy: FloatArray, head_angle: float, spec: RobotSpec) -> Surroundings:
        """One moment; head_xy (2,) [m] and head_angle [rad] are those of the head link then."""
        distance = self.range_m[moment]
        return Surroundings(
            features=self.features,
            route_xy=self.route_xy,
            aim_xy=self.aim_xy[moment],
            beam_start_xy=head_xy,
            beam_end_xy=beam_ends(head_xy, head_angle + self.beam_angle, distance),
            echo=distance < self.max_range_m,
            arrow_xy=force_arrows(self.force_w[moment], spec),
        )


def observe_surroundings(core: SnakeCore, world: int) -> RecordedSurroundings | None:
    """What is around the robot of ``world`` now and what it senses, as a recording of one moment; None: nothing is."""
    scenery = core.task.scenery(world)
    if scenery is None:
        return None
    scan, measured = core.sensors.range_scan, core.measurement.range_m
    n_beams = 0 if scan is None or measured is None else scan.n_beams
    return RecordedSurroundings(
        features=scenery.features,
        route_xy=scenery.route_xy,
        aim_xy=core.task.goal().target_xy_w[world : world + 1].copy(),
        beam_angle=np.zeros(0) if scan is None else scan.beam_angles(),
        max_range_m=0.0 if scan is None else scan.max_range_m,
        range_m=np.zeros((1, n_beams)) if measured is None else measured[world : world + 1].copy(),
        force_w=core.robot.state.contact_force[world : world + 1].copy(),
    )


def join_surroundings(moments: Sequence[RecordedSurroundings | None]) -> RecordedSurroundings | None:
    """One recording of consecutive ones of the same scene; None where nothing was around."""
    seen = [moment for moment in moments if moment is not None]
    if not seen:
        return None
    return replace(
        seen[0],
        aim_xy=np.concatenate([moment.aim_xy for moment in seen]),
        range_m=np.concatenate([moment.range_m for moment in seen]),
        force_w=np.concatenate([moment.force_w for moment in seen]),
    )


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
    around: RecordedSurroundings | None = None
    """None: an empty plane, and nothing to sense it with."""


@dataclass(frozen=True)
class Scene:
    """One scenario as several policies played it."""

    label: str
    recordings: tuple[Recording, ...]


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
        "faults": {str(code): {"name": fault_name(code), "colour": own} for code, own in fault_colours().items()},
        "scenes": [_scene(scene) for scene in scenes],
    }
    # "</" would end the script element, "<!--" would start a comment in it.
    payload = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    page = PAGE.replace("{{title}}", html.escape(title)).replace("{{note}}", html.escape(note))
    player = PLAYER.replace("{{surroundings}}", SURROUNDINGS)
    return page.replace("{{player}}", player).replace("{{data}}", payload)


def _scene(scene: Scene) -> dict[str, Any]:
    chosen = policy_colours([recording.kind for recording in scene.recordings])
    policies = [_policy(recording, colour) for recording, colour in zip(scene.recordings, chosen, strict=True)]
    return {"label": scene.label, "policies": policies}


def _policy(recording: Recording, colour: str) -> dict[str, Any]:
    last = min(int(recording.target.max()) + 1, len(recording.targets_xy) - 1)
    kinds = recording.fault_kind
    changes = [0, *(np.flatnonzero((kinds[1:] != kinds[:-1]).any(axis=1)) + 1).tolist()]
    data = {
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
    return data if recording.around is None else {**data, "around": _surroundings(recording.around, recording.spec)}


def _surroundings(around: RecordedSurroundings, spec: RobotSpec) -> dict[str, Any]:
    outlines = outline(around.features)
    return {
        "bars_mm": [_whole([*start, *end, radius]) for start, end, radius in outlines.bars],
        "polygons_mm": [_whole(corners) for corners in outlines.polygons],
        "route_mm": _whole(around.route_xy),
        "aim_mm": _whole(around.aim_xy),
        "beam_mrad": _whole(around.beam_angle),
        "reach_mm": _whole(around.max_range_m),
        "range_mm": _whole(around.range_m),
        "arrow_mm": _whole(force_arrows(around.force_w, spec)),
    }


def _whole(values: Any) -> Any:
    """Thousandths, rounded to whole numbers."""
    return np.rint(np.asarray(values) * 1000.0).astype(np.int64).tolist()
