"""What haghshenas2022 says, and what the rerun makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from papers.haghshenas2022.inverse import Inverse
from papers.haghshenas2022.published import CORNER_FORCE_N, CORNER_M, FORCE_N, PUBLISHED, RISE_S
from papers.haghshenas2022.runs import SPEED_M_S, PathRun
from papers.study import Claim, Table, Verdict, compare
from snake_gym.robot.presets import MUSCLE
from snake_gym.robot.spec import FloatArray

SPEED_TOLERANCE = 0.03
LENGTH_TOLERANCE = 0.03
"""Relative, for each of a table's 20 lengths: 2.5 to 3.3 mm."""
GAIT_RAD_S = 2.0 * np.pi
"""omega_0 of section 3."""


@dataclass(frozen=True)
class Results:
    """All runs of the study."""

    circle: PathRun
    """By the published guidance."""
    square: PathRun
    """Looking ahead along the path."""
    published_square: PathRun
    """By the published guidance, with sharper turns."""
    gait_m_s: float
    """Speed of the gait with the frequency of section 3."""
    inverse: Inverse


def judge(results: Results) -> list[Claim]:
    """The claims, in the order of the paper."""
    circle, square = results.circle, results.square
    return [
        _energy(results.inverse),
        _inverse(results.inverse),
        _gait(results.gait_m_s, circle),
        _mean_speed(circle),
        _band(circle),
        _rise(circle),
        _lengths(circle),
        _stays(circle),
        _mean_speed(square),
        _band(square),
        _rise(square),
        _lengths(square),
        _corner(square, results.published_square),
        _force(square),
        _corner_force(square),
        _feasible(results),
    ]


def run_table(runs: Sequence[PathRun]) -> Table:
    """One row for each run, and the paper's."""
    columns = (
        "path", "look-ahead", "mean speed [m/s]", "least [m/s]", "most [m/s]", "10-90 % rise [s]", "off path [m]",
        "joint error [deg]", "net force, rms [N]", "peak [N]",
    )  # fmt: skip
    rows: list[list[float | str | None]] = []
    for run in runs:
        speed, net = run.speed[run.settled], np.abs(run.net_force_n)
        error = (run.run.wanted - run.run.joint_angle)[run.settled]
        rows.append(
            [
                run.path, run.ahead, float(speed.mean()), float(speed.min()), float(speed.max()), run.rise_s,
                run.deviation_m, float(np.degrees(np.sqrt(np.nanmean(error**2)))),
                float(np.sqrt((net[run.settled] ** 2).mean())), float(net.max()),
            ]
        )  # fmt: skip
    for name, paper in PUBLISHED.items():
        off = CORNER_M if name == "square" else None
        rows.append([name, "paper", paper.mean_m_s, paper.least_m_s, paper.most_m_s, RISE_S, off, None, None, None])
    note = (
        "Speeds, errors and deviations: from 15 s on, 200 samples per second. Net force: what one muscle alone "
        "would have to pull with."
    )
    return Table("runs", "Runs along the two paths", columns, rows, note)


def length_table(runs: Sequence[PathRun]) -> Table:
    """Shortest and longest of every muscle, beside the paper's."""
    columns = ["path", "muscle", "shortest [mm]", "paper [mm]", "longest [mm]", "paper [mm]"]
    rows: list[list[float | str | None]] = []
    for run in runs:
        paper, (short, long) = PUBLISHED[run.path], length_range_mm(run)
        for joint in range(MUSCLE.n_joints):
            for side, name in ((1, "right"), (0, "left")):
                rows.append(
                    [
                        run.path, f"m{joint + 1} {name}", float(short[joint, side]),
                        float(paper.shortest_mm[joint, side]), float(long[joint, side]),
                        float(paper.longest_mm[joint, side]),
                    ]
                )  # fmt: skip
    note = "Joint 1 is the tail's. The paper's 11.2 mm (Table 2) is taken as 111.2."
    return Table("lengths", "Range of the muscles' lengths", columns, rows, note)


def length_range_mm(run: PathRun) -> tuple[FloatArray, FloatArray]:
    """Shortest and longest length of each muscle (J, 2) [mm], left and right, over the whole run."""
    length = 1e3 * run.muscle_length_m
    return length.min(axis=0), length.max(axis=0)


def _verdict(holds: bool, nearly: bool = False) -> Verdict:
    return "reproduced" if holds else "partly" if nearly else "not"


def _energy(inverse: Inverse) -> Claim:
    share = inverse.kinetic_share
    note = "pure translation: the mass in eq. 31 is that of one link; the terms that couple links are missing too"
    return Claim(
        "The kinetic energy is that of eq. 31, with M_p = m I", "Eq. 31", _verdict(abs(share - 1.0) < 0.01),
        1.0, share, "of the true energy", note=note,
    )  # fmt: skip


def _inverse(inverse: Inverse) -> Claim:
    n = len(inverse.missed)
    note = (
        f"{n} random states: ten muscle forces move the eight accelerations of eq. 51 with rank {inverse.rank}, the "
        f"centre of mass not at all ({inverse.centre_share:.0e} of what the joints feel); of a random demand "
        f"{100 * np.median(inverse.missed):.0f} % (median) cannot be met, even if muscles could push"
    )
    return Claim(
        "Muscle forces can give all eight accelerations wanted: (F D)^-1 exists", "Eq. 44-51",
        _verdict(inverse.rank >= 8), 8.0, float(inverse.rank), "rank", note=note,
    )  # fmt: skip


def _gait(speed: float, circle: PathRun) -> Claim:
    phase_s = 2.0 * np.pi / _frequency(circle)
    note = (
        "30 deg, 2 pi rad/s, 72 deg between neighbours, joints following: friction carries the robot no faster. At "
        f"{SPEED_M_S} m/s the gait runs with a period of {phase_s:.2f} s in place of 1 s"
    )
    return compare("The gait given moves the robot at 0.275 m/s", "Section 3", SPEED_M_S, speed, "m/s", 0.03, note)


def _frequency(run: PathRun) -> float:
    """Mean frequency of the gait once settled [rad/s], from the sign changes of joint 1."""
    angle = run.run.joint_angle[run.settled, 0, 0]
    crossings = np.flatnonzero(np.diff(np.sign(angle - angle.mean())) != 0)
    time_s = run.run.time_s[run.settled][crossings]
    return float(np.pi * (len(crossings) - 1) / (time_s[-1] - time_s[0]))


def _mean_speed(run: PathRun) -> Claim:
    paper, mean = PUBLISHED[run.path], float(run.speed[run.settled].mean())
    note = f"{SPEED_M_S} m/s wanted: {100 * (mean / SPEED_M_S - 1):+.1f} %"
    return compare(
        f"Mean speed on the {run.path}", paper.source, paper.mean_m_s, mean, "m/s", SPEED_TOLERANCE, note
    )  # fmt: skip


def _band(run: PathRun) -> Claim:
    paper, speed = PUBLISHED[run.path], run.speed[run.settled]
    least, most = float(speed.min()), float(speed.max())
    inside = least >= paper.least_m_s and most <= paper.most_m_s
    share = float(((speed >= paper.least_m_s) & (speed <= paper.most_m_s)).mean())
    note = (
        f"{least:.3f} to {most:.3f} m/s; published {paper.least_m_s:.3f} to {paper.most_m_s:.3f}; "
        f"{100 * share:.1f} % of the time inside"
    )
    return Claim(
        f"On the {run.path} the speed oscillates within a narrow band", paper.source, _verdict(inside, share > 0.9),
        paper.most_m_s - paper.least_m_s, most - least, "m/s (width)", note=note,
    )  # fmt: skip


def _rise(run: PathRun) -> Claim:
    note = "set by the gain from speed to frequency, chosen so; the gait itself could start within one period"
    source = PUBLISHED[run.path].source
    return compare(f"10-90 % rise of the speed on the {run.path}", source, RISE_S, run.rise_s, "s", 0.2, note)


def _lengths(run: PathRun) -> Claim:
    paper, (short, long) = PUBLISHED[run.path], length_range_mm(run)
    off = np.concatenate([short / paper.shortest_mm - 1.0, long / paper.longest_mm - 1.0])
    good, worst = int((np.abs(off) <= LENGTH_TOLERANCE).sum()), float(np.abs(off).max())
    note = (
        f"{good} of {off.size} lengths within {100 * LENGTH_TOLERANCE:g} %, the worst off by {100 * worst:.1f} %; "
        f"shortest {short.min():.1f} mm, longest {long.max():.1f} mm"
    )
    return Claim(
        f"Ranges of the muscles' lengths on the {run.path}", paper.table,
        _verdict(good == off.size, good >= 0.75 * off.size), measured=100.0 * worst, unit="% off at worst",
        tolerance=LENGTH_TOLERANCE, note=note,
    )  # fmt: skip


def _stays(run: PathRun) -> Claim:
    length = MUSCLE.length_m
    turned = float(np.nanmax(run.run.cross_track_m[run.settled])), float(np.nanmin(run.run.cross_track_m[run.settled]))
    note = f"{turned[1]:+.3f} to {turned[0]:+.3f} m from the circle (left positive) once settled; robot of {length:g} m"
    return Claim(
        "After reaching the circle the robot stays on it", "Section 3.1, Fig. 3",
        _verdict(run.deviation_m < 0.25 * length, run.deviation_m < length), measured=run.deviation_m, unit="m",
        note=note,
    )  # fmt: skip


def _corner(run: PathRun, published: PathRun) -> Claim:
    worst = max(run.deviation_m, published.deviation_m)
    note = (
        f"{run.deviation_m:.2f} m looking ahead along the path, {published.deviation_m:.2f} m by the published law, "
        "which begins to turn at the corner only and needs sharper turns for it"
    )
    return Claim(
        "The robot leaves the square by at most 0.9 m at the corners", "Section 3.2",
        _verdict(worst <= CORNER_M, run.deviation_m <= CORNER_M), CORNER_M, run.deviation_m, "m", note=note,
    )  # fmt: skip


def _force(run: PathRun) -> Claim:
    net = np.abs(run.net_force_n[run.settled])
    rms, tension = float(np.sqrt((net**2).mean())), run.muscle_force_n[run.settled]
    note = (
        f"root mean square of the force that one muscle alone would need; median {np.median(net):.2f} N. Tensions are "
        f"{tension.min():.1f} to {tension.max():.1f} N, most of it co-contraction"
    )
    text = f"Muscles pull with {FORCE_N[0]:g} to {FORCE_N[1]:g} N most of the way round the square"
    return Claim(
        text, "Section 3.2, Fig. 10",
        _verdict(rms <= FORCE_N[1], rms <= 3.0 * FORCE_N[1]), FORCE_N[1], rms, "N", note=note,
    )  # fmt: skip


def _corner_force(run: PathRun) -> Claim:
    peak = float(np.abs(run.net_force_n).max())
    close = CORNER_FORCE_N / 3.0 <= peak <= 3.0 * CORNER_FORCE_N
    note = "largest net force, corners and start; within a factor of 3 counts as the same order of magnitude"
    return Claim(
        "Corners take forces of the order of 10 N", "Section 3.2, Fig. 10", _verdict(close), CORNER_FORCE_N, peak, "N",
        note=note,
    )  # fmt: skip


def _feasible(results: Results) -> Claim:
    muscle = MUSCLE.actuator.muscle
    lengths = [length for run in (results.circle, results.square) for length in length_range_mm(run)]
    short, long = min(float(part.min()) for part in lengths), max(float(part.max()) for part in lengths)
    tension = min(float(run.muscle_force_n.min()) for run in (results.circle, results.square))
    pressure = max(float(run.run.muscle_pressure.max()) for run in (results.circle, results.square))
    note = (
        f"lengths {short:.1f} to {long:.1f} mm (a muscle has {1e3 * muscle.shortest_m:.1f} to "
        f"{1e3 * muscle.longest_m:.0f}), least tension {tension:.1f} N, "
        f"at most {1e-5 * pressure:.2f} bar of {1e-5 * muscle.max_pressure_pa:g}"
    )
    holds = short > 1e3 * muscle.shortest_m and long < 1e3 * muscle.longest_m and tension >= 0.0
    return Claim(
        "Lengths and forces stay within what pneumatic muscles can do", "Section 4",
        _verdict(holds and pressure < muscle.max_pressure_pa, holds), note=note,
    )  # fmt: skip
