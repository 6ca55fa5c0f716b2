"""What failing joints do to the gait of Gymnasium's Ant.

python examples/faulty_ant.py
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np

from snake_gym import FaultInjection

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--episodes", type=int, default=8)
parser.add_argument("--episode-steps", type=int, default=150)
KINDS = ("none", "weak", "free", "locked", "rough", "silent")
"""Ways of two joints to fail one second after the start; offset needs position servos, slow a speed limit."""
TORQUE, FREQUENCY_HZ = 0.12, 1.05
PHASE_RAD = np.array([4.70, 1.59, 6.22, -1.45, 2.44, 0.57, 2.80, 4.40])
"""Of each motor in a gait found by chance and hill climbing: 5 m in 7.5 s."""


def play(kind: str, n_episodes: int, n_steps: int) -> tuple[list[float], int]:
    """Return how far the gait took Ant in each episode [m], and how many joints had failed at the end."""
    faults = {"n_max": 0} if kind == "none" else {"n_min": 2, "n_max": 2, "kinds": [kind]}
    ant = gym.make("Ant-v5", max_episode_steps=n_steps, terminate_when_unhealthy=False)
    env = FaultInjection(ant, {**faults, "onset_min_s": 1.0, "onset_max_s": 1.0})
    ways = []
    for seed in range(n_episodes):  # each kind breaks the same joints of the same episodes: the ways are paired
        _, info = env.reset(seed=seed)
        start, truncated, step = info["x_position"], False, 0
        while not truncated:
            wave = np.sin(2.0 * np.pi * FREQUENCY_HZ * 0.05 * step + PHASE_RAD)
            _, _, _, truncated, info = env.step((TORQUE * wave).astype(np.float32))
            step += 1
        ways.append(float(info["x_position"] - start))
    return ways, info["n_failed_joints"]


def main(argv: list[str] | None = None) -> dict[str, list[float]]:
    args = parser.parse_args(argv)
    found = {}
    for kind in KINDS:
        found[kind], n_failed = play(kind, args.episodes, args.episode_steps)
        print(f"{kind:7s} {n_failed} joints failed, {np.mean(found[kind]):5.2f} m +- {np.std(found[kind]):.2f}")
    return found


if __name__ == "__main__":
    main()
