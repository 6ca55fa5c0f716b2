"""A gait that is learned on the robot itself, within one room and its safety limits.

The cross-entropy method (Rubinstein, Kroese, The Cross-Entropy Method, 2004) over a gait's amplitude, frequency, phase
shift and steering gain. An episode is ten seconds towards a target straight ahead; its return is the env's. Whenever
the robot is more than ``--room`` from where it began, it drives back with the best gait so far, and nothing is learned
meanwhile. Episodes are ``SnakeGym/Real-v0``: clamps, limits and stops hold as in any run, and a stop ends the program::

    python benchmarks/learn_on_robot.py
    python benchmarks/learn_on_robot.py --plant benchmarks.mujoco_servos:MujocoRobot

Printed: mean return of each generation, and at the end the way in ten seconds of the first and of the last mean, how
far from home the robot has been, and for how long it was driven.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import snake_gym  # noqa: F401  registers

NAMES = ("amplitude", "frequency", "phase_shift", "steering")
START, SPREAD = np.array([-0.4, -0.5, 0.3, 0.0]), np.array([0.3, 0.3, 0.15, 0.3])
"""Mean and standard deviation of the first generation, as actions of kind gait; a slow gait of small amplitude."""
LOW, HIGH = np.array([-0.8, -0.9, 0.15, -1.0]), np.array([1.0, 1.0, 1.0, 1.0])
"""Range of the gaits: with less phase shift the robot would curl up into itself."""
ACTION = {"kind": "gait", "amplitude_max_rad": 0.8, "offset_max_rad": 0.3}
BEST_SHARE = 0.4
LEAST_SPREAD = 0.05
AHEAD_M, HOME_M = 5.0, 0.4


class Robot:
    """The robot, its home, and how long it has been driven."""

    def __init__(self, env: gym.Env[Any, Any], room_m: float) -> None:
        self.env, self.room_m = env, room_m
        self.loop = env.unwrapped.loop  # type: ignore[attr-defined]
        self.home: np.ndarray | None = None
        self.farthest_m = self.seconds = 0.0
        self.clamped = 0

    def place(self) -> tuple[np.ndarray, float]:
        """Centre of the robot (2,) [m] and its direction [rad], as measured."""
        seen = self.loop.measurement
        weight = np.arange(1, seen.joint_angle.shape[1] + 1) / (seen.joint_angle.shape[1] + 1)
        return seen.centre_xy_w[0].copy(), float(seen.head_angle[0] + (seen.joint_angle[0] * weight).sum())

    def episode(self, gait: np.ndarray, target: np.ndarray | None = None) -> float:
        """Return of an episode with a gait (4,); towards ``target`` (2,) [m], None: straight ahead."""
        self.env.reset(options=None if target is None else {"targets": [target.tolist()]})
        here, ahead = self.place()
        if self.home is None:
            self.home = here
        if target is None:
            self.env.reset(
                options={"targets": [(here + AHEAD_M * np.array([math.cos(ahead), math.sin(ahead)])).tolist()]}
            )
        total, done = 0.0, False
        while not done:
            at, heading = self.place()
            goal = self.loop.course.goal().target_xy_w[0]
            error = math.remainder(math.atan2(goal[1] - at[1], goal[0] - at[0]) - heading, 2.0 * math.pi)
            # A positive joint angle bends the robot to the right.
            offset = np.clip(-(0.5 + 0.5 * gait[3]) * error, -1.0, 1.0)
            action = np.clip([*gait[:3], offset], -1.0, 1.0)
            _, reward, terminated, truncated, info = self.env.step(action)
            if info["stop_reason"]:
                sys.exit(f"stopped: {info['stop_reason']}")
            total += float(reward)
            self.clamped += int(np.any(info["clamped"]))
            self.seconds += self.loop.spec.control_dt_s
            self.farthest_m = max(self.farthest_m, float(np.hypot(*(self.place()[0] - self.home))))
            done = terminated or truncated
        return total

    def go_home(self, gait: np.ndarray) -> None:
        """Drive back with a gait, where the robot is too far away."""
        for _ in range(20):
            away = self.place()[0] - self.home
            if np.hypot(*away) <= (self.room_m if _ == 0 else HOME_M):
                return
            self.episode(gait, self.home)
        sys.exit("the robot does not come home; carry it")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", default="configs/robot/sts3215_chain.yaml")
    parser.add_argument("--plant", help="robot behind the emulated servos, module:NAME")
    parser.add_argument("--generations", type=int, default=5)
    parser.add_argument("--population", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of an episode (%(default)s)")
    parser.add_argument("--room", type=float, default=1.5, help="distance from home that makes it drive back [m]")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        env = gym.make(
            "SnakeGym/Real-v0", robot=options.robot, action=ACTION, time_limit_s=options.seconds,
            course={"radius_m": HOME_M},
            connection={"latch": str(Path(folder) / "estop"), "emulated": {"plant": options.plant}},
        )  # fmt: skip
        robot = Robot(env, options.room)
        mean, spread, best, top = START.copy(), SPREAD.copy(), START.copy(), -math.inf
        first = robot.episode(mean)
        for generation in range(options.generations):
            gaits = np.clip(mean + spread * rng.standard_normal((options.population, mean.size)), LOW, HIGH)
            returns = []
            for gait in gaits:
                robot.go_home(best)
                returns.append(robot.episode(gait))
                if returns[-1] > top:
                    best, top = gait, returns[-1]
            elite = gaits[np.argsort(returns)[-max(2, round(BEST_SHARE * options.population)) :]]
            mean, spread = elite.mean(axis=0), np.maximum(elite.std(axis=0), LEAST_SPREAD)
            told = dict(zip(NAMES, mean.round(3).tolist(), strict=True))
            print(
                json.dumps({"generation": generation + 1, "return": round(float(np.mean(returns)), 2), **told}),
                flush=True,
            )
        robot.go_home(best)
        last = robot.episode(mean)
        env.close()
    report = {
        "first_return": first, "last_return": last, "driven_s": robot.seconds, "farthest_m": robot.farthest_m,
        "clamped_steps": robot.clamped,
    }  # fmt: skip
    print(json.dumps({name: round(value, 2) for name, value in report.items()}, indent=2))


if __name__ == "__main__":
    main()
