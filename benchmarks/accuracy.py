"""How accurate for what price: every preset's gait for a minute, with 0-3 joint faults, at a list of step sizes.

    python benchmarks/accuracy.py [--presets NAME ...] [--scenarios 32]

Scenario: the preset's gait (below) held in steps of its control period, from rest in the gait's shape; a quarter each
with 0, 1, 2 and 3 faulty joints (locked, free or weak, half of them from the start, half from a random control step of
the first 30 s on; onsets lie on control steps so that every step size meets them alike). All step sizes see the same
scenarios. Error: distance between where the centre of mass is after 60 s and where it is in the converged run, divided
by the converged run's displacement. A robot that goes round in circles ends near where it began: where a quarter of its
way, in steps of one gait period, is longer, the error is relative to that.

The converged run is the same scenario at the smallest step / 4. A scenario in which the halving before it changed more
than 1 % (a robot that hardly moves, or one whose stick and slip hang on the last digit) has none, and is left out.
Cost: microseconds of one core per robot and simulated second, in batches of the size given by --scenarios.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from snake_gym.controllers.serpenoid import GaitConfig, serpenoid_reference
from snake_gym.physics.faults import FREE, LOCKED, WEAK
from snake_gym.robot.presets import PRESETS
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

SECONDS = 60.0
FAULT_KINDS = (LOCKED, FREE, WEAK)
RESOLVED = 0.01


def gait(amplitude_deg: float, frequency_deg_s: float, shift_deg: float) -> GaitConfig:
    return GaitConfig(math.radians(amplitude_deg), math.radians(frequency_deg_s), math.radians(shift_deg))


GAITS = {
    "resilient": gait(20.0, 50.0, 30.0),  # sibilska2022, Table 3
    "resilient_servo": gait(34.0, 100.0, 35.0),  # a fast gait within its 2 rad/s
    "robo_conda": gait(38.0, 140.0, 50.0),  # irani2015: amplitude and speed as commanded, shift mid-range
    "muscle": gait(30.0, 360.0, 72.0),  # haghshenas2022
    "snakesys": gait(50.0, 36.0, 51.4),  # liu2024: CL gait, 2 K_n pi / n with K_n = 2 and 14 yaw joints
    "pegboard": gait(30.0, 90.0, 40.0),  # wang gives no numbers
}
"""Preset -> the gait that it is measured with."""


@dataclass(frozen=True)
class Scenarios:
    """W runs of one robot: faults and headings."""

    spec: RobotSpec
    gait: GaitConfig
    kind: NDArray[np.int64]
    """(W, J)."""
    onset_s: FloatArray
    """(W, J)."""
    heading: FloatArray
    """(W,)."""

    def references(self) -> FloatArray:
        """(control steps, J) [rad], within the joint limit."""
        n_steps = math.ceil(SECONDS / self.spec.control_dt_s - 1e-9)
        phase = self.gait.frequency_rad_s * self.spec.control_dt_s * np.arange(n_steps)
        wave = serpenoid_reference(phase, self.gait.amplitude_rad, self.gait.phase_shift_rad, self.spec.n_joints)
        return np.clip(wave, -self.spec.joint_limit_rad, self.spec.joint_limit_rad)

    def run(self, n_substeps: int) -> tuple[FloatArray, float]:
        """Centre of mass (control steps + 1, W, 2) [m], and the seconds it took."""
        spec = replace(self.spec, sim_dt_s=self.spec.control_dt_s / n_substeps)
        n_worlds = len(self.kind)
        robot = SimulatedRobot(spec, n_worlds, 1)
        robot.faults.kind[:] = self.kind
        robot.faults.onset_s[:] = self.onset_s
        robot.faults.strength[self.kind == WEAK] = 0.3
        references = self.references()
        robot.set_shape(np.tile(references[0], (n_worlds, 1)), self.heading, np.zeros((n_worlds, 2)), "centre")
        track = [robot.state.centre_xy.copy()]
        robot.step(np.tile(references[0], (n_worlds, 1)), None, 0)  # compiles
        begun = time.perf_counter()
        for reference in references:
            robot.step(np.tile(reference, (n_worlds, 1)))
            track.append(robot.state.centre_xy.copy())
        return np.array(track), time.perf_counter() - begun


def draw_scenarios(spec: RobotSpec, n_worlds: int) -> Scenarios:
    rng = np.random.default_rng(0)
    kind = np.zeros((n_worlds, spec.n_joints), np.int64)
    onset = np.zeros((n_worlds, spec.n_joints))
    for world in range(n_worlds):
        n_faults = min(4 * world // n_worlds, spec.n_joints)
        joints = rng.choice(spec.n_joints, n_faults, replace=False)
        kind[world, joints] = rng.choice(FAULT_KINDS, n_faults)
        late = rng.integers(0, round(30.0 / spec.control_dt_s), n_faults) * spec.control_dt_s
        onset[world, joints] = np.where(rng.random(n_faults) < 0.5, 0.0, late)
    wave = GAITS.get(spec.name, gait(30.0, 60.0, 360.0 * 1.2 / spec.n_links))
    return Scenarios(spec, wave, kind, onset, rng.uniform(-math.pi, math.pi, n_worlds))


def reference_length(scenarios: Scenarios, track: FloatArray) -> FloatArray:
    """Return what errors are relative to (W,) [m]."""
    period = abs(2.0 * math.pi / scenarios.gait.frequency_rad_s)
    stride = max(1, round(period / scenarios.spec.control_dt_s))
    way = np.linalg.norm(np.diff(track[::stride], axis=0), axis=-1).sum(axis=0)
    return np.maximum(np.linalg.norm(track[-1] - track[0], axis=-1), 0.25 * way)


def step_counts(spec: RobotSpec) -> list[int]:
    """Sub-steps of a control period to try: steps from 50 ms (or the control period) down to about 1 ms."""
    most = max(1, math.ceil(spec.control_dt_s / 0.05))
    counts = [most]
    while spec.control_dt_s / counts[-1] > 1.5e-3:
        counts.append(2 * counts[-1])
    fives = [n for n in (round(spec.control_dt_s / dt) for dt in (0.02, 0.01, 0.005, 0.002)) if n >= most]
    return sorted({*counts, *fives, spec.n_substeps})


def measure_preset(spec: RobotSpec, n_worlds: int) -> None:
    """Print a line for each step size."""
    scenarios = draw_scenarios(spec, n_worlds)
    counts = step_counts(spec)
    finest = 4 * counts[-1]
    converged, _ = scenarios.run(finest)
    before, _ = scenarios.run(finest // 2)
    length = reference_length(scenarios, converged)
    slack = np.linalg.norm(before[-1] - converged[-1], axis=-1) / length
    resolved = slack <= RESOLVED
    for count in counts:
        track, seconds = scenarios.run(count)
        error = 100.0 * (np.linalg.norm(track[-1] - converged[-1], axis=-1) / length)[resolved]
        cost_us = 1e6 * seconds / (n_worlds * SECONDS)
        mark = " <- default" if count == spec.n_substeps else ""
        print(f"{spec.name:28}{1e3 * spec.control_dt_s / count:9.3f}{error.mean():10.3f}"
              f"{error.max():10.3f}{cost_us:10.0f}{mark}", flush=True)  # fmt: skip
    print(f"  converged run at {1e3 * spec.control_dt_s / finest:.3g} ms, off by {100 * slack[resolved].max():.2g} %; "
          f"{(~resolved).sum()} of {n_worlds} scenarios left out")  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presets", nargs="+", choices=sorted(PRESETS), default=list(PRESETS), metavar="NAME")
    parser.add_argument("--scenarios", type=int, default=32, help="runs for each preset and step")
    args = parser.parse_args()
    print(f"{'preset':28}{'dt [ms]':>9}{'mean [%]':>10}{'worst [%]':>10}{'us/s':>10}")
    for name in args.presets:
        measure_preset(PRESETS[name], args.scenarios)
    return 0


if __name__ == "__main__":
    sys.exit(main())
