"""Physics steps per second of batched spatial robots, beside MuJoCo's own loops on the same model, in the same run.

    python -m benchmarks.spatial_throughput

Ours is ``SpatialRobot.step``: servo speed limits, faults, work and posture included. ``mj_step`` is MuJoCo's step
called for one world after another on one thread; ``rollout`` is MuJoCo's thread pool with the whole command sequence
known beforehand. All play the same commands from the same states; rounds alternate, and the best of each counts.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable

import mujoco
import numpy as np
from mujoco import rollout

from snake_gym.config.threads import process_threads
from snake_gym.robot.spatial_spec import load_spatial_robot
from snake_gym.spatial.simulation import SpatialRobot

ROBOT = "configs/robot/spatial/snake_robot_iii.yaml"
N_COMMANDS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=process_threads())
    options = parser.parse_args()
    plain = load_spatial_robot(ROBOT)
    wheeled = dataclasses.replace(plain, wheels=dataclasses.replace(plain.wheels, pairs=True))
    print(f"{options.worlds} worlds, {options.threads} threads, best of {options.rounds} rounds, steps/s")
    for name, spec in (("28 joints on the ground", plain), ("the same on 30 wheels", wheeled)):
        speeds = measure(SpatialRobot(spec, options.worlds, options.threads), options.rounds)
        ratio = speeds["ours"] / speeds["rollout"]
        print(f"{name}: " + ", ".join(f"{way} {speed:,.0f}" for way, speed in speeds.items()), end="")
        print(f"; ours / rollout {ratio:.2f}")


def measure(robot: SpatialRobot, rounds: int) -> dict[str, float]:
    """Return physics steps per second of each way."""
    spec, n_worlds = robot.spec, robot.n_worlds
    n_joints, n = spec.n_joints, spec.n_substeps
    phase = 0.9 * np.arange(n_joints) + 0.1 * np.arange(n_worlds)[:, None]
    commands = [0.4 * np.cos(phase + 0.15 * k) * (np.arange(n_joints) % 2) for k in range(N_COMMANDS)]
    robot.set_shape(np.zeros((n_worlds, n_joints)), np.zeros(n_worlds), np.zeros((n_worlds, 2)))
    for _ in range(10):
        robot.step(commands[0])
    start, aims = robot.state.physics.copy(), robot.servos.command.copy()
    ends = np.stack([aims, *commands], axis=1)
    share = np.arange(1, n + 1)[:, None] / n  # a servo's way to its reference, as in ``SpatialRobot.step``
    ways = [ends[:, k, None] + share * (ends[:, k + 1] - ends[:, k])[:, None] for k in range(N_COMMANDS)]
    sequence = np.concatenate(ways, axis=1)
    sequence = np.concatenate([sequence, np.zeros_like(sequence)], axis=2)  # back electromotive forces take none
    pool = rollout.Rollout(nthread=robot.n_threads if robot.n_threads > 1 else 0)
    data = [mujoco.MjData(robot.model) for _ in range(robot.n_threads)]
    n_alone = max(1, n_worlds // 8)

    def ours() -> int:
        robot.state.physics[:], robot.servos.command[:] = start, aims
        for command in commands:
            robot.step(command)
        return n_worlds

    def bare() -> int:
        pool.rollout(robot.model, data, start, sequence)
        return n_worlds

    def loop() -> int:
        for world in range(n_alone):
            mujoco.mj_setState(robot.model, data[0], start[world], mujoco.mjtState.mjSTATE_FULLPHYSICS)
            for command in sequence[world]:
                data[0].ctrl[:] = command
                mujoco.mj_step(robot.model, data[0])
        return n_alone

    runs: dict[str, Callable[[], int]] = {"ours": ours, "rollout": bare, "mj_step": loop}
    best = dict.fromkeys(runs, 0.0)
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.perf_counter()
            steps = run() * N_COMMANDS * n
            best[name] = max(best[name], steps / (time.perf_counter() - begin))
    return best


if __name__ == "__main__":
    main()
