"""Task of spatial robots: make way on rough ground, over steps and gaps.

Each episode draws a kind of ground, or with ``stretch_m`` the order of several, and random heights. The course is that
of waypoints.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import field, replace
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import ConfigError
from snake_gym.config.settings import NonNegative
from snake_gym.interface.observations import Seen, register_column
from snake_gym.robot.recorded_body import Ground
from snake_gym.robot.spec import FloatArray
from snake_gym.spatial.ground import GroundSpec, field_grid, field_heights
from snake_gym.spatial.spec import SpatialSpec
from snake_gym.spatial.waypoints import SpatialCourseConfig, SpatialEnvConfig, SpatialWaypoints
from snake_gym.tasks.task import BoolArray, NewEpisodes, Record, Start, Step, Task
from snake_gym.tasks.waypoints import PAPER_TARGETS

TerrainKind = Literal["flat", "grass", "rocks", "steps", "gaps"]
KINDS: tuple[TerrainKind, ...] = ("flat", "grass", "rocks", "steps", "gaps")
HIGHEST = {"rough_m": 0.4, "step_m": 0.2, "gap_m": 0.4}
"""Largest heights and depths that may be set [m]."""
SPAN_M = (-0.4, 0.8)
"""Lowest and highest ground that there may be [m]."""
_SEEDS = 2.0**31
_STRETCHES = 8
"""Number of stretches from the start outwards; the last one has no end."""
CHANGE_S = 4.0
"""Time after a change of stretch in which way is lost [s]."""


class TerrainCourseConfig(SpatialCourseConfig):
    """Where the targets are, ahead of the robot."""

    n_targets: Annotated[int, Field(ge=1, le=10_000)] = 16
    max_turn_rad: Annotated[float, Field(ge=0.0, le=np.pi)] = 0.8


class TerrainConfig(SpatialEnvConfig):
    """A spatial snake robot crosses rough ground, by default with 0 to 3 joints locked.

    ``difficulty`` scales all heights and depths, and the faults. Steps and gaps lie in rings around the start. Courses
    turn back half a robot before the field's rim. Terminated when the course is complete, or where the robot's centre
    has left the field.
    """

    kinds: Annotated[tuple[TerrainKind, ...], Field(min_length=1)] = ("grass", "rocks", "steps", "gaps")
    """Each episode draws one of these: flat, grass (smooth), rocks (blocks), steps, gaps (trenches)."""
    stretch_m: NonNegative = 0.0
    """Width of rings around ``start_radius_m`` with all ``kinds`` in turn, in an order that each episode draws, the
    eighth as far as the rim; 0: one kind. A gap is 1 to 2 times ``grain_m`` behind a ring's inner edge."""
    rough_m: Annotated[float, Field(ge=0.0, le=HIGHEST["rough_m"])] = 0.08
    """Highest grass or rock at difficulty 1."""
    step_m: Annotated[float, Field(ge=0.0, le=HIGHEST["step_m"])] = 0.06
    """Rise of a step at difficulty 1."""
    gap_m: Annotated[float, Field(ge=0.0, le=HIGHEST["gap_m"])] = 0.15
    """Depth of a gap at difficulty 1."""
    grain_m: Annotated[float, Field(ge=0.05, le=5.0)] = 0.4
    """Size of tufts and blocks, depth of a step, width of a gap."""
    start_radius_m: NonNegative = 0.5
    """Distance from the origin within which a field is flat."""
    size_m: Annotated[float, Field(ge=4.0, le=60.0)] = 20.0
    """Side of the fields."""
    cell_m: Annotated[float, Field(ge=0.05, le=1.0)] = 0.1
    """Grid width of the fields."""
    course: TerrainCourseConfig = field(default_factory=TerrainCourseConfig)

    def load_robot(self) -> Any:
        """The spatial robot's specification, checked against the other settings, the size of the field among them."""
        spec, course = super().load_robot(), self.course
        places = {"paper": PAPER_TARGETS, "list": course.targets}.get(course.kind, ((course.max_distance_m, 0.0),))
        furthest = max(abs(x) for place in places for x in place)
        needed = 2.0 * max(furthest, 0.5 * spec.length_m) + spec.length_m
        if self.size_m < needed:
            raise ConfigError(
                f"env.size_m is {self.size_m:g}; expected at least {needed:.4g}, as {spec.name} is "
                f"{spec.length_m:.4g} m long and the next target up to {furthest:g} m away"
            )
        return spec

    def at_difficulty(self, difficulty: float) -> Self:
        """Heights and depths have that share."""
        heights = {name: difficulty * getattr(self, name) for name in ("rough_m", "step_m", "gap_m")}
        return replace(super().at_difficulty(difficulty), **heights)

    def ground(self) -> Ground:
        """A flat field within the span of all that may come."""
        flat = np.zeros_like(field_heights(self.field("flat", 0)))
        reach = (flat.shape[0] - 1) * self.cell_m
        return Ground(flat, (reach, reach), span_m=SPAN_M)

    def field(self, kind: TerrainKind, seed: int) -> GroundSpec:
        """The field of one kind and seed, of these heights."""
        heights = {"grass": self.rough_m, "rocks": self.rough_m, "steps": self.step_m, "gaps": self.gap_m}
        return GroundSpec(
            kind="grass" if kind == "flat" else kind, seed=seed, height_m=heights.get(kind, 0.0),
            grain_m=self.grain_m, start_radius_m=self.start_radius_m, size_m=self.size_m, cell_m=self.cell_m,
        )  # fmt: skip

    def stretch_at(self, distance_m: FloatArray) -> NDArray[np.int64]:
        """Numbers of the stretches at distances from the start [m]."""
        if self.stretch_m == 0.0:
            return np.zeros(distance_m.shape, np.int64)
        beyond = np.maximum(distance_m - self.start_radius_m, 0.0) / self.stretch_m
        return np.minimum(beyond.astype(np.int64), _STRETCHES - 1)

    def heights(self, kinds: Sequence[TerrainKind], seed: int) -> FloatArray:
        """Heights [m] of a field whose stretches are of these kinds."""
        if self.stretch_m == 0.0:
            return _heights(self.field(kinds[0], seed))
        rings = [
            replace(self.field(kind, seed + i), start_radius_m=self.start_radius_m + i * self.stretch_m)
            for i, kind in enumerate(kinds)
        ]
        x, y = field_grid(rings[0])
        return np.choose(self.stretch_at(np.hypot(x, y)), [_heights(ring) for ring in rings])

    def make_task(self, spec: Any, n_worlds: int) -> Task:
        return Terrain(self, spec, n_worlds)


@register_column(
    "ground", "1", "1 for the kind of ground under the tracked point, 0 for the others: " + ", ".join(KINDS), len(KINDS)
)
def ground(seen: Seen) -> FloatArray:
    return (seen.signals["ground"][:, None] == np.arange(len(KINDS))).astype(np.float64)


class Terrain(SpatialWaypoints):
    """Grounds, targets and progress of W worlds."""

    columns = (*SpatialWaypoints.columns, "ground")
    records = {  # noqa: RUF012
        **SpatialWaypoints.records,
        "n_changes": Record("", f"rings reached beyond all before, {2 * CHANGE_S:g} s and more before the next", 0),
        "change_loss_m": Record(
            "m", f"of each of those: way in {CHANGE_S:g} s at its mean speed, less that in its first {CHANGE_S:g} s"
        ),
    }

    def __init__(self, config: TerrainConfig, spec: SpatialSpec, n_worlds: int) -> None:
        super().__init__(config.course, n_worlds, config.reward)
        self._made: FloatArray = np.full((n_worlds, _STRETCHES + 4), np.nan)
        """(W, S + 4) kinds, seed and heights of the ground that the physics has."""
        self.n_random += 2
        self._stretch: NDArray[np.int64] = self.keep("stretch", 0)
        self._terrain, self.reach_m = config, 0.5 * (config.size_m - spec.length_m)
        self.kind: NDArray[np.int64] = self.keep("ground_kind", 0, _STRETCHES)
        """(W, S) kinds of ground of the stretches, their places in ``KINDS``."""
        self.seed: NDArray[np.int64] = self.keep("ground_seed", 0)
        """(W,) seed of its heights."""
        self.heights: FloatArray = self.keep("ground_heights", 0.0, 3)
        """(W, 3) [m] of rough ground, steps and gaps."""
        self._n_change = max(1, round(CHANGE_S / spec.control_dt_s))
        self._furthest, self._since = self.keep("furthest", 0), self.keep("since_change", 0)
        """(W,) number of the furthest stretch so far, and steps since the robot came to it."""
        self._way, self._begun = self.keep("change_way", 0.0), self.keep("change_begun", 0.0)
        """(W,) [m] progress before it, and in the first seconds on it."""
        self._before: FloatArray = self.keep("changes_before", 0.0, 2)
        """(W, 2) number and loss [m] of the changes to earlier ones."""
        kind = self.kind if config.stretch_m > 0.0 else self.kind[:, 0]
        self.scenario |= {"ground_kind": kind, "ground_seed": self.seed}

    def begin(self, new: NewEpisodes) -> Start:
        """New grounds and courses."""
        terrain, rows = new.config, new.rows
        kinds = [KINDS.index(kind) for kind in terrain.kinds]
        orders = list(itertools.permutations(kinds, len(kinds) if terrain.stretch_m > 0.0 else 1))
        table = np.array([list(itertools.islice(itertools.cycle(order), _STRETCHES)) for order in orders])
        self.kind[rows] = table[np.floor(new.u[:, -2] * len(table)).astype(np.int64)]
        self.seed[rows] = (new.u[:, -1] * _SEEDS).astype(np.int64)
        self.heights[rows] = (terrain.rough_m, terrain.step_m, terrain.gap_m)
        self.restored()
        return super().begin(new)

    def _lay(self, world: int) -> None:
        """Give the robots' physics the ground of a world."""
        rough, step, gap = self.heights[world].tolist()
        config = replace(self._terrain, rough_m=rough, step_m=step, gap_m=gap)
        robot: Any = self.robot
        kinds = [KINDS[kind] for kind in self.kind[world]]
        robot.lay_heights(world, config.heights(kinds, int(self.seed[world])))

    def evaluate(self, step: Step) -> tuple[dict[str, FloatArray], BoolArray]:
        terms, complete = super().evaluate(step)
        self._stretch[:] = self._terrain.stretch_at(np.hypot(*step.point_xy.T))
        self._note_changes(step.live)
        return terms, complete | (step.live & (np.abs(step.state.centre_xy).max(axis=1) > 0.5 * self._terrain.size_m))

    def _note_changes(self, live: BoolArray) -> None:
        """Count changes and the way lost at them, the present stretch's by its mean speed so far."""
        made, n = self.record["progress_m"] - self._way, self._n_change
        self._since += live
        np.copyto(self._begun, made, where=live & (self._since == n))
        counts = (self._furthest > 0) & (self._since >= 2 * n)
        lost = np.where(counts, n * made / np.maximum(self._since, 1) - self._begun, 0.0)
        self.record["n_changes"][:] = self._before[:, 0] + counts
        self.record["change_loss_m"][:] = self._before[:, 1] + lost
        new = np.flatnonzero(live & (self._stretch > self._furthest))
        self._furthest[new], self._since[new], self._way[new] = self._stretch[new], 0, self.record["progress_m"][new]
        self._before[new] = np.column_stack([self.record[name][new] for name in ("n_changes", "change_loss_m")])

    def signals(self) -> dict[str, FloatArray]:
        return {**super().signals(), "ground": self.kind[self.rows, self._stretch].astype(np.float64)}

    def restored(self) -> None:
        """Lay the grounds of worlds that have another one than the physics; a real robot lies on its own."""
        if not hasattr(self, "robot"):
            return
        wanted = np.column_stack([self.kind, self.seed, self.heights])
        for world in np.flatnonzero((wanted != self._made).any(axis=1)):
            self._lay(int(world))
        self._made[:] = wanted


@lru_cache(maxsize=64)
def _heights(spec: GroundSpec) -> FloatArray:
    return field_heights(spec)
