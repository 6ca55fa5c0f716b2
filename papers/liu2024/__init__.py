"""Rerun of parts of liu2024 (SnakeSys): a Hopf pattern generator, the derivative of its output, and a creeping gait.

``network``: the network of the authors' program, in all five modes. ``generator``: changes of gait and those of a
serpenoid, the sliding-window derivative against the exact one. ``creeping``: speed of the creeping gait on the yaw
joints of Snake Robot III. docs/papers/liu2024.md lists the omissions of the paper.
"""

from __future__ import annotations

import math

from papers.liu2024.creeping import FREQUENCY_RAD_S, MEASURED_M_PER_RAD, creep, creeping_wave, no_slip_speed
from papers.liu2024.figures import FIGURES, Results
from papers.liu2024.generator import CHANGES, DT_S, change_gait, derivative_error
from papers.liu2024.network import LOCKED_RAD, MODES, lock
from papers.study import Advance, Cell, Finding, Study, Table, claim, grade
from snake_gym.robot.presets import SNAKESYS

FREQUENCIES_RAD_S = (math.pi / 20, math.pi / 10, FREQUENCY_RAD_S, 1.0, -FREQUENCY_RAD_S)
RADIUS_TOLERANCE, SPEED_TOLERANCE = 0.01, 0.05
GOOD_LOCKING_PERIODS = 10.0
"""Our reading of the paper's "good synchronisation speed": locked within this many periods of the gait."""
SLACK = 1e-3
"""Share of omega rho that rounding and differences may add to a speed."""
SIMULATOR_MU = (0.0, 0.2)
"""Coefficients along and across in the authors' published simulation: wheels of mu = 0.2 on axles without friction."""


def _experiment(quick: bool, advance: Advance) -> Results:
    advance(0.0, "the published network")
    lockings = {name: lock(mode) for name, mode in MODES.items()}
    advance(0.3, "changes of gait")
    changes = [change_gait(name) for name in CHANGES]
    advance(0.7, "derivatives")
    errors = derivative_error()
    advance(0.75, "creeping")
    along, across = (float(SNAKESYS.links(f"friction.{way}_coulomb")[0]) for way in ("tangential", "normal"))
    runs = {w: creep(along, across, w) for w in FREQUENCIES_RAD_S}
    simulator = creep(*SIMULATOR_MU)
    return Results(lockings, changes, errors, (along, across), runs, simulator)


# --- claims ----------------------------------------------------------------------------------------------------------


@claim("From (0.1 deg, 0) every oscillator converges to the limit cycle of radius rho, in all modes", "Section 3.1",
       1.0, "rho", RADIUS_TOLERANCE)  # fmt: skip
def _limit_cycle(results: Results) -> Finding:
    radius = max(locking.radius_error for locking in results.lockings.values())
    return Finding(None, f"published network, worst of {len(results.lockings)} modes", 1.0 + radius)


@claim("The coupling locks the phases at the wanted differences, in all five modes", "Section 3.1", 0.0, "rad",
       LOCKED_RAD)  # fmt: skip
def _phases(results: Results) -> Finding:
    phase = max(float(locking.phase_error_rad[-1]) for locking in results.lockings.values())
    return Finding(None, "published network, 40 periods after the start, worst of all modes and joints", phase)


@claim(f"alpha = 0.01 and lambda = 0.2 give a good synchronisation speed (taken as: creeping locks within "
       f"{GOOD_LOCKING_PERIODS:g} periods)", "Section 5.1", unit="periods")  # fmt: skip
def _locking_speed(results: Results) -> Finding:
    periods = {name: locking.periods for name, locking in results.lockings.items()}
    listed = ", ".join(f"{name} {value:.1f}" for name, value in periods.items())
    note = f"published network (28 oscillators, Gaussian weights); periods to 0.01 rad: {listed}"
    good = [value <= GOOD_LOCKING_PERIODS for value in periods.values()]
    return Finding(grade(periods["CL"] <= GOOD_LOCKING_PERIODS, any(good)), note, periods["CL"])


@claim("Changes of amplitude and gait are smooth: neither position, speed nor acceleration jumps (taken as: speed "
       "within omega rho, acceleration within 2 omega^2 rho)", "Sections 1 and 3.1", unit="omega^2 rho")  # fmt: skip
def _smooth(results: Results) -> Finding:
    speed = max(change.equations.speed for change in results.changes)
    acceleration = max(change.equations.acceleration for change in results.changes)
    note = (
        f"at worst: speed {speed:.2f} omega rho, acceleration {acceleration:.2f} omega^2 rho; positions do not jump, "
        "but all joints feel the new phases at once"
    )
    step = speed * FREQUENCY_RAD_S * DT_S  # of a command, in rho
    return Finding(grade(speed <= 1.0 + SLACK and acceleration <= 2.0, step < 0.1), note, acceleration)


@claim("The oscillation goes on through a change of gait", "Sections 1 and 3.2", 1.0, "rho")
def _goes_on(results: Results) -> Finding:
    lowest = min(results.changes, key=lambda change: change.smallest_radius)
    radius = lowest.smallest_radius
    note = (
        f"smallest radius ({lowest.name}): another whole number of waves sums to zero over the old one, and the "
        "oscillators damp each other"
    )
    return Finding(grade(radius > 0.9, radius > 0.1), note, radius)


@claim("A curve formula (serpenoid) jumps where its parameters change", "Section 1", unit="omega rho dt")
def _formula_jumps(results: Results) -> Finding:
    formula = max(results.changes, key=lambda c: c.formula.speed)
    return Finding(grade(formula.formula.speed > 2.0), f"largest jump at: {formula.name}", formula.formula.speed)


@claim("Rate and acceleration for the present sample are precise enough to command servos (error below 1 % of "
       "the amplitude at 10 Hz)", "Section 3.3", unit="%")  # fmt: skip
def _precision(results: Results) -> Finding:
    rate, acceleration = results.errors
    worst = max(rate, acceleration)
    note = f"rate {100 * rate:.4f} %, acceleration {100 * acceleration:.3f} % with the window k-4..k"
    return Finding(grade(worst < 0.01), note, 100.0 * worst)


@claim("The creeping gait (K_n = 2, a_y = 50 deg, omega = pi/5) makes 0.2553 m/s per rad/s", "Section 5.2",
       MEASURED_M_PER_RAD, "m/rad", SPEED_TOLERANCE, built=True)  # fmt: skip
def _speed(results: Results) -> Finding:
    along, across = results.preset
    note = (
        f"preset snakesys, wheels {along:g} along and {across:g} across (ours: the paper has none), as nearly "
        "any that roll well and grip would do; with the authors' simulation model (0 and "
        f"0.2): {results.simulator.speed_m_per_rad:.4f}; a continuous serpenoid that cannot slip: "
        f"{no_slip_speed():.4f}"
    )
    return Finding(None, note, results.runs[FREQUENCY_RAD_S].speed_m_per_rad)


@claim("Speed is proportional to omega (speeds are given for omega = 1 rad/s)", "Sections 5.1 and 5.2", 0.0, "%",
       SPEED_TOLERANCE)  # fmt: skip
def _proportional(results: Results) -> Finding:
    forward = {w: run.speed_m_per_rad for w, run in results.runs.items() if w > 0.0}
    spread = max(forward.values()) / min(forward.values()) - 1.0
    note = f"spread of speed over omega from {min(forward):.3f} to {max(forward):.3f} rad/s"
    return Finding(grade(spread < SPEED_TOLERANCE), note, 100.0 * spread)


@claim("The sign of omega only turns the direction", "Section 5.1", -1.0, "", SPEED_TOLERANCE)
def _sign(results: Results) -> Finding:
    asymmetry = results.runs[-FREQUENCY_RAD_S].forwards_m / results.runs[FREQUENCY_RAD_S].forwards_m
    note = "way backwards over way forwards; the half-length head makes the difference"
    return Finding(grade(abs(asymmetry + 1.0) < SPEED_TOLERANCE), note, asymmetry)


# --- tables ----------------------------------------------------------------------------------------------------------


def _mode_table(results: Results) -> Table:
    rows: list[list[Cell]] = [
        [name, mode.yaw_deg, mode.pitch_deg, math.degrees(mode.shift_rad), results.lockings[name].periods,
         100.0 * results.lockings[name].radius_error]
        for name, mode in MODES.items()
    ]  # fmt: skip
    columns = ["mode", "rho yaw [deg]", "rho pitch [deg]", "shift [deg]", "locked after [periods]", "radius error [%]"]
    note = "28 oscillators from (0.1 deg, 0), full coupling, Gaussian weights. Locked: all phases within 0.01 rad."
    return Table("published_network", "The published network", columns, rows, note)


def _change_table(results: Results) -> Table:
    rows: list[list[Cell]] = []
    for c in results.changes:
        for how, motion, radius in (("equations", c.equations, c.smallest_radius), ("formula", c.formula, None)):
            rows.append([c.name, how, motion.speed, motion.acceleration, radius])
    columns = ["change", "by", "speed [omega rho]", "acceleration [omega^2 rho]", "smallest radius / rho"]
    note = "Equations: the new phase shift, rho and omega at once, as published. omega, rho: of the faster gait."
    return Table("gait_changes", "Changes of gait", columns, rows, note)


STUDY = Study(
    name="liu2024",
    title="SnakeSys: Hopf pattern generator, sliding-window derivative, creeping gait of Snake Robot III",
    citation="X. Liu, Y. Zang, Z. Gao: Bio-Inspired Multimodal Motion Gait Control of Snake Robots with Environmental "
    "Adaptability Based on ROS. Electronics 13(17), 3437, 2024. doi:10.3390/electronics13173437",
    experiment=_experiment,
    claims=(
        _limit_cycle, _phases, _locking_speed, _smooth, _goes_on, _formula_jumps, _precision, _speed, _proportional,
        _sign,
    ),
    tables=(_mode_table, _change_table),
    figures=FIGURES,
    data=lambda _: creeping_wave(SNAKESYS.n_joints)._asdict(),
)  # fmt: skip
