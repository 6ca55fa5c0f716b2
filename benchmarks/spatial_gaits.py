"""Search the best fixed gaits of a spatial robot on the ground of an env, one for each mode.

    python benchmarks/spatial_gaits.py                                   SWL, TWL and ARL on configs/env/terrain.yaml
    python benchmarks/spatial_gaits.py --modes SWL --trials 100

Optuna (extra `search`) proposes frequency, shape and steering of a guided gait (`multimodal`); each proposal plays the
same scenarios, and the best five of a mode play others, of which the best is kept. Writes
configs/controllers/<robot>/<mode>.yaml with its score in scenarios that decided nothing. The same command goes on with
a search that was stopped (runs/spatial_gaits).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from gymnasium.vector import AutoresetMode

from snake_gym.benchmark.runner import roll
from snake_gym.benchmark.seed_ranges import TUNING
from snake_gym.config import dump_yaml, load_yaml, make_folder, run_program
from snake_gym.envs import SnakeVectorEnv
from snake_gym.interface.policy import ZeroResidual

SHAPES: dict[str, dict[str, tuple[float, float]]] = {
    "SWL": {"n_waves": (0.5, 2.5), "yaw_rad": (0.3, 1.4), "pitch_rad": (0.1, 0.9)},
    "TWL": {"n_waves": (0.5, 2.5), "pitch_rad": (0.3, 1.4)},
    "ARL": {"arc_radius_m": (0.4, 4.0)},
}
"""Ranges of what is searched of each mode's shape."""
COMMON = {"frequency_rad_s": (0.5, 6.0), "steering_gain": (0.0, 1.0), "max_steering_rad": (0.0, 0.5)}
AHEAD = {"TWL": -1.0}
"""Sign of the frequency that drives a mode forward, where it is not 1."""
FINALISTS = 5
TASK = "SnakeGym/Terrain-v0"


def progress(env_file: Path, gait: Mapping[str, Any], seed: int, n_scenarios: int) -> np.ndarray[Any, np.dtype[Any]]:
    """Return the progress (W,) [m] of a guided gait in the scenarios of ``seed`` and up."""
    action = {"kind": "residual", "controller": dict(gait)}
    env = SnakeVectorEnv(TASK, n_scenarios, AutoresetMode.DISABLED, **{**load_yaml(env_file), "action": action})
    size = int(np.prod(env.single_action_space.shape or ()))
    *_, (_, _, infos) = roll(ZeroResidual(size), env, seed)
    return np.asarray(infos["progress_m"], np.float64)


def search(mode: str, env_file: Path, folder: Path, trials: int, n_scenarios: int) -> dict[str, Any]:
    """Return the best gait found of a mode, with its score."""
    ranges = {**COMMON, **SHAPES[mode]}
    study = optuna.create_study(
        study_name=mode, storage=f"sqlite:///{folder / 'study.db'}", load_if_exists=True, direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=0, multivariate=True),
    )  # fmt: skip

    def gait(values: Mapping[str, float]) -> dict[str, Any]:
        shape = {name: float(f"{value:.4g}") for name, value in values.items()}
        shape["frequency_rad_s"] *= AHEAD.get(mode, 1.0)
        return {"kind": "multimodal", "mode": mode, "guided": True, **shape}

    def score(trial: optuna.Trial) -> float:
        values = {name: trial.suggest_float(name, *ends) for name, ends in ranges.items()}
        return float(progress(env_file, gait(values), TUNING.first, n_scenarios).mean())

    done = sum(trial.state.is_finished() for trial in study.trials)
    study.optimize(score, n_trials=max(trials - done, 0))
    trials = sum(trial.value is not None for trial in study.trials)
    best = sorted((t for t in study.trials if t.value is not None), key=lambda trial: -float(trial.value or 0.0))
    finalists = [gait(trial.params) for trial in best[:FINALISTS]]
    means = [progress(env_file, each, TUNING.first + 10_000, 4 * n_scenarios).mean() for each in finalists]
    chosen = finalists[int(np.argmax(means))]
    unseen = progress(env_file, chosen, TUNING.first + 20_000, 4 * n_scenarios)
    return {
        "controller": chosen,
        "found": {
            "env": str(env_file), "trials": trials, "scenarios": n_scenarios,
            "progress_m": round(float(unseen.mean()), 3), "of_scenarios": unseen.size,
        },
    }  # fmt: skip


def main(argv: list[str] | None = None) -> int:
    """Search and write. Raises ConfigError for what the user has to correct."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", type=Path, default=Path("configs/env/terrain.yaml"), help="scenarios")
    parser.add_argument("--modes", nargs="+", choices=sorted(SHAPES), default=sorted(SHAPES), help="modes to search")
    parser.add_argument("--trials", type=int, default=60, help="proposals for each mode")
    parser.add_argument("--scenarios", type=int, default=16, help="scenarios of each proposal")
    args = parser.parse_args(argv)
    robot = Path(load_yaml(args.env)["robot"]).stem
    for mode in args.modes:
        folder = Path("runs", "spatial_gaits", robot, mode)
        make_folder(folder)
        found = search(mode, args.env, folder, args.trials, args.scenarios)
        out = Path("configs", "controllers", robot, f"{mode.lower()}.yaml")
        make_folder(out.parent)
        dump_yaml(found, out)
        print(f"{mode}: {found['found']['progress_m']} m; {out}")
    return 0


if __name__ == "__main__":
    sys.exit(run_program(main))
