"""What wang says, and what the rerun makes of it. The paper gives no numbers: each claim states its own measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from papers.drives import Drive
from papers.study import Claim, Table, Verdict
from papers.wang.boards import TIME_LIMIT_S, Crossings
from papers.wang.collisions import FreeLinkImpulse, Throws
from papers.wang.courses import Course
from snake_gym.robot.presets import PEGBOARD

LINK_M = float(2.0 * PEGBOARD.links("link_half_length_m").min())
SETTLED_S = 10.0
"""The start of a run that errors of following leave out."""
_CROSSED = 0.95
_PENETRATION = 0.005
"""Of the link length."""


@dataclass(frozen=True)
class Results:
    """All runs of the study."""

    crossings: Sequence[Crossings]
    free: Course
    pegs: Course
    followed: Drive
    """The trajectory with feed-forward."""
    lagging: Drive
    """The same by eq. 32 alone."""
    linearization_rad_s2: float
    impulse: FreeLinkImpulse
    throws: Throws
    fine_throws: Throws
    """The same throws at a tenth of the step."""


def judge(results: Results) -> list[Claim]:
    """The claims, in the order of the paper."""
    return [
        _no_penetration(results),
        _no_energy(results),
        _free_link(results.impulse),
        _many_contacts(results.crossings),
        _linearized(results.linearization_rad_s2),
        *(_crossed(crossings) for crossings in results.crossings),
        _sharp(results),
        _sequence(results.free, "A sequence of targets is reached on free ground", "Section IV-B, Fig. 4, Video 2"),
        _sequence(results.pegs, "A sequence of targets is reached through pegboards", "Section IV-A, Video 1"),
        _lags(results),
        _followed(results.followed),
    ]


def crossing_table(crossings: Sequence[Crossings]) -> Table:
    """One row for each difficulty."""
    rows = [
        [
            c.difficulty, int(c.crossed.sum()), c.crossed.size, float(np.median(c.time_s)), float(c.time_s.max()),
            100.0 * float(c.penetration_m.max()) / LINK_M, 100.0 * float(c.contact_share.mean()),
            float(c.most_contacts.max()), float(c.peak_force_n.max()), float(c.energy_gain_j.max()),
        ]
        for c in crossings
    ]  # fmt: skip
    columns = (
        "difficulty", "crossed", "boards", "median [s]", "slowest [s]", "deepest [% of link]", "in contact [% of time]",
        "contacts at once", "peak force [N]", "energy gain [J]",
    )  # fmt: skip
    note = (
        "Gaps between pegs: 2.2 (difficulty 0), 1.7 (0.5) and 1.2 (1) times the lane that a smaller wave of the robot "
        "takes. Energy gain: the largest gain of kinetic energy in a control step beyond the joints' positive work."
    )
    return Table("boards", "Random pegboards", columns, rows, note)


def joint_error_deg(run: Drive) -> float:
    """Root mean square of what the joints miss of their gait [deg]."""
    error = (run.wanted - run.joint_angle)[run.time_s > SETTLED_S]
    return float(np.degrees(np.sqrt((error**2).mean())))


def peak_acceleration(run: Drive, step_s: float) -> float:
    """Largest change of the velocity of the centre of mass from one control step to the next [m/s^2]."""
    change = np.diff(run.centre_vel, axis=0)[5:]
    return float(np.hypot(change[..., 0], change[..., 1]).max() / step_s)


def _verdict(holds: bool, nearly: bool = False) -> Verdict:
    return "reproduced" if holds else "partly" if nearly else "not"


def _no_penetration(results: Results) -> Claim:
    runs = max(float(c.penetration_m.max()) for c in results.crossings)
    deepest = max(runs, float(results.pegs.run.penetration_m.max())) / LINK_M
    note = f"over all boards and courses; limit {100 * _PENETRATION:g} % of a link of {LINK_M:g} m"
    return Claim(
        "Links do not penetrate obstacles", "Eq. 11, 17-19", _verdict(deepest <= _PENETRATION),
        measured=100.0 * deepest, unit="% of the link length", note=note,
    )  # fmt: skip


def _no_energy(results: Results) -> Claim:
    gain = max(float(c.energy_gain_j.max()) for c in results.crossings)
    throws, fine = results.throws, results.fine_throws
    note = (
        "largest gain of kinetic energy in a control step beyond the work of the joints. Robots with limp joints, "
        f"thrown over smooth ground among pegs, have at most {100 * throws.above:.2g} % more than the energy of the "
        f"throw ({100 * fine.above:.1g} % at a tenth of the step) and end with {100 * throws.left:.0f} % of it"
    )
    verdict = _verdict(gain <= 0.0 and throws.above < 0.01)
    return Claim("Contacts create no energy", "Eq. 12", verdict, measured=gain, unit="J", note=note)


def _free_link(impulse: FreeLinkImpulse) -> Claim:
    left, torn = float(np.median(impulse.left_m_s)), float(np.median(impulse.torn_m_s))
    note = (
        f"in {impulse.left_m_s.size} random impacts at 1 m/s without restitution: applied to the chain, the impulse of "
        f"a free link leaves {left:.2f} m/s of approach (median; 0 would be right); applied to the link alone, joints "
        f"part at {torn:.2f} m/s. The rerun passes impulses through the whole chain"
    )
    text = "The impulse of an impact follows from the mass of the link that is hit"
    return Claim(text, "Eq. 12-15", _verdict(left < 0.01, left < 0.05), 0.0, left, "m/s", note=note)


def _many_contacts(crossings: Sequence[Crossings]) -> Claim:
    most = max(float(c.most_contacts.max()) for c in crossings)
    note = "most contacts at a time, mean over a control step"
    return Claim(
        "The robot moves with several contacts at the same time", "Section V", _verdict(most >= 2.0, most > 1.0),
        measured=most, unit="contacts", note=note,
    )  # fmt: skip


def _linearized(error: float) -> Claim:
    return Claim(
        "With the torques of eq. 29 the joints accelerate as asked", "Eq. 26-30", _verdict(error < 1e-6),
        0.0, error, "rad/s^2", note="largest miss in random states, exact state known, no contact",
    )  # fmt: skip


def _crossed(crossings: Crossings) -> Claim:
    share, n = float(crossings.crossed.mean()), crossings.crossed.size
    note = (
        f"{crossings.crossed.sum()} of {n} random boards (difficulty {crossings.difficulty:g}) within "
        f"{TIME_LIMIT_S:g} s; the head within 0.15 m of the goal; at least {100 * _CROSSED:g} % counts"
    )
    return Claim(
        f"The robot goes through a dense pegboard to the target (difficulty {crossings.difficulty:g})",
        "Section IV-A, Video 1", _verdict(share >= _CROSSED, share >= 0.8), measured=100.0 * share, unit="%", note=note,
    )  # fmt: skip


def _sharp(results: Results) -> Claim:
    step_s = PEGBOARD.control_dt_s
    free, pegs = peak_acceleration(results.free.run, step_s), peak_acceleration(results.pegs.run, step_s)
    note = f"peak acceleration of the centre of mass: {free:.2f} m/s^2 on free ground, {pegs:.2f} among pegs"
    return Claim(
        "The way of the centre of mass is smooth without obstacles and sharp with them", "Section IV-A, Fig. 3",
        _verdict(pegs > 2.0 * free, pegs > free), measured=pegs / free, unit="times", note=note,
    )  # fmt: skip


def _sequence(course: Course, text: str, source: str) -> Claim:
    n, count = course.targets_xy.shape[:2]
    share = course.complete
    note = f"{count} targets in {n} course{'s' if n > 1 else ''}, the last at {course.run.time_s[-1]:.0f} s"
    return Claim(text, source, _verdict(share >= _CROSSED, share >= 0.8), measured=100.0 * share, unit="%", note=note)


def _lags(results: Results) -> Claim:
    without, with_it = joint_error_deg(results.lagging), joint_error_deg(results.followed)
    note = f"joint error {without:.1f} deg (root mean square) by eq. 32, {with_it:.2f} deg with feed-forward"
    return Claim(
        "The PD controller cannot follow references that change with time", "Section V",
        _verdict(without > 5.0 * with_it, without > 2.0 * with_it), measured=without, unit="deg", note=note,
    )  # fmt: skip


def _followed(run: Drive) -> Claim:
    error = run.cross_track_m[run.time_s > SETTLED_S]
    rms, worst, length = float(np.sqrt((error**2).mean())), float(np.abs(error).max()), PEGBOARD.length_m
    note = (
        f"figure of eight, feed-forward on: {rms:.3f} m root mean square, {worst:.3f} m at most; robot of {length:g} m"
    )
    return Claim(
        "The centre of mass can follow a trajectory without a break (the paper's open point)", "Section V",
        _verdict(worst < 0.1 * length, worst < 0.25 * length), measured=worst, unit="m", note=note,
    )  # fmt: skip
