"""Record a classical controller with Minari, load the dataset, and clone its behaviour offline.

python examples/minari_offline.py --out runs/cloned; snake-gym evaluate --policy mine=runs/cloned
MINARI_DATASETS_PATH says where datasets lie; the default is ~/.minari.
"""

from __future__ import annotations

import argparse

import gymnasium as gym
import minari
import numpy as np
import torch
from torch import nn

import snake_gym  # noqa: F401  registers the envs
from snake_gym.interface.policy_writing import write_policy

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--env-id", default="SnakeGym/Waypoints-v0")
parser.add_argument("--episodes", type=int, default=50)
parser.add_argument("--episode-steps", type=int, default=300)
parser.add_argument("--updates", type=int, default=5000)
parser.add_argument("--dataset", default="snake/teacher-v0")
parser.add_argument("--out", default="runs/cloned")


def teach(heading_error: np.ndarray) -> np.ndarray:
    """Return a gait that bends towards the target: amplitude, frequency, phase shift, offset in [-1, 1]."""
    sine, cosine = heading_error
    return np.array([0.4, 0.6, 0.0, np.clip(np.arctan2(sine, cosine), -1, 1)], np.float32)


def main(argv: list[str] | None = None) -> dict[str, list[float]]:
    args = parser.parse_args(argv)
    torch.set_num_threads(1)  # quicker for networks this small
    torch.manual_seed(0)
    env = gym.make(args.env_id, action={"kind": "gait"}, max_episode_steps=args.episode_steps)
    if args.dataset in minari.list_local_datasets():
        minari.delete_dataset(args.dataset)
    recorder = minari.DataCollector(env)
    heading_error = env.unwrapped.core.layout.fields["heading_error"].columns
    for seed in range(args.episodes):
        obs, _ = recorder.reset(seed=seed)
        ended = False
        while not ended:
            obs, _, terminated, truncated, _ = recorder.step(teach(obs[heading_error]))
            ended = terminated or truncated
    recorder.create_dataset(args.dataset, algorithm_name="bending gait", description="A gait that steers.")
    recorder.close()

    dataset = minari.load_dataset(args.dataset)
    episodes = list(dataset.iterate_episodes())
    # one observation more than actions: the last one is that after the last action
    obs = torch.as_tensor(np.concatenate([episode.observations[:-1] for episode in episodes]))
    actions = torch.as_tensor(np.concatenate([episode.actions for episode in episodes]))
    net = nn.Sequential(
        nn.Linear(obs.shape[1], 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, actions.shape[1])
    )
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
    losses: list[float] = []
    for _ in range(args.updates):
        rows = torch.randint(len(obs), (256,))
        loss = (net(obs[rows]) - actions[rows]).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    print(f"{len(episodes)} episodes, {len(obs)} steps; loss {losses[0]:.4f} to {losses[-1]:.4f}")

    layers = [(m.weight.detach(), m.bias.detach()) for m in net if isinstance(m, nn.Linear)]
    act = torch.no_grad()(lambda raw: net(torch.as_tensor(raw)).clamp(-1, 1))
    print(write_policy(args.out, env, layers, "tanh", learner=act, training={"algorithm": "behaviour cloning"}))
    return {"losses": losses, "returns": [float(sum(episode.rewards)) for episode in episodes]}


if __name__ == "__main__":
    main()
