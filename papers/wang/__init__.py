"""Rerun of wang: planar snake with joint torques under partial feedback linearisation, on free ground and among pegs.

The paper gives no numbers: each claim states its own measure.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from papers.study import Advance, Cell, Finding, Study, Table, claim, grade, grade_built, stage
from papers.wang import runs
from papers.wang.figures import FIGURES
from papers.wang.runs import LANE_M, LINK_M, TIME_LIMIT_S, Course, Results
from snake_gym.robot.presets import PEGBOARD

SEED = 0
"""Seed of the boards and of the random states."""
_EIGHT_S = 160.0
"""Duration of the trajectory [s]: once round."""
BOARDS = ((2.2, True), (1.7, True), (1.2, True), (1.2, False), (0.6, False), (0.3, False))
"""Gaps in lanes, and if a way is guaranteed: without one also half and a quarter of the densest."""
_CROSSED = 0.95
_PENETRATION = 0.005
"""Largest penetration, as a share of the link length."""


def _experiment(quick: bool, advance: Advance) -> Results:
    n_boards, kinds = (8, BOARDS[2:4]) if quick else (100, BOARDS)
    width = 0.5 / len(kinds)
    crossings = [
        runs.cross_boards(n_boards, *kind, SEED, stage(advance, i * width, (i + 1) * width, "boards"))
        for i, kind in enumerate(kinds)
    ]
    seconds = 20.0 if quick else _EIGHT_S
    pegs = runs.pegboard_courses(4 if quick else 20, 1.0, SEED, stage(advance, 0.5, 0.6, "targets among pegs"))
    return Results(
        crossings,
        runs.free_course(stage(advance, 0.6, 0.65, "targets on free ground"), 2 if quick else 5),
        pegs,
        runs.without_pegs(pegs, stage(advance, 0.65, 0.7, "the same without pegs")),
        runs.follow_trajectory(runs.CONTROLLER, seconds, stage(advance, 0.7, 0.8, "trajectory")),
        runs.follow_trajectory(runs.EQ32, seconds, stage(advance, 0.8, 0.9, "trajectory by eq. 32"), runs.STRONG),
        runs.linearization_error(16, SEED),
        runs.free_link_impulse(1000, SEED),
    )


# --- claims, in the order of the paper -------------------------------------------------------------------------------


@claim("Links do not penetrate obstacles", "Eq. 11, 17-19", unit="% of the link length")
def _no_penetration(results: Results) -> Finding:
    boards = max(float(c.penetration_m.max()) for c in results.crossings)
    deepest = max(boards, float(results.pegs.run.penetration_m.max())) / LINK_M
    note = f"over all boards and courses; limit {100 * _PENETRATION:g} % of a link of {LINK_M:g} m"
    return Finding(grade(deepest <= _PENETRATION), note, 100.0 * deepest)


@claim("Contacts create no energy", "Eq. 12", unit="J")
def _no_energy(results: Results) -> Finding:
    gain = max(float(c.energy_gain_j.max()) for c in results.crossings)
    note = "largest gain of kinetic energy in a control step beyond the work of the joints"
    return Finding(grade(gain <= 0.0), note, gain)


@claim("The impulse of an impact follows from the mass of the link that is hit", "Eq. 12-15", 0.0, "m/s")
def _free_link(results: Results) -> Finding:
    left = float(np.median(results.impulse_left_m_s))
    note = (
        f"in {results.impulse_left_m_s.size} random impacts at 1 m/s without restitution the impulse of a free link "
        f"leaves {left:.2f} m/s of approach (median; 0 would be right). The rerun passes impulses through the chain"
    )
    return Finding(grade(left < 0.01, left < 0.05), note, left)


@claim("The robot moves with several contacts at the same time", "Section V", unit="contacts")
def _many_contacts(results: Results) -> Finding:
    most = max(float(c.most_contacts.max()) for c in results.crossings)
    return Finding(grade(most >= 2.0, most > 1.0), "most contacts at a time, mean over a control step", most)


@claim("With the torques of eq. 29 the joints accelerate as asked", "Eq. 26-30", 0.0, "rad/s^2")
def _linearized(results: Results) -> Finding:
    error = results.linearization_rad_s2
    note = "largest miss in random states, no contact: inverse dynamics with the exact model and state"
    return Finding(grade_built(error < 1e-6), note, error)


def _judge_crossings(results: Results, guaranteed: bool) -> Finding:
    crossings = [c for c in results.crossings if c.guaranteed == guaranteed]
    shares = [float(c.crossed.mean()) for c in crossings]
    numbers = ", ".join(f"{c.crossed.sum()} of {c.crossed.size} with {c.gap_lanes:g}" for c in crossings)
    note = (
        f"crossed by width of the gaps, in lanes of {LANE_M:.2f} m: {numbers}; within {TIME_LIMIT_S:g} s, the head "
        f"within 0.15 m of the goal; at least {100 * _CROSSED:g} % counts"
    )
    return Finding(grade(min(shares) >= _CROSSED, max(shares) >= _CROSSED), note, 100.0 * min(shares))


_crossed, _crossed_unsearched = (
    claim(f"The robot goes through a dense pegboard to the target (boards {way})",
          "Section IV-A, Video 1", unit="% (worst)")(partial(_judge_crossings, guaranteed=guaranteed))
    for way, guaranteed in (("with a guaranteed way for its wave", True), ("without a guaranteed way", False))
)  # fmt: skip


@claim("The way of the centre of mass is smooth without obstacles and sharp with them", "Section IV-A, Fig. 3",
       unit="times")  # fmt: skip
def _sharp(results: Results) -> Finding:
    free, pegs = (runs.peak_acceleration(course.run, PEGBOARD.control_dt_s) for course in (results.bare, results.pegs))
    note = (
        f"peak acceleration of the centre of mass to the same targets: {free:.2f} m/s^2 without pegs, {pegs:.2f} with"
    )
    return Finding(grade(pegs > 2.0 * free, pegs > free), note, pegs / free)


@claim("A sequence of targets is reached on free ground", "Section IV-B, Fig. 4, Video 2", unit="%")
def _sequence_on_free_ground(results: Results) -> Finding:
    return _sequence(results.free)


@claim("A sequence of targets is reached through pegboards (along a guaranteed way)", "Section IV-A, Video 1", unit="%")
def _sequence_through_pegboards(results: Results) -> Finding:
    return _sequence(results.pegs)


def _sequence(course: Course) -> Finding:
    n, count = course.targets_xy.shape[:2]
    note = f"{count} targets in {n} course{'s' if n > 1 else ''}, the last at {course.run.time_s[-1]:.0f} s"
    return Finding(grade(course.complete >= _CROSSED, course.complete >= 0.8), note, 100.0 * course.complete)


@claim("The PD controller cannot follow references that change with time", "Section V", unit="deg")
def _lags(results: Results) -> Finding:
    without, with_it = runs.joint_error_deg(results.lagging), runs.joint_error_deg(results.followed)
    note = f"joint error {without:.1f} deg (root mean square) by eq. 32, {with_it:.2f} deg with feed-forward"
    return Finding(grade(without > 5.0 * with_it, without > 2.0 * with_it), note, without)


def _crossing_table(results: Results) -> Table:
    rows: list[list[Cell]] = [
        [
            c.gap_lanes, "guaranteed" if c.guaranteed else "unknown", int(c.crossed.sum()), c.crossed.size,
            float(np.median(c.time_s)), float(c.time_s.max()), 100.0 * float(c.penetration_m.max()) / LINK_M,
            100.0 * float(c.contact_share.mean()), float(c.most_contacts.max()), float(c.peak_force_n.max()),
            float(c.energy_gain_j.max()),
        ]
        for c in results.crossings
    ]  # fmt: skip
    columns = (
        "gap [lanes]", "way", "crossed", "of", "median [s]", "slowest [s]", "deepest [% of link]",
        "in contact [% of time]", "contacts at once", "peak force [N]", "energy gain [J]",
    )  # fmt: skip
    note = (
        f"A lane, {LANE_M:.2f} m, is what a smaller wave of the robot takes; pegs are moved by up to 0.15 of the gap. "
        "Energy gain: the largest gain of kinetic energy in a control step beyond the joints' positive work."
    )
    return Table("boards", "Random pegboards", columns, rows, note)


STUDY = Study(
    name="wang",
    title="Partial feedback linearisation of a planar snake among obstacles",
    citation="T. Wang: Dynamic Modeling and Control of the Planar Snake Robot Interacting with Obstacles in Dense "
    "Environments. Report, Carnegie Mellon University",
    experiment=_experiment,
    claims=(
        _no_penetration, _no_energy, _free_link, _many_contacts, _linearized, _crossed, _crossed_unsearched, _sharp,
        _sequence_on_free_ground, _sequence_through_pegboards, _lags,
    ),
    tables=(_crossing_table,),
    figures=FIGURES,
    data=lambda _: {"controller": runs.CONTROLLER, "seed": SEED, "time_limit_s": TIME_LIMIT_S},
)  # fmt: skip
