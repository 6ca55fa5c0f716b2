"""Rerun of haghshenas2022: a planar snake driven by antagonistic pneumatic muscles along a circle and a square."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from papers.haghshenas2022 import runs
from papers.haghshenas2022.figures import FIGURES
from papers.haghshenas2022.runs import PUBLISHED, SPEED_M_S, PathName, PathRun, Results
from papers.study import Advance, Cell, Claim, Finding, Study, Table, claim, compare, grade, grade_built, stage
from snake_gym.robot.presets import MUSCLE

SPEED_TOLERANCE = 0.03
LENGTH_TOLERANCE = 0.03
"""Relative tolerance for each of a table's 20 lengths: 2.5 to 3.3 mm."""
GAIT_RAD_S = 2.0 * np.pi
"""Frequency omega_0 of section 3 [rad/s]."""
_CIRCLE_S, _SQUARE_S = 100.0, 140.0
"""Durations [s]: once round the circle, as in section 3.1, and round the square."""
_QUICK_S = 35.0
"""Duration of a quick run [s]: up to the first corner."""
_STATES = 100


def _experiment(quick: bool, advance: Advance) -> Results:
    circle_s, square_s = (_QUICK_S, _QUICK_S) if quick else (_CIRCLE_S, _SQUARE_S)
    circle = runs.follow("circle", "tangent", circle_s, runs.CONTROLLER, stage(advance, 0.0, 0.2, "circle"))
    square = runs.follow("square", "path", square_s, runs.CONTROLLER, stage(advance, 0.4, 0.65, "square"))
    sharp = runs.follow(
        "square", "tangent", square_s, runs.SHARP, stage(advance, 0.65, 0.9, "square, published guidance")
    )
    advance(0.9, "gait and inverse")
    return Results(circle, square, sharp, runs.gait_speed(GAIT_RAD_S), runs.examine(_STATES, 0))


# --- claims, in the order of the paper -------------------------------------------------------------------------------


@claim("The kinetic energy is that of eq. 31, with M_p = m I", "Eq. 31", 1.0, "of the true energy")
def _energy(results: Results) -> Finding:
    share = results.inverse.kinetic_share
    note = "pure translation: the mass in eq. 31 is that of one link; the terms that couple links are missing too"
    return Finding(grade(abs(share - 1.0) < 0.01), note, share)


@claim("Muscle forces can give all eight accelerations wanted: (F D)^-1 exists", "Eq. 44-51", 8.0, "rank")
def _inverse(results: Results) -> Finding:
    inverse = results.inverse
    note = (
        f"{len(inverse.missed)} random states: ten muscle forces move the eight accelerations of eq. 51 with rank "
        f"{inverse.rank}, the centre of mass not at all ({inverse.centre_share:.0e} of what the joints feel); of a "
        f"random demand {100 * np.median(inverse.missed):.0f} % (median) cannot be met, even if muscles could push"
    )
    return Finding(grade(inverse.rank >= 8), note, float(inverse.rank))


@claim("The gait given moves the robot at 0.275 m/s", "Section 3", SPEED_M_S, "m/s", 0.03)
def _gait(results: Results) -> Finding:
    phase_s = 2.0 * np.pi / _frequency(results.circle)
    note = (
        "30 deg, 2 pi rad/s, 72 deg between neighbours, joint motion imposed: friction carries the robot no faster. "
        f"At {SPEED_M_S} m/s the gait runs with a period of {phase_s:.2f} s in place of 1 s"
    )
    return Finding(None, note, results.gait_m_s)


def _frequency(run: PathRun) -> float:
    """Return the mean frequency of the gait once settled [rad/s], from the sign changes of joint 1."""
    angle = run.run.joint_angle[run.settled, 0, 0]
    crossings = np.flatnonzero(np.diff(np.sign(angle - angle.mean())) != 0)
    time_s = run.run.time_s[run.settled][crossings]
    return float(np.pi * (len(crossings) - 1) / (time_s[-1] - time_s[0]))


def _on(path: PathName) -> Callable[[Results], list[Claim]]:
    """Return the claims that the paper makes of either path: mean speed, band, rise, muscle lengths."""

    def judge(results: Results) -> list[Claim]:
        run, paper = getattr(results, path), PUBLISHED[path]
        note = "the gain from speed to frequency was chosen for it; the gait itself could start within one period"
        text = f"10-90 % rise of the speed on the {path}"
        rise = compare(text, paper.source, runs.RISE_S, run.rise_s, "s", 0.2, note, built=True)
        return [_mean_speed(run), _band(run), rise, _lengths(run)]

    return judge


def _mean_speed(run: PathRun) -> Claim:
    paper, mean = PUBLISHED[run.path], float(run.speed[run.settled].mean())
    note = f"our controller regulates the speed to the {SPEED_M_S} m/s that are asked for"
    text = f"Mean speed on the {run.path}"
    return compare(text, paper.source, paper.mean_m_s, mean, "m/s", SPEED_TOLERANCE, note, built=True)


def _band(run: PathRun) -> Claim:
    paper, speed = PUBLISHED[run.path], run.speed[run.settled]
    least, most = float(speed.min()), float(speed.max())
    inside = least >= paper.least_m_s and most <= paper.most_m_s
    share = float(((speed >= paper.least_m_s) & (speed <= paper.most_m_s)).mean())
    text = f"On the {run.path} the speed oscillates within a narrow band"
    note = (
        f"{least:.3f} to {most:.3f} m/s; published {paper.least_m_s:.3f} to {paper.most_m_s:.3f}; "
        f"{100 * share:.1f} % of the time inside"
    )
    width, verdict = paper.most_m_s - paper.least_m_s, grade(inside, share > 0.9)
    return Claim(text, paper.source, verdict, width, most - least, "m/s (width)", note=note)


def _lengths(run: PathRun) -> Claim:
    paper, (short, long) = PUBLISHED[run.path], runs.length_range_mm(run)
    off = np.concatenate([short / paper.shortest_mm - 1.0, long / paper.longest_mm - 1.0])
    good, worst = int((np.abs(off) <= LENGTH_TOLERANCE).sum()), float(np.abs(off).max())
    gait = np.concatenate([*runs.lengths_of_gait()]) / np.concatenate([paper.shortest_mm, paper.longest_mm])
    given = int((np.abs(gait - 1.0) <= LENGTH_TOLERANCE).sum())
    text = f"Ranges of the muscles' lengths on the {run.path}"
    verdict = grade(good == off.size, good >= 0.75 * off.size)
    if verdict == "reproduced" and given >= off.size - 1:
        verdict = grade_built(True)
    note = (
        f"{good} of {off.size} lengths within {100 * LENGTH_TOLERANCE:g} %, the worst off by {100 * worst:.1f} %; "
        f"shortest {short.min():.1f} mm, longest {long.max():.1f} mm. Eq. 8 at the gait's own +-30 degrees, without "
        f"any simulation, gives {given} of {off.size}"
    )
    return Claim(text, paper.table, verdict, None, 100.0 * worst, "% off at worst", LENGTH_TOLERANCE, note)


@claim("After reaching the circle the robot stays on it", "Section 3.1, Fig. 3", unit="m")
def _stays(results: Results) -> Finding:
    run, length = results.circle, MUSCLE.length_m
    off = run.run.cross_track_m[run.settled]
    note = (
        f"{np.nanmin(off):+.3f} to {np.nanmax(off):+.3f} m from the circle (left positive) once settled; "
        f"robot of {length:g} m"
    )
    return Finding(grade(run.deviation_m < 0.25 * length, run.deviation_m < length), note, run.deviation_m)


@claim("The robot leaves the square by about 0.9 m at the corners", "Section 3.2", runs.CORNER_M, "m", 0.2)
def _corner(results: Results) -> Finding:
    ours, published = results.square.deviation_m, results.published_square.deviation_m
    note = (
        "by the published law, which begins to turn at the corner only and needs sharper turns for it; "
        f"{ours:.2f} m looking ahead along the path"
    )
    return Finding(None, note, published)


@claim("Muscles pull with 0.2 to 0.6 N most of the way round the square", "Section 3.2, Fig. 10",
       runs.FORCE_N[1], "N")  # fmt: skip
def _force(results: Results) -> Finding:
    run = results.square
    net = np.abs(run.net_force_n[run.settled])
    rms, tension = float(np.sqrt((net**2).mean())), run.muscle_force_n[run.settled]
    note = (
        f"root mean square of the force that one muscle alone would need; median {np.median(net):.2f} N. Tensions are "
        f"{tension.min():.1f} to {tension.max():.1f} N, most of it co-contraction"
    )
    return Finding(grade(rms <= runs.FORCE_N[1], rms <= 3.0 * runs.FORCE_N[1]), note, rms)


@claim("Corners take forces of the order of 10 N", "Section 3.2, Fig. 10", runs.CORNER_FORCE_N, "N")
def _corner_force(results: Results) -> Finding:
    run = results.square
    net = np.abs(run.net_force_n).max(axis=1)
    peak, sides = (float(net[run.settled & part].max()) for part in (run.at_corner, ~run.at_corner))
    note = (
        f"largest net force within {runs.LOOKAHEAD_M:g} m of a corner, {sides:.1f} N along the sides. Reproduced: "
        "within a factor of 3, and twice as much as along the sides"
    )
    alike = runs.CORNER_FORCE_N / 3.0 <= peak <= 3.0 * runs.CORNER_FORCE_N
    return Finding(grade(alike and peak >= 2.0 * sides, alike), note, peak)


@claim("Lengths and forces stay within what pneumatic muscles can do", "Section 4")
def _feasible(results: Results) -> Finding:
    muscle, both = MUSCLE.actuator.muscle, (results.circle, results.square)
    lengths = [length for run in both for length in runs.length_range_mm(run)]
    short, long = min(float(part.min()) for part in lengths), max(float(part.max()) for part in lengths)
    tension = min(float(run.muscle_force_n.min()) for run in both)
    pressure = max(float(run.run.muscle_pressure.max()) for run in both)
    note = (
        f"lengths {short:.1f} to {long:.1f} mm (a muscle has {1e3 * muscle.shortest_m:.1f} to "
        f"{1e3 * muscle.longest_m:.0f}), least tension {tension:.1f} N, "
        f"at most {1e-5 * pressure:.2f} bar of {1e-5 * muscle.max_pressure_pa:g}. Braid, co-contraction and limits are "
        "ours, and our actuator lets no muscle push"
    )
    holds = short > 1e3 * muscle.shortest_m and long < 1e3 * muscle.longest_m and tension >= 0.0
    return Finding(grade_built(holds and pressure < muscle.max_pressure_pa), note)


# --- tables ----------------------------------------------------------------------------------------------------------


def _length_table(results: Results) -> Table:
    """Return the shortest and longest length of every muscle, here and in the paper."""
    columns = ["path", "muscle", "shortest [mm]", "paper [mm]", "longest [mm]", "paper [mm]"]
    rows: list[list[Cell]] = []
    for run in (results.circle, results.square):
        paper, (short, long) = PUBLISHED[run.path], runs.length_range_mm(run)
        for joint in range(MUSCLE.n_joints):
            for side, name in ((1, "right"), (0, "left")):
                values = (short, paper.shortest_mm, long, paper.longest_mm)
                rows.append([run.path, f"m{joint + 1} {name}", *(float(value[joint, side]) for value in values)])
    note = "Joint 1 is the tail's. The paper's 11.2 mm (Table 2) is taken as 111.2."
    return Table("lengths", "Range of the muscles' lengths", columns, rows, note)


STUDY = Study(
    name="haghshenas2022",
    title="A planar snake driven by pneumatic muscles on a circle and a square",
    citation="M. Haghshenas-Jaryani: Dynamics and Computed-Muscle-Force Control of a Planar Muscle-Driven Snake Robot. "
    "Actuators 11(7), 194, 2022. doi:10.3390/act11070194",
    experiment=_experiment,
    claims=(
        _energy, _inverse, _gait, _on("circle"), _stays, _on("square"), _corner, _force, _corner_force, _feasible,
    ),
    tables=(_length_table,),
    figures=FIGURES,
    data=lambda _: {"controller": runs.CONTROLLER, "square_published_guidance": runs.SHARP},
)  # fmt: skip
