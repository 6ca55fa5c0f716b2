"""Recorded motion of worlds of a core, with their surroundings. ``snake_gym.render`` draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from snake_gym.envs.core import SnakeCore
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.spatial.ground import Ground, GroundSpec, make_ground
from snake_gym.spatial.kinematics import link_frames
from snake_gym.spatial.spec import SpatialSpec


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
class RecordedBody:
    """Motion and shape of a robot that moves in space: N links, J = N - 1 joints, world frame, z up."""

    link_xyz: FloatArray
    """(T, N, 3) [m] middles of the links, tail first."""
    link_quaternion: FloatArray
    """(T, N, 4) orientations of the links (w, x, y, z); a link's x axis points along it, towards the head."""
    joint_angle: FloatArray
    """(T, J) [rad] joint angles."""
    joint_axis: tuple[Literal["y", "z"], ...]
    """Axis of each joint in the frame of the link behind it: z of a yaw, y of a pitch joint."""
    joint_limit_rad: FloatArray
    """(J,) largest angle to either side; inf: none."""
    half_length_m: FloatArray
    """(N,) half of the distance between a link's ends."""
    section_m: tuple[float, float]
    """Width and height of a link."""
    rounded: bool = True
    """True for links that are round, False for boxes."""
    ground: Ground = field(default_factory=lambda: make_ground(GroundSpec()))

    def ends_xy(self, at: int) -> FloatArray:
        """Return the links' ends (N + 1, 2) [m] from above in the sample ``at``, from the tail's tip."""
        w, x, y, z = self.link_quaternion[at].T
        along = np.stack([1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z)], axis=1) * self.half_length_m[:, None]
        middle = self.link_xyz[at, :, :2]
        return np.vstack([middle[:1] - along[:1], middle + along])


@dataclass(frozen=True)
class Recording:
    """Episode of one policy, sampled at T times."""

    name: str
    kind: str
    """Kind of the policy: "learned" or "classical"."""
    spec: RobotSpec
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
        spec, robot = cast(Any, core.spec), cast(Any, core.robot)
        if isinstance(spec, SpatialSpec):
            rotation, origin = robot.base_pose()
            arrays |= {"joint_angle": robot.joint_angle(), "rotation": rotation, "origin": origin}
        if core.task.scenery(0) is not None:
            arrays |= _sensed(core)
        self._moments.append({name: values[rows].copy() for name, values in arrays.items()})

    def recordings(self, name: str, kind: str, first_seed: int) -> list[Recording]:
        """Return the recordings, one for each world; ``first_seed`` is that of world 0."""
        core, robot = self._core, cast(Any, self._core.robot)
        series: dict[str, Any] = {key: np.array([at[key] for at in self._moments]) for key in self._moments[0]}
        sensed = [series.pop(key) for key in ("aim_xy", "range_m", "force_w") if key in series]
        pose = [series.pop(key) for key in ("rotation", "origin", "joint_angle") if key in series]
        return [
            Recording(
                name=name, kind=kind, spec=core.spec, seed=first_seed + world, radius_m=core.task.radius_m,
                targets_xy=core.task.targets_xy[world].copy(),
                around=_surroundings(core, world, *(x[:, i] for x in sensed)) if sensed else None,
                body=_body(robot.spec, robot.ground_of(world), *(x[:, i] for x in pose)) if pose else None,
                **{key: values[:, i] for key, values in series.items()},
            )
            for i, world in enumerate(self._rows.tolist())
        ]  # fmt: skip


def _body(
    spec: SpatialSpec, ground: Ground, rotation: FloatArray, origin: FloatArray, joint_angle: FloatArray
) -> RecordedBody:
    """Return what happened to a spatial robot on ``ground``; the rest are rows of its state, one for each sample."""
    links = link_frames(spec, rotation, origin, joint_angle)
    half = spec.links("link_half_length_m")
    round_links = spec.section == "cylinder"
    return RecordedBody(
        link_xyz=links.origin,
        link_quaternion=Rotation.from_matrix(links.rotation.reshape(-1, 3, 3))
        .as_quat(scalar_first=True)
        .reshape(*links.origin.shape[:2], 4),
        joint_angle=joint_angle,
        joint_axis=tuple("z" if axis == "yaw" else "y" for axis in spec.axes()),
        joint_limit_rad=np.full(spec.n_joints, spec.joint_limit_rad),
        half_length_m=half,
        section_m=(2.0 * spec.radius_m, 2.0 * spec.radius_m) if round_links else spec.box_m,
        rounded=round_links,
        ground=_crop(ground, links.origin),
    )


def _crop(ground: Ground, places: FloatArray, margin_m: float = 3.0) -> Ground:
    """Return the ground with that part of its height field which lies around ``places`` (..., 3) [m]."""
    heights = ground.heights_m
    if heights is None:
        return ground
    shape, size, middle = np.array(heights.shape[::-1]), np.array(ground.size_m), np.array(ground.middle_m)
    cell = size / (shape - 1)
    corner = middle - size / 2.0
    around = places[..., :2].reshape(-1, 2)
    first = np.clip(np.floor((around.min(axis=0) - margin_m - corner) / cell).astype(int), 0, shape - 2)
    last = np.clip(np.ceil((around.max(axis=0) + margin_m - corner) / cell).astype(int), first + 1, shape - 1)
    low, high = corner + cell * first, corner + cell * last
    return ground._replace(
        heights_m=heights[first[1] : last[1] + 1, first[0] : last[0] + 1],
        size_m=tuple((high - low).tolist()), middle_m=tuple(((low + high) / 2.0).tolist()),
    )  # fmt: skip


def observe_surroundings(core: SnakeCore, world: int) -> RecordedSurroundings | None:
    """Return surroundings and sensed values of ``world`` now, as a recording of one moment; None if there are none."""
    if core.task.scenery(world) is None:
        return None
    return _surroundings(core, world, *(values[world : world + 1].copy() for values in _sensed(core).values()))


def _sensed(core: SnakeCore) -> dict[str, FloatArray]:
    """Return what ``RecordedSurroundings`` hold of each moment, of all worlds (W, ...) now."""
    ranges = core.measurement.range_m
    none = np.zeros((core.n_worlds, 0))
    force = core.robot.state.contact_force
    return {"aim_xy": core.goal.target_xy_w, "range_m": none if ranges is None else ranges, "force_w": force}


def _surroundings(
    core: SnakeCore, world: int, aim_xy: FloatArray, range_m: FloatArray, force_w: FloatArray
) -> RecordedSurroundings:
    """Return the surroundings of ``world`` with what was sensed of them at T moments."""
    scenery, scan = core.task.scenery(world), core.sensors.range_scan
    assert scenery is not None
    beams, reach_m = (np.zeros(0), 0.0) if scan is None else (scan.beam_angles(), scan.max_range_m)
    return RecordedSurroundings(scenery.features, scenery.route_xy, aim_xy, beams, reach_m, range_m, force_w)
