"""Train several seeds on a Slurm cluster (pip install submitit), one job each:

    python examples/slurm_seeds.py --config configs/train/ppo.yaml --seeds 5 --partition cpu --hours 2
    python examples/slurm_seeds.py --config configs/train/ppo.yaml --seeds 2 --local --set total_steps=100000

All nodes need a common file system and this environment. A job whose time is up, or that is preempted, is queued again
and goes on from its last checkpoint; so does the same command, typed again. ``--local``: here, without Slurm.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import submitit
from snake_gym.agents.command import main as train

from snake_gym.parallel import read_seeds


class Training(submitit.helpers.Checkpointable):
    """One training; queued again as it is, as its folder tells how far it has come."""

    def __call__(self, words: list[str]) -> int:
        return train(words)


def main(argv: list[str] | None = None) -> list[int]:
    parser = argparse.ArgumentParser(description="Train several seeds on a Slurm cluster, one job each.")
    parser.add_argument("--config", required=True)
    parser.add_argument("--seeds", default="5", help="how many, or which, as in 0,1,7 (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("runs/slurm"))
    parser.add_argument("--partition", help="of the cluster")
    parser.add_argument("--hours", type=float, default=4.0, help="time of a job (%(default)s)")
    parser.add_argument("--cores", type=int, default=2, help="of a job (%(default)s)")
    parser.add_argument("--local", action="store_true", help="processes of this machine, without Slurm")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="settings of all runs")
    args = parser.parse_args(argv)
    executor = submitit.AutoExecutor(args.out / "jobs", cluster="local" if args.local else "slurm")
    executor.update_parameters(timeout_min=round(60 * args.hours), cpus_per_task=args.cores, name="snake")
    if not args.local:
        executor.update_parameters(slurm_partition=args.partition)
    words = [
        ["--config", args.config, "--run-dir", str(args.out / f"seed_{seed}"), "--quiet",
         "--set", *args.set, "if_exists=continue", f"seed={seed}"]
        for seed in read_seeds(args.seeds)
    ]  # fmt: skip
    jobs = executor.map_array(Training(), words)
    print("submitted", *(job.job_id for job in jobs), "; logs in", args.out / "jobs", flush=True)
    codes = [job.result() for job in jobs]
    print("exit codes", *codes)
    return codes


if __name__ == "__main__":
    main()
