"""Reruns the simulations of sibilska2022 (resilient control of a snake robot, SJC and CC) and holds its numbers.

Experiment (section 4): ten links from rest to five targets in turn, guided by the centre of mass or by the head, with
single-joint control (SJC) or coupled control (CC), and no joint, joint 3, joints 3, 5, 8 or joints 3, 5, 6 broken: 16
runs. What counts is the time of arrival at every target (Fig. 14).

Models. ``consistent``: the physics of every env, with the guidance computed at the tracked point. ``published``: what
the paper's numbers were made with. For the centre the two are the same; for the head, see ``published_head_model``.

What the text leaves out (Tables 1-3 are empty in it) and gets wrong is collected in docs/papers/sibilska2022.md: the
control signal u is a joint acceleration, not a torque; a broken joint has u = 0 from the start and so stays locked at
its initial angle; the bearing is quadrant-aware and has the opposite sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from papers.dynamics import Mask, Model, Point, ShippedPhysics, SideBySide
from papers.published_head_model import PublishedHeadModel
from papers.waypoint_runs import Course, OnProgress, OnStep, WaypointRuns
from snake_gym.controllers.guidance import SteeringConfig
from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.robot.presets import RESILIENT
from snake_gym.robot.spec import FloatArray

ControllerName = Literal["sjc", "cc"]
ModelName = Literal["published", "consistent"]
Broken = tuple[int, ...]

COURSE = Course(np.array([[1.0, 1.0], [3.0, 1.0], [4.0, 0.0], [6.0, -1.0], [8.0, -1.0]]), radius_m=0.05)
"""Table 2 (recomputed); the figures plot -y."""

COUPLING: dict[ControllerName, float] = {"sjc": 0.0, "cc": 0.5}
"""c of eq. 37."""

BROKEN_SETS: tuple[Broken, ...] = ((), (3,), (3, 5, 8), (3, 5, 6))
"""Section 4.2."""

DT_S = 0.025
"""Runge-Kutta step [s] (the paper gives none). Arrivals hang on whether a target is hit or just missed, and so on the
step: one run (head, published, SJC, none) changes by 4 % from 0.05 to 0.025 s, the others by 1.3 % at most."""

TIME_LIMIT_S = 3000.0
"""[s] beyond the slowest run of all, 1955 s."""

PAPER_S: dict[tuple[Point, ControllerName, Broken], float] = {
    ("centre", "sjc", ()): 257.0,
    ("centre", "sjc", (3,)): 358.0,
    ("centre", "sjc", (3, 5, 8)): 760.0,
    ("centre", "sjc", (3, 5, 6)): 1545.0,
    ("centre", "cc", (3,)): 320.0,
    ("centre", "cc", (3, 5, 8)): 476.0,
    ("centre", "cc", (3, 5, 6)): 853.0,
    ("head", "sjc", ()): 297.0,
    ("head", "sjc", (3,)): 395.0,
    ("head", "sjc", (3, 5, 8)): 767.0,
    ("head", "sjc", (3, 5, 6)): 1069.0,
    ("head", "cc", (3,)): 320.0,
    ("head", "cc", (3, 5, 8)): 414.0,
    ("head", "cc", (3, 5, 6)): 772.0,
}
"""Arrival at the fifth target [s] that section 4.3 states, or gives as a difference between two controllers."""


class Case(NamedTuple):
    """One simulation."""

    point: Point
    model: ModelName
    controller: ControllerName
    broken: Broken


def select_cases(
    point: Point | None = None,
    model: ModelName | None = None,
    controller: ControllerName | None = None,
    broken: Broken | None = None,
) -> list[Case]:
    """The cases with these properties; None: all that the paper has (for ``broken``), or all.

    Centre runs are the same for both models and appear once, as published, unless ``model`` asks for consistent ones.
    """
    pairs: list[tuple[Point, ModelName]] = [("centre", model or "published")]
    pairs += [("head", name) for name in (("published", "consistent") if model is None else (model,))]
    controllers: Sequence[ControllerName] = ("sjc", "cc") if controller is None else (controller,)
    return [
        Case(where, physics, control, joints)
        for where, physics in pairs
        if point in (None, where)
        for joints in (BROKEN_SETS if broken is None else (broken,))
        for control in controllers
    ]


def paper_time(case: Case) -> float | None:
    """Arrival at the last target according to the paper [s]; None where it gives none."""
    if case.point == "head" and case.model == "consistent":
        return None
    return PAPER_S.get((case.point, case.controller, tuple(sorted(case.broken))))


def simulate(
    cases: Sequence[Case],
    amplitude_rad: float = GaitConfig.amplitude_rad,
    n_targets: int = len(COURSE.targets),
    dt_s: float = DT_S,
    time_limit_s: float = TIME_LIMIT_S,
    on_progress: OnProgress | None = None,
    on_step: OnStep | None = None,
) -> FloatArray:
    """Arrival times (cases, n_targets) [s], NaN where a target is not reached within ``time_limit_s``.

    Args:
        cases: what to simulate, as one batch; at least one.
        amplitude_rad: alpha of the gait; the paper has 20 degrees.
        n_targets: stop after this many targets.
        dt_s: Runge-Kutta step.
        on_progress: see ``OnProgress``.
        on_step: see ``OnStep``; runs are numbered as in ``cases``.
    """
    course = Course(COURSE.targets[:n_targets], COURSE.radius_m)
    gait = replace(GaitConfig(), amplitude_rad=amplitude_rad)
    in_head_model = np.array([case.point == "head" and case.model == "published" for case in cases], dtype=bool)
    order = np.argsort(in_head_model, kind="stable")
    batch = [cases[i] for i in order]
    broken, n_shipped = _broken_mask(batch), int((~in_head_model).sum())
    models: list[Model] = [ShippedPhysics(RESILIENT, broken[:n_shipped])] if n_shipped else []
    models += [PublishedHeadModel(RESILIENT, broken[n_shipped:])] if n_shipped < len(batch) else []
    coupling = np.array([COUPLING[case.controller] for case in batch])
    tracks_head = np.array([case.point == "head" for case in batch])
    runs = WaypointRuns(RESILIENT, SideBySide(models), gait, SteeringConfig(), coupling, tracks_head, course)
    arrivals = np.empty((len(cases), n_targets))
    told: OnStep | None = None
    if on_step is not None:
        listen = on_step

        def told(time_s: float, run: NDArray[np.int64], phi: FloatArray, tracked_xy: FloatArray) -> None:
            listen(time_s, order[run], phi, tracked_xy)

    arrivals[order] = runs.run(dt_s, time_limit_s, on_progress, told)
    return arrivals


def as_rows(cases: Sequence[Case], arrivals_s: FloatArray, paper_applies: bool = True) -> list[dict[str, Any]]:
    """JSON rows: point, model, controller, broken, arrivals_s (None: not reached), paper_s (None: the paper has none).

    ``paper_applies``: False where the runs were not the paper's (another amplitude).
    """
    return [
        {
            **case._asdict(),
            "broken": list(case.broken),
            "arrivals_s": [None if np.isnan(time) else round(float(time), 6) for time in arrivals],
            "paper_s": paper_time(case) if paper_applies else None,
        }
        for case, arrivals in zip(cases, arrivals_s, strict=True)
    ]


def _broken_mask(cases: Sequence[Case]) -> Mask:
    mask = np.zeros((len(cases), RESILIENT.n_joints), dtype=bool)
    for row, case in zip(mask, cases, strict=True):
        row[[joint - 1 for joint in case.broken]] = True
    return mask
