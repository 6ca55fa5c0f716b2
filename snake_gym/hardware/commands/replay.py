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
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.identification import Identification, RunLog
from snake_gym.simulation.identification.robot_fit import identify_robot
from snake_gym.simulation.identification.robot_replay import ReplayedRun, replay
from snake_gym.spatial.spec import SpatialSpec

_START_POSE_S = 0.3
"""Latest time of a first pose that counts for the start [s]: the robot lay still."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", nargs="+", help="logs that run wrote; several for identification")
    parser.add_argument("--robot", help="replay with this robot (default: the log's nominal one)")
    parser.add_argument("--plot", metavar="FILE", help="write the figure (PNG); default: next to the log")
    parser.add_argument("--no-plot", action="store_true", help="no figure")
    parser.add_argument("--json", metavar="FILE", help="write the numbers as JSON")
    parser.add_argument(
        "--identify", metavar="FILE", help="identify friction, servo gains and delay; write the robot (YAML)"
    )
    parser.add_argument("--method", choices=["least_squares", "avs"], default="least_squares", help="%(default)s")


def run(options: argparse.Namespace) -> int:
    if options.identify is not None and not options.identify.endswith((".yaml", ".yml")):
        raise ConfigError(f"--identify is {options.identify!r}; expected a file name that ends in .yaml")
    records = [read_record(path) for path in options.log]
    for path, record in zip(options.log, records, strict=True):
        if isinstance(record.spec, SpatialSpec):
            raise ConfigError(
                f"log {path} is of {record.spec.name}, a spatial robot; replay and identification are for planar robots"
            )
    spec = records[0].spec if options.robot is None else load_robot(options.robot, "--robot")
    for path, record in zip(options.log, records, strict=True):
        note = robot_note(record.spec, spec, "logged")
        if note is not None:
            print(f"note: {path}: {note}", file=sys.stderr)
    logs, numbers = [resample(record) for record in records], dict[str, object]()
    if options.identify is not None:
        for path, log in zip(options.log, logs, strict=True):
            print(f"{path}, as given: {_sentence(replay(log, spec))}")
        found = identify_robot(logs, spec, options.method, ", ".join(options.log))
        lines, numbers["identified"], spec = _table(found), found.as_dict(), found.spec
        head = [f"# {line.strip()}" for line in lines]
        write_atomic(options.identify, "\n".join(head) + "\n" + format_yaml(spec))
        print("\n".join([*lines, f"wrote {options.identify}"]))
    played = [replay(log, spec) for log in logs]
    for path, one in zip(options.log, played, strict=True):
        print(f"{path}, {spec.name}: {_sentence(one)}")
    if not options.no_plot:
        _plot(options, records, played, spec.name)
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
    lines = [f"identified in {found.seconds:.0f} s:"]
    for name, value in found.values.items():
        spread = "" if found.relative_std is None else f"  +- {100 * found.relative_std[name]:.1f} %"
        lines.append(f"  {name:24s} {value:10.4g}{spread}")
    if math.isfinite(found.delay_std_s):
        lines.append(f"  {'delay [ms]':24s} {1e3 * found.delay_s:10.4g}  +- {1e3 * found.delay_std_s:.1f} ms")
    return lines


def _plot(options: argparse.Namespace, records: list[RunRecord], played: list[ReplayedRun], name: str) -> None:
    for number, (log, record, one) in enumerate(zip(options.log, records, played, strict=True)):
        target = Path(log).with_suffix(".png") if options.plot is None else Path(options.plot)
        if options.plot is not None and len(played) > 1:
            target = target.with_stem(f"{target.stem}-{number + 1}")
        title = f"{record.start.get('policy') or 'run'} on the robot, and its references on {name} in simulation"
        png = draw_comparison(
            one.time_s, one.measured_joint, one.simulated_joint, one.reference, one.measured_xy, one.simulated_xy, title
        )
        write_atomic(target, png)
        print(f"wrote {target}")


def resample(record: RunRecord, from_s: float = 0.0) -> RunLog:
    """Return the log on an even grid of the bus's period. Raises ConfigError: too short, or no pose at its start.

    References are those sent to the servos, after all safety clamps, in whole steps of their encoders.
    """
    inside = record.cycle_s >= from_s
    cycle_s = record.cycle_s[inside]
    if cycle_s.size < 10:
        raise ConfigError(f"{record.path} has {cycle_s.size} bus cycles; expected at least 10")
    joint, sent = record.joint_angle[inside], record.reference[inside]
    period = float(np.median(np.diff(cycle_s)))
    period = float(record.start.get("config", {}).get("connection", {}).get("period_s", period))
    n = round((cycle_s[-1] - cycle_s[0]) / period)
    grid: FloatArray = cycle_s[0] + period * np.arange(n + 1, dtype=np.float64)
    angle = np.stack([_resampled(grid, cycle_s, column, period) for column in joint.T], axis=1)
    # References are held until the next sample, which tells what was sent last.
    following = np.minimum(np.searchsorted(cycle_s, grid[1:] - 0.5 * period), cycle_s.size - 1)
    xy, heading = np.full((n + 1, 2), np.nan), np.full(n + 1, np.nan)
    known = record.pose_valid & np.isfinite(record.pose_s)
    for at, place, direction in zip(record.pose_s[known], record.xy_w[known], record.angle[known], strict=True):
        k = round((at - grid[0]) / period)
        k = 0 if 0 <= k * period <= _START_POSE_S and np.isnan(heading[0]) and from_s <= 0.0 else k
        if 0 <= k <= n:
            xy[k], heading[k] = place, direction
    if np.isnan(heading[0]):
        first = np.flatnonzero(np.isfinite(heading))
        if not first.size:
            raise ConfigError(f"{record.path} has no pose of the head; expected one to start from")
        return resample(record, float(grid[first[0]]) - 1e-6)
    free = tuple((np.flatnonzero(np.isnan(joint).mean(axis=0) > 0.5) + 1).tolist())
    step_rad = 2.0 * math.pi / (record.start["calibration"] or {}).get("steps_per_turn", 4096)
    sent = step_rad * np.rint(sent / step_rad)
    return RunLog(period, sent[following], angle, xy, heading, free, torque_share=record.torque_share)


def _resampled(grid: FloatArray, stamps: FloatArray, values: FloatArray, period: float) -> FloatArray:
    """Return ``values`` at the grid's times, NaN in gaps of more than 2.5 periods."""
    known = np.isfinite(values)
    if known.sum() < 2:
        return np.full(grid.size, np.nan)
    at, here = stamps[known], values[known]
    found = np.interp(grid, at, here)
    after = np.clip(np.searchsorted(at, grid), 1, at.size - 1)
    found[at[after] - at[after - 1] > 2.5 * period] = np.nan
    return np.asarray(found)
