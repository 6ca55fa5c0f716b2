"""How fast: physics beside MuJoCo, env steps, and training beside a zero-cost env; everything in one run.

    python benchmarks/throughput.py [--json -] [--quick] [--skip-training]

Ours and MuJoCo take turns, and the ratio is the median over the rounds, so that it holds on a machine whose speed
drifts. Rows: case, links, worlds, threads, ours_per_s, mujoco_per_s, ratio; some add their own. Cases:

* ``substeps_implicit``, ``substeps_rk4``: physics steps per second at the same dt; MuJoCo with implicitfast and RK4.
  ``..._float32``: ours in that precision; MuJoCo computes in float64.
  It is the price of a step, not of a simulated second at equal error: at this dt MuJoCo's long chains do not settle.
  ``..._frictionless`` takes ground friction away from MuJoCo only (it is then cheaper than what it is compared with).
* ``env_steps_...``: whole env steps (observation, reward, autoreset), 20 sub-steps each; ``env_steps_obstacles``
  in random pegboards, with the mean number of ``obstacles`` (walls included) and of touching ``contacts``.
* ``ppo``: training steps per second; the ratio is to the same learner on a zero-cost env of the same shapes,
  ``bfloat16`` that of training with ``algorithm.bfloat16`` to training without.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import argparse
import dataclasses
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from mujoco_chain import MujocoChain

from snake_gym.config import load_yaml
from snake_gym.envs import SnakeVectorEnv
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.simulated_robot import Precision, SimulatedRobot

Row = dict[str, Any]


def time_rate(run: Callable[[], None], count: int) -> float:
    """Units per second of one call of ``run`` that does ``count`` of them."""
    start = time.perf_counter()
    run()
    return count / (time.perf_counter() - start)


def crawling_robot(
    spec: RobotSpec, n_worlds: int, n_threads: int, precision: Precision
) -> tuple[SimulatedRobot, np.ndarray]:
    """A robot bent like a wave and servo references that keep it moving."""
    robot = SimulatedRobot(spec, n_worlds, n_threads, precision=precision)
    rng = np.random.default_rng(0)
    wave = 0.35 * np.sin(0.5 * np.arange(spec.n_joints) + rng.uniform(0, 6.28, (n_worlds, 1)))
    robot.set_shape(wave, np.zeros(n_worlds), np.zeros((n_worlds, 2)))
    return robot, -wave


def measure_physics(
    integrator: str,
    links: int,
    threads: int,
    friction: bool,
    rounds: int,
    seconds: float,
    precision: Precision = "float64",
) -> Row:
    """Physics steps per second, ours and MuJoCo's (one core), alternating."""
    ours_integrator, mujoco_integrator = {"implicit": ("implicit", "implicitfast"), "rk4": ("rk4", "RK4")}[integrator]
    # The same step for both; ours costs the same at any. MuJoCo's chains of 28 links and more swing for ever at 1 ms,
    # and settle at 0.5 ms.
    dt = 0.001 if integrator == "implicit" else 0.0001  # explicit: below the bound of stability
    worlds, per_call = 256, 20
    spec = dataclasses.replace(
        RESILIENT_SERVO, n_links=links, sim_dt_s=dt, control_dt_s=per_call * dt, integrator=ours_integrator
    )
    robot, reference = crawling_robot(spec, worlds, threads, precision)
    chain = MujocoChain(spec, dt, mujoco_integrator, friction, reference[0])
    sign = 1.0

    def ours() -> None:
        nonlocal sign
        for _ in range(calls):
            robot.step(sign * reference, None, per_call)
            sign = -sign

    calls = 1
    ours()
    calls = max(1, int(seconds * time_rate(ours, 1)))
    chain.step(100)
    steps = max(100, int(seconds * time_rate(lambda: chain.step(2000), 2000)))
    pairs = [
        (time_rate(ours, calls * worlds * per_call), time_rate(lambda: chain.step(steps), steps)) for _ in range(rounds)
    ]
    case = f"substeps_{integrator}" + ("" if friction else "_frictionless")
    case += "" if precision == "float64" else f"_{precision}"
    return make_row(case, links, worlds, threads, pairs)


def measure_env(case: str, task: str, settings: Row, rounds: int, seconds: float) -> Row:
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
    pairs = [(time_rate(ours, calls * worlds), None) for _ in range(rounds)]
    row = make_row(case, RESILIENT_SERVO.n_links, worlds, settings["n_threads"], pairs)
    if contacts:
        obstacles = float(env.core.task.n_features.mean())  # type: ignore[attr-defined]
        row |= {"obstacles": round(obstacles, 1), "contacts": round(float(np.mean(contacts)), 2)}
    return row


def make_row(case: str, links: int, worlds: int, threads: int, pairs: list[tuple[float, float | None]]) -> Row:
    """Medians over rounds; the ratio is the median of the rounds' ratios."""
    other = [b for _, b in pairs if b is not None]
    return {
        "case": case, "links": links, "worlds": worlds, "threads": threads,
        "ours_per_s": round(statistics.median(a for a, _ in pairs)),
        "mujoco_per_s": round(statistics.median(other)) if other else None,
        "ratio": round(statistics.median(a / b for a, b in pairs if b is not None), 3) if other else None,
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="write the rows as JSON; - for standard output")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--skip-training", action="store_true", help="leave out the rows that need torch")
    args = parser.parse_args()
    rounds, seconds = (3, 0.3) if args.quick else (7, 1.0)
    rows: list[Row] = []

    def add(row: Row) -> None:
        rows.append(row)
        ratio = f"{row['ratio']:8.2f}" if row["ratio"] is not None else "       -"
        mujoco = f"{row['mujoco_per_s']:12,}" if row["mujoco_per_s"] is not None else "           -"
        more = "".join(f"  {name} {row[name]}" for name in ("obstacles", "contacts", "bfloat16") if name in row)
        print(f"{row['case']:32}{row['links']:4}{row['worlds']:6}{row['threads']:3}{row['ours_per_s']:14,}{mujoco}{ratio}"
              f"{more}", file=sys.stderr)  # fmt: skip

    print(f"{'case':32}{'N':>4}{'W':>6}{'T':>3}{'ours/s':>14}{'MuJoCo/s':>12}{'ratio':>8}", file=sys.stderr)
    for links in (10, 28, 64):
        for precision in get_args(Precision):
            add(measure_physics("implicit", links, 1, True, rounds, seconds, precision))
    add(measure_physics("implicit", 10, 1, False, rounds, seconds))
    add(measure_physics("rk4", 10, 1, True, rounds, seconds))
    threads = len(os.sched_getaffinity(0))
    configs = Path(__file__).parents[1] / "configs"
    gait = {"file": str(configs / "controllers" / "resilient_servo" / "cc.yaml")}
    field = {**load_yaml(configs / "env" / "obstacle_field.yaml"), "action": {"kind": "residual", "controller": gait}}
    locked = {"action": {"kind": "residual"}, "faults": {"n_max": 3}}
    for n in sorted({1, threads}):
        add(measure_env("env_steps_residual", "Waypoints", {**locked, "n_threads": n}, rounds, seconds))
        add(measure_env("env_steps_obstacles", "ObstacleField", {**field, "n_threads": n}, rounds, seconds))
    if not args.skip_training:
        from training_throughput import measure_training

        add(measure_training(args.quick))
    if args.json:
        text = json.dumps(rows, indent=1)
        print(text) if args.json == "-" else Path(args.json).write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
