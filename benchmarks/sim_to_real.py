"""From simulation to servos: how far policies and controllers get through driver, bytes and emulated servos.

Each player plays random courses in the simulated env, then the same ones in ``SnakeGym/Real-v0`` on emulated servos:
its actions become packets, servos move the plant, packets become its observations::

    python benchmarks/sim_to_real.py                               # in one process, on the emulator's own clock
    python benchmarks/sim_to_real.py --port pty --courses 4        # a pseudo terminal, in real time, under the guard
    python benchmarks/sim_to_real.py --clamps 3 60                 # with clamps on speed [rad/s] and acceleration
    python benchmarks/sim_to_real.py --policy agents/pretrained/sts3215_chain_locked_joints --lost 0.01

Without ``--clamps`` references pass the safety layers as they are: nothing but the bus lies in between.

The plant is this project's physics, which the simulated env has as well, but links always stop where they meet.
Another one, with its own friction, servos, play and supply, is ``--plant benchmarks.mujoco_servos:MujocoRobot``.
``--late`` adds servos that act 133 ms late, and noise on angles, rates and poses, each as large as it gets in
configs/env/randomised_servo.yaml. What the gap is made of, and how much of it identification takes away::

    python benchmarks/sim_to_real.py gap --plant benchmarks.mujoco_servos:MujocoRobot --out runs/gap

logs gaits on the plant, identifies the robot from two of them as in docs/hardware.md, and compares plant, nominal and
identified robot: joints and head on the same references, those of gaits that identification has not seen too,
and progress. Tables are Markdown.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import snake_gym  # noqa: F401  registers
from snake_gym.controllers import CONTROLLERS, resolve_controller
from snake_gym.hardware.__main__ import main as hardware
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.interface.policy import ZeroResidual, controller_action
from snake_gym.interface.policy_file import load_policy
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.measurement import centre_offset, chain_angles
from snake_gym.robot.spec import RobotSpec

ROOT = Path(__file__).resolve().parents[1]
POLICY = ROOT / "agents" / "pretrained" / "resilient_servo_locked_joints"
CHAIN = ROOT / "configs" / "robot" / "sts3215_chain.yaml"
CHAIN_POLICY = ROOT / "agents" / "pretrained" / "sts3215_chain_locked_joints"
AMPLITUDE_RAD, PHASE_SHIFT_RAD = 0.6, 0.5236
OPEN = (1000.0, 1.0e6)
LATE = {
    "command_delay_s": 0.133, "angle_noise_rad": 0.0015, "rate_noise_rad_s": 0.08, "pose_delay_s": 0.1,
    "position_noise_m": 0.005, "heading_noise_rad": 0.02,
}  # fmt: skip
"""Servos and camera at their worst in configs/env/randomised_servo.yaml."""
GAITS: dict[str, dict[str, float]] = {
    "slow": {"frequency_rad_s": 2.0},
    "medium": {"frequency_rad_s": 3.0},
    "another": {"frequency_rad_s": 4.0, "amplitude_rad": 0.5, "phase_shift_rad": 0.5},
    "tuned": {},
}
"""Gaits of CC as tuned for the robot, but for these numbers."""
LOG_S = 12.0
SEEN = ("slow", "medium")
"""Gaits on whose logs the robot is identified; the others are then new to it."""


class Player(NamedTuple):
    """Policy or controller, and the settings of the envs that it plays in."""

    name: str
    policy: Any
    spec: RobotSpec
    simulated: dict[str, Any]
    """Action and observation of the simulated env."""
    real: dict[str, Any]
    """Policy file, or robot and action, of the real env."""


def player(name: str, robot: str) -> Player:
    """Return a policy file's player, or that of a controller as tuned for ``robot``."""
    if name not in CONTROLLERS:
        policy = load_policy(name)
        config = policy.env_config
        seen = {"action": dict(config["action"]), "observation": dict(config["observation"])}
        return Player(policy.name, policy, policy.make_decoder().spec, seen, {"policy": name})
    spec = load_robot(robot)
    action = controller_action(resolve_controller({"tuned": name}, "controller", spec))
    return Player(name, ZeroResidual(spec.n_joints), spec, {"action": action}, {"robot": robot, "action": action})


def course(seed: int) -> list[list[float]]:
    """Targets (40, 2) [m], 1 to 2 m apart, in random directions."""
    rng = np.random.default_rng(seed)
    bearing = np.cumsum(rng.uniform(-np.pi, np.pi, 40))
    legs = rng.uniform(1.0, 2.0, 40)[:, None] * np.stack([np.cos(bearing), np.sin(bearing)], axis=1)
    targets: list[list[float]] = np.cumsum(legs, axis=0).tolist()
    return targets


def play(env: gym.Env[Any, Any], policy: Any) -> dict[str, Any]:
    """The last info of one episode."""
    obs, info = env.reset(seed=0)
    done = False
    while not done:
        action, _ = policy.predict(obs)
        obs, _, terminated, truncated, info = env.step(action)
        done = terminated or truncated
    env.close()
    return info


def simulate(who: Player, spec: RobotSpec, targets: list[list[float]], seconds: float, late: bool = False) -> float:
    """Progress [m] in the simulated env, on the robot ``spec``; ``late``: with delays and noise of ``LATE``."""
    varied = {name: {"low": value, "high": value} for name, value in LATE.items()} if late else {}
    env = gym.make(
        "SnakeGym/Waypoints-v0", robot=asdict(spec), course={"kind": "list", "targets": targets}, **who.simulated,
        time_limit_s=seconds, randomisation=varied, faults={"n_max": 0},
        start={"amplitude_rad": AMPLITUDE_RAD, "phase_shift_rad": PHASE_SHIFT_RAD, "random": False},
    )  # fmt: skip
    return float(play(env, who.policy)["progress_m"])


def drive(
    who: Player, targets: list[list[float]], options: argparse.Namespace, folder: Path, emulated: dict[str, Any]
) -> float:
    """Progress [m] in the real env, on emulated servos."""
    spec = who.spec
    shape = AMPLITUDE_RAD * np.sin(PHASE_SHIFT_RAD * np.arange(spec.n_joints))
    head = -centre_offset(spec, chain_angles(shape[None], np.zeros(1)))[0]
    limits = replace(SafetyLimits(), max_speed_rad_s=options.clamps[0], max_acceleration_rad_s2=options.clamps[1])
    start = {"joint_angle_rad": shape.tolist(), "point_xy_m": head.tolist(), "plant": options.plant}
    env = gym.make(
        "SnakeGym/Real-v0", **who.real, course={"targets": targets}, time_limit_s=options.seconds,
        safety=asdict(limits),
        connection={"port": options.port, "latch": str(folder / "estop"), "emulated": {**start, **emulated}},
    )  # fmt: skip
    info = play(env, who.policy)
    if info["stop_reason"]:
        sys.exit(f"{who.name} stopped: {info['stop_reason']}")
    return float(info["progress_m"])


def compare(options: argparse.Namespace) -> None:
    """Play the courses in simulation and on servos, and print both."""
    who = player(options.policy, str(CHAIN))
    emulated = {"lost": options.lost, **(LATE if options.late else {})}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in tqdm(range(options.courses), unit="course"):
            targets = course(seed)
            expected = simulate(who, who.spec, targets, options.seconds)
            as_late = simulate(who, who.spec, targets, options.seconds, late=True) if options.late else expected
            made = drive(who, targets, options, Path(folder), {**emulated, "seed": seed})
            rows.append({
                "seed": seed, "simulated_m": round(expected, 3), "as_late_m": round(as_late, 3),
                "emulated_m": round(made, 3), "ratio": round(made / expected, 4),
            })  # fmt: skip
            tqdm.write(json.dumps(rows[-1]), file=sys.stderr)
    ways = {name: sum(row[name] for row in rows) for name in ("simulated_m", "as_late_m", "emulated_m")}
    ratio = ways["emulated_m"] / ways["simulated_m"]
    found = {"port": options.port, "clamps": options.clamps, "plant": options.plant, "emulated": emulated}
    found |= {"courses": rows, "ratio": ratio, "ratio_as_late": ways["emulated_m"] / ways["as_late_m"]}
    print(json.dumps(found, indent=2))


def gap(options: argparse.Namespace) -> None:
    """Identify the plant, and print how far plant, nominal and identified robot are from each other."""
    folder: Path = options.out
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "estop").unlink(missing_ok=True)
    logs = {name: str(folder / f"{name}.jsonl") for name in GAITS}
    for name, gait in GAITS.items():
        Path(logs[name]).unlink(missing_ok=True)
        words = [f"controller.{key}={value}" for key, value in {"tuned": "cc", **gait}.items()]
        words += [
            f"connection.emulated.plant={options.plant}", f"connection.latch={folder / 'estop'}",
            "connection.port=memory", "connection.calibration=null", "connection.pose.kind=truth",
            "safety.torque_limit=0.7",
        ]  # fmt: skip
        sets = [word for pair in words for word in ("--set", pair)]
        config = str(ROOT / "configs/hardware/sts3215.yaml")
        command = ["run", "--config", config, "--time", f"{LOG_S:g}", "--targets", "1000,0"]
        if hardware([*command, "--log", logs[name], *sets]):
            sys.exit(f"the gait {name} could not be logged")
    found = folder / "mine.yaml"
    if hardware(
        ["replay", *(logs[name] for name in SEEN), "--robot", str(CHAIN), "--identify", str(found), "--no-plot"]
    ):
        sys.exit("identification gave no robot")
    robots = {"nominal": CHAIN, "identified": found}
    missed = {name: replayed(list(logs.values()), path, folder) for name, path in robots.items()}
    table("references of", "way [m]", "joints, nominal [deg rms]", "identified", "head, nominal [cm rms]", "identified")
    for name, log in logs.items():
        old, new = (missed[robot][log] for robot in robots)
        joints = " | ".join(f"{np.degrees(one['joint_rms_rad']):.2f}" for one in (old, new))
        heads = " | ".join(f"{100.0 * one['path_rms_m']:.1f}" for one in (old, new))
        print(f"| {name}{'' if name in SEEN else ' (unseen)'} | {old['path_length_m']:.2f} | {joints} | {heads} |")
    table("plays", "nominal [m]", "identified", "plant", "of nominal", "of identified", "late plant", "of nominal")
    for name in (str(CHAIN_POLICY), "fault_aware", "cc"):
        who = player(name, str(CHAIN))
        way = np.zeros((options.courses, 4))
        for seed in range(options.courses):
            targets = course(seed)
            expected = [simulate(who, load_robot(str(path)), targets, options.seconds) for path in robots.values()]
            hard = {**LATE, "lost": 0.01, "seed": seed}
            made = [drive(who, targets, options, folder, more) for more in ({}, hard)]
            way[seed] = [*expected, *made]
            tqdm.write(f"{who.name} {seed}: {way[seed].round(2).tolist()}", file=sys.stderr)
        old, new, plant, late = way.mean(axis=0)
        print(
            f"| {who.name} | {old:.2f} | {new:.2f} | {plant:.2f} | {plant / old:.2f} | {plant / new:.2f} "
            f"| {late:.2f} | {late / old:.2f} |", flush=True,
        )  # fmt: skip


def table(*heads: str) -> None:
    """Print the head of a table."""
    print(f"\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|", flush=True)


def replayed(logs: Sequence[str], robot: Path, folder: Path) -> dict[str, dict[str, float]]:
    """Return what ``replay`` says of each log on ``robot``."""
    numbers = folder / f"{robot.stem}.json"
    if hardware(["replay", *logs, "--robot", str(robot), "--no-plot", "--json", str(numbers)]):
        sys.exit(f"{robot} could not be replayed")
    runs: dict[str, dict[str, float]] = json.loads(numbers.read_text())["runs"]
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("compare", "gap"), default="compare")
    parser.add_argument("--policy", default=str(POLICY), help="policy file, or a controller of the chain")
    parser.add_argument("--courses", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--port", choices=("memory", "pty"), default="memory")
    parser.add_argument("--clamps", type=float, nargs=2, default=OPEN, metavar=("RAD_S", "RAD_S2"))
    parser.add_argument("--lost", type=float, default=0.0, help="probability of a lost packet on the bus (0)")
    parser.add_argument("--late", action="store_true", help="servos act late, and all readings have noise")
    parser.add_argument("--plant", help="robot behind the servos, module:NAME (default: this project's physics)")
    parser.add_argument("--out", type=Path, default=Path("runs/gap"), help="gap: folder for logs and robot")
    options = parser.parse_args()
    (gap if options.what == "gap" else compare)(options)


if __name__ == "__main__":
    main()
