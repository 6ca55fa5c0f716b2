"""How fast: physics next to MuJoCo, env steps, and training next to a zero-cost env; everything in one run.

    python benchmarks/throughput.py [--quick] [--skip-training]

Ours and the other take turns, and the ratio is the median over the rounds, so that it holds on a machine whose speed
drifts. Cases:

* ``substeps``: physics steps per second at the same dt; MuJoCo with implicitfast.
  ``..._float32``: ours in that precision; MuJoCo computes in float64.
  It is the price of a step, not of a simulated second at equal error: at this dt MuJoCo's long chains do not settle.
  ``..._frictionless`` takes ground friction away from MuJoCo only (it is then cheaper than what it is compared with).
* ``env_steps_...``: whole env steps (observation, reward, autoreset), 20 sub-steps each; ``env_steps_obstacles``
  in random pegboards, with the mean number of ``obstacles`` (walls included) and of touching ``contacts``.
* ``ppo``: training steps per second; the other is the same learner on a zero-cost env of the same shapes,
  ``as_configured`` the ratio of training with ``overlap`` and ``bfloat16`` to training without.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import argparse
import dataclasses
import math
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, get_args

import mujoco
import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from mujoco_chain import build_xml

from snake_gym.config import load_yaml
from snake_gym.envs import SnakeVectorEnv
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.simulation.simulated_robot import Precision, SimulatedRobot


def time_rate(run: Callable[[], None], count: int) -> float:
    """Units per second of one call of ``run`` that does ``count`` of them."""
    start = time.perf_counter()
    run()
    return count / (time.perf_counter() - start)


def measure_physics(
    links: int, rounds: int, seconds: float, friction: bool = True, precision: Precision = "float64"
) -> None:
    """Physics steps per second, ours and MuJoCo's (one core each), alternating."""
    # The same step for both; ours costs the same at any. MuJoCo's chains of 28 links and more swing for ever at 1 ms,
    # and settle at 0.5 ms.
    dt, worlds, per_call = 0.001, 256, 20
    spec = dataclasses.replace(RESILIENT_SERVO, n_links=links, sim_dt_s=dt, control_dt_s=per_call * dt)
    robot = SimulatedRobot(spec, worlds, 1, precision=precision)
    phase = np.random.default_rng(0).uniform(0, 6.28, (worlds, 1))
    wave = 0.35 * np.sin(0.5 * np.arange(spec.n_joints) + phase)
    robot.set_shape(wave, np.zeros(worlds), np.zeros((worlds, 2)))
    model = mujoco.MjModel.from_xml_string(build_xml(spec, dt, "implicitfast", friction))
    data = mujoco.MjData(model)
    data.ctrl[: spec.n_joints] = -wave[0]

    def ours() -> None:
        for i in range(calls):
            robot.step(wave if i % 2 else -wave, None, per_call)

    calls = 2
    ours()
    calls = max(2, int(seconds * time_rate(ours, calls)))
    mujoco.mj_step(model, data, 100)
    steps = max(100, int(seconds * time_rate(lambda: mujoco.mj_step(model, data, 2000), 2000)))
    pairs = [
        (time_rate(ours, calls * worlds * per_call), time_rate(lambda: mujoco.mj_step(model, data, steps), steps))
        for _ in range(rounds)
    ]
    case = "substeps" + ("" if friction else "_frictionless")
    case += "" if precision == "float64" else f"_{precision}"
    report(case, links, worlds, 1, pairs)


def measure_env(case: str, task: str, settings: dict[str, Any], rounds: int, seconds: float) -> None:
    """Env steps per second with everything included: 0-3 locked joints or new fields and their routes, autoreset."""
    worlds = 256
    env = SnakeVectorEnv(f"SnakeGym/{task}-v0", worlds, "SAME_STEP", config=settings)
    env.reset(seed=0)
    env.core.spread_ends()
    actions = np.random.default_rng(0).uniform(-1, 1, (16, *env.action_space.shape)).astype(np.float32)
    contacts: list[float] = []

    def ours() -> None:
        for i in range(calls):
            info = env.step(actions[i % 16])[4]
            if "n_contacts" in info:
                contacts.append(float(info["n_contacts"].mean()))

    calls = 300  # one time limit: the worlds are spread over their episodes
    ours()
    calls = max(20, int(seconds * time_rate(ours, calls)))
    contacts.clear()
    pairs = [(time_rate(ours, calls * worlds), math.nan) for _ in range(rounds)]
    more = {}
    if contacts:
        obstacles = float(env.core.task.n_features.mean())  # type: ignore[attr-defined]
        more = {"obstacles": round(obstacles, 1), "contacts": round(float(np.mean(contacts)), 2)}
    report(case, RESILIENT_SERVO.n_links, worlds, settings["n_threads"], pairs, **more)


def report(
    case: str, links: int, worlds: int, threads: int, pairs: Sequence[tuple[float, float]], **more: float
) -> None:
    """Print medians over rounds of (ours, other) [1/s], and of their ratios; other is NaN where there is none."""
    ours, other = (statistics.median(rates) for rates in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    text = "".join(f"  {name} {value}" for name, value in more.items())
    print(f"{case:32}{links:4}{worlds:6}{threads:3}{ours:14,.0f}{other:12,.0f}{ratio:8.2f}{text}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--skip-training", action="store_true", help="leave out the rows that need torch")
    args = parser.parse_args()
    rounds, seconds = (3, 0.3) if args.quick else (7, 1.0)
    print(f"{'case':32}{'N':>4}{'W':>6}{'T':>3}{'ours/s':>14}{'other/s':>12}{'ratio':>8}")
    for links in (10, 28, 64):
        for precision in get_args(Precision):
            measure_physics(links, rounds, seconds, precision=precision)
    measure_physics(10, rounds, seconds, friction=False)
    threads = len(os.sched_getaffinity(0))
    configs = Path(__file__).parents[1] / "configs"
    gait = {"file": str(configs / "controllers" / "resilient_servo" / "cc.yaml")}
    field = {**load_yaml(configs / "env" / "obstacle_field.yaml"), "action": {"kind": "residual", "controller": gait}}
    locked = {"action": {"kind": "residual"}, "faults": {"n_max": 3}}
    for n in sorted({1, threads}):
        measure_env("env_steps_residual", "Waypoints", {**locked, "n_threads": n}, rounds, seconds)
        measure_env("env_steps_obstacles", "ObstacleField", {**field, "n_threads": n}, rounds, seconds)
    if not args.skip_training:
        from training_throughput import measure_training

        worlds, rates = measure_training(args.quick)
        as_said = round(statistics.median(c / a for a, _, c in rates), 3)
        report("ppo", RESILIENT_SERVO.n_links, worlds, threads, [(a, b) for a, b, _ in rates], as_configured=as_said)
    return 0


if __name__ == "__main__":
    sys.exit(main())
