"""Page that plays recorded motion: one self-contained HTML file, policies side by side, from above or in space.

Frame: world x to the right, y up; in space z up. The page holds whole millimetres and milliradians, and draws between
samples by linear interpolation. Its markup, style and scripts are the files in ``assets``; three.js is packed there,
and ``assets/three.txt`` says how. The page unpacks it for the view in space.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from snake_gym.envs.recording import RecordedSurroundings, Recording
from snake_gym.render.palette import fault_colours, policy_colours
from snake_gym.render.surroundings import force_arrows, outline
from snake_gym.robot.chain import ChainSpec
from snake_gym.robot.recorded_body import RecordedBody
from snake_gym.simulation.fault_kinds import name_of_code

ASSETS = Path(__file__).parent / "assets"


@dataclass(frozen=True)
class Scene:
    """Scenario as several policies played it."""

    label: str
    recordings: tuple[Recording, ...]


def replay_page(title: str, scenes: Sequence[Scene], note: str = "") -> str:
    """Return the page as text: headline, a ``note`` below it, and scenes, each with at least one recording."""
    if not scenes or not all(scene.recordings for scene in scenes):
        raise ValueError("a replay needs at least one scene with at least one recording")
    data: dict[str, Any] = {
        "faults": {str(code): {"name": name_of_code(code), "colour": own} for code, own in fault_colours().items()},
        "scenes": [],
    }
    for scene in scenes:
        colours = policy_colours([recording.kind for recording in scene.recordings])
        policies = [_policy(recording, colour) for recording, colour in zip(scene.recordings, colours, strict=True)]
        data["scenes"].append({"label": scene.label, "policies": policies})
    # "</" would end the script element, "<!--" would start a comment in it.
    payload = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    page, style, space, player = (
        (ASSETS / name).read_text(encoding="utf-8")
        for name in ("replay.html", "replay.css", "replay_space.js", "replay.js")
    )
    parts = {
        "title": html.escape(title), "note": html.escape(note), "style": style, "space": space, "player": player,
        "data": payload, "three": base64.b64encode((ASSETS / "three.min.js.gz").read_bytes()).decode(),
    }  # fmt: skip
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], page)


def _policy(recording: Recording, colour: str) -> dict[str, Any]:
    last = min(int(recording.target.max()) + 1, len(recording.targets_xy) - 1)
    kinds, body, spec = recording.fault_kind, recording.body, recording.spec
    limit = np.minimum(spec.joint_limit_rad, spec.joints("joint_stop_rad")) if body is None else body.joint_limit_rad
    changes = [0, *(np.flatnonzero((kinds[1:] != kinds[:-1]).any(axis=1)) + 1).tolist()]
    data = {
        "name": recording.name,
        "colour": colour,
        "half_mm": _whole(spec.links("link_half_length_m") if body is None else body.half_length_m),
        "limit_mrad": [_whole(each) if np.isfinite(each) else None for each in limit],
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
    if body is not None:
        data["body"] = _body(body)
    return data if recording.around is None else {**data, "around": _surroundings(recording.around, spec)}


def _body(body: RecordedBody) -> dict[str, Any]:
    ground = body.ground
    return {
        "at_mm": _whole(body.link_xyz),
        "turn": _whole(10.0 * body.link_quaternion),
        "joint_mrad": _whole(body.joint_angle),
        "axis": list(body.joint_axis),
        "section_mm": _whole(body.section_m),
        "rounded": body.rounded,
        "heights_mm": None if ground.heights_m is None else _whole(ground.heights_m),
        "size_mm": _whole(ground.size_m),
        "middle_mm": _whole(ground.middle_m),
        "poles_mm": [_whole([*pole.middle, pole.radius, pole.half_length]) for pole in ground.poles],
    }


def _surroundings(around: RecordedSurroundings, spec: ChainSpec) -> dict[str, Any]:
    bars, polygons = outline(around.features)
    return {
        "bars_mm": [_whole([*start, *end, radius]) for start, end, radius in bars],
        "polygons_mm": [_whole(corners) for corners in polygons],
        "route_mm": _whole(around.route_xy),
        "aim_mm": _whole(around.aim_xy),
        "beam_mrad": _whole(around.beam_angle),
        "reach_mm": _whole(around.max_range_m),
        "range_mm": _whole(around.range_m),
        "arrow_mm": _whole(force_arrows(around.force_w, spec)),
    }


def _whole(values: Any) -> Any:
    """Return thousandths, rounded to whole numbers."""
    return np.rint(np.asarray(values) * 1000.0).astype(np.int64).tolist()
