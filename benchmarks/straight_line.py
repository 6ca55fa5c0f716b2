"""Fastest straight crawl of a periodic gait, with 0 to 3 joints locked: what a gait that knows the faults can reach.

    python benchmarks/straight_line.py [--generations 60] [--out docs/straight_line.json]

Each joint of ``resilient_servo`` has an amplitude, an offset and a phase of its own, all one frequency. The
cross-entropy method searches them for each set of locked joints, which are drawn at random and locked where the
episode begins. The score is the mean speed along the line from where a gait was after 5 s to where it is after 25 s:
the distance between both, so that a gait that turns in circles has none. Speeds are means over the sets of joints.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from snake_gym.config import to_json, write_atomic
from snake_gym.physics.faults import LOCKED
from snake_gym.robot.presets import RESILIENT_SERVO as SPEC
from snake_gym.simulation.simulated_robot import SimulatedRobot

BEGIN_S, END_S = 5.0, 25.0
POPULATION, ELITE = 96, 16
START_SHIFT_RAD, START_BEND_RAD = 0.44, 0.5
"""Gait with which every search begins; joints are locked where it begins, at a random phase."""


def speeds(gaits: NDArray[np.float64], locked: NDArray[np.bool_], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the speeds (K,) [m/s] of gaits (K, 3 J + 1): amplitudes, offsets, phases, frequency."""
    n, joints = len(gaits), SPEC.n_joints
    robot = SimulatedRobot(SPEC, n)
    robot.faults.kind[:] = np.where(locked, LOCKED, robot.faults.kind)
    robot.set_shape(np.tile(start, (n, 1)), np.zeros(n), np.zeros((n, 2)), "centre")
    amplitude, offset, phase, frequency = np.split(gaits, [joints, 2 * joints, 3 * joints], axis=1)
    begin = np.zeros((n, 2))
    for step in range(round(END_S / SPEC.control_dt_s)):
        if step == round(BEGIN_S / SPEC.control_dt_s):
            begin = robot.state.centre_xy.copy()
        wave = np.sin(frequency * step * SPEC.control_dt_s + phase)
        robot.step(np.clip(offset + amplitude * wave, -SPEC.joint_limit_rad, SPEC.joint_limit_rad))
    way = robot.state.centre_xy - begin
    return np.asarray(np.hypot(way[:, 0], way[:, 1]) / (END_S - BEGIN_S))


def search(n_locked: int, number: int, generations: int) -> tuple[float, dict[str, object]]:
    """Return the best speed [m/s] found for a random set of locked joints, and the gait."""
    rng, joints = np.random.default_rng([n_locked, number]), SPEC.n_joints
    locked = np.zeros(joints, bool)
    locked[rng.permutation(joints)[:n_locked]] = True
    shift = START_SHIFT_RAD * np.arange(joints)
    start = START_BEND_RAD * np.sin(rng.uniform(0.0, 2.0 * np.pi) + shift)
    mean = np.concatenate([np.full(joints, START_BEND_RAD), np.zeros(joints), shift, [5.0]])
    spread = np.concatenate([np.full(joints, 0.2), np.full(joints, 0.15), np.full(joints, 0.5), [0.8]])
    best, gait = -1.0, mean
    for _ in range(generations):
        drawn = mean + spread * rng.standard_normal((POPULATION, mean.size))
        drawn[0] = gait
        score = speeds(drawn, locked, start)
        order = np.argsort(-score)
        elite = drawn[order[:ELITE]]
        mean, spread = 0.3 * mean + 0.7 * elite.mean(axis=0), 0.3 * spread + 0.7 * elite.std(axis=0)
        if score[order[0]] > best:
            best, gait = float(score[order[0]]), drawn[order[0]]
    parts = np.split(np.round(gait, 4), [joints, 2 * joints, 3 * joints])
    names = ("amplitude_rad", "offset_rad", "phase_rad", "frequency_rad_s")
    found = {name: part.tolist() for name, part in zip(names, parts, strict=True)}
    return best, {"speed_m_s": round(best, 4), "locked": (np.flatnonzero(locked) + 1).tolist(), **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generations", type=int, default=60)
    parser.add_argument("--sets", type=int, default=4, help="sets of locked joints for each number of them")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    cases = [(n, number) for n in range(4) for number in range(args.sets if n else 1)]
    found = [(n, *search(n, number, args.generations)) for n, number in track(cases, "searching")]
    mean = {str(n): round(float(np.mean([speed for m, speed, _ in found if m == n])), 4) for n in range(4)}
    for n, speed in mean.items():
        print(f"{n} locked: {speed:.3f} m/s")
    if args.out is not None:
        command = " ".join(["python", "benchmarks/straight_line.py", *sys.argv[1:]])
        report = {"command": command, "robot": SPEC.name, "mean_speed_m_s": mean, "gaits": [gait for *_, gait in found]}
        write_atomic(args.out, to_json(report))


if __name__ == "__main__":
    main()
