"""Training of the estimator of joint faults that the detector of kind ``learned`` plays (``controllers``).

    python -m snake_gym.agents.fault_estimator                      simulates, trains, writes configs/detectors
    python -m snake_gym.agents.fault_estimator --worlds 8 --seconds 20 --epochs 2 --out runs/trial.json

Robots of several kinds drive with random gaits while joints fail, in worlds that vary (noise, delays, backlash, weak
servos, friction); half of the logs vary less. A log that is done is kept in --folder, and made again only after a
change.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

import snake_gym
from snake_gym.benchmark.fault_logs import KINDS, FaultLog, record
from snake_gym.config import (
    OptionParser,
    digest,
    make_folder,
    prepare_file,
    run_program,
    to_dict,
    to_json,
    write_atomic,
)
from snake_gym.config.records import digest_sources
from snake_gym.controllers.fault_window import N_CONTEXT, FaultWindow, n_features
from snake_gym.controllers.learned_detection import SEVERITIES
from snake_gym.physics.faults import FAULT_CODES
from snake_gym.robot.catalogue import load_robot

OUT = Path(__file__).parents[1] / "configs" / "detectors" / "servo_faults.json"
N_SAMPLES, HIDDEN = 12, (64, 64)
NAMES = ("healthy", *KINDS)
CODES = np.array([FAULT_CODES[name] for name in NAMES])
ROBOTS: tuple[Any, ...] = (
    "resilient_servo", "configs/robot/sts3215_chain.yaml", "robo_conda", "snakesys", "pegboard",
    {"preset": "resilient_servo", "n_links": 7, "control_dt_s": 0.1, "actuator": {"torque_limit_nm": 4.0}},
)  # fmt: skip
VARIED: dict[str, Any] = {
    "friction_along": {"low": 0.5, "high": 2.0}, "friction_across": {"low": 0.7, "high": 1.3},
    "mass": {"low": 0.9, "high": 1.15}, "servo_gain": {"low": 0.7, "high": 1.3},
    "servo_damping": {"low": 0.7, "high": 1.3}, "torque_limit": {"low": 0.4, "high": 1.2},
    "backlash_rad": {"low": 0.0, "high": 0.04}, "encoder_delay_s": {"low": 0.0, "high": 0.04},
    "angle_noise_rad": {"low": 0.0, "high": 0.02}, "rate_noise_rad_s": {"low": 0.0, "high": 0.1},
}  # fmt: skip
POSITION_ONLY = {"command_delay_s": {"low": 0.0, "high": 0.1}, "speed_limit": {"low": 0.9, "high": 1.1}}
LEVELS, DRIVERS = (1.0, 0.3), ("cc", "fault_aware")
BURSTS = {"intermittent_share": 0.2, "period_min_s": 6.0, "period_max_s": 15.0, "duty": [0.3, 0.7]}
KEPT_FAILED, KEPT_HEALTHY = 0.4, 0.12
"""Shares of the windows of failed and healthy joints that are learned from."""
FIRST_SEED = 3_000_000
"""Seed of the first log: among those of tuning, none of those of benchmarks."""
SOURCES = digest(
    digest_sources(Path(snake_gym.__file__).parent, ("render", "hardware", "commands")), Path(__file__).read_bytes()
)
"""Digest of what logs and windows are made by."""


class Windows(NamedTuple):
    """Windows to learn from."""

    features: NDArray[np.float32]
    """(n, D)."""
    label: NDArray[np.int64]
    """Place of the kind in ``NAMES`` (n,)."""
    severity: NDArray[np.float32]
    """(n,)."""


def main(argv: list[str] | None = None) -> int:
    """Simulate, train and write. Raises ConfigError for what the user has to correct."""
    parser = OptionParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=32, help="robots of each of the 24 logs (32)")
    parser.add_argument("--seconds", type=float, default=40.0, help="length of a log (40)")
    parser.add_argument("--epochs", type=int, default=12, help="passes over the windows (12)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the training (0)")
    parser.add_argument("--folder", type=Path, default=Path("runs", "fault_estimator"), help="logs that are done")
    parser.add_argument("--out", type=Path, default=OUT, help="the estimator's file")
    args = parser.parse_args(argv)
    for name in ("worlds", "seconds", "epochs"):
        if not 0.0 < getattr(args, name) < math.inf:
            parser.error(f"--{name} is {getattr(args, name)}; expected a number > 0")
    make_folder(args.folder)
    prepare_file(args.out, "--out")
    console = Console(stderr=True)
    jobs = list(plan(args.worlds, args.seconds))
    parts = [load_or_record(job, args.folder) for job in track(jobs, "simulating", console=console)]
    data = Windows(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    network = fit(data, args.epochs, args.seed, console)
    told = f"--worlds {args.worlds} --seconds {args.seconds:g} --epochs {args.epochs} --seed {args.seed}"
    source = f"python -m snake_gym.agents.fault_estimator {told}"
    write_atomic(args.out, to_json(content(network, source), indent=None) + "\n")
    console.print(f"{args.out}: {data.label.size} windows, {np.bincount(data.label).tolist()} of {', '.join(NAMES)}")
    return 0


def plan(n_worlds: int, time_s: float) -> Iterator[dict[str, Any]]:
    """Yield the settings of all logs."""
    seed = FIRST_SEED
    for robot in ROBOTS:
        for level in LEVELS:
            for driver in DRIVERS:
                varied = VARIED if robot == "pegboard" else {**VARIED, **POSITION_ONLY}
                env = {"robot": robot, "randomisation": {**varied, "level": level}, "faults": BURSTS}
                yield {"env": env, "n_worlds": n_worlds, "seed": seed, "time_s": time_s, "controller": driver}
                seed += n_worlds


def load_or_record(job: Mapping[str, Any], folder: Path) -> Windows:
    """Return the windows of a log, from its file if it was made before."""
    robot = to_dict(load_robot(job["env"]["robot"]))
    path = folder / f"{digest(dict(job), robot, N_SAMPLES, SOURCES)[:16]}.npz"
    if not path.is_file():
        windows = take_windows(record(**job), np.random.default_rng(job["seed"]))
        partial = path.with_suffix(".part.npz")
        np.savez(partial, **windows._asdict())
        partial.replace(path)
    with np.load(path, allow_pickle=False) as file:
        return Windows(*(file[name] for name in Windows._fields))


def take_windows(log: FaultLog, rng: np.random.Generator) -> Windows:
    """Return windows of a log, some of those of each joint."""
    window = FaultWindow(log.spec, N_SAMPLES)
    state = window.initial_state(log.kind.shape[1])
    label = np.searchsorted(CODES, log.kind)
    taken: list[tuple[Any, ...]] = []
    for t, measurement in enumerate(log.measurements()):
        due = window.advance(state, measurement, log.spec.control_dt_s) > 0.0
        state["reference"][:] = log.reference[t]
        keep = rng.random(label[t].shape) < np.where(label[t] > 0, KEPT_FAILED, KEPT_HEALTHY)
        keep &= due[:, None]
        taken.append((window.features(state["window"])[keep].astype(np.float32), label[t][keep], log.severity[t][keep]))
    features, labels, severity = (np.concatenate(column) for column in zip(*taken, strict=True))
    return Windows(features, labels, severity.astype(np.float32))


def mirrored(features: torch.Tensor, severity: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return windows and severities of the mirrored robot seen from its other end: angles change sign."""
    window, context = features[:, :-N_CONTEXT], features[:, -N_CONTEXT:]
    swapped = torch.cat([context[:, 1:2], context[:, 0:1], context[:, 2:]], dim=1)
    return torch.cat([-window, swapped], dim=1), -severity


def fit(data: Windows, epochs: int, seed: int, console: Console) -> torch.nn.Sequential:
    """Return the trained network: cross-entropy of the kinds, squared errors of the severities that a kind has."""
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    widths = (n_features(N_SAMPLES), *HIDDEN, len(NAMES) + len(SEVERITIES))
    layers: list[torch.nn.Module] = []
    for n_in, n_out in pairwise(widths):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    network = torch.nn.Sequential(*layers[:-1])
    features, label, severity = (torch.from_numpy(values) for values in data)
    n_steps = max(1, len(label) // 2048)
    optimiser = torch.optim.Adam(network.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 3e-3, total_steps=epochs * n_steps)
    weak, slow, offset = (NAMES.index(name) for name in ("weak", "slow", "offset"))
    for _ in track(range(epochs), "training", console=console):
        for rows in torch.randperm(len(label))[: n_steps * 2048].chunk(n_steps):
            x, size = features[rows], severity[rows]
            other, opposite = mirrored(x, size)
            flip = torch.rand(len(rows)) < 0.5
            x = torch.where(flip[:, None], other, x)
            y = label[rows]
            size = torch.where(flip & (y == offset), opposite, size)
            out = network(x)
            loss = torch.nn.functional.cross_entropy(out[:, : len(NAMES)], y)
            has_share = (y == weak) | (y == slow)
            share, bias = torch.sigmoid(out[:, -2]), out[:, -1]
            loss = (
                loss
                + 2.0 * ((share - size) ** 2 * has_share).mean()
                + 2.0 * ((bias - size) ** 2 * (y == offset)).mean()
            )
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    return network


def content(network: torch.nn.Sequential, source: str) -> dict[str, Any]:
    """Return what stands in the file, see ``EstimatorFile``; weights are rounded to six digits."""
    linear = [layer for layer in network if isinstance(layer, torch.nn.Linear)]
    return {
        "format": "snake_gym fault estimator 1", "source": source, "actuators": ["position", "torque"], "kinds": NAMES,
        "n_samples": N_SAMPLES,
        "weights": [[_round(row) for row in layer.weight.detach().numpy()] for layer in linear],
        "biases": [_round(layer.bias.detach().numpy()) for layer in linear],
    }  # fmt: skip


def _round(values: NDArray[Any]) -> list[float]:
    return [float(f"{value:.6g}") for value in values.tolist()]


if __name__ == "__main__":
    run_program(main)
