"""Search settings of a training with Optuna (pip install optuna):

    python examples/search_settings.py --trials 20 --set total_steps=500000

A trial is a run in runs/search/trial_0000 and so on; its value is the mean return of its last evaluation. Trials stand
in runs/search/study.db: the same command goes on with them, a trial that was killed included, and the same command in
several terminals, or on several machines with one file system, shares them out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import optuna
from snake_gym.agents.command import main as train
from snake_gym.agents.run_folder import RunFolder

RANGES = {
    "algorithm.learning_rate.start": lambda trial, name: trial.suggest_float(name, 1e-4, 3e-3, log=True),
    "algorithm.n_epochs": lambda trial, name: trial.suggest_int(name, 2, 10),
    "algorithm.gamma": lambda trial, name: trial.suggest_float(name, 0.9, 0.99),
    "algorithm.ent_coef": lambda trial, name: trial.suggest_float(name, 1e-4, 1e-2, log=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="configs/train/ppo.yaml")
    parser.add_argument("--trials", type=int, default=20, help="finished trials, earlier ones included (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/search"))
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings of all trials")
    args = parser.parse_args()

    def objective(trial: optuna.Trial) -> float:
        chosen = [f"{name}={suggest(trial, name)}" for name, suggest in RANGES.items()]
        # Number of the trial that this one repeats, because its process was killed.
        first = optuna.storages.RetryFailedTrialCallback.retried_trial_number(trial.study.trials[trial.number])
        run = args.out / f"trial_{trial.number if first is None else first:04d}"
        settings = ["if_exists=continue", *args.set, *chosen]
        if train(["--config", args.config, "--run-dir", str(run), "--quiet", "--set", *settings]):
            raise KeyboardInterrupt  # stopped, its state saved
        return RunFolder(run).evaluations()[-1]["return"]

    args.out.mkdir(parents=True, exist_ok=True)
    storage = optuna.storages.RDBStorage(
        f"sqlite:///{(args.out / 'study.db').absolute()}",
        heartbeat_interval=10,
        grace_period=30,
        failed_trial_callback=optuna.storages.RetryFailedTrialCallback(),
    )
    study = optuna.create_study(
        storage=storage,
        study_name="search",
        load_if_exists=True,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(),
    )
    enough = optuna.study.MaxTrialsCallback(args.trials, states=(optuna.trial.TrialState.COMPLETE,))
    if sum(trial.state == optuna.trial.TrialState.COMPLETE for trial in study.trials) < args.trials:
        study.optimize(objective, callbacks=[enough], gc_after_trial=True)
    print(f"best: {study.best_value:.2f} with --set {' '.join(f'{k}={v}' for k, v in study.best_params.items())}")


if __name__ == "__main__":
    main()
