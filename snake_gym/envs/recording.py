"""Recorded motion of worlds of a core, with their surroundings. ``snake_gym.render`` draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    """(T, 2) [m] point that the robot was told to go to."""
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
        self._around: list[list[RecordedSurroundings | None]] = []

    def take(self) -> None:
        """Record the present moment."""
        core, rows = self._core, self._rows
        state = core.robot.state
        arrays = {
            "time_s": state.time_s, "link_angle": state.link_angle, "head_xy": state.head_xy,
            "point_xy": core.task.point(state), "target": core.task.index, "progress_m": core.task.progress_m,
            "fault_kind": core.robot.acting_kind(),
        }  # fmt: skip
        arrays |= core.robot.pose()
        self._moments.append({name: values[rows].copy() for name, values in arrays.items()})
        self._around.append([observe_surroundings(core, world) for world in rows.tolist()])

    def recordings(self, name: str, kind: str, first_seed: int) -> list[Recording]:
        """Return the recordings, one for each world; ``first_seed`` is that of world 0."""
        core, robot = self._core, self._core.robot
        series: dict[str, Any] = {key: np.array([at[key] for at in self._moments]) for key in self._moments[0]}
        poses = {name: series.pop(name) for name in robot.pose()}
        return [
            Recording(
                name=name, kind=kind, spec=core.spec, seed=first_seed + world, radius_m=core.task.radius_m,
                targets_xy=core.task.targets_xy[world].copy(),
                around=_join([moment[i] for moment in self._around]),
                body=robot.recorded_body(world, {name: values[:, i] for name, values in poses.items()}),
                **{key: values[:, i] for key, values in series.items()},
            )
            for i, world in enumerate(self._rows.tolist())
        ]  # fmt: skip


def observe_surroundings(core: SnakeCore, world: int) -> RecordedSurroundings | None:
    """Return surroundings and sensed values of ``world`` now, as a recording of one moment; None if there are none."""
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


def _join(moments: Sequence[RecordedSurroundings | None]) -> RecordedSurroundings | None:
    """Join consecutive recordings of the same scene into one; None if there are no surroundings."""
    seen = [moment for moment in moments if moment is not None]
    if not seen:
        return None
    return replace(
        seen[0],
        aim_xy=np.concatenate([moment.aim_xy for moment in seen]),
        range_m=np.concatenate([moment.range_m for moment in seen]),
        force_w=np.concatenate([moment.force_w for moment in seen]),
    )
