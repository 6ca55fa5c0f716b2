"""Tunes the gaits of an oracle in a suite, each in turn with the others as they stand.

    python benchmarks/fault_oracle.py --suite resilience --budget 8 --worlds 256

One gait each for a joint without power in the middle, next to it, two from it, and for all else; all begin as the
fault-aware gait that is tuned for the robot. ``FaultGaits`` changes between them by the true faults, in the suite's
scenarios with seeds of tuning. Writes configs/controllers/ROBOT/SUITE/oracle_{else,2,1,0}.yaml.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.benchmark.fault_gaits import FaultGaits
from snake_gym.benchmark.runner import roll
from snake_gym.benchmark.scenarios import BenchmarkConfig, make_scenarios, resolve_benchmark
from snake_gym.benchmark.tuning import (
    CHOICE_START,
    SCORE_START,
    Parameter,
    Search,
    TuningConfig,
    objective,
)
from snake_gym.config import ConfigError, OptionParser, build, dump_yaml, load_yaml, run_program
from snake_gym.controllers import resolve_controller
from snake_gym.controllers.tuned import TUNED, find_tuned
from snake_gym.interface.policy import ZeroResidual
from snake_gym.robot.spec import FloatArray

BENCHMARKS = Path("configs", "benchmark")
FREE_SHARES = (Parameter("free_ahead", -0.5, 1.2), Parameter("free_behind", -0.5, 1.2))
"""Parameters that are searched beside the usual ones."""
POPULATION = 16
SEARCHED, CHOSEN = 400, 200
"""Most scenarios of a search, and of the choice among its finalists."""
DEVIATION = 0.2
"""Start deviation of the search, as a share of the ranges, around the gait that there is."""


class GaitSearch(Search):
    """Search for one of the gaits of ``FaultGaits``."""

    def begin(self, gaits: list[dict[str, Any]], varied: int) -> None:
        """Search number ``varied`` of ``gaits``, from where it stands."""
        self.gaits, self.varied = gaits, varied
        self.space = (*self.space, *FREE_SHARES)
        self.base = dict(gaits[varied])
        shares = [_share(parameter, float(self.base[parameter.name])) for parameter in self.space]
        self.mean, self.deviation = np.array(shares), np.full(len(shares), DEVIATION)
        self.seeds = self._choose_seeds()

    def _choose_seeds(self) -> NDArray[np.int64]:
        """Return seeds of scenarios in which the gait's turn comes in the end; others tell nothing about it."""
        found: list[int] = []
        robot, first = self.env.core.robot, self._first_seed()
        gaits = FaultGaits(self.gaits, robot)
        while len(found) < SEARCHED + CHOSEN + self.config.worlds:
            self.env.reset(seed=list(range(first, first + self.env.num_envs)))
            found += (first + np.flatnonzero(gaits.in_turn(robot.faults.kind[None]) == self.varied)).tolist()
            first += self.env.num_envs
        return np.array(found)

    def play(self, shares: FloatArray, seeds: NDArray[np.int64]) -> FloatArray:
        """Return the objective (K, S) of K candidates on the S scenarios ``seeds``, taken as places in the chosen."""
        place = seeds - self._first_seed()
        for start, moved in ((SCORE_START, SEARCHED + CHOSEN), (CHOICE_START, SEARCHED), (0, 0)):
            if place[0] >= start:
                seeds = self.seeds[place - start + moved]
                break
        per_world = {name: np.repeat(values, seeds.size) for name, values in self.parameters(shares).items()}
        core = self.env.core
        core.use_controller(FaultGaits(self.gaits, core.robot, self.varied, per_world))
        *_, (_, _, infos) = roll(ZeroResidual(core.decoder.size), self.env, np.tile(seeds, len(shares)).tolist())
        return objective(infos, self.score, self.env_config.time_limit_s).reshape(len(shares), seeds.size)


def _share(parameter: Parameter, value: float) -> float:
    low, high = parameter.low, parameter.high
    if parameter.log:
        low, high, value = np.log(low), np.log(high), np.log(value)
    return float(np.clip((value - low) / (high - low), 0.0, 1.0))


def main(argv: list[str] | None = None) -> int:
    """Tune and write."""
    parser = OptionParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", default="resilience", help="name of the suite (resilience)")
    parser.add_argument("--budget", type=int, default=8, help="generations for each gait (8)")
    parser.add_argument("--worlds", type=int, default=256, help="episodes in each generation (256)")
    args = parser.parse_args(argv)
    if args.budget * args.worlds > SEARCHED * POPULATION:
        most = SEARCHED * POPULATION // args.worlds
        raise ConfigError(f"--budget is {args.budget}; expected at most {most} with {args.worlds} worlds")
    path = BENCHMARKS / f"{args.suite}.yaml"
    config = resolve_benchmark(build(BenchmarkConfig, {**load_yaml(path), "policies": {}}, str(path)))
    spec = make_scenarios(config).spec
    start = resolve_controller({"file": str(find_tuned("fault_aware", spec))}, "start")
    gaits = [dict(start)] * 4
    for varied in (3, 2, 1, 0):
        settings = TuningConfig(
            config.robot or "resilient_servo", {"kind": start["kind"]}, config.env_id, config.env, args.budget,
            POPULATION, args.worlds, varied,
        )  # fmt: skip
        search = GaitSearch(settings)
        search.begin(gaits, varied)
        for generation in range(args.budget):
            print(f"gait {varied}, generation {generation}: {search.advance():.2f}", file=sys.stderr)
        report = search.report()
        gaits[varied] = report["controller"]
        parts = np.split(search.seeds, (SEARCHED, SEARCHED + CHOSEN))
        spans = ([int(seeds.min()), int(seeds.max())] for seeds in parts)
        report["tuning"]["seeds"] = dict(zip(("search", "choice", "score"), spans, strict=True))
        path = TUNED / spec.name / args.suite / f"oracle_{3 - varied if varied else 'else'}.yaml"
        report["tuning"] = {
            "command": f"python benchmarks/fault_oracle.py {shlex.join(argv or sys.argv[1:])}",
            **report["tuning"],
        }
        dump_yaml(report, path)
        found = report["tuning"][search.score]
        print(f"{path}: {search.score} {found['mean']:.2f} {found['ci95']}", flush=True)
    return 0


if __name__ == "__main__":
    run_program(main)
