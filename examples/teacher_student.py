"""Teacher and student: a policy that is told what broke, and one that imitates it without (DAgger, Ross et al. 2011).

snake-gym train --config configs/train/resilience.yaml --plugin examples/teacher_student.py --run-dir runs/told \
    --set env_id=Example/Told-v0 "env.observation.columns=[standard, body_velocity, turning_rate, tail_leads, \
    suspected_fault, told_fault, told_angle]"
python examples/teacher_student.py runs/told --out runs/student
snake-gym evaluate --config configs/benchmark/resilience.yaml --policy student=runs/student

The student acts, and the teacher says at each step what it would have done. What broke shows in how the robot moves, so
the student has a memory, an LSTM. With ``--estimator``, which undoes slips and offsets, both play with it
(``action.estimator``), and the student sees the column ``fault_probability`` too. With ``--ppo-steps N`` it goes on
alone, by PPO (Schulman et al. 2017) on the env's reward, with a critic that is told what the teacher was.
"""

from __future__ import annotations

import argparse
from collections import deque
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.distributions import Normal

from snake_gym import load_policy, register_column, register_task
from snake_gym.envs import SnakeEnv, SnakeVectorEnv
from snake_gym.interface.mirror import SAME, TURNED
from snake_gym.interface.policy_writing import write_policy
from snake_gym.simulation.fault_kinds import FAULT_KINDS
from snake_gym.tasks.waypoints import Waypoints, WaypointsConfig

KINDS = ("locked", "free", "weak", "offset", "slipped")
TOLD = ("told_fault", "told_angle")
"""Columns of the teacher alone."""
SEGMENT, MEMORY, UPDATES, BATCH = 25, 8, 16, 256
"""Control steps of a segment, which episodes begin with; segments kept, updates after each, and worlds in one."""
GAMMA, LAMBDA, CLIP, REWARD_SCALE = 0.97, 0.92, 0.2, 0.1
"""Discount, trace decay and clip range of PPO; factor of rewards."""


@register_task("Example/Told-v0")
class ToldConfig(WaypointsConfig):
    """Waypoints of a robot that is told which of its joints have failed, and where they stand."""

    def make_task(self, spec: Any, n_worlds: int) -> Told:
        return Told(self, n_worlds, spec.n_joints)


class Told(Waypoints):
    """The same worlds, with the truth among their signals."""

    def __init__(self, config: ToldConfig, n_worlds: int, n_joints: int) -> None:
        super().__init__(config.course, n_worlds, config.reward)
        self.fault = self.keep("told_fault", 0.0, len(KINDS) * n_joints)
        self.angle = self.keep("told_angle", 0.0, n_joints)

    def update_goal(self, measured_xy: Any, rows: Any) -> None:
        super().update_goal(measured_xy, rows)
        kinds = self.robot.acting_kinds()[:, rows, :, None] == [FAULT_KINDS[kind].code for kind in KINDS]
        self.fault[rows] = kinds.any(axis=0).reshape(kinds.shape[1], -1)
        self.angle[rows] = self.robot.joint_angle()[rows]

    def signals(self) -> dict[str, Any]:
        return {**super().signals(), "told_fault": self.fault, "told_angle": self.angle}


@register_column(
    "told_fault", "1", "1 where a joint has a fault now, for each joint, in it for each of KINDS",
    lambda layout: len(KINDS) * layout.spec.n_joints, needs="Example/Told-v0", mirror=SAME,
)  # fmt: skip
def told_fault(seen: Any) -> Any:
    return seen.signals["told_fault"]


@register_column(
    "told_angle", "rad", "true joint angle", lambda layout: layout.spec.n_joints, needs="Example/Told-v0", mirror=TURNED
)
def told_angle(seen: Any) -> Any:
    return seen.signals["told_angle"]


class Student(nn.Module):
    """Network from observations (W, D) to actions (W, A), with a memory."""

    def __init__(self, n_obs: int, n_actions: int, units: int) -> None:
        super().__init__()
        self.enter, self.memory = nn.Linear(n_obs, units), nn.LSTM(units, units)
        self.inner, self.leave = nn.Linear(units, units), nn.Linear(units, n_actions)

    def forward(self, obs: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        """Return actions (T, W, A) for T control steps of observations (T, W, D), and the next state."""
        x, state = self.memory(torch.relu(self.enter(obs)), state)
        return self.leave(torch.relu(self.inner(x))), state

    def blank(self, n_worlds: int) -> Any:
        return (torch.zeros(1, n_worlds, self.memory.hidden_size),) * 2

    def layers(self) -> list[tuple[torch.Tensor, ...]]:
        """Return the weights as a policy file has them."""
        parts = (self.enter, self.memory, self.inner, self.leave)
        return [tuple(values.detach() for values in part.parameters()) for part in parts]

    def play(self, observations: Any) -> torch.Tensor:
        """Return actions (G, A) for the observations (G, D) of one episode."""
        with torch.no_grad():
            return self(torch.as_tensor(observations)[:, None], self.blank(1))[0][:, 0].clamp(-1.0, 1.0)


def imitate(student: Student, segments: Any, optimiser: Any, rng: np.random.Generator) -> float:
    """Improve the student in ``UPDATES`` batches of worlds from the segments, and return the mean squared error."""
    errors = []
    for _ in range(UPDATES):
        obs, wanted, state = segments[rng.integers(len(segments))]
        rows = rng.choice(obs.shape[1], min(BATCH, obs.shape[1]), replace=False)
        actions, _ = student(obs[:, rows], tuple(part[:, rows] for part in state))
        error = nn.functional.mse_loss(actions, wanted[:, rows])
        optimiser.zero_grad()
        error.backward()
        nn.utils.clip_grad_norm_(student.parameters(), 1.0)
        optimiser.step()
        errors.append(float(error.detach()))
    return float(np.mean(errors))


class Improver:
    """PPO for a student: a critic of all observations (W, D), and a deviation of each action."""

    def __init__(self, student: Student, n_obs: int, n_actions: int) -> None:
        self.student, self.log_std = student, nn.Parameter(torch.full((n_actions,), -1.5))
        self.critic = nn.Sequential(nn.Linear(n_obs, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))
        own = [*student.parameters(), self.log_std]
        self.optimiser = torch.optim.Adam([{"params": own}, {"params": self.critic.parameters()}])

    def values(self, obs: torch.Tensor) -> torch.Tensor:
        return self.critic(obs)[..., 0]

    def log_probability(self, mean: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        return Normal(mean, self.log_std.exp()).log_prob(action).sum(-1)

    def improve(self, steps: list[dict[str, Any]], first: Any, rng: np.random.Generator, actor_too: bool) -> None:
        """Improve actor and critic by one segment (T, W, ...) that began with the memory ``first``."""
        seg = {name: torch.stack([step[name] for step in steps]) for name in steps[0]}
        advantage, carried = torch.zeros_like(seg["reward"]), torch.zeros(seg["reward"].shape[1])
        for t in reversed(range(len(steps))):  # generalised advantage estimation
            error = seg["reward"][t] + GAMMA * seg["next_value"][t] - seg["value"][t]
            carried = advantage[t] = error + GAMMA * LAMBDA * ~seg["ended"][t] * carried
        wanted = advantage + seg["value"]
        counts = (seg["ended"].cumsum(0) - seg["ended"].long() == 0).float()  # the memory was blanked after an end
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-6)
        for _ in range(UPDATES):
            rows = rng.choice(advantage.shape[1], min(BATCH, advantage.shape[1]), replace=False)
            mean, _ = self.student(seg["shown"][:, rows], tuple(part[:, rows] for part in first))
            ratio = (self.log_probability(mean, seg["action"][:, rows]) - seg["log_p"][:, rows]).exp()
            gain = torch.minimum(ratio * advantage[:, rows], ratio.clamp(1.0 - CLIP, 1.0 + CLIP) * advantage[:, rows])
            loss = nn.functional.mse_loss(self.values(seg["obs"][:, rows]), wanted[:, rows])
            if actor_too:
                loss = loss - (gain * counts[:, rows]).mean()
            self.optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.student.parameters(), 0.5)
            self.optimiser.step()


def main(argv: list[str] | None = None) -> dict[str, list[float]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("teacher", help="run or policy file of the teacher")
    parser.add_argument("--out", required=True, help="folder of the student's policy file")
    parser.add_argument("--estimator", action="store_true", help="play with the estimator, and show it to the student")
    parser.add_argument("--steps", type=int, default=4_000_000, help="env steps of all worlds together")
    parser.add_argument("--ppo-steps", type=int, default=0, help="further ones, by PPO")
    parser.add_argument("--num-envs", type=int, default=1024)
    parser.add_argument("--units", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    teacher: Any = load_policy(args.teacher)
    settings, columns = dict(teacher.env_config), list(teacher.env_config["observation"]["columns"])
    if args.estimator:
        settings["action"] = {**settings["action"], "estimator": {"on": True}}
        columns.append("fault_probability")  # the last, so that the teacher's are where they were
    settings["observation"] = {"columns": columns}
    env = SnakeVectorEnv(teacher.env_id, args.num_envs, "SAME_STEP", config=settings, lean_infos=True)
    fields, n_told = env.core.layout.fields, teacher.observation_space.shape[0]
    shown = np.concatenate([np.r_[field.columns] for name, field in fields.items() if name not in TOLD])
    student = Student(shown.size, env.single_action_space.shape[0], args.units)
    optimiser = torch.optim.Adam(student.parameters(), lr=1e-3)
    segments: deque[Any] = deque(maxlen=MEMORY)
    found: dict[str, list[float]] = {"losses": [], "returns": []}

    obs = env.reset(seed=args.seed * args.num_envs)[0]
    env.core.step_limit[:] = SEGMENT * (1 + np.arange(args.num_envs) % (env.core.n_steps // SEGMENT))
    state = student.blank(args.num_envs)
    n_segments = max(args.steps // (SEGMENT * args.num_envs), 1)
    for number in range(n_segments):
        first, seen = state, []
        for _ in range(SEGMENT):
            part = torch.as_tensor(obs[:, shown])
            with torch.no_grad():
                actions, state = student(part[None], state)
            seen.append((part, torch.as_tensor(teacher.predict(obs[:, :n_told])[0])))
            obs, _, terminated, truncated, infos = env.step(actions[0].clamp(-1.0, 1.0).numpy())
            if (ended := terminated | truncated).any():
                found["returns"] += infos["final_info"]["progress_m"][ended].tolist()
                state = tuple(values * torch.as_tensor(~ended)[:, None] for values in state)
        segments.append((*(torch.stack(one) for one in zip(*seen, strict=True)), first))
        for group in optimiser.param_groups:
            group["lr"] = 1e-3 * (1.0 - 0.95 * number / n_segments)
        found["losses"].append(imitate(student, segments, optimiser, rng))
        if number % 10 == 9:
            done, lately = (number + 1) * SEGMENT * args.num_envs, np.mean(found["returns"][-args.num_envs :])
            print(f"{done:,} steps: error {found['losses'][-1]:.4f}, {lately:.2f} m an episode", flush=True)

    improver = Improver(student, obs.shape[1], env.single_action_space.shape[0])
    n_segments = args.ppo_steps // (SEGMENT * args.num_envs)
    for number in range(n_segments):
        first, steps = state, []
        for _ in range(SEGMENT):
            whole = torch.as_tensor(obs)
            with torch.no_grad():
                mean, state = student(whole[None, :, shown], state)
                action = Normal(mean[0], improver.log_std.exp()).sample()
                log_p, value = improver.log_probability(mean[0], action), improver.values(whole)
            obs, reward, terminated, truncated, infos = env.step(action.clamp(-1.0, 1.0).numpy())
            follows = obs.copy()
            if (ended := terminated | truncated).any():
                found["returns"] += infos["final_info"]["progress_m"][ended].tolist()
                follows[ended] = np.stack(list(infos["final_obs"][ended]))
                state = tuple(values * torch.as_tensor(~ended)[:, None] for values in state)
            with torch.no_grad():
                next_value = improver.values(torch.as_tensor(follows)) * torch.as_tensor(~terminated)
            steps.append({
                "obs": whole, "shown": whole[:, shown], "action": action, "log_p": log_p, "value": value,
                "reward": REWARD_SCALE * torch.as_tensor(reward, dtype=torch.float32), "ended": torch.as_tensor(ended),
                "next_value": next_value,
            })  # fmt: skip
        for group, rate in zip(improver.optimiser.param_groups, (3e-4, 1e-3), strict=True):
            group["lr"] = rate * (1.0 - 0.95 * number / n_segments)
        improver.improve(steps, first, rng, actor_too=number >= 10)  # first the critic alone
        if number % 10 == 9:
            done, lately = (number + 1) * SEGMENT * args.num_envs, np.mean(found["returns"][-args.num_envs :])
            print(f"{done:,} steps by PPO: {lately:.2f} m an episode", flush=True)

    settings["observation"] = {"columns": [name for name in columns if name not in TOLD]}
    own = SnakeEnv("SnakeGym/Waypoints-v0", config=settings)
    print(write_policy(args.out, own, student.layers(), "relu", learner=student.play))
    return found


if __name__ == "__main__":
    main()
