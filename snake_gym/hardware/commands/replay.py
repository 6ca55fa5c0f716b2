"""Command ``replay``: compare logged runs with the simulation, draw both, and identify the robot from them.

The fits of the simulation to logs are loaded here and by no other hardware module.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np

from snake_gym.config import ConfigError, write_atomic
from snake_gym.config.yaml_text import format_yaml
from snake_gym.hardware.robot.record import RunRecord, read_record
from snake_gym.render.plots import draw_comparison
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.difference import robot_note
from snake_gym.simulation.identification import Identification
from snake_gym.simulation.identification.fit import identify_robot
from snake_gym.simulation.identification.replay import ReplayedRun, replay
from snake_gym.simulation.identification.run_log import resample

_LATE = 1.5
"""Time between two bus cycles from which the second is late, in periods."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", nargs="+", help="logs that run wrote; several for identification")
    parser.add_argument("--robot", help="replay with this robot (default: the log's nominal one)")
    parser.add_argument("--no-plot", action="store_true", help="no figures (PNG) next to the logs")
    parser.add_argument("--json", metavar="FILE", help="write the numbers as JSON")
    parser.add_argument("--identify", metavar="FILE", help="identify friction, servo gains and delay; write the robot")


def run(options: argparse.Namespace) -> int:
    if options.identify is not None and not options.identify.endswith((".yaml", ".yml")):
        raise ConfigError(f"--identify is {options.identify!r}; expected a file name that ends in .yaml")
    records = [read_record(path) for path in options.log]
    for record in records:
        if record.spec.in_space:
            raise ConfigError(f"log {record.path} is of {record.spec.name}, a spatial robot; expected a planar one")
    spec = records[0].spec if options.robot is None else load_robot(options.robot, "--robot")
    for record in records:
        note = robot_note(record.spec, spec, "logged")
        if note is not None:
            print(f"note: {record.path}: {note}", file=sys.stderr)
    logs, numbers = [resample(record) for record in records], dict[str, object]()
    if options.identify is not None:
        for path, log in zip(options.log, logs, strict=True):
            print(f"{path}, as given: {_sentence(replay(log, spec))}")
        found = identify_robot(logs, spec, ", ".join(options.log))
        lines, spec = ["identified:", *_table(found), *describe_late(records)], found.spec
        numbers["identified"] = {"values": found.values, "relative_std": found.relative_std}
        write_atomic(options.identify, "".join(f"# {line.strip()}\n" for line in lines) + format_yaml(spec))
        print("\n".join([*lines, f"wrote {options.identify}"]))
    played = [replay(log, spec) for log in logs]
    for path, record, one in zip(options.log, records, played, strict=True):
        print(f"{path}, {spec.name}: {_sentence(one)}")
        if not options.no_plot:
            _plot(Path(path).with_suffix(".png"), record, one, spec.name)
    if options.json is not None:
        numbers["runs"] = {path: one.errors() for path, one in zip(options.log, played, strict=True)}
        write_atomic(options.json, json.dumps(numbers, indent=1) + "\n")
    return 0


def _sentence(played: ReplayedRun) -> str:
    errors = played.errors()
    return (
        f"joints: {math.degrees(errors['joint_rms_rad']):.2f} deg rms; head: {100 * errors['path_rms_m']:.1f} cm rms, "
        f"{100 * errors['path_end_m']:.1f} cm at the end of a path of {errors['path_length_m']:.2f} m"
    )


def _table(found: Identification) -> list[str]:
    std = found.relative_std
    return [f"  {name:24s} {value:10.4g}  +- {100 * std[name]:.1f} %" for name, value in found.values.items()]


def describe_late(records: list[RunRecord]) -> list[str]:
    """Return a line on late bus cycles, if there are some."""
    gaps_s = np.concatenate([np.diff(record.cycle_s) for record in records])
    n_late = int((gaps_s > _LATE * np.median(gaps_s)).sum())
    line = f"  {n_late} of {gaps_s.size} bus cycles came late: +- covers the noise of the fit, not a busy computer"
    return [line] if n_late else []


def _plot(target: Path, record: RunRecord, one: ReplayedRun, name: str) -> None:
    title = f"{record.start.get('policy') or 'run'} on the robot, and its references on {name} in simulation"
    png = draw_comparison(
        one.time_s, one.measured_joint, one.simulated_joint, one.reference, one.measured_xy, one.simulated_xy, title
    )
    write_atomic(target, png)
    print(f"wrote {target}")
