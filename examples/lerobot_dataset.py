"""Logs of runs on the robot as a LeRobot dataset, one episode each (pip install 'lerobot[dataset]'):

    python examples/lerobot_dataset.py runs/hardware/*.jsonl --repo me/snake --out data/snake

A frame is one control step: ``observation.state`` has the joint angles [rad], then place and direction of the head [m,
m, rad], ``action`` the joint references that the policy asked for [rad], joint 1 at the tail.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from lerobot.datasets.lerobot_dataset import LeRobotDataset


def read_frames(rows: list[dict[str, Any]]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield what was known before each step, and the references of the step; a silent joint keeps its last angle."""
    angle, pose = None, None
    for row in rows:
        if row["kind"] == "step" and angle is not None and pose is not None:
            yield np.float32([*angle, *pose]), np.float32(row["wanted"])
        if row["kind"] == "cycle":
            angle = row["angle"]
        elif "xy" in row and row["angle"] is not None:
            pose = [*row["xy"], row["angle"]]


def main(argv: list[str] | None = None) -> LeRobotDataset:
    parser = argparse.ArgumentParser(description="Logs of runs on the robot as a LeRobot dataset.")
    parser.add_argument("logs", nargs="+", type=Path)
    parser.add_argument("--repo", default="me/snake", help="name of the dataset on the hub (%(default)s)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")
    parser.add_argument("--push", action="store_true", help="upload it")
    args = parser.parse_args(argv)
    logs = [[json.loads(line) for line in log.read_text().splitlines()] for log in args.logs]
    spec = logs[0][0]["spec"]
    joints = [f"joint_{k + 1}" for k in range(len(next(row for row in logs[0] if row["kind"] == "cycle")["angle"]))]
    state = [*joints, "head_x", "head_y", "head_angle"]
    dataset = LeRobotDataset.create(
        repo_id=args.repo, fps=round(1.0 / spec["control_dt_s"]), root=args.out, robot_type="snake", use_videos=False,
        features={
            "observation.state": {"dtype": "float32", "shape": (len(state),), "names": state},
            "action": {"dtype": "float32", "shape": (len(joints),), "names": joints},
        },
    )  # fmt: skip
    for rows in logs:
        targets = rows[0]["config"]["course"]["targets"]
        for known, wanted in read_frames(rows):
            dataset.add_frame({"observation.state": known, "action": wanted, "task": f"crawl to {targets}"})
        dataset.save_episode()
    dataset.finalize()
    if args.push:
        dataset.push_to_hub()
    print(f"wrote {args.out}: {dataset.num_episodes} episodes, {dataset.num_frames} frames")
    return dataset


if __name__ == "__main__":
    main()
