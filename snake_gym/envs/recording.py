"""Recorded motion of worlds of a core, with their surroundings. ``snake_gym.render`` draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.envs.core import SnakeCore
from snake_gym.robot.chain import ChainSpec
from snake_gym.robot.recorded_body import RecordedBody
from snake_gym.robot.spec import FloatArray


@dataclass(frozen=True)
class RecordedSurroundings:
    """Surroundings of the robot of a recording, and their sensed values."""

    features: FloatArray
    """(k, 6) obstacles, see ``physics.state.Obstacles``."""
    route_xy: FloatArray
    """(r, 2) [m] route to the goal."""
    aim_xy: FloatArray
    """(T, 2) [m] point to go to."""
    beam_angle: FloatArray
    """(B,) [rad] directions of the scanner's beams relative to the head."""
    max_range_m: float
    """Reach of the scanner [m]."""
    range_m: FloatArray
    """(T, B) [m] ranges that the scanner measured."""
    force_w: FloatArray
    """(T, N, 2) [N] contact force on each link, world frame."""


@dataclass(frozen=True)
class Recording:
    """Episode of one policy, sampled at T times."""

    name: str
    kind: str
    """Kind of the policy: "learned" or "classical"."""
    spec: ChainSpec
    seed: int
    radius_m: float
    """Distance at which a target counts as reached [m]."""
    targets_xy: FloatArray
    """(K, 2) [m] targets."""
    time_s: FloatArray
    """(T,) [s] times of the samples."""
    link_angle: FloatArray
    """(T, N) [rad] link angles."""
    head_xy: FloatArray
    """(T, 2) [m] centre of the head link."""
    point_xy: FloatArray
    """(T, 2) [m] the tracked point."""
    target: NDArray[np.int64]
    """(T,) index of the current target, equal to the number reached."""
    progress_m: FloatArray
    """(T,) [m] progress."""
    fault_kind: NDArray[np.int64]
    """(T, J) fault of each joint at that time, 0: healthy."""
    around: RecordedSurroundings | None = None
    """Surroundings; None: an empty plane, and no sensor for them."""
    body: RecordedBody | None = None
    """Motion in space; None: the robot is planar, and ``link_angle`` and ``head_xy`` tell all."""


class Recorder:
    """Recorder of worlds of a core; call ``take`` after the reset and after every step."""

    def __init__(self, core: SnakeCore, worlds: Sequence[int]) -> None:
        self._core, self._rows = core, np.asarray(worlds, dtype=np.int64)
        self._moments: list[dict[str, NDArray[Any]]] = []

    def take(self) -> None:
        """Record the present moment."""
        core, rows = self._core, self._rows
        state = core.robot.state
        arrays = {
            "time_s": state.time_s, "link_angle": state.link_angle, "head_xy": state.head_xy,
            "point_xy": core.point_xy, "target": core.task.index, "progress_m": core.task.record["progress_m"],
            "fault_kind": core.robot.acting_kind(),
        }  # fmt: skip
        arrays |= core.robot.pose()
        if core.task.scenery(0) is not None:
            arrays |= _sensed(core)
        self._moments.append({name: values[rows].copy() for name, values in arrays.items()})

    def recordings(self, name: str, kind: str, first_seed: int) -> list[Recording]:
        """Return the recordings, one for each world; ``first_seed`` is that of world 0."""
        core, robot = self._core, self._core.robot
        series: dict[str, Any] = {key: np.array([at[key] for at in self._moments]) for key in self._moments[0]}
        sensed = [series.pop(key) for key in ("aim_xy", "range_m", "force_w") if key in series]
        poses = {name: series.pop(name) for name in robot.pose()}
        return [
            Recording(
                name=name, kind=kind, spec=core.spec, seed=first_seed + world, radius_m=core.task.radius_m,
                targets_xy=core.task.targets_xy[world].copy(),
                around=_surroundings(core, world, *(x[:, i] for x in sensed)) if sensed else None,
                body=robot.recorded_body(world, {name: values[:, i] for name, values in poses.items()}),
                **{key: values[:, i] for key, values in series.items()},
            )
            for i, world in enumerate(self._rows.tolist())
        ]  # fmt: skip


def observe_surroundings(core: SnakeCore, world: int) -> RecordedSurroundings | None:
    """Return surroundings and sensed values of ``world`` now, as a recording of one moment; None if there are none."""
    if core.task.scenery(world) is None:
        return None
    return _surroundings(core, world, *(values[world : world + 1].copy() for values in _sensed(core).values()))


def _sensed(core: SnakeCore) -> dict[str, FloatArray]:
    """Return what ``RecordedSurroundings`` hold of each moment, of all worlds (W, ...) now."""
    ranges = core.measurement.range_m
    none = np.zeros((core.n_worlds, 0))
    force = getattr(core.robot.state, "contact_force", np.zeros((core.n_worlds, core.spec.n_links, 2)))
    return {"aim_xy": core.goal.target_xy_w, "range_m": none if ranges is None else ranges, "force_w": force}


def _surroundings(
    core: SnakeCore, world: int, aim_xy: FloatArray, range_m: FloatArray, force_w: FloatArray
) -> RecordedSurroundings:
    """Return the surroundings of ``world`` with what was sensed of them at T moments."""
    scenery, scan = core.task.scenery(world), core.sensors.range_scan
    assert scenery is not None
    beams, reach_m = (np.zeros(0), 0.0) if scan is None else (scan.beam_angles(), scan.max_range_m)
    return RecordedSurroundings(scenery.features, scenery.route_xy, aim_xy, beams, reach_m, range_m, force_w)
