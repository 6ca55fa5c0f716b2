"""How much a fault hurts, by its kind and size: progress of a classical controller with failed joints over without.

    python benchmarks/fault_severity.py [--controllers sjc tuned:fault_aware] [--episodes 64] [--joints 3]

Episodes of 40 s of the waypoint task on ``resilient_servo``, the same courses for every fault; three random joints fail
from the start. ``sjc`` is the gentle gait of sibilska2022, ``tuned:NAME`` one that was tuned for this robot.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from snake_gym.config import build
from snake_gym.envs import WaypointsConfig
from snake_gym.envs.core import SnakeCore

SIZES: dict[str, tuple[float, ...]] = {
    "locked": (1.0,),
    "free": (1.0,),
    "weak": (0.3, 0.2, 0.1, 0.05),
    "slow": (0.3, 0.2, 0.1, 0.05),
    "offset": (0.1, 0.2, 0.35),
    "slipped": (0.1, 0.2, 0.35),
    "rough": (0.2, 0.4, 0.8),
    "loose": (0.1, 0.2, 0.4, 0.8),
    "overload": (0.3, 0.2, 0.1, 0.05),
    "misread": (0.1, 0.2, 0.4),
    "silent": (1.0,),
}
"""Sizes to be measured, mildest first: shares, for offset, slipped, loose and misread radians."""


def faults_of(kind: str, size: float, n_joints: int) -> dict[str, Any]:
    """Return settings of faults of one kind and size in ``n_joints`` joints."""
    faults: dict[str, Any] = {"n_min": n_joints, "n_max": n_joints, "kinds": [kind]}
    if kind in ("weak", "slow"):
        return {**faults, f"{kind}_strength": size}
    if kind in ("offset", "slipped"):
        return {**faults, "offset_rad": size}
    return faults if kind in ("locked", "free") else {**faults, "strengths": {kind: size}}


def mean_progress(controller: str, faults: dict[str, Any], n_episodes: int) -> float:
    """Return the mean progress [m] of a controller, ``tuned:NAME`` or its kind, with these faults."""
    name = controller.removeprefix("tuned:")
    driver = {"kind": name} if name == controller else {"tuned": name}
    settings = {"time_limit_s": 40.0, "faults": faults, "action": {"kind": "residual", "controller": driver}}
    core = SnakeCore(build(WaypointsConfig, settings, "env"), n_episodes)
    core.reset(np.arange(n_episodes))
    while core.live.any():
        core.step(np.zeros((n_episodes, core.decoder.size)))
    return float(core.task.progress_m.mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--controllers", nargs="+", default=["sjc", "tuned:fault_aware"])
    parser.add_argument("--episodes", type=int, default=64)
    parser.add_argument("--joints", type=int, default=3)
    given = parser.parse_args()
    healthy = [mean_progress(name, {}, given.episodes) for name in given.controllers]
    heads = [f"{name} ({way:.2f} m)" for name, way in zip(given.controllers, healthy, strict=True)]
    print(f"| fault | size | {' | '.join(heads)} |\n|---|---{'|---' * len(heads)}|")
    for kind, sizes in SIZES.items():
        for size in sizes:
            faults = faults_of(kind, size, given.joints)
            shares = [
                mean_progress(name, faults, given.episodes) / way
                for name, way in zip(given.controllers, healthy, strict=True)
            ]
            print(f"| {kind} | {size:g} | " + " | ".join(f"{share:.2f}" for share in shares) + " |", flush=True)


if __name__ == "__main__":
    main()
