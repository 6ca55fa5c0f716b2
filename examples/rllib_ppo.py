"""PPO of RLlib, whose release 2.60 asks for gymnasium 1.2.2: install it in an environment of its own.

python examples/rllib_ppo.py --iterations 50
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.registry import register_env

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--env-id", default="SnakeGym/Waypoints-v0")
parser.add_argument("--iterations", type=int, default=50)
parser.add_argument("--batch-steps", type=int, default=4000)
parser.add_argument("--episode-steps", type=int, default=300)
parser.add_argument("--runners", type=int, default=0, help="processes that play; 0: this one")


def make(settings: dict[str, object]) -> gym.Env:
    import snake_gym  # noqa: F401  registers the envs in each process

    return gym.make(**settings)


def main(argv: list[str] | None = None) -> dict[str, list[float]]:
    args = parser.parse_args(argv)
    ray.init(num_cpus=max(args.runners, 1) + 1, include_dashboard=False, log_to_driver=False)
    register_env("snake", make)
    settings = {"id": args.env_id, "action": {"kind": "gait"}, "max_episode_steps": args.episode_steps}
    config = (
        PPOConfig()
        .environment("snake", env_config=settings)
        .env_runners(num_env_runners=args.runners, rollout_fragment_length="auto")
        .training(train_batch_size_per_learner=args.batch_steps, minibatch_size=128, num_epochs=5, lr=3e-4)
        .debugging(seed=0)
    )
    losses, returns = [], []
    algorithm = config.build_algo()
    try:
        before = {name: np.array(w) for name, w in algorithm.get_module().get_state().items()}
        for _ in range(args.iterations):
            found = algorithm.train()
            losses.append(float(found["learners"]["default_policy"]["total_loss"]))
            returns.append(float(found["env_runners"]["episode_return_mean"]))
            print(f"loss {losses[-1]:.3f}, return {returns[-1]:.3f}")
        after = algorithm.get_module().get_state()
        changed = [float(np.abs(np.array(after[name]) - w).max()) for name, w in before.items()]
    finally:
        algorithm.stop()
        ray.shutdown()
    return {"losses": losses, "returns": returns, "changed": changed}


if __name__ == "__main__":
    main()
