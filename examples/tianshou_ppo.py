"""PPO of Tianshou: DummyVectorEnv, a collector and updates in a plain loop.

python examples/tianshou_ppo.py --out runs/tianshou; snake-gym evaluate --policy mine=runs/tianshou
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np
import torch
from tianshou.algorithm import PPO
from tianshou.algorithm.modelfree.reinforce import ProbabilisticActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import Collector, CollectStats, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.utils.net.common import Net
from tianshou.utils.net.continuous import ContinuousActorProbabilistic, ContinuousCritic
from tianshou.utils.torch_utils import policy_within_training_step, torch_train_mode
from torch import nn
from torch.distributions import Independent, Normal

import snake_gym  # noqa: F401  registers the envs
from snake_gym.interface.policy_writing import write_policy

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--env-id", default="SnakeGym/Waypoints-v0")
parser.add_argument("--total-steps", type=int, default=100_000)
parser.add_argument("--batch-steps", type=int, default=2000)
parser.add_argument("--num-envs", type=int, default=4)
parser.add_argument("--episode-steps", type=int, default=300)
parser.add_argument("--out", default="runs/tianshou")


def main(argv: list[str] | None = None) -> dict[str, list[float]]:
    args = parser.parse_args(argv)
    torch.set_num_threads(1)  # quicker for networks this small
    torch.manual_seed(0)

    def make() -> gym.Env:
        return gym.make(args.env_id, action={"kind": "gait"}, max_episode_steps=args.episode_steps)

    trained_in = make()
    n_obs, n_actions = trained_in.observation_space.shape, trained_in.action_space.shape
    hidden = {"state_shape": n_obs, "hidden_sizes": [64, 64], "activation": nn.Tanh}
    # unbounded: no tanh behind the last layer, so that the network is plain; actions are clipped
    actor = ContinuousActorProbabilistic(preprocess_net=Net(**hidden), action_shape=n_actions, unbounded=True)
    critic = ContinuousCritic(preprocess_net=Net(**hidden))
    policy = ProbabilisticActorPolicy(
        actor=actor, dist_fn=lambda found: Independent(Normal(*found), 1), action_space=trained_in.action_space,
        observation_space=trained_in.observation_space, action_scaling=False, action_bound_method="clip",
        deterministic_eval=True,
    )  # fmt: skip
    algorithm = PPO(
        policy=policy, critic=critic, optim=AdamOptimizerFactory(lr=3e-4), max_grad_norm=0.5, ent_coef=0.0,
        advantage_normalization=True,
    )  # fmt: skip
    envs = DummyVectorEnv([make] * args.num_envs)
    envs.seed(0)
    collector = Collector[CollectStats](algorithm, envs, VectorReplayBuffer(args.batch_steps, args.num_envs))
    collector.reset()
    losses, returns, truncated = [], [], 0
    for _ in range(args.total_steps // args.batch_steps):
        with policy_within_training_step(policy):
            found = collector.collect(n_step=args.batch_steps)
            returns += found.returns.tolist()
            truncated += int(collector.buffer.truncated.sum())
            with torch_train_mode(algorithm):
                update = algorithm.update(buffer=collector.buffer, batch_size=128, repeat=10)
        collector.reset_buffer(keep_statistics=True)
        losses.append(float(update.loss.mean))
        print(f"loss {losses[-1]:.3f}, return {np.mean(returns[-10:] or [np.nan]):.3f}")
    envs.close()

    linear = [m for m in (*actor.preprocess.modules(), *actor.mu.modules()) if isinstance(m, nn.Linear)]
    layers = [(m.weight.detach(), m.bias.detach()) for m in linear]
    act = torch.no_grad()(lambda raw: actor(torch.as_tensor(raw))[0][0].clamp(-1, 1))
    print(write_policy(args.out, trained_in, layers, "tanh", learner=act, training={"algorithm": "PPO"}))
    return {"losses": losses, "returns": returns, "truncated": [float(truncated)]}


if __name__ == "__main__":
    main()
