"""The rerun of liu2024 as a study: claims, tables and figures from ``network``, ``gait_change`` and the others."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

import numpy as np

from papers.liu2024 import derivative_error, figures
from papers.liu2024.creeping import (
    FREQUENCY_RAD_S,
    MEASURED_M_PER_RAD,
    Creeping,
    creep,
    creeping_wave,
    fitting_ratio,
    no_slip_speed,
)
from papers.liu2024.gait_change import CHANGES, DT_S, Change, change_gait
from papers.liu2024.network import (
    PHASE_TOLERANCE_RAD,
    RADIUS_TOLERANCE,
    RATES,
    TOPOLOGIES,
    WEIGHTS,
    Settling,
    settle,
)
from papers.study import Advance, Claim, Figure, Outcome, Table, Verdict, compare
from snake_gym.robot.presets import SNAKESYS
from snake_gym.robot.spec import FloatArray

RATIOS = np.geomspace(0.01, 0.6, 13)
"""Scanned mu_along / mu_across."""
SCANNED_MU_ACROSS = (0.2, 0.4, 0.8)
FREQUENCIES_RAD_S = (math.pi / 20, math.pi / 10, FREQUENCY_RAD_S, 1.0, -FREQUENCY_RAD_S)
SPEED_TOLERANCE = 0.05
GOOD_LOCKING_PERIODS = 10.0
"""What we take the paper's "good synchronisation speed" to mean: locked within so many periods of the gait."""
ROUNDING = 1e-9
SIMULATOR_MU = (0.0, 0.2)
"""Along and across in the authors' published simulation model: wheels of mu = 0.2 on axles without friction."""


Rows = list[list[float | str | None]]


class Liu2024:
    """See ``papers.study.Study``."""

    name = "liu2024"
    title = "SnakeSys: Hopf pattern generator, sliding-window derivative, creeping gait of Snake Robot III"
    citation = (
        "X. Liu, Y. Zang, Z. Gao: Bio-Inspired Multimodal Motion Gait Control of Snake Robots with Environmental "
        "Adaptability Based on ROS. Electronics 13(17), 3437, 2024. doi:10.3390/electronics13173437"
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """``--quick`` only: all networks at the published rates take a few minutes."""
        parser.add_argument(
            "--quick", action="store_true", help="published rates for the full network only, fewer frictions and gaits"
        )

    def run(self, options: argparse.Namespace, advance: Advance) -> Outcome:
        """Rerun everything."""
        quick = bool(options.quick)
        settlings = _settle_all(quick, advance)
        topologies = TOPOLOGIES[:2] if quick else TOPOLOGIES
        advance(0.8, "changes of gait")
        changes = [change_gait(name, topology, rates) for rates in RATES for topology in topologies for name in CHANGES]
        advance(0.88, "derivatives")
        errors = derivative_error.errors()
        advance(0.9, "creeping on scanned friction")
        ratios = RATIOS[::4] if quick else RATIOS
        scan = {
            mu: np.array([creep(ratio * mu, mu).speed_m_per_rad for ratio in ratios])
            for mu in (SCANNED_MU_ACROSS[-1:] if quick else SCANNED_MU_ACROSS)
        }
        advance(0.98, "creeping at other frequencies")
        along = float(SNAKESYS.links("friction.tangential_coulomb")[0])
        across = float(SNAKESYS.links("friction.normal_coulomb")[0])
        runs = {w: creep(along, across, w) for w in FREQUENCIES_RAD_S}
        simulator = creep(*SIMULATOR_MU)
        wave = creeping_wave(SNAKESYS.n_joints)
        claims = [
            *_network_claims(settlings),
            *_change_claims(changes),
            *_derivative_claims(errors),
            *_creeping_claims(runs, simulator, ratios, scan, (along, across)),
        ]
        shown = next(c for c in changes if c.rates == "default" and c.name.startswith("all"))
        pictures = [
            Figure("locking", "Radius and phase errors from (0.1, 0.1), creeping gait of 14 joints.",
                   lambda canvas: figures.draw_locking(canvas, settlings), (10.0, 7.0)),
            Figure("gait_change", "At time 0 three waves in place of two, smaller and faster: commands of every "
                   "second joint.", lambda canvas: figures.draw_change(canvas, shown), (9.0, 8.0)),
            Figure("derivative", "Error of the sliding-window derivative of the locked output against the step.",
                   lambda canvas: figures.draw_derivative(canvas, errors)),
            Figure("creeping", "Speed of the creeping gait over omega against the ratio of friction coefficients.",
                   lambda canvas: figures.draw_creeping(canvas, ratios, scan, (along / across,
                                                        runs[FREQUENCY_RAD_S].speed_m_per_rad))),
        ]  # fmt: skip
        tables = [_network_table(settlings), _change_table(changes), _derivative_table(errors),
                  _scan_table(ratios, scan), _frequency_table(runs)]  # fmt: skip
        data = {"quick": quick, "amplitude_rad": wave.amplitude_rad, "phase_shift_rad": wave.phase_shift_rad}
        return Outcome(claims, tables, pictures, data)


def _settle_all(quick: bool, advance: Advance) -> list[Settling]:
    wanted = [
        (topology, weights, rates)
        for rates in RATES
        for topology in TOPOLOGIES
        for weights in WEIGHTS
        if rates == "default" or topology == "full" or not quick
    ]
    settled = []
    for k, (topology, weights, rates) in enumerate(wanted):
        advance(0.8 * k / len(wanted), f"locking: {topology}, {weights} weights, {rates} rates")
        settled.append(settle(topology, weights, rates))
    return settled


def _network_claims(settlings: Sequence[Settling]) -> list[Claim]:
    radius = max(s.radius_error for s in settlings)
    phase = max(s.phase_error_rad for s in settlings)
    paper = [s for s in settlings if s.rates == "paper"]
    locking = [max(s.phase_s, s.radius_s) * FREQUENCY_RAD_S / (2.0 * math.pi) for s in paper]
    good = sum(t <= GOOD_LOCKING_PERIODS for t in locking)  # NaN: not good
    verdict: Verdict = "reproduced" if good == len(paper) else "partly" if good else "not"
    return [
        Claim(
            "From (0.1, 0.1) every oscillator converges to the limit cycle of radius rho, in every topology and weight",
            "Section 3.1", "reproduced" if radius <= RADIUS_TOLERANCE else "not", 1.0, 1.0 + radius, "rho",
            RADIUS_TOLERANCE, f"worst of {len(settlings)} networks: radius off by {100 * radius:.3f} %",
        ),
        Claim(
            "The coupling locks the phases at the wanted differences, in every topology and weight", "Section 3.1",
            "reproduced" if phase <= PHASE_TOLERANCE_RAD else "not", 0.0, phase, "rad", PHASE_TOLERANCE_RAD,
            f"worst of {len(settlings)} networks: {phase:.4f} rad after locking",
        ),
        Claim(
            "alpha = 0.01 and lambda = 0.2 give a good synchronisation speed (taken as: locked within "
            f"{GOOD_LOCKING_PERIODS:g} periods of the creeping gait)", "Section 5.1", verdict, None,
            float(np.nanmin(locking)), "periods", None,
            f"{good} of {len(paper)} networks; from {np.nanmin(locking):.0f} to {np.nanmax(locking):.0f} periods "
            "of 10 s (14 oscillators; the full network of the paper's 28 pulls twice as fast)",
        ),
    ]  # fmt: skip


def _change_claims(changes: Sequence[Change]) -> list[Claim]:
    worst = max(changes, key=lambda c: c.step)
    formula = max(changes, key=lambda c: c.serpenoid_step)
    dead = {rates: min((c for c in changes if c.rates == rates), key=lambda c: c.unlimited_radius) for rates in RATES}
    fast = {rates: max((c for c in changes if c.rates == rates), key=lambda c: c.unlimited_step) for rates in RATES}
    lowest = min(changes, key=lambda c: c.smallest_radius)
    smooth: Verdict = "reproduced" if worst.step <= 1.0 + ROUNDING < formula.serpenoid_step else "not"
    alone: Verdict = "reproduced" if max(c.unlimited_step for c in fast.values()) <= 1.0 + ROUNDING else "partly"
    return [
        Claim(
            "Changes of amplitude and gait make no joint jump: no step above omega rho dt", "Sections 1 and 3.1",
            smooth, 1.0, worst.step, "omega rho dt", None,
            f"worst of {len(changes)} changes, dt = {DT_S:g} s, the phase shift brought in at a bounded rate and the "
            "speed limited to omega rho",
        ),
        Claim(
            "The published equations alone keep to omega rho dt too", "Section 3.1", alone, 1.0,
            fast["paper"].unlimited_step, "omega rho dt", None,
            f"{fast['paper'].unlimited_step:.2f} at the published rates ({fast['paper'].topology}, "
            f"{fast['paper'].name}), {fast['default'].unlimited_step:.1f} at our faster ones "
            f"({fast['default'].topology}, {fast['default'].name}): positions do not jump, but the coupling pulls",
        ),
        Claim(
            "The oscillation goes on through a change of gait", "Sections 1 and 3.2",
            "reproduced" if lowest.smallest_radius > 0.9 else "partly", 1.0, lowest.smallest_radius, "rho", None,
            f"smallest radius on the way with the bounded rate; the published equations alone: "
            f"{dead['paper'].unlimited_radius:.2f} at the published rates ({dead['paper'].topology}, "
            f"{dead['paper'].name}), {dead['default'].unlimited_radius:.1e} at ours: another whole number of waves "
            "sums to zero over the old one, and the oscillators damp each other",
        ),
        Claim(
            "A curve formula (serpenoid) jumps where its parameters change", "Section 1",
            "reproduced" if formula.serpenoid_step > 2.0 else "not", None, formula.serpenoid_step, "omega rho dt",
            None, f"largest jump at: {formula.name}",
        ),
    ]  # fmt: skip


def _derivative_claims(errors: dict[str, FloatArray]) -> list[Claim]:
    order = derivative_error.orders(errors)
    at = derivative_error.STEPS_S.index(0.1)
    worst = max(float(errors[name][at]) for name in ("rate", "acceleration"))
    late = float(errors["late_acceleration"][at])
    return [
        compare("Five points give a rate of fourth order in the step", "Section 3.3, eq. 38 and 40", 4.0,
                min(order["rate"], order["settled_rate"]), "order", 0.05),
        compare("Differentiated again, the settled acceleration is of fourth order", "Section 3.3, eq. 43", 4.0,
                order["settled_acceleration"], "order", 0.05),
        Claim("Rate and acceleration for the present sample are precise enough to command servos (error below 1 % of "
              "the amplitude at 10 Hz)", "Section 3.3", "reproduced" if worst < 0.01 else "not", None, 100.0 * worst,
              "%", None, f"rate {100 * errors['rate'][at]:.4f} %, acceleration {100 * errors['acceleration'][at]:.3f} "
              "% with the window k-4..k"),
        Claim("The acceleration of step S4 (window k-6..k-2) is that of the present sample", "Section 3.3, Fig. 4",
              "reproduced" if late < 0.01 else "not", None, 100.0 * late, "%", None,
              "it is two samples late: eq. 45 with these points gives the acceleration at k-2; our filter takes the "
              "rates k-4..k instead"),
    ]  # fmt: skip


def _creeping_claims(
    runs: dict[float, Creeping],
    simulator: Creeping,
    ratios: FloatArray,
    scan: dict[float, FloatArray],
    preset: tuple[float, float],
) -> list[Claim]:
    fits = {mu: fitting_ratio(ratios, speed, MEASURED_M_PER_RAD) for mu, speed in scan.items()}
    fit = ", ".join(f"{ratio:.2f} (mu across {mu:g})" for mu, ratio in fits.items() if math.isfinite(ratio))
    forward = [run.speed_m_per_rad for w, run in runs.items() if w > 0.0]
    spread = max(forward) / min(forward) - 1.0
    back, ahead = runs[-FREQUENCY_RAD_S], runs[FREQUENCY_RAD_S]
    asymmetry = back.forwards_m / ahead.forwards_m
    return [
        compare("The creeping gait (K_n = 2, a_y = 50 deg, omega = pi/5) makes 0.2553 m/s per rad/s", "Section 5.2",
                MEASURED_M_PER_RAD, ahead.speed_m_per_rad, "m/rad", SPEED_TOLERANCE,
                f"preset snakesys, wheels {preset[0]:g} along and {preset[1]:g} across (ours: the paper has none); "
                f"0.2553 would fit at a ratio of {fit or 'none scanned'}; with the authors' simulation model (0 and "
                f"0.2): {simulator.speed_m_per_rad:.4f}; a continuous serpenoid that cannot slip: "
                f"{no_slip_speed():.4f}"),
        Claim("Speed is proportional to omega (speeds are given for omega = 1 rad/s)", "Sections 5.1 and 5.2",
              "reproduced" if spread < SPEED_TOLERANCE else "not", 0.0, 100.0 * spread, "%", SPEED_TOLERANCE,
              f"spread of speed over omega from {min(w for w in runs if w > 0):.3f} to {max(runs):.3f} rad/s"),
        Claim("The sign of omega only turns the direction", "Section 5.1",
              "reproduced" if abs(asymmetry + 1.0) < SPEED_TOLERANCE else "not", -1.0, asymmetry, "",
              SPEED_TOLERANCE, "way backwards over way forwards; the half-length head makes the difference"),
    ]  # fmt: skip


def _network_table(settlings: Sequence[Settling]) -> Table:
    rows: Rows = [
        [s.rates, s.topology, s.weights, s.radius_s, s.phase_s, 100.0 * s.radius_error, s.phase_error_rad,
         1.0 / s.slowest_per_s]
        for s in settlings
    ]  # fmt: skip
    columns = ["rates", "topology", "weights", "radius within 1 % after [s]", "phases within 0.01 rad after [s]",
               "radius error [%]", "phase error [rad]", "slowest mode [s]"]  # fmt: skip
    return Table(
        "locking", "From (0.1, 0.1) to the limit cycle", columns, rows,
        "paper: lambda = 0.2, alpha = 0.01; default: lambda = 2, alpha = 0.6. Slowest mode: 1 / (alpha lambda_2) of "
        "the graph's Laplacian, what sets the locking time. Errors at 1.5 times the locking time.",
    )  # fmt: skip


def _change_table(changes: Sequence[Change]) -> Table:
    rows: Rows = [
        [
            c.rates,
            c.topology,
            c.name,
            c.step,
            c.smallest_radius,
            c.phase_error_rad,
            c.unlimited_step,
            c.unlimited_radius,
            c.serpenoid_step,
        ]
        for c in changes
    ]
    columns = ["rates", "topology", "change", "largest step", "smallest radius / rho", "phase error at the end [rad]",
               "step, equations alone", "radius, equations alone", "step, serpenoid formula"]  # fmt: skip
    note = "Equations alone: the new phase shift at once and no limit of speed, as published."
    return Table("gait_changes", "Changes of gait: steps in omega rho dt", columns, rows, note)


def _derivative_table(errors: dict[str, FloatArray]) -> Table:
    order = derivative_error.orders(errors)
    rows: Rows = [[derivative_error.TITLES[name], *map(float, values), order[name]] for name, values in errors.items()]
    columns = ["result", *(f"dt = {dt:g} s" for dt in derivative_error.STEPS_S), "order"]
    return Table("derivative", "Largest error over the derivative's amplitude, omega = pi/5", columns, rows)


def _scan_table(
    ratios: FloatArray,
    scan: dict[float, FloatArray],
) -> Table:
    rows: Rows = [[float(ratio), *(float(speed[k]) for speed in scan.values())] for k, ratio in enumerate(ratios)]
    return Table("friction", "Speed over omega [m/rad] against friction",
                 ["mu along / across", *(f"mu across = {mu:g}" for mu in scan)], rows,
                 f"measured on the robot: {MEASURED_M_PER_RAD:g}")  # fmt: skip


def _frequency_table(runs: dict[float, Creeping]) -> Table:
    rows: Rows = [[w, run.speed_m_per_rad, run.forwards_m, run.torque_nm] for w, run in runs.items()]
    columns = ["omega [rad/s]", "speed / omega [m/rad]", "way in 3 periods, forwards [m]", "largest torque [N m]"]
    return Table("frequency", "Creeping at other frequencies, preset friction", columns, rows)


STUDY = Liu2024()
