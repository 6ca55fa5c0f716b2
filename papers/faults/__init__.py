"""Fault-aware classical control, which none of the papers has: detection of joint faults, and its benefit for control.

Delay, confusion and false alarms of the detector; the fault-aware controller, its measures switched off in turn,
beside SJC, CC and CPG on the scenarios of the benchmark. docs/papers/faults.md has the conclusions.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from papers.faults.figures import draw_by_count, draw_by_joint, draw_delays
from papers.faults.runs import (
    ADDED,
    PARTS,
    ROBOT,
    SCENARIOS,
    SEED,
    TUNED,
    Contender,
    Detection,
    Result,
    against,
    changed,
    compete,
    compete_with_one_failed,
    find,
    mean_with_interval,
    tuned,
    watch,
    with_noise,
)
from papers.study import Advance, Cell, Claim, Option, Study, Table, figure, grade, number
from snake_gym.controllers.fault_detection import KIND_NAMES
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.spec import FloatArray

OTHER_ROBOTS: dict[str, dict[str, Any]] = {
    "resilient": {"kind": "sjc"},
    "pegboard": {"kind": "sjc", "amplitude_rad": 0.5, "frequency_rad_s": 3.0, "phase_shift_rad": 0.5},
    "muscle": {"kind": "sjc", "amplitude_rad": 0.5, "frequency_rad_s": 6.28, "phase_shift_rad": 1.25},
    "robo_conda": {"kind": "serpenoid", "amplitude_rad": 0.5, "frequency_rad_s": 2.0, "phase_shift_rad": 0.6},
    "snakesys": {"kind": "serpenoid", "amplitude_rad": 0.757, "frequency_rad_s": 0.628, "phase_shift_rad": 0.898},
}
"""Gait for each robot: its paper's, or near it."""
NOISES_RAD = (0.0, 0.01, 0.02)
KINDS = ("healthy", "locked", "free", "weak")
UNKNOWN_KINDS = ("slow", "offset")
"""Faults for which the detector has no hypothesis."""
FULL, TOLD, NOISY = "fault_aware", "fault_aware, told", "fault_aware, noise 0.01 rad"


class Results(NamedTuple):
    """Results of all runs of the study."""

    settings: dict[str, Any]
    detections: list[Detection]
    progress: list[Result]
    single: dict[tuple[str, str], FloatArray]
    """(kind, contender) -> progress [m] with each joint failed."""

    @property
    def watched(self) -> list[Detection]:
        """Detections on the robot that the claims are about."""
        return [detection for detection in self.detections if detection.robot == ROBOT]


def _experiment(options: argparse.Namespace, advance: Advance) -> Results:
    quick, seed, folder = options.quick, options.seed, Path(options.tuned)
    n = options.episodes or (32 if quick else 512)
    return Results(
        {"quick": quick, "episodes": n, "seed": seed},
        _watch_all(n, folder, quick, advance),
        _compete_all(n, seed, folder, advance),
        _compete_with_single_faults(max(8, n // 8), seed, folder, quick, advance),
    )


def _watch_all(n: int, folder: Path, quick: bool, advance: Advance) -> list[Detection]:
    cc, few = tuned("cc", folder), max(8, n // 4)
    wanted: list[tuple[str, Mapping[str, Any], str, float, int]]
    wanted = [(ROBOT, cc, kind, noise, few) for noise in NOISES_RAD[: 1 if quick else None] for kind in KINDS]
    if not quick:
        wanted += [(ROBOT, cc, kind, 0.0, few) for kind in UNKNOWN_KINDS]
        wanted += [(robot, gait, kind, 0.0, 32) for robot, gait in OTHER_ROBOTS.items() for kind in KINDS]
    found = []
    for k, (robot, controller, kind, noise, episodes) in enumerate(wanted):
        advance(0.4 * k / len(wanted), f"detecting: {robot}, {kind}, noise {noise:g} rad")
        found.append(watch(robot, controller, kind, noise, episodes, 80.0 if robot == "resilient" else 40.0))
    return found


def _compete_all(n: int, seed: int, folder: Path, advance: Advance) -> list[Result]:
    own = tuned("fault_aware", folder)
    tuned_alike = [Contender(kind, tuned(kind, folder)) for kind in ("sjc", "cc", "cpg")]
    full = [Contender(FULL, own), Contender(TOLD, own, told=True)]
    wanted = [(c, scenario, 0.0) for scenario in SCENARIOS for c in [*tuned_alike[1:2], *full]]
    wanted += [
        (c, "locked", 0.0)
        for c in [tuned_alike[0], tuned_alike[2], *(changed(name, folder) for name in (*PARTS, *ADDED))]
    ]
    wanted += [(changed("without any reverse", folder), scenario, 0.0) for scenario in ("free", "weak")]
    wanted.append((Contender(NOISY, with_noise(own, 0.01)), "locked", 0.01))
    results = []
    for k, (contender, scenario, noise) in enumerate(wanted):
        advance(0.4 + 0.4 * k / len(wanted), f"{scenario}: {contender.name}")
        sensors = {"angle_noise_rad": noise, "rate_noise_rad_s": 5.0 * noise}
        results.append(compete(contender, scenario, n, seed, sensors=sensors))
    return results


def _compete_with_single_faults(
    n: int, seed: int, folder: Path, quick: bool, advance: Advance
) -> dict[tuple[str, str], FloatArray]:
    contenders = [Contender("cc", tuned("cc", folder)), Contender(FULL, tuned("fault_aware", folder))]
    contenders.insert(1, changed("without any reverse", folder))
    joints = np.arange(1, load_robot(ROBOT).n_joints + 1, 4 if quick else 1)
    kinds = ("locked", "free") if quick else ("locked", "free", "weak")
    single = {}
    for k, kind in enumerate(kinds):
        for contender in contenders:
            advance(0.8 + 0.2 * k / len(kinds), f"one joint {kind}: {contender.name}")
            values = [compete_with_one_failed(contender, kind, int(joint), n, seed) for joint in joints]
            single[kind, contender.name] = np.array(values)
    return single


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if math.isfinite(seconds) else "no time (fewer are found)"


def _detection_claims(results: Results) -> Iterator[Claim]:
    where = "our study; two joints fail in mid-gait, resilient_servo driven by CC"
    for kind, within_s, least in (("locked", 1.5, 0.99), ("free", 5.0, 0.95), ("weak", 5.0, 0.95)):
        these = [d for d in results.watched if d.kind == kind]
        found = min(d.found for d in these)
        p95, median = (max(d.delay_quantile_s(share) for d in these) for share in (0.95, 0.5))
        named = min(d.named[KIND_NAMES.index(kind)] for d in these)
        text = f"A {kind} joint is found: at least {100 * least:g} %, 95 % of all within {within_s:g} s"
        note = (
            f"worst over the noises: {100 * found:.1f} % found, half of them in {_time(median)}, 95 % in "
            f"{_time(p95)}; named right at the end: {100 * named:.0f} %"
        )
        yield Claim(text, where, grade(found >= least and p95 <= within_s), measured=p95, unit="s", note=note, own=True)
    alarms = max(results.watched, key=lambda d: d.false_alarms_per_h)
    text = "At most one false alarm per hour of a healthy joint, with encoder noise up to 0.02 rad"
    note = (
        f"worst with {alarms.kind} joints elsewhere and noise {alarms.noise_rad:g} rad; healthy joints are "
        f"called failed {100 * max(d.flagged_share for d in results.watched):.2f} % of the time at most"
    )
    rate = alarms.false_alarms_per_h
    yield Claim(text, where, grade(rate <= 1.0), measured=rate, unit="1/h", note=note, own=True)


_PAIRED = "our study; benchmark scenarios, paired"


def _progress_claims(results: Results) -> Iterator[Claim]:
    def gain(text: str, name: str, other: str, scenario: str = "locked", note: str = "") -> Claim:
        d = against(results.progress, name, other, scenario)
        note = f"{d.mean:+.2f} m [{d.low:+.2f}, {d.high:+.2f}] {note}".strip()
        return Claim(text, _PAIRED, grade(d.low > 0.0), measured=d.mean, unit="m", note=note, own=True)

    for scenario in SCENARIOS:
        base, own = (float(find(results.progress, name, scenario).progress_m.mean()) for name in ("cc", FULL))
        text = f"Fault-aware control gets further than tuned CC: {scenario}"
        yield gain(text, FULL, "cc", scenario, f"({base:.2f} to {own:.2f} m)")
    texts = {
        "cc + turning back": "Leading with the end that is nearer to the target's direction helps CC",
        "cc + reversing for faults": "Leading with the tail when joints near the head are locked helps CC",
        "cc + spreading": "Spreading a locked joint's angle over its neighbours on both sides helps CC",
    }
    yield from (gain(text, added, "cc") for added, text in texts.items())
    text = "Leading with the tail for locked joints helps also where the other two are used"
    yield gain(text, "with reversing for locked joints", FULL)
    for scenario in ("free", "weak"):
        yield gain(f"Driving in reverse helps with {scenario} joints", FULL, "without any reverse", scenario)
    told = against(results.progress, TOLD, FULL, "locked")
    mean = float(find(results.progress, TOLD, "locked").progress_m.mean())
    text = "The detector is as good as being told which joints are locked (within 2 %)"
    note = f"being told adds {told.mean:+.2f} m [{told.low:+.2f}, {told.high:+.2f}]"
    yield Claim(text, _PAIRED, grade(told.high < 0.02 * mean), measured=told.mean, unit="m", note=note, own=True)


def _progress_table(results: Results) -> Table:
    rows: list[list[Cell]] = []
    for r in results.progress:
        mean = mean_with_interval(r.progress_m)
        row: list[Cell] = [r.scenario, r.name, mean.mean, mean.low, mean.high]
        for count in range(4):
            these = r.progress_m[r.n_faults == count]
            row.append(float(these.mean()) if these.size else None)
        rows.append(row)
    columns = ["faults", "controller", "progress [m]", "low", "high", *(f"{k} failed" for k in range(4))]
    return Table("progress", "Progress in 60 s, with 95 % interval", columns, rows,
                 "Told: the env reveals which joints have failed, in place of the detector.")  # fmt: skip


def _parts_table(results: Results) -> Table:
    rows: list[list[Cell]] = []
    for base, names in ((FULL, (*PARTS, NOISY, TOLD)), ("cc", (*ADDED, FULL))):
        for name in names:
            d = against(results.progress, name, base, "locked")
            rows.append([name, base, d.mean, d.low, d.high])
    return Table("parts", "What each part gives, 0 to 3 locked joints",
                 ["controller", "against", "mean [m]", "low", "high"], rows,
                 "Scenarios paired, 95 % intervals. What is taken away from the tuned controller counts for more than "
                 "what it adds to CC, because the rest was tuned with it.")  # fmt: skip


def _single_table(results: Results) -> Table:
    size = next(iter(results.single.values())).size
    joints = np.linspace(1, load_robot(ROBOT).n_joints, size).astype(int)
    rows: list[list[Cell]] = [[kind, name, *map(float, values)] for (kind, name), values in results.single.items()]
    return Table("which_joint", "Progress [m] with one joint failed from the start",
                 ["fault", "controller", *(f"joint {j}" for j in joints)], rows)  # fmt: skip


def _detection_table(results: Results) -> Table:
    rows: list[list[Cell]] = [
        [d.robot, d.kind, d.noise_rad, *((None,) * 3 if d.kind == "healthy" else
         (100.0 * d.found, d.delay_quantile_s(0.5), d.delay_quantile_s(0.95))), d.false_alarms_per_h,
         100.0 * d.flagged_share]
        for d in results.detections
    ]  # fmt: skip
    columns = ["robot", "fault", "noise [rad]", "found [%]", "median delay [s]", "95 % delay [s]",
               "false alarms [1/joint h]", "healthy time flagged [%]"]  # fmt: skip
    return Table("detection", "Detection of two joints that fail in mid-gait", columns, rows,
                 "Delays count all failed joints; inf: fewer were found.")  # fmt: skip


def _confusion_table(results: Results) -> Table:
    rows: list[list[Cell]] = [
        [d.kind, d.noise_rad, *(100.0 * float(share) for share in d.named)] for d in results.watched
    ]
    return Table("confusion", f"What a joint is called at the end of the episode [%], {ROBOT}",
                 ["is", "noise [rad]", *KIND_NAMES], rows)  # fmt: skip


_BARS = ["sjc", "cc", "cpg", "knowing nothing of faults", FULL]
_FEW = number("a whole number, at least 2", 2, whole=True)
_SEED = number("a whole number, at least 0", 0, whole=True)

STUDY = Study(
    name="faults",
    title="Fault detection, driving in reverse and re-planned waves: classical baselines that know of faults",
    citation="No paper has these; sibilska2022 (SJC, CC) and liu2024 (CPG), tuned alike, are what they are held "
    "against.",
    quick="few episodes, no other robots",
    options=(
        Option("--episodes", "scenarios for each controller (512; quick: 32)", _FEW),
        Option("--seed", "of the first scenario (%(default)s)", _SEED, str(SEED)),
        Option("--tuned", "folder of the tuned controllers (configs/controllers)", lambda text, flag: text, str(TUNED)),
    ),
    experiment=_experiment,
    claims=(_detection_claims, _progress_claims),
    tables=(_progress_table, _parts_table, _single_table, _detection_table, _confusion_table),
    figures=(
        figure("delays", "Failed joints found against time, two joints failing in mid-gait (resilient_servo).",
               lambda canvas, results: draw_delays(canvas, [d for d in results.watched if d.kind in KINDS])),
        figure("locked_joints", "Progress on the benchmark's scenarios by number of locked joints, 95 % intervals.",
               lambda canvas, results: draw_by_count(canvas, results.progress, _BARS)),
        figure("which_joint", "Progress with one joint failed from the start.",
               lambda canvas, results: draw_by_joint(canvas, results.single), (10.0, 4.5)),
    ),
    data=lambda results: results.settings,
)  # fmt: skip
