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

from snake_gym.config import ConfigError, to_dict, write_atomic
from snake_gym.config.yaml_text import format_yaml
from snake_gym.hardware.run.record import Imposed, RunRecord, read_record
from snake_gym.render.plots import draw_comparison
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.difference import describe_changes, robot_note
from snake_gym.robot.spatial_spec import SpatialSpec
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.identification import RunLog
from snake_gym.simulation.identification.fit import with_delay
from snake_gym.simulation.identification.robot_fit import FoundRobot, identify_robot
from snake_gym.simulation.identification.robot_replay import ReplayedRun, replay

_START_POSE_S = 0.3
"""Latest time of a first pose that counts for the start [s]: the robot lay still."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", nargs="+", help="logs that run or log wrote; several for identification")
    parser.add_argument("--robot", help="replay with this robot (default: the log's nominal one)")
    parser.add_argument(
        "--delay", type=float, metavar="S", help="references act so much later (default: the robot's actuator.delay_s)"
    )
    parser.add_argument("--to", type=float, default=math.inf, metavar="S", help="leave out what comes later")
    parser.add_argument("--plot", metavar="FILE", help="write the figure (PNG); default: beside the log")
    parser.add_argument("--no-plot", action="store_true", help="no figure")
    parser.add_argument("--json", metavar="FILE", help="write the numbers as JSON; - is stdout, without the rest")
    parser.add_argument(
        "--identify", metavar="FILE", help="identify friction, servo gains, backlash and delay; write the robot (YAML)"
    )
    parser.add_argument("--method", choices=["least_squares", "avs"], default="least_squares", help="%(default)s")
    parser.add_argument("--no-backlash", action="store_true", help="leave the backlash as it is")


def run(options: argparse.Namespace) -> int:
    if options.identify is not None and not options.identify.endswith((".yaml", ".yml")):
        raise ConfigError(f"--identify is {options.identify!r}; expected a file name that ends in .yaml")
    if not options.to > 0.0:
        raise ConfigError(f"--to is {options.to:g}; expected a time > 0 [s]")
    records = [read_record(path) for path in options.log]
    for path, record in zip(options.log, records, strict=True):
        if isinstance(record.spec, SpatialSpec):
            raise ConfigError(
                f"log {path} is of {record.spec.name}, a spatial robot; replay and identification are for planar robots"
            )
    spec = records[0].spec if options.robot is None else load_robot(options.robot, "--robot")
    for path, record in zip(options.log, records, strict=True):
        for note in (robot_note(record.spec, spec, "logged"), _assumption(record, spec)):
            if note is not None:
                print(f"note: {path}: {note}", file=sys.stderr)
    for path, record in zip(options.log, records, strict=True):
        if record.time_fault is not None and record.time_fault[0] < options.to:
            if options.identify is not None:
                raise ConfigError(f"log {path}: {record.time_fault[1]}")
            print(f"note: {path}: {record.time_fault[1]}", file=sys.stderr)
    if options.identify is not None:
        _require_one_robot(options.log, records)
    logs = [resample(record, to_s=options.to) for record in records]
    told: dict[str, object] = {}
    lines: list[str] = []
    if options.delay is not None:
        try:
            spec = with_delay(spec, options.delay)
        except ValueError as error:
            raise ConfigError(f"--delay: {error}") from None
    if options.identify is not None:
        before = [replay(log, spec) for log in logs]
        lines += [f"{path}, as given: {_sentence(one)}" for path, one in zip(options.log, before, strict=True)]
        found = identify_robot(logs, spec, options.method, not options.no_backlash, ", ".join(options.log))
        lines += _table(found)
        objection = found.proof.objection(options.log)
        if objection is not None:
            print("\n".join(lines), file=sys.stderr if options.json == "-" else sys.stdout)
            why = "the model lacks something that these runs had, or they are not of one robot"
            print(f"{options.identify} is not written: {objection}; {why}", file=sys.stderr)
            return 1
        head = [f"# {line.strip()}" for line in _table(found)]
        write_atomic(options.identify, "\n".join(head) + "\n" + format_yaml(found.spec))
        lines.append(f"wrote {options.identify}")
        told["identified"] = found.as_dict()
        spec = found.spec
    played = [replay(log, spec) for log in logs]
    lines += [f"{path}, {spec.name}: {_sentence(one)}" for path, one in zip(options.log, played, strict=True)]
    told["runs"] = {path: one.errors() for path, one in zip(options.log, played, strict=True)}
    if not options.no_plot:
        lines += _plot(options, records, played, spec.name)
    if options.json == "-":
        print(json.dumps(told, indent=1))
        return 0
    if options.json is not None:
        write_atomic(options.json, json.dumps(told, indent=1) + "\n")
        lines.append(f"wrote {options.json}")
    print("\n".join(lines))
    return 0


def _assumption(record: RunRecord, spec: RobotSpec) -> str | None:
    """Return a note on what the log does not say, or the robot's model does not have; None: nothing."""
    imposed = record.imposed
    if imposed is None:
        return "it does not say how much torque the run used; all of it is assumed"
    if imposed.torque_limit < 1.0 and not np.isfinite(spec.joints("actuator.torque_limit_nm")).all():
        share = f"{100.0 * imposed.torque_limit:g} % of the torque"
        return f"the run used {share}; {spec.name} has no torque_limit_nm that could be scaled"
    return None


def _require_one_robot(paths: list[str], records: list[RunRecord]) -> None:
    first = records[0].spec
    for path, record in zip(paths[1:], records[1:], strict=True):
        changes = describe_changes(to_dict(first), to_dict(record.spec))
        if changes is None and record.spec.name == first.name:
            continue
        differs = f": {changes}" if changes is not None else ""
        raise ConfigError(
            f"log {path} is of {record.spec.name}, {paths[0]} of {first.name}{differs}; "
            "expected runs of one robot for --identify"
        )


def _sentence(played: ReplayedRun) -> str:
    errors = played.errors()
    return (
        f"joints: {math.degrees(errors['joint_rms_rad']):.2f} deg rms; head: {100 * errors['path_rms_m']:.1f} cm rms, "
        f"{100 * errors['path_end_m']:.1f} cm at the end of a path of {errors['path_length_m']:.2f} m"
    )


def _table(found: FoundRobot) -> list[str]:
    lines = [f"identified in {found.seconds:.0f} s:"]
    for name, value in found.values.items():
        spread = "" if found.relative_std is None else f"  +- {100 * found.relative_std[name]:.1f} %"
        lines.append(f"  {name:24s} {value:10.4g}{spread}")
    if math.isfinite(found.delay_std_s):
        lines.append(f"  {'delay [ms]':24s} {1e3 * found.delay_s:10.4g}  +- {1e3 * found.delay_std_s:.1f} ms")
    (seen, tried), (before, after) = found.proof.held_out, found.proof.whole
    for where, old, new in (("last quarter, unseen by a fit to the rest", seen, tried), ("whole runs", before, after)):
        lines.append(
            f"  {where}: head {100 * old.head_m:.1f} -> {100 * new.head_m:.1f} cm rms, "
            f"joints {math.degrees(old.joint_rad):.2f} -> {math.degrees(new.joint_rad):.2f} deg rms"
        )
    return lines


def _plot(options: argparse.Namespace, records: list[RunRecord], played: list[ReplayedRun], name: str) -> list[str]:
    lines = []
    for number, (log, record, one) in enumerate(zip(options.log, records, played, strict=True)):
        if options.plot is None:
            target = Path(log).with_suffix(".png")
        else:
            target = Path(options.plot)
            target = target if len(played) == 1 else target.with_stem(f"{target.stem}-{number + 1}")
        title = f"{record.start.get('policy') or 'run'} on the robot, and its references on {name} in simulation"
        png = draw_comparison(
            one.time_s, one.measured_joint, one.simulated_joint, one.reference, one.measured_xy, one.simulated_xy, title
        )
        write_atomic(target, png)
        lines.append(f"wrote {target}")
    return lines


def resample(record: RunRecord, from_s: float = 0.0, to_s: float = math.inf) -> RunLog:
    """Return the log on an even grid of the bus's period. Raises ConfigError: limp, too short, or no pose at its start.

    References are those sent to the servos, after all safety clamps, in whole steps of their encoders.
    """
    if record.is_limp:
        raise ConfigError(f"{record.path} is of a limp robot, without references; expected a run under a policy")
    inside = (record.cycle_s >= from_s) & (record.cycle_s <= to_s)
    cycle_s = record.cycle_s[inside]
    if cycle_s.size < 10:
        whole = record.cycle_s[record.cycle_s >= from_s]
        cut = f"--to is {to_s:g}: " if cycle_s.size < whole.size else ""
        enough = f", as up to {math.ceil(1e3 * whole[9]) / 1e3:g} s" if cut and whole.size >= 10 else ""
        raise ConfigError(f"{cut}{record.path} has {cycle_s.size} bus cycles; expected at least 10{enough}")
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
        return resample(record, float(grid[first[0]]) - 1e-6, to_s)
    free = tuple((np.flatnonzero(np.isnan(joint).mean(axis=0) > 0.5) + 1).tolist())
    step_rad = 2.0 * math.pi / (record.start["calibration"] or {}).get("steps_per_turn", 4096)
    sent = step_rad * np.rint(sent / step_rad)
    imposed = record.imposed or Imposed()
    speeds = imposed.servo_speed_rad_s or (None,) * joint.shape[1]
    return RunLog(
        period, sent[following], angle, xy, heading, free, torque_share=imposed.torque_limit,
        speed_limit_rad_s=tuple(math.inf if one is None else one for one in speeds),
    )  # fmt: skip


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
