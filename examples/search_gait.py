"""Search a gait of a spatial robot in an env with Optuna (pip install optuna):

    python examples/search_gait.py --mode SWL --out configs/controllers/snake_robot_iii_short/swl.yaml

Candidates play the same scenarios; the four best of them play others, and the best of those is written.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import optuna

from snake_gym.config import dump_yaml, load_yaml

RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "SWL": {"frequency_rad_s": (1, 4), "n_waves": (0.6, 1.8), "yaw_rad": (0.4, 1.6), "pitch_rad": (0.2, 1.0)},
    "ARL": {"frequency_rad_s": (0.5, 4), "arc_radius_m": (0.25, 2.0)},
    "TWL": {"frequency_rad_s": (-4, 4), "n_waves": (0.5, 2.0), "pitch_rad": (0.2, 1.4)},
}
STEERING = {"steering_gain": (0.05, 1.5), "max_steering_rad": (0.05, 0.7)}
LOGARITHMIC = ("steering_gain", "arc_radius_m")
FIRST_SEED, OTHER_SEED, N_OTHER = 7_000_000, 7_500_000, 48


def gait(trial: optuna.trial.BaseTrial, mode: str) -> dict[str, Any]:
    ranges = {**STEERING, **RANGES[mode]}
    drawn = {name: trial.suggest_float(name, *ends, log=name in LOGARITHMIC) for name, ends in ranges.items()}
    found = {name: float(f"{value:.4g}") for name, value in drawn.items()}
    return {"kind": "multimodal", "mode": mode, "guided": True, **found}


def progress_m(controller: dict[str, Any], env_id: str, settings: dict[str, Any], seed: int, n: int) -> float:
    """Return the mean progress of a gait in ``n`` scenarios."""
    action = {"kind": "residual", "controller": controller}
    envs = gym.make_vec(env_id, n, autoreset_mode="Disabled", **settings, action=action)
    envs.reset(seed=seed)
    made, live = np.zeros(n), np.ones(n, bool)
    while live.any():
        _, _, terminated, truncated, infos = envs.step(np.zeros(envs.action_space.shape, np.float32))
        made[live] = infos["progress_m"][live]
        live &= ~(terminated | truncated)
    envs.close()
    return float(made.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=RANGES, required=True)
    parser.add_argument("--env-id", default="SnakeGym/Terrain-v0")
    parser.add_argument("--env", type=Path, default=Path("configs/env/terrain.yaml"))
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--scenarios", type=int, default=16)
    parser.add_argument("--first", type=Path, help="file of a gait that is tried first")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    settings = load_yaml(args.env)

    def score(trial: optuna.trial.BaseTrial, seed: int, n: int) -> float:
        return progress_m(gait(trial, args.mode), args.env_id, settings, seed, n)

    sampler = optuna.samplers.TPESampler(seed=0, multivariate=True, n_startup_trials=12)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    if args.first:
        known = load_yaml(args.first)["controller"]
        study.enqueue_trial({name: known[name] for name in STEERING | RANGES[args.mode]})
    study.optimize(lambda trial: score(trial, FIRST_SEED, args.scenarios), n_trials=args.trials)
    best = sorted(study.trials, key=lambda trial: -(trial.value or 0.0))[:4]
    again = [score(optuna.trial.FixedTrial(trial.params), OTHER_SEED, N_OTHER) for trial in best]
    chosen = best[int(np.argmax(again))]
    found = {"env": str(args.env), "trials": args.trials, "scenarios": args.scenarios}
    found |= {"progress_m": round(max(again), 3), "of_scenarios": N_OTHER}
    dump_yaml({"controller": gait(optuna.trial.FixedTrial(chosen.params), args.mode), "found": found}, args.out)


if __name__ == "__main__":
    main()
