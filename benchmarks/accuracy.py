"""How accurate for what price: every preset's gait for a minute, with 0-3 joint faults, at a list of step sizes.

    python benchmarks/accuracy.py [--presets NAME ...] [--scenarios 32] [--json FILE] [--plot PICTURE]
    python benchmarks/accuracy.py --random [--robots 60] [--gaits 8] [--oracle 0] [--json FILE]

Scenario: the preset's gait (below) held in steps of its control period, from rest in the gait's shape; a quarter each
with 0, 1, 2 and 3 faulty joints (locked, free or weak, half of them from the start, half from a random control step of
the first 30 s on; onsets lie on control steps so that every step size meets them alike). All step sizes see the same
scenarios. Error: distance between where the centre of mass is after 60 s and where it is in the converged run, divided
by the converged run's displacement. A robot that goes round in circles ends near where it began; its error is taken
relative to a quarter of the way it went, in steps of one gait period, where that is longer (``guarded`` counts them).

The converged run is the same scenario at the smallest step / 4; ``reference_error`` is what halving its step once more
would still change where measured (--check), else what the halving before it changed. A scenario in which that is more
than 1 % (a robot that hardly moves, or one whose stick and slip hang on the last digit) has no converged run: it is
counted (``unresolved``) and left out.
Cost: microseconds of one core per robot and simulated second, in batches of the size given by --scenarios.

``--random``: robots that nobody has tuned a step for (``random_crawlers``), viscous and Coulomb, for 20 s: the error of
the final place as a share of the way, at the step that a robot without ``sim_dt_s`` gets and at 10 ms. The converged
run is ours at 0.1 ms; a run in which 0.2 ms changes more than 1 % is counted (``unresolved``) and left out. With
``--oracle K`` the converged run of the first gait of K robots of each ground is compared with an integration that
shares no code with ours, and this with itself at half the speed of regularisation (tests/oracles/dry_chain.py).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.random_crawlers import CONVERGED_S, GROUNDS, Ground, draw_crawler, measure
from snake_gym.controllers.serpenoid import GaitConfig, serpenoid_reference
from snake_gym.physics.faults import FREE, LOCKED, WEAK
from snake_gym.robot.presets import PRESETS
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

FloatArray = NDArray[np.float64]
Row = dict[str, Any]
SECONDS = 60.0
FAULT_KINDS = (LOCKED, FREE, WEAK)
MEAN_BAR, WORST_BAR = 0.01, 0.03
RESOLVED = 0.01


def gait(amplitude_deg: float, frequency_deg_s: float, shift_deg: float) -> GaitConfig:
    return GaitConfig(math.radians(amplitude_deg), math.radians(frequency_deg_s), math.radians(shift_deg))


GAITS = {
    "resilient": gait(20.0, 50.0, 30.0),  # sibilska2022, Table 3
    "resilient_servo": gait(34.0, 100.0, 35.0),  # a fast gait within its 2 rad/s
    "robo_conda": gait(38.0, 140.0, 50.0),  # irani2015: amplitude and speed as commanded, shift mid-range
    "muscle": gait(30.0, 360.0, 72.0),  # haghshenas2022
    "snakesys": gait(50.0, 36.0, 51.4),  # liu2024: CL gait, 2 K_n pi / n with K_n = 2 and 14 yaw joints
    "pegboard": gait(30.0, 90.0, 40.0),  # wang gives no numbers
}
"""Preset -> the gait that it is measured with."""


@dataclass(frozen=True)
class Scenarios:
    """W runs of one robot: faults and headings."""

    spec: RobotSpec
    gait: GaitConfig
    kind: NDArray[np.int64]
    """(W, J)."""
    onset_s: FloatArray
    """(W, J)."""
    heading: FloatArray
    """(W,)."""

    @property
    def n_control_steps(self) -> int:
        return math.ceil(SECONDS / self.spec.control_dt_s - 1e-9)

    def references(self) -> FloatArray:
        """(control steps, J) [rad], within the joint limit."""
        phase = self.gait.frequency_rad_s * self.spec.control_dt_s * np.arange(self.n_control_steps)
        wave = serpenoid_reference(phase, self.gait.amplitude_rad, self.gait.phase_shift_rad, self.spec.n_joints)
        return np.clip(wave, -self.spec.joint_limit_rad, self.spec.joint_limit_rad)

    def run(self, n_substeps: int) -> tuple[FloatArray, float]:
        """Centre of mass (control steps + 1, W, 2) [m], and the seconds it took."""
        spec = replace(self.spec, sim_dt_s=self.spec.control_dt_s / n_substeps)
        n_worlds = len(self.kind)
        robot = SimulatedRobot(spec, n_worlds, 1)
        robot.faults.kind[:] = self.kind
        robot.faults.onset_s[:] = self.onset_s
        robot.faults.strength[self.kind == WEAK] = 0.3
        references = self.references()
        robot.set_shape(np.tile(references[0], (n_worlds, 1)), self.heading, np.zeros((n_worlds, 2)), "centre")
        track = [robot.state.centre_xy.copy()]
        wide = np.empty((n_worlds, spec.n_joints))
        robot.step(np.tile(references[0], (n_worlds, 1)), None, 0)  # compiles
        begun = time.perf_counter()
        for reference in references:
            wide[:] = reference
            robot.step(wide)
            track.append(robot.state.centre_xy.copy())
        return np.array(track), time.perf_counter() - begun


def draw_scenarios(spec: RobotSpec, n_worlds: int, seed: int = 0) -> Scenarios:
    rng = np.random.default_rng(seed)
    kind = np.zeros((n_worlds, spec.n_joints), np.int64)
    onset = np.zeros((n_worlds, spec.n_joints))
    for world in range(n_worlds):
        n_faults = min(4 * world // n_worlds, spec.n_joints)
        joints = rng.choice(spec.n_joints, n_faults, replace=False)
        kind[world, joints] = rng.choice(FAULT_KINDS, n_faults)
        late = rng.integers(0, round(30.0 / spec.control_dt_s), n_faults) * spec.control_dt_s
        onset[world, joints] = np.where(rng.random(n_faults) < 0.5, 0.0, late)
    wave = GAITS.get(spec.name, gait(30.0, 60.0, 360.0 * 1.2 / spec.n_links))
    return Scenarios(spec, wave, kind, onset, rng.uniform(-math.pi, math.pi, n_worlds))


def reference_length(scenarios: Scenarios, track: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """What errors are relative to (W,) [m], and where the way gone stood in for the displacement."""
    period = abs(2.0 * math.pi / scenarios.gait.frequency_rad_s)
    stride = max(1, round(period / scenarios.spec.control_dt_s))
    way = np.linalg.norm(np.diff(track[::stride], axis=0), axis=-1).sum(axis=0)
    displacement = np.linalg.norm(track[-1] - track[0], axis=-1)
    return np.maximum(displacement, 0.25 * way), displacement < 0.25 * way


def step_counts(spec: RobotSpec) -> list[int]:
    """Sub-steps of a control period to try: steps from 50 ms (or the control period) down to about 1 ms."""
    most = max(1, math.ceil(spec.control_dt_s / 0.05))
    counts = [most]
    while spec.control_dt_s / counts[-1] > 1.5e-3:
        counts.append(2 * counts[-1])
    fives = [n for n in (round(spec.control_dt_s / dt) for dt in (0.02, 0.01, 0.005, 0.002)) if n >= most]
    return sorted({*counts, *fives, spec.n_substeps})


def measure_preset(spec: RobotSpec, n_worlds: int, check: bool) -> list[Row]:
    """One row for each step size."""
    scenarios = draw_scenarios(spec, n_worlds)
    counts = step_counts(spec)
    finest = 4 * counts[-1]
    converged, _ = scenarios.run(finest)
    length, guarded = reference_length(scenarios, converged)
    before, _ = scenarios.run(finest // 2)
    slack = np.linalg.norm(before[-1] - converged[-1], axis=-1) / length
    if check:
        slack = np.linalg.norm(scenarios.run(2 * finest)[0][-1] - converged[-1], axis=-1) / length
    resolved = slack <= RESOLVED
    rows = []
    for count in counts:
        track, seconds = scenarios.run(count)
        error = np.linalg.norm(track[-1] - converged[-1], axis=-1) / length
        by_faults = [error[(4 * np.arange(n_worlds) // n_worlds == k) & resolved] for k in range(4)]
        error = error[resolved]
        rows.append({
            "preset": spec.name, "integrator": spec.integrator, "dt_s": spec.control_dt_s / count,
            "is_default": count == spec.n_substeps,
            "mean": float(error.mean()), "worst": float(error.max()),
            "mean_by_faults": [float(e.mean()) if len(e) else None for e in by_faults],
            "cost_us": 1e6 * seconds / (n_worlds * SECONDS),
            "reference_dt_s": spec.control_dt_s / finest, "reference_error": float(slack[resolved].max()),
            "unresolved": int((~resolved).sum()),
            "guarded": int(guarded.sum()), "scenarios": n_worlds, "mean_length_m": float(length.mean()),
        })  # fmt: skip
    return rows


def best_step(rows: list[Row]) -> Row | None:
    """The largest step within both bars from which on all smaller ones are too."""
    best = None
    for row in sorted(rows, key=lambda row: row["dt_s"]):
        if row["mean"] > MEAN_BAR or row["worst"] > WORST_BAR:
            break
        best = row
    return best


def plot(rows: list[Row], path: Path) -> None:
    """Work-precision diagram: mean (filled) and worst (open) error against cost."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7.0, 4.6), layout="constrained")
    series = list(dict.fromkeys((row["preset"], row["integrator"]) for row in rows))
    for number, (preset, integrator) in enumerate(series):
        mine = [row for row in rows if (row["preset"], row["integrator"]) == (preset, integrator)]
        cost, colour = [row["cost_us"] for row in mine], f"C{number}"
        style = "-" if integrator == "implicit" else "--"
        label = f"{preset}, {integrator}"
        axes.loglog(cost, [row["mean"] for row in mine], style, marker="o", ms=4, color=colour, label=label)
        axes.loglog(cost, [row["worst"] for row in mine], ":", marker="o", mfc="none", ms=4, color=colour)
        for row in mine:
            if row["is_default"]:
                axes.loglog(row["cost_us"], row["mean"], "s", ms=10, mfc="none", color=colour)
    axes.axhline(MEAN_BAR, color="0.6", lw=0.8)
    axes.axhline(WORST_BAR, color="0.6", lw=0.8, ls=":")
    axes.set_xlabel("cost [µs of one core per robot and simulated second]")
    axes.set_ylabel("error of the displacement after 60 s of gait")
    axes.set_title("Mean (filled) and worst (open) error; squares: default steps; lines: 1 % and 3 %", fontsize=9)
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)


def print_rows(rows: list[Row]) -> None:
    for row in rows:
        mark = " <- default" if row["is_default"] else ""
        print(f"{row['preset']:18}{row['integrator']:10}{1e3 * row['dt_s']:9.3f}{100 * row['mean']:10.3f}"
              f"{100 * row['worst']:10.3f}{row['cost_us']:10.0f}{mark}", file=sys.stderr)  # fmt: skip
    chosen = best_step(rows)
    first = rows[0]
    where = f"{1e3 * chosen['dt_s']:g} ms" if chosen else "none of these steps"
    print(f"  within {MEAN_BAR:.0%} on average and {WORST_BAR:.0%} at worst: {where}; converged run at "
          f"{1e3 * first['reference_dt_s']:.3g} ms, off by at most {100 * first['reference_error']:.2g} %; "
          f"of {first['scenarios']}, {first['guarded']} go round in circles, {first['unresolved']} are unresolved",
          file=sys.stderr)  # fmt: skip


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def measure_random(n_robots: int, n_gaits: int, first: int, n_oracles: int) -> list[Row]:
    """One row for each ground and step, said on the way."""
    rows = []
    for ground in GROUNDS:
        found = measure(ground, n_robots, n_gaits, first, say)
        for what, error in (("own step", found.own), ("10 ms", found.plain), ("converged run", found.truth)):
            row = {
                "ground": ground, "step": what, "runs": error.size, "median": float(np.median(error)),
                "at_95_percent": float(np.quantile(error, 0.95)), "worst": float(error.max()),
                "beyond_2_percent": float((error > 0.02).mean()), "beyond_5_percent": float((error > 0.05).mean()),
                "unresolved": found.unresolved, "idle": found.idle, "cost": float(found.cost.mean()),
                "steps_s": [float(x) for x in np.quantile(found.steps_s, (0.0, 0.5, 1.0))],
            }  # fmt: skip
            rows.append(row)
        rows += [compare_with_oracle(ground, seed) for seed in range(first, first + n_oracles)]
    return rows


def compare_with_oracle(ground: Ground, seed: int) -> Row:
    """Converged run of one robot against the oracle, and the oracle against itself at half the regularisation."""
    from tests.oracles.dry_chain import run_gait

    crawler = draw_crawler(seed, ground)
    begun = time.perf_counter()
    oracle, finer = (run_gait(crawler.spec, crawler.references()[:, 0], rest)[:, None] for rest in (1e-5, 5e-6))
    row = {
        "ground": ground, "oracle_seed": seed, "links": crawler.spec.n_links,
        "converged_run": float(crawler.error(crawler.run(CONVERGED_S), finer)[0]),
        "own_step": float(crawler.error(crawler.run(), finer)[0]), "oracle": float(crawler.error(oracle, finer)[0]),
    }  # fmt: skip
    off = "off the oracle by {converged_run:.3%} at 0.1 ms, {own_step:.3%} at the own step; the oracle by {oracle:.4%}"
    say(f"{ground} {seed}: {off.format(**row)} ({time.perf_counter() - begun:.0f} s)")
    return row


def print_random(rows: list[Row]) -> None:
    heads = ("runs", "median", "at_95_percent", "worst", "beyond_2_percent", "beyond_5_percent")
    titles = ("runs", "median", "95 %", "worst", "> 2 %", "> 5 %")
    say(f"{'ground':10}{'step':15}" + "".join(f"{title:>12}" for title in titles))
    for row in rows:
        if "step" in row:
            shares = "".join(f"{row[head]:12.2%}" for head in heads[1:])
            say(f"{row['ground']:10}{row['step']:15}{row['runs']:12}{shares}")
    for row in rows:
        if row.get("step") == "own step":
            least, middle, most = (1e3 * x for x in row["steps_s"])
            say(f"{row['ground']}: own steps {least:.3g} to {most:.3g} ms (median {middle:.3g}), {row['cost']:.1f} "
                f"times the time of 10 ms; {row['unresolved']} runs unresolved, {row['idle']} hardly move")  # fmt: skip
    errors = [row["converged_run"] for row in rows if "oracle_seed" in row]
    if errors:
        say(f"converged runs off the oracle by {np.median(errors):.3%} (median), {max(errors):.3%} (worst)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", choices=sorted(PRESETS), default=list(PRESETS), metavar="NAME")
    parser.add_argument("--integrators", nargs="+", choices=("implicit", "rk4"), help="default: each preset's own")
    parser.add_argument("--scenarios", type=int, default=32, help="runs for each preset and step")
    parser.add_argument("--check", action="store_true", help="measure the converged runs' own error at half their step")
    parser.add_argument("--random", action="store_true", help="random robots in place of presets")
    parser.add_argument("--robots", type=int, default=60, help="random robots on each ground")
    parser.add_argument("--gaits", type=int, default=8, help="gaits of each random robot")
    parser.add_argument("--first", type=int, default=0, help="seed of the first random robot")
    parser.add_argument("--oracle", type=int, default=0, help="random robots on each ground compared with the oracle")
    parser.add_argument("--json", metavar="FILE", help="write the rows as JSON; - for standard output")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="write the work-precision diagram")
    args = parser.parse_args()
    rows: list[Row] = []
    if args.random:
        rows = measure_random(args.robots, args.gaits, args.first, args.oracle)
        print_random(rows)
        args.presets = []
    else:
        say(f"{'preset':18}{'method':10}{'dt [ms]':>9}{'mean [%]':>10}{'worst [%]':>10}{'us/s':>10}")
    for name in args.presets:
        for integrator in args.integrators or [PRESETS[name].integrator]:
            found = measure_preset(replace(PRESETS[name], integrator=integrator), args.scenarios, args.check)
            print_rows(found)
            rows += found
    if args.plot:
        plot(rows, args.plot)
    if args.json:
        text = json.dumps(rows, indent=1)
        print(text) if args.json == "-" else Path(args.json).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
