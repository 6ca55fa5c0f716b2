"""How soon the estimator of what broke knows a slip or an offset, and how often it cries wolf.

python examples/estimator_delays.py                 # the numbers of docs/policy.md, a quarter of an hour on two cores
python examples/estimator_delays.py --worlds 16     # fewer robots for each gait

Gaits are those tuned for the suite ``resilience``, which has no other faults here: one slip or offset of 20 to 50
degrees that begins after 2 to 10 s, and stays. Alarms are slips and offsets that become known on healthy robots.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

from snake_gym.config import load_yaml, merge
from snake_gym.envs.core import SnakeCore
from snake_gym.tasks.task_settings import build_env

GAITS = ("sjc", "cc", "cpg", "fault_aware")
TUNED = "configs/controllers/resilient_servo/resilience"
FIRST_SEED = 81_000_000
AFTER_S = (4.0, 6.0, 8.0, 12.0)
"""Times since a fault's begin at which is asked whether it is known [s]."""
HEALTHY = {
    "resilience": ("configs/env/resilience.yaml", {}, GAITS),
    "randomised": ("configs/env/randomised.yaml", {}, GAITS),
    "sts3215_chain": (
        "configs/env/locked_joints.yaml",
        {"robot": "configs/robot/sts3215_chain.yaml"},
        ("fault_aware",),
    ),
    "robo_conda": ("configs/env/locked_joints.yaml", {"robot": "robo_conda"}, ("cc",)),
}
"""Worlds of healthy robots: file of the env, other settings, and gaits (robo_conda has no tuned one)."""


def make(file: str, settings: dict[str, Any], gait: str, n_worlds: int) -> SnakeCore:
    """Return the robots of an env with a tuned gait and the estimator, at the begin of an episode."""
    config = merge(load_yaml(file), settings)
    own = {"file": f"{TUNED}/{gait}.yaml"}
    if "robot" in settings:
        own = {"kind" if settings["robot"] == "robo_conda" else "tuned": gait}
    action = {"kind": "residual", "controller": own, "estimator": {"on": True}}
    core = SnakeCore(build_env("SnakeGym/Waypoints-v0", merge(config, {"action": action})), n_worlds)
    core.reset(np.arange(FIRST_SEED, FIRST_SEED + n_worlds))
    return core


def watch(core: SnakeCore) -> dict[str, Any]:
    """Play an episode. Return which joints are known (T, W, J) slipped and offset, by the names of the faults."""
    known: dict[str, list[Any]] = {"slipped": [], "offset": []}
    for _ in range(round(core.config.time_limit_s / core.spec.control_dt_s)):
        core.step(np.zeros((core.n_worlds, core.decoder.size)))
        for kind, name in (("slipped", "slips/slip"), ("offset", "offsets/offset")):
            known[kind].append(core.decoder_state[name] != 0.0)
    return {kind: np.array(rows) for kind, rows in known.items()}


def delays(kind: str, n_worlds: int) -> str:
    """Return the shares of faults known ``AFTER_S`` their begin, right in joint and kind, as cells of a table."""
    found = []
    for gait in GAITS:
        faults = {"n_min": 1, "n_max": 1, "kinds": [kind], "intermittent_share": 0.0}
        core = make("configs/env/resilience.yaml", {"faults": faults}, gait, n_worlds)
        joint = core.robot.faults.kind.argmax(axis=1)
        rows = np.arange(n_worlds)
        begin_s = core.robot.faults.onset_s[rows, joint]
        known = watch(core)[kind]
        at = np.array([np.rint((begin_s + after) / core.spec.control_dt_s).astype(int) - 1 for after in AFTER_S])
        found.append(known[at, rows, joint])
    return " | ".join(f"{share:.0%}" for share in np.concatenate(found, axis=1).mean(axis=1))


def alarms(name: str, n_worlds: int) -> tuple[int, float]:
    """Return the number of false alarms of healthy robots, and their hours."""
    file, settings, gaits = HEALTHY[name]
    count, hours = 0, 0.0
    for gait in gaits:
        core = make(file, merge(settings, {"faults": {"n_min": 0, "n_max": 0}}), gait, n_worlds)
        for known in watch(core).values():
            count += int(known[0].sum() + (known[1:] & ~known[:-1]).sum())
        hours += n_worlds * core.config.time_limit_s / 3600.0
    return count, hours


def cost_ms() -> float:
    """Return the processor's time [ms] of the estimator in a control step of one robot."""
    core = make("configs/env/resilience.yaml", {"faults": {"n_min": 0, "n_max": 0}}, "cc", 1)
    estimator, taken = core.decoder.estimator, list[float]()
    assert estimator is not None
    for _ in range(300):
        core.step(np.zeros((1, core.decoder.size)))
        state = {key: values.copy() for key, values in core.decoder_state.items()}
        begun_s = time.process_time()
        estimator.perceive(core.measurement, state)
        estimator.to_servos(core.measurement.joint_angle, state)
        taken.append(time.process_time() - begun_s)
    return 1e3 * float(np.median(taken))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=256, help="robots for each gait (256)")
    parser.add_argument("--only", nargs="+", default=["slipped", "offset", *HEALTHY, "cost"])
    options = parser.parse_args()
    print(f"| known after [s] | {' | '.join(f'{after:g}' for after in AFTER_S)} |\n{'|---' * 5}|")
    for name in options.only:
        if name in ("slipped", "offset"):
            print(f"| {name} | {delays(name, options.worlds)} |", flush=True)
        elif name == "cost":
            print(f"{cost_ms():.2f} ms of processor time a step, one robot", flush=True)
        else:
            count, hours = alarms(name, options.worlds)
            print(f"{name}: {count} false alarms in {hours:.1f} hours, {count / hours:.2f} an hour", flush=True)


if __name__ == "__main__":
    main()
