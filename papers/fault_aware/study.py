"""The study ``faults``: the detector, and what reverse driving and spreading give on the benchmark's scenarios."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from papers.fault_aware import figures
from papers.fault_aware.contenders import ADDED, PARTS, ROBOT, TUNED, Contender, changed, tuned, with_noise
from papers.fault_aware.detection import Detection, watch
from papers.fault_aware.episodes import SEED
from papers.fault_aware.progress import (
    SCENARIOS,
    Difference,
    Result,
    against,
    compete,
    compete_with_one_failed,
    find,
    mean_with_interval,
)
from papers.study import Advance, Claim, Figure, Outcome, Table, Verdict
from snake_gym.config import ConfigError
from snake_gym.controllers.fault_detection import KIND_NAMES
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.spec import FloatArray

Rows = list[list[float | str | None]]

OTHER_ROBOTS: dict[str, dict[str, Any]] = {
    "resilient": {"kind": "sjc"},
    "pegboard": {"kind": "sjc", "amplitude_rad": 0.5, "frequency_rad_s": 3.0, "phase_shift_rad": 0.5},
    "muscle": {"kind": "sjc", "amplitude_rad": 0.5, "frequency_rad_s": 6.28, "phase_shift_rad": 1.25},
    "robo_conda": {"kind": "serpenoid", "amplitude_rad": 0.5, "frequency_rad_s": 2.0, "phase_shift_rad": 0.6},
    "snakesys": {"kind": "serpenoid", "amplitude_rad": 0.757, "frequency_rad_s": 0.628, "phase_shift_rad": 0.898},
}
"""A gait for each: what their papers drive them with, or near it."""
NOISES_RAD = (0.0, 0.01, 0.02)
KINDS = ("healthy", "locked", "free", "weak")
UNKNOWN_KINDS = ("slow", "offset")
"""Faults that the detector has no hypothesis for."""
FULL, TOLD, NOISY = "fault_aware", "fault_aware, told", "fault_aware, noise 0.01 rad"


class Faults:
    """See ``papers.study.Study``."""

    name = "faults"
    title = "Fault detection, driving in reverse and re-planned waves: classical baselines that know of faults"
    citation = (
        "No paper has these; sibilska2022 (SJC, CC) and liu2024 (CPG), tuned alike, are what they are held against."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Episodes, seed and where tuned controllers are."""
        parser.add_argument("--quick", action="store_true", help="few episodes, no other robots")
        parser.add_argument("--episodes", default=None, help="scenarios for each controller (512; quick: 32)")
        parser.add_argument("--seed", default=str(SEED), help="of the first scenario (%(default)s)")
        parser.add_argument("--tuned", default=str(TUNED), help="folder of the tuned controllers (configs/controllers)")

    def run(self, options: argparse.Namespace, advance: Advance) -> Outcome:
        """Watch, compete, judge."""
        quick = bool(options.quick)
        n = _whole(options.episodes, "--episodes", 32 if quick else 512, 2)
        seed = _whole(options.seed, "--seed", SEED, 0)
        folder = Path(options.tuned)
        detections = _watch_all(n, folder, quick, advance)
        results = _compete_all(n, seed, folder, quick, advance)
        single = _compete_with_single_faults(max(8, n // 8), seed, folder, quick, advance)
        gait = [d for d in detections if d.robot == ROBOT]
        bars = ["sjc", "cc", "cpg", "knowing nothing of faults", FULL]
        pictures = [
            Figure("delays", "Failed joints found against time, two joints failing in mid-gait (resilient_servo).",
                   lambda canvas: figures.draw_delays(canvas, [d for d in gait if d.kind in KINDS])),
            Figure("locked_joints", "Progress on the benchmark's scenarios by number of locked joints, 95 % intervals.",
                   lambda canvas: figures.draw_by_count(canvas, results, bars)),
            Figure("which_joint", "Progress with one joint failed from the start.",
                   lambda canvas: figures.draw_by_joint(canvas, single), (10.0, 4.5)),
        ]  # fmt: skip
        claims = [*_detection_claims(gait), *_progress_claims(results)]
        tables = [_progress_table(results), _parts_table(results), _single_table(single), _detection_table(detections),
                  _confusion_table(gait)]  # fmt: skip
        return Outcome(claims, tables, pictures, {"quick": quick, "episodes": n, "seed": seed})


def _whole(text: str | int | None, where: str, default: int, least: int) -> int:
    if text is None:
        return default
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise ConfigError(f"{where} is {text!r}; expected a whole number, at least {least}")
    return value


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


def _compete_all(n: int, seed: int, folder: Path, quick: bool, advance: Advance) -> list[Result]:
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


def _holds(ok: bool) -> Verdict:
    return "reproduced" if ok else "not"


def _detection_claims(detections: Sequence[Detection]) -> list[Claim]:
    where = "our study; two joints fail in mid-gait, resilient_servo driven by CC"
    claims = []
    for kind, within_s, least in (("locked", 1.5, 0.99), ("free", 5.0, 0.95), ("weak", 5.0, 0.95)):
        these = [d for d in detections if d.kind == kind]
        worst = min(these, key=lambda d: d.found)
        p95 = max(d.delay_quantile_s(0.95) for d in these)
        median = max(d.delay_quantile_s(0.5) for d in these)
        code = KIND_NAMES.index(kind)
        claims.append(
            Claim(f"A {kind} joint is found: at least {100 * least:g} %, 95 % of all within {within_s:g} s", where,
                  _holds(worst.found >= least and p95 <= within_s), None, p95, "s", None,
                  f"worst over the noises: {100 * worst.found:.1f} % found, half of them in {_time(median)}, 95 % in "
                  f"{_time(p95)}; named right at the end: {100 * min(d.named[code] for d in these):.0f} %")
        )  # fmt: skip
    alarms = max(detections, key=lambda d: d.false_alarms_per_h)
    claims.append(
        Claim("At most one false alarm per hour of a healthy joint, with encoder noise up to 0.02 rad", where,
              _holds(alarms.false_alarms_per_h <= 1.0), None, alarms.false_alarms_per_h, "1/h", None,
              f"worst with {alarms.kind} joints elsewhere and noise {alarms.noise_rad:g} rad; healthy joints are "
              f"called failed {100 * max(d.flagged_share for d in detections):.2f} % of the time at most")
    )  # fmt: skip
    return claims


def _gain(text: str, difference: Difference, note: str = "") -> Claim:
    low, high = difference.low, difference.high
    return Claim(text, "our study; benchmark scenarios, paired", _holds(low > 0.0), None, difference.mean, "m", None,
                 f"{difference.mean:+.2f} m [{low:+.2f}, {high:+.2f}] {note}".strip())  # fmt: skip


def _progress_claims(results: Sequence[Result]) -> list[Claim]:
    claims = []
    for scenario in SCENARIOS:
        base, own = (float(find(results, name, scenario).progress_m.mean()) for name in ("cc", FULL))
        claims.append(
            _gain(f"Fault-aware control gets further than tuned CC: {scenario}",
                  against(results, FULL, "cc", scenario), f"({base:.2f} to {own:.2f} m)")
        )  # fmt: skip
    texts = {
        "cc + turning back": "Leading with the end that is nearer to the target's direction helps CC",
        "cc + reversing for faults": "Leading with the tail when joints near the head are locked helps CC",
        "cc + spreading": "Spreading a locked joint's angle over its neighbours on both sides helps CC",
    }
    claims += [_gain(text, against(results, added, "cc", "locked")) for added, text in texts.items()]
    reversing = against(results, "with reversing for locked joints", FULL, "locked")
    claims.append(_gain("Leading with the tail for locked joints helps also where the other two are used", reversing))
    for scenario in ("free", "weak"):
        gain = against(results, FULL, "without any reverse", scenario)
        claims.append(_gain(f"Driving in reverse helps with {scenario} joints", gain))
    told = against(results, TOLD, FULL, "locked")
    mean = float(find(results, TOLD, "locked").progress_m.mean())
    claims.append(
        Claim("The detector is as good as being told which joints are locked (within 2 %)",
              "our study; benchmark scenarios, paired", _holds(told.high < 0.02 * mean), None, told.mean, "m", None,
              f"being told adds {told.mean:+.2f} m [{told.low:+.2f}, {told.high:+.2f}]")
    )  # fmt: skip
    return claims


def _progress_table(results: Sequence[Result]) -> Table:
    rows: Rows = []
    for r in results:
        mean = mean_with_interval(r.progress_m)
        row: list[float | str | None] = [r.scenario, r.name, mean.mean, mean.low, mean.high]
        for count in range(4):
            these = r.progress_m[r.n_faults == count]
            row.append(float(these.mean()) if these.size else None)
        rows.append(row)
    columns = ["faults", "controller", "progress [m]", "low", "high", *(f"{k} failed" for k in range(4))]
    return Table("progress", "Progress in 60 s, with 95 % interval", columns, rows,
                 "Told: the env reveals which joints have failed, in place of the detector.")  # fmt: skip


def _parts_table(results: Sequence[Result]) -> Table:
    rows: Rows = []
    for base, names in ((FULL, (*PARTS, NOISY, TOLD)), ("cc", (*ADDED, FULL))):
        for name in names:
            d = against(results, name, base, "locked")
            rows.append([name, base, d.mean, d.low, d.high])
    return Table("parts", "What each part gives, 0 to 3 locked joints",
                 ["controller", "against", "mean [m]", "low", "high"], rows,
                 "Scenarios paired, 95 % intervals. What is taken away from the tuned controller counts for more than "
                 "what it adds to CC, because the rest was tuned with it.")  # fmt: skip


def _single_table(single: dict[tuple[str, str], FloatArray]) -> Table:
    n_joints = load_robot(ROBOT).n_joints
    size = next(iter(single.values())).size
    joints = np.linspace(1, n_joints, size).astype(int)
    rows: Rows = [[kind, name, *map(float, values)] for (kind, name), values in single.items()]
    return Table("which_joint", "Progress [m] with one joint failed from the start",
                 ["fault", "controller", *(f"joint {j}" for j in joints)], rows)  # fmt: skip


def _detection_table(detections: Sequence[Detection]) -> Table:
    rows: Rows = [
        [d.robot, d.kind, d.noise_rad, *((None,) * 3 if d.kind == "healthy" else
         (100.0 * d.found, d.delay_quantile_s(0.5), d.delay_quantile_s(0.95))), d.false_alarms_per_h,
         100.0 * d.flagged_share]
        for d in detections
    ]  # fmt: skip
    columns = ["robot", "fault", "noise [rad]", "found [%]", "median delay [s]", "95 % delay [s]",
               "false alarms [1/joint h]", "healthy time flagged [%]"]  # fmt: skip
    return Table("detection", "Detection of two joints that fail in mid-gait", columns, rows,
                 "Delays count all failed joints; inf: fewer were found.")  # fmt: skip


def _confusion_table(detections: Sequence[Detection]) -> Table:
    rows: Rows = [[d.kind, d.noise_rad, *(100.0 * float(share) for share in d.named)] for d in detections]
    return Table("confusion", f"What a joint is called at the end of the episode [%], {ROBOT}",
                 ["is", "noise [rad]", *KIND_NAMES], rows)  # fmt: skip


STUDY = Faults()
