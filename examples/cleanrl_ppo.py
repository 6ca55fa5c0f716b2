"""PPO in one file, in the manner of CleanRL's ppo_continuous_action.py (Huang et al., JMLR 23(274), 2022).

python examples/cleanrl_ppo.py --out runs/cleanrl; snake-gym evaluate --policy mine=runs/cleanrl
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import numpy as np
import torch
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from torch import nn
from torch.distributions import Normal

import snake_gym  # noqa: F401  registers the envs
from snake_gym.interface.policy_writing import write_policy

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--env-id", default="SnakeGym/Waypoints-v0")
parser.add_argument("--total-steps", type=int, default=500_000)
parser.add_argument("--num-envs", type=int, default=16)
parser.add_argument("--num-steps", type=int, default=128)
parser.add_argument("--episode-steps", type=int, default=300)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--out", default="runs/cleanrl")
GAMMA, LAMBDA, CLIP, EPOCHS, MINIBATCHES = 0.99, 0.95, 0.2, 10, 32


def mlp(n_in: int, n_out: int, last_gain: float) -> nn.Sequential:
    layers = [nn.Linear(n_in, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, n_out)]
    for layer, gain in zip(layers[::2], (2**0.5, 2**0.5, last_gain), strict=True):
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


def main(argv: list[str] | None = None) -> dict[str, list[float]]:
    args = parser.parse_args(argv)
    torch.set_num_threads(1)  # quicker for networks this small
    torch.manual_seed(args.seed)
    # SAME_STEP: the step that ends an episode returns the next one's first observation; the last is in final_obs
    envs = gym.make_vec(
        args.env_id, args.num_envs, action={"kind": "gait"}, autoreset_mode="SameStep",
        max_episode_steps=args.episode_steps,
    )  # fmt: skip
    envs = RecordEpisodeStatistics(envs)
    n_obs, n_actions = envs.single_observation_space.shape[0], envs.single_action_space.shape[0]
    actor, critic, log_std = mlp(n_obs, n_actions, 0.01), mlp(n_obs, 1, 1.0), nn.Parameter(torch.zeros(n_actions))
    parameters = [*actor.parameters(), *critic.parameters(), log_std]
    optimiser = torch.optim.Adam(parameters, lr=3e-4, eps=1e-5)
    losses: list[float] = []
    obs = torch.as_tensor(envs.reset(seed=args.seed)[0])
    for _ in range(args.total_steps // (args.num_envs * args.num_steps)):
        rows: list[tuple[torch.Tensor, ...]] = []
        for _ in range(args.num_steps):
            with torch.no_grad():
                policy = Normal(actor(obs), log_std.exp())
                action = policy.sample()
                found, reward, terminated, truncated, infos = envs.step(action.clamp(-1, 1).numpy())
                after = torch.as_tensor(found).clone()
                ended = terminated | truncated
                for world in np.flatnonzero(ended):
                    after[world] = torch.as_tensor(infos["final_obs"][world])
                # an episode that was cut off goes on in the value of its last observation; one that ended does not
                alive, goes_on = torch.as_tensor(~terminated).float(), torch.as_tensor(~ended).float()
                value, target = critic(obs)[:, 0], torch.as_tensor(reward).float() + GAMMA * alive * critic(after)[:, 0]
            rows.append((obs, action, policy.log_prob(action).sum(-1), value, target - value, goes_on))
            obs = torch.as_tensor(found)
        b_obs, b_action, b_log_prob, b_value, b_delta, b_goes_on = map(torch.stack, zip(*rows, strict=True))
        advantage, carried = torch.zeros_like(b_delta), torch.zeros(args.num_envs)
        for t in reversed(range(args.num_steps)):
            carried = b_delta[t] + GAMMA * LAMBDA * b_goes_on[t] * carried
            advantage[t] = carried
        batch = [p.flatten(0, 1) for p in (b_obs, b_action, b_log_prob, advantage, advantage + b_value)]
        for _ in range(EPOCHS):
            for rows_of in torch.randperm(len(batch[0])).chunk(MINIBATCHES):
                o, a, old, adv, wanted = (part[rows_of] for part in batch)
                policy = Normal(actor(o), log_std.exp())
                ratio = (policy.log_prob(a).sum(-1) - old).exp()
                adv = (adv - adv.mean()) / (adv.std() + 1e-8)
                gain = torch.min(ratio * adv, ratio.clamp(1 - CLIP, 1 + CLIP) * adv).mean()
                loss = 0.25 * (critic(o)[:, 0] - wanted).square().mean() - gain
                optimiser.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(parameters, 0.5)
                optimiser.step()
        losses.append(loss.item())
        print(f"loss {losses[-1]:.3f}, return {np.mean(envs.return_queue or [np.nan]):.3f}")
    layers = [(m.weight.detach(), m.bias.detach()) for m in actor if isinstance(m, nn.Linear)]
    act = torch.no_grad()(lambda raw: actor(torch.as_tensor(raw)).clamp(-1, 1))
    print(write_policy(args.out, envs, layers, "tanh", learner=act, training={"algorithm": "PPO"}))
    return {"losses": losses, "returns": list(envs.return_queue)}


if __name__ == "__main__":
    main()
