"""PPO of TorchRL: GymEnv, a collector, GAE and ClipPPOLoss.

python examples/torchrl_ppo.py --out runs/torchrl; snake-gym evaluate --policy mine=runs/torchrl
"""

from __future__ import annotations

import argparse

import torch
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.envs import GymEnv, RewardSum, StepCounter, TransformedEnv
from torchrl.modules import IndependentNormal, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

import snake_gym  # noqa: F401  registers the envs
from snake_gym.envs import SnakeEnv
from snake_gym.interface.policy_writing import write_policy

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--env-id", default="SnakeGym/Waypoints-v0")
parser.add_argument("--total-steps", type=int, default=100_000)
parser.add_argument("--batch-steps", type=int, default=1000)
parser.add_argument("--episode-steps", type=int, default=300)
parser.add_argument("--out", default="runs/torchrl")


def mlp(n_in: int, n_out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(n_in, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, n_out))


def main(argv: list[str] | None = None) -> dict[str, list[float]]:
    args = parser.parse_args(argv)
    torch.set_num_threads(1)  # quicker for networks this small
    torch.manual_seed(0)
    made = GymEnv(args.env_id, action={"kind": "gait"}, max_episode_steps=args.episode_steps)
    env = TransformedEnv(made, RewardSum()).append_transform(StepCounter())
    env.set_seed(0)
    n_obs, n_actions = env.observation_spec["observation"].shape[-1], env.action_spec.shape[-1]
    mean = mlp(n_obs, n_actions)
    nn.init.normal_(mean[-1].weight, std=0.01)
    log_std = nn.Parameter(torch.zeros(n_actions))

    class Actor(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mean, self.log_std = mean, log_std

        def forward(self, obs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            found = self.mean(obs)
            return found, self.log_std.exp().expand_as(found)

    actor = ProbabilisticActor(
        TensorDictModule(Actor(), ["observation"], ["loc", "scale"]), in_keys=["loc", "scale"],
        distribution_class=IndependentNormal, return_log_prob=True,
    )  # fmt: skip
    critic = ValueOperator(mlp(n_obs, 1), in_keys=["observation"])
    advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
    loss_of = ClipPPOLoss(actor, critic, clip_epsilon=0.2, entropy_coeff=0.0)
    optimiser = torch.optim.Adam(loss_of.parameters(), lr=3e-4)
    collector = Collector(env, actor, frames_per_batch=args.batch_steps, total_frames=args.total_steps)
    losses, returns, truncated = [], [], 0
    for batch in collector:
        with torch.no_grad():
            advantage(batch)
        for _ in range(10):
            for rows in torch.randperm(len(batch)).chunk(8):
                parts = loss_of(batch[rows])
                loss = parts["loss_objective"] + parts["loss_critic"]
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(loss_of.parameters(), 0.5)
                optimiser.step()
        done = batch["next", "done"][:, 0]
        losses.append(loss.item())
        returns += batch["next", "episode_reward"][done].flatten().tolist()
        truncated += int(batch["next", "truncated"].sum())
        print(f"loss {losses[-1]:.3f}, return {sum(returns[-10:]) / max(len(returns[-10:]), 1):.3f}")
    collector.shutdown()

    layers = [(m.weight.detach(), m.bias.detach()) for m in mean if isinstance(m, nn.Linear)]
    act = torch.no_grad()(lambda raw: mean(torch.as_tensor(raw)).clamp(-1, 1))
    trained_in = SnakeEnv(args.env_id, action={"kind": "gait"})
    print(write_policy(args.out, trained_in, layers, "tanh", learner=act, training={"algorithm": "PPO"}))
    return {"losses": losses, "returns": returns, "truncated": [float(truncated)]}


if __name__ == "__main__":
    main()
