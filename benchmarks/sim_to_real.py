"""From simulation to servos: how far the same policy gets through driver, bytes and emulated servos.

The shipped policy plays random courses in the simulated env, then the same ones in ``SnakeGym/Real-v0`` on emulated
servos: its actions become packets, servos move the project's physics, packets become its observations::

    python benchmarks/sim_to_real.py                               # in one process, on the emulator's own clock
    python benchmarks/sim_to_real.py --port pty --courses 4        # a pseudo terminal, in real time, under the guard
    python benchmarks/sim_to_real.py --clamps 3 60                 # with clamps on speed [rad/s] and acceleration
    python benchmarks/sim_to_real.py --policy agents/pretrained/sts3215_chain_locked_joints --lost 0.01

Without ``--clamps`` references pass the safety layers as they are: nothing but the bus lies in between.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import snake_gym  # noqa: F401  registers
from snake_gym.hardware.safety.checks import SafetyLimits
from snake_gym.interface.policy_file import load_policy
from snake_gym.robot.measurement import centre_offset, chain_angles

POLICY = Path(__file__).resolve().parents[1] / "agents" / "pretrained" / "resilient_servo_locked_joints"
AMPLITUDE_RAD, PHASE_SHIFT_RAD = 0.6, 0.5236
OPEN = (1000.0, 1.0e6)


def course(seed: int) -> list[list[float]]:
    """Targets (40, 2) [m], 1 to 2 m apart, in random directions."""
    rng = np.random.default_rng(seed)
    bearing = np.cumsum(rng.uniform(-np.pi, np.pi, 40))
    legs = rng.uniform(1.0, 2.0, 40)[:, None] * np.stack([np.cos(bearing), np.sin(bearing)], axis=1)
    targets: list[list[float]] = np.cumsum(legs, axis=0).tolist()
    return targets


def play(env: gym.Env[Any, Any], policy: Any) -> tuple[float, dict[str, Any], float]:
    """Progress of one episode [m], the last info, and how old the oldest sample was [s]."""
    obs, info = env.reset(seed=0)
    done, age_s = False, 0.0
    while not done:
        action, _ = policy.predict(obs)
        obs, _, terminated, truncated, info = env.step(action)
        age_s = max(age_s, info.get("sample_age_s", 0.0))
        done = terminated or truncated
    env.close()
    return float(info["progress_m"]), info, age_s


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default=str(POLICY))
    parser.add_argument("--courses", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--port", choices=("memory", "pty"), default="memory")
    parser.add_argument("--clamps", type=float, nargs=2, default=OPEN, metavar=("RAD_S", "RAD_S2"))
    parser.add_argument("--lost", type=float, default=0.0, help="probability of a lost packet on the bus (0)")
    parser.add_argument("--sim-dt", type=float, help="physics step of the simulated env [s]; default: the robot's")
    options = parser.parse_args()
    policy = load_policy(options.policy)
    spec = policy.make_decoder().spec
    shape = AMPLITUDE_RAD * np.sin(PHASE_SHIFT_RAD * np.arange(spec.n_joints))
    head = -centre_offset(spec, chain_angles(shape[None], np.zeros(1)))[0]
    limits = replace(SafetyLimits(), max_speed_rad_s=options.clamps[0], max_acceleration_rad_s2=options.clamps[1])
    simulated_spec = spec if options.sim_dt is None else replace(spec, sim_dt_s=options.sim_dt)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in tqdm(range(options.courses), unit="course"):
            targets = course(seed)
            simulated = gym.make(
                "SnakeGym/Waypoints-v0", robot=asdict(simulated_spec), action=dict(policy.env_config["action"]),
                observation=dict(policy.env_config["observation"]),
                course={"kind": "list", "targets": targets}, time_limit_s=options.seconds,
                start={"amplitude_rad": AMPLITUDE_RAD, "phase_shift_rad": PHASE_SHIFT_RAD, "random": False},
            )  # fmt: skip
            expected, _, _ = play(simulated, policy)
            real = gym.make(
                "SnakeGym/Real-v0", policy=options.policy, course={"targets": targets}, time_limit_s=options.seconds,
                safety=asdict(limits), connection={
                    "port": options.port, "latch": str(Path(folder) / "estop"),
                    "emulated": {"joint_angle_rad": shape.tolist(), "point_xy_m": head.tolist(), "lost": options.lost},
                },
            )  # fmt: skip
            made, info, age_s = play(real, policy)
            if info["stop_reason"]:
                sys.exit(f"course {seed} stopped: {info['stop_reason']}")
            rows.append({
                "seed": seed, "simulated_m": round(expected, 3), "emulated_m": round(made, 3),
                "ratio": round(made / expected, 4), "oldest_sample_ms": round(1e3 * age_s, 2),
            })  # fmt: skip
            tqdm.write(json.dumps(rows[-1]), file=sys.stderr)
    ratio = sum(row["emulated_m"] for row in rows) / sum(row["simulated_m"] for row in rows)
    told = {"port": options.port, "clamps": options.clamps, "lost": options.lost}
    print(json.dumps({**told, "courses": rows, "ratio": ratio}, indent=2))


if __name__ == "__main__":
    main()
