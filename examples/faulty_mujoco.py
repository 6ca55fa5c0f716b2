"""Gymnasium's MuJoCo robots with failing joints: what PPO makes of them, trained with and without faults.

python examples/faulty_mujoco.py --env Swimmer-v5 --seeds 3; python examples/faulty_mujoco.py --env Ant-v5 --seeds 3

Some minutes for each seed and kind of training. Scores are mean returns of 32 episodes that nobody trained on, with the
same faults for each policy. Settings of PPO: those of rl-baselines3-zoo.
"""

from __future__ import annotations

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from snake_gym import FaultInjection

FAULTS = {
    "Swimmer-v5": {"n_min": 1, "n_max": 1, "kinds": ["locked", "free", "weak"], "onset_max_s": 20.0},
    "Ant-v5": {"n_min": 1, "n_max": 3, "kinds": ["locked", "free", "weak"], "onset_max_s": 20.0},
}
"""Faults, which are hidden, begin within the first half of an episode."""
SETTINGS: dict[str, dict[str, Any]] = {
    "Swimmer-v5": {"n_steps": 1024, "batch_size": 256, "gamma": 0.9999, "gae_lambda": 0.98, "learning_rate": 6e-4},
    "Ant-v5": {"n_steps": 512},
}
EPISODES, FIRST_SEED = 32, 1_000_000


def make(env_id: str, broken: bool) -> gym.Env[Any, Any]:
    env = gym.make(env_id)
    return FaultInjection(env, FAULTS[env_id] if broken else {"n_max": 0})


def train(env_id: str, broken: bool, seed: int, n_steps: int) -> PPO:
    robots = make_vec_env(lambda: make(env_id, broken), 4, seed=1000 * seed)
    model = PPO("MlpPolicy", VecNormalize(robots), seed=seed, device="cpu", **SETTINGS[env_id])
    return model.learn(n_steps)


def play(model: PPO, env_id: str, broken: bool) -> float:
    """Return the mean return."""
    robot, returns = make(env_id, broken), np.zeros(EPISODES)
    normal = model.get_vec_normalize_env()
    assert normal is not None
    for episode in range(EPISODES):
        obs, _ = robot.reset(seed=FIRST_SEED + episode)
        ended = False
        while not ended:
            action, _ = model.predict(normal.normalize_obs(obs), deterministic=True)
            obs, reward, terminated, truncated, _ = robot.step(action)
            returns[episode] += float(reward)
            ended = terminated or truncated
    return float(returns.mean())


def main(argv: list[str] | None = None) -> dict[bool, list[list[float]]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", choices=list(FAULTS), default="Swimmer-v5")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1_000_000)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)  # quicker for networks this small
    scores: dict[bool, list[list[float]]] = {False: [], True: []}
    for seed in range(args.seeds):
        for broken in scores:
            model = train(args.env, broken, seed, args.steps)
            scores[broken].append([play(model, args.env, False), play(model, args.env, True)])
            print(f"seed {seed}, trained {'with' if broken else 'without'} faults: {scores[broken][-1]}", flush=True)
    print(f"\n| {args.env}, PPO | whole | with faults |\n|---|---|---|")
    for broken, of_seeds in scores.items():
        cells = [
            f"{np.mean(column):.0f} ({', '.join(f'{v:.0f}' for v in column)})" for column in np.transpose(of_seeds)
        ]
        print(f"| trained {'with' if broken else 'without'} faults | {' | '.join(cells)} |")
    return scores


if __name__ == "__main__":
    main()
