"""Rerun of parts of liu2024 (SnakeSys): a Hopf pattern generator, the derivative of its output, and a creeping gait.

``generator``: limit cycle and phase locking of every topology and weight, changes of gait beside a serpenoid's, the
sliding-window derivative against the exact one. ``creeping``: speed of the creeping gait on the yaw joints of Snake
Robot III. docs/papers/liu2024.md lists the omissions of the paper.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

from papers.liu2024.creeping import (
    FREQUENCY_RAD_S,
    MEASURED_M_PER_RAD,
    creep,
    creeping_wave,
    fitting_ratio,
    no_slip_speed,
)
from papers.liu2024.figures import FIGURES, Results
from papers.liu2024.generator import (
    CHANGES,
    DT_S,
    PHASE_TOLERANCE_RAD,
    RADIUS_TOLERANCE,
    RATES,
    STEPS_S,
    TITLES,
    TOPOLOGIES,
    WEIGHTS,
    Change,
    change_gait,
    derivative_errors,
    orders,
    settle,
)
from papers.study import Advance, Cell, Finding, Study, Table, claim, grade
from snake_gym.robot.presets import SNAKESYS

RATIOS = np.geomspace(0.01, 0.6, 13)
"""Ratios mu_along / mu_across of the scan."""
SCANNED_MU_ACROSS = (0.2, 0.4, 0.8)
FREQUENCIES_RAD_S = (math.pi / 20, math.pi / 10, FREQUENCY_RAD_S, 1.0, -FREQUENCY_RAD_S)
SPEED_TOLERANCE = 0.05
GOOD_LOCKING_PERIODS = 10.0
"""Our reading of the paper's "good synchronisation speed": locked within this many periods of the gait."""
ROUNDING = 1e-9
SIMULATOR_MU = (0.0, 0.2)
"""Coefficients along and across in the authors' published simulation: wheels of mu = 0.2 on axles without friction."""


def _experiment(options: argparse.Namespace, advance: Advance) -> Results:
    quick = options.quick
    wanted = [
        (topology, weights, rates)
        for rates in RATES
        for topology in TOPOLOGIES
        for weights in WEIGHTS
        if rates == "default" or topology == "full" or not quick
    ]
    settlings = []
    for k, (topology, weights, rates) in enumerate(wanted):
        advance(0.8 * k / len(wanted), f"locking: {topology}, {weights} weights, {rates} rates")
        settlings.append(settle(topology, weights, rates))
    topologies = TOPOLOGIES[:2] if quick else TOPOLOGIES
    advance(0.8, "changes of gait")
    changes = [change_gait(name, topology, rates) for rates in RATES for topology in topologies for name in CHANGES]
    advance(0.88, "derivatives")
    errors = derivative_errors()
    advance(0.9, "creeping on scanned friction")
    ratios = RATIOS[::4] if quick else RATIOS
    scan = {
        mu: np.array([creep(ratio * mu, mu).speed_m_per_rad for ratio in ratios])
        for mu in (SCANNED_MU_ACROSS[-1:] if quick else SCANNED_MU_ACROSS)
    }
    advance(0.98, "creeping at other frequencies")
    along, across = (float(SNAKESYS.links(f"friction.{way}_coulomb")[0]) for way in ("tangential", "normal"))
    runs = {w: creep(along, across, w) for w in FREQUENCIES_RAD_S}
    return Results(quick, settlings, changes, errors, ratios, scan, (along, across), runs, creep(*SIMULATOR_MU))


# --- claims ----------------------------------------------------------------------------------------------------------


@claim("From (0.1, 0.1) every oscillator converges to the limit cycle of radius rho, in every topology and weight",
       "Section 3.1", 1.0, "rho", RADIUS_TOLERANCE)  # fmt: skip
def _limit_cycle(results: Results) -> Finding:
    radius = max(s.radius_error for s in results.settlings)
    note = f"worst of {len(results.settlings)} networks: radius off by {100 * radius:.3f} %"
    return Finding(grade(radius <= RADIUS_TOLERANCE), note, 1.0 + radius)


@claim("The coupling locks the phases at the wanted differences, in every topology and weight", "Section 3.1", 0.0,
       "rad", PHASE_TOLERANCE_RAD)  # fmt: skip
def _phases(results: Results) -> Finding:
    phase = max(s.phase_error_rad for s in results.settlings)
    note = f"worst of {len(results.settlings)} networks: {phase:.4f} rad after locking"
    return Finding(grade(phase <= PHASE_TOLERANCE_RAD), note, phase)


@claim(f"alpha = 0.01 and lambda = 0.2 give a good synchronisation speed (taken as: locked within "
       f"{GOOD_LOCKING_PERIODS:g} periods of the creeping gait)", "Section 5.1", unit="periods")  # fmt: skip
def _locking_speed(results: Results) -> Finding:
    paper = [s for s in results.settlings if s.rates == "paper"]
    locking = [max(s.phase_s, s.radius_s) * FREQUENCY_RAD_S / (2.0 * math.pi) for s in paper]
    good = sum(t <= GOOD_LOCKING_PERIODS for t in locking)  # NaN: not good
    note = (
        f"{good} of {len(paper)} networks; from {np.nanmin(locking):.0f} to {np.nanmax(locking):.0f} periods "
        "of 10 s (14 oscillators; the full network of the paper's 28 pulls twice as fast)"
    )
    return Finding(grade(good == len(paper), good), note, float(np.nanmin(locking)))


def _extremes(results: Results, quantity: str, largest: bool) -> dict[str, Change]:
    """Return, for each set of rates, the change of gait with the largest or smallest ``quantity``."""
    choose = max if largest else min
    return {
        rates: choose((c for c in results.changes if c.rates == rates), key=lambda c: float(getattr(c, quantity)))
        for rates in RATES
    }


@claim("Changes of amplitude and gait make no joint jump: no step above omega rho dt", "Sections 1 and 3.1", 1.0,
       "omega rho dt")  # fmt: skip
def _no_jump(results: Results) -> Finding:
    worst = max(c.step for c in results.changes)
    note = (
        f"worst of {len(results.changes)} changes, dt = {DT_S:g} s, the phase shift brought in at a bounded rate and "
        "the speed limited to omega rho"
    )
    formula = max(c.serpenoid_step for c in results.changes)
    return Finding(grade(worst <= 1.0 + ROUNDING < formula), note, worst)


@claim("The published equations alone keep to omega rho dt too", "Section 3.1", 1.0, "omega rho dt")
def _no_jump_alone(results: Results) -> Finding:
    fast = _extremes(results, "unlimited_step", largest=True)
    paper, default = fast["paper"], fast["default"]
    note = (
        f"{paper.unlimited_step:.2f} at the published rates ({paper.topology}, "
        f"{paper.name}), {default.unlimited_step:.1f} at our faster ones "
        f"({default.topology}, {default.name}): positions do not jump, but the coupling pulls"
    )
    holds = max(c.unlimited_step for c in fast.values()) <= 1.0 + ROUNDING
    return Finding(grade(holds, nearly=True), note, paper.unlimited_step)


@claim("The oscillation goes on through a change of gait", "Sections 1 and 3.2", 1.0, "rho")
def _goes_on(results: Results) -> Finding:
    lowest = min(c.smallest_radius for c in results.changes)
    dead = _extremes(results, "unlimited_radius", largest=False)
    paper, default = dead["paper"], dead["default"]
    note = (
        f"smallest radius on the way with the bounded rate; the published equations alone: "
        f"{paper.unlimited_radius:.2f} at the published rates ({paper.topology}, "
        f"{paper.name}), {default.unlimited_radius:.1e} at ours: another whole number of waves "
        "sums to zero over the old one, and the oscillators damp each other"
    )
    return Finding(grade(lowest > 0.9, nearly=True), note, lowest)


@claim("A curve formula (serpenoid) jumps where its parameters change", "Section 1", unit="omega rho dt")
def _formula_jumps(results: Results) -> Finding:
    formula = max(results.changes, key=lambda c: c.serpenoid_step)
    return Finding(grade(formula.serpenoid_step > 2.0), f"largest jump at: {formula.name}", formula.serpenoid_step)


@claim("Five points give a rate of fourth order in the step", "Section 3.3, eq. 38 and 40", 4.0, "order", 0.05)
def _order_of_rate(results: Results) -> Finding:
    order = orders(results.errors)
    return Finding(None, measured=min(order["rate"], order["settled_rate"]))


@claim("Differentiated again, the settled acceleration is of fourth order", "Section 3.3, eq. 43", 4.0, "order", 0.05)
def _order_of_acceleration(results: Results) -> Finding:
    return Finding(None, measured=orders(results.errors)["settled_acceleration"])


@claim("Rate and acceleration for the present sample are precise enough to command servos (error below 1 % of "
       "the amplitude at 10 Hz)", "Section 3.3", unit="%")  # fmt: skip
def _precision(results: Results) -> Finding:
    rate, acceleration = (float(results.errors[name][STEPS_S.index(0.1)]) for name in ("rate", "acceleration"))
    worst = max(rate, acceleration)
    note = f"rate {100 * rate:.4f} %, acceleration {100 * acceleration:.3f} % with the window k-4..k"
    return Finding(grade(worst < 0.01), note, 100.0 * worst)


@claim("The acceleration of step S4 (window k-6..k-2) is that of the present sample", "Section 3.3, Fig. 4", unit="%")
def _late(results: Results) -> Finding:
    late = float(results.errors["late_acceleration"][STEPS_S.index(0.1)])
    note = (
        "it is two samples late: eq. 45 with these points gives the acceleration at k-2; our filter takes the "
        "rates k-4..k instead"
    )
    return Finding(grade(late < 0.01), note, 100.0 * late)


@claim("The creeping gait (K_n = 2, a_y = 50 deg, omega = pi/5) makes 0.2553 m/s per rad/s", "Section 5.2",
       MEASURED_M_PER_RAD, "m/rad", SPEED_TOLERANCE)  # fmt: skip
def _speed(results: Results) -> Finding:
    fits = {mu: fitting_ratio(results.ratios, speed, MEASURED_M_PER_RAD) for mu, speed in results.scan.items()}
    fit = ", ".join(f"{ratio:.2f} (mu across {mu:g})" for mu, ratio in fits.items() if math.isfinite(ratio))
    along, across = results.preset
    note = (
        f"preset snakesys, wheels {along:g} along and {across:g} across (ours: the paper has none); "
        f"0.2553 would fit at a ratio of {fit or 'none scanned'}; with the authors' simulation model (0 and "
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


def _network_table(results: Results) -> Table:
    rows: list[list[Cell]] = [
        [s.rates, s.topology, s.weights, s.radius_s, s.phase_s, 100.0 * s.radius_error, s.phase_error_rad,
         1.0 / s.slowest_per_s]
        for s in results.settlings
    ]  # fmt: skip
    columns = ["rates", "topology", "weights", "radius within 1 % after [s]", "phases within 0.01 rad after [s]",
               "radius error [%]", "phase error [rad]", "slowest mode [s]"]  # fmt: skip
    return Table(
        "locking", "From (0.1, 0.1) to the limit cycle", columns, rows,
        "paper: lambda = 0.2, alpha = 0.01; default: lambda = 2, alpha = 0.6. Slowest mode: 1 / (alpha lambda_2) of "
        "the graph's Laplacian, what sets the locking time. Errors at 1.5 times the locking time.",
    )  # fmt: skip


def _change_table(results: Results) -> Table:
    rows: list[list[Cell]] = [
        [c.rates, c.topology, c.name, c.step, c.smallest_radius, c.phase_error_rad, c.unlimited_step,
         c.unlimited_radius, c.serpenoid_step]
        for c in results.changes
    ]  # fmt: skip
    columns = ["rates", "topology", "change", "largest step", "smallest radius / rho", "phase error at the end [rad]",
               "step, equations alone", "radius, equations alone", "step, serpenoid formula"]  # fmt: skip
    note = "Equations alone: the new phase shift at once and no limit of speed, as published."
    return Table("gait_changes", "Changes of gait: steps in omega rho dt", columns, rows, note)


def _derivative_table(results: Results) -> Table:
    order = orders(results.errors)
    rows: list[list[Cell]] = [
        [TITLES[name], *map(float, values), order[name]] for name, values in results.errors.items()
    ]
    columns = ["result", *(f"dt = {dt:g} s" for dt in STEPS_S), "order"]
    return Table("derivative", "Largest error over the derivative's amplitude, omega = pi/5", columns, rows)


def _scan_table(results: Results) -> Table:
    columns = ["mu along / across", *(f"mu across = {mu:g}" for mu in results.scan)]
    rows = np.column_stack([results.ratios, *results.scan.values()]).tolist()
    note = f"measured on the robot: {MEASURED_M_PER_RAD:g}"
    return Table("friction", "Speed over omega [m/rad] against friction", columns, rows, note)


def _frequency_table(results: Results) -> Table:
    rows = [[w, run.speed_m_per_rad, run.forwards_m, run.torque_nm] for w, run in results.runs.items()]
    columns = ["omega [rad/s]", "speed / omega [m/rad]", "way in 3 periods, forwards [m]", "largest torque [N m]"]
    return Table("frequency", "Creeping at other frequencies, preset friction", columns, rows)


def _data(results: Results) -> dict[str, Any]:
    return {"quick": results.quick, **creeping_wave(SNAKESYS.n_joints)._asdict()}


STUDY = Study(
    name="liu2024",
    title="SnakeSys: Hopf pattern generator, sliding-window derivative, creeping gait of Snake Robot III",
    citation="X. Liu, Y. Zang, Z. Gao: Bio-Inspired Multimodal Motion Gait Control of Snake Robots with Environmental "
    "Adaptability Based on ROS. Electronics 13(17), 3437, 2024. doi:10.3390/electronics13173437",
    quick="published rates for the full network only, fewer frictions and gaits",
    experiment=_experiment,
    claims=(
        _limit_cycle, _phases, _locking_speed, _no_jump, _no_jump_alone, _goes_on, _formula_jumps, _order_of_rate,
        _order_of_acceleration, _precision, _late, _speed, _proportional, _sign,
    ),
    tables=(_network_table, _change_table, _derivative_table, _scan_table, _frequency_table),
    figures=FIGURES,
    data=_data,
)  # fmt: skip
