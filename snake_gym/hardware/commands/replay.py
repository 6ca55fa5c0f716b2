"""``replay``: set logged runs beside the simulation, draw both, and identify the robot from them.

The simulation and its fits are ``simulation.identification``; they are loaded here and by nothing else of the hardware.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from snake_gym.config import ConfigError, to_dict, write_atomic
from snake_gym.hardware.run.record import RunRecord, read_record, resample
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.difference import describe_changes, robot_note
from snake_gym.robot.spec import RobotSpec


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
    from snake_gym.simulation.identification import RunLog
    from snake_gym.simulation.identification.robot_fit import identify_robot
    from snake_gym.simulation.identification.robot_replay import replay

    records = [read_record(path) for path in options.log]
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
    logs = [RunLog(**resample(record, to_s=options.to)._asdict()) for record in records]
    told: dict[str, object] = {}
    lines: list[str] = []
    if options.delay is not None:
        spec = _with_delay(spec, options.delay)
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
        _write_robot(found, options.identify)
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
    """What the log does not say, or the robot's model does not have."""
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


def _with_delay(spec: RobotSpec, delay_s: float) -> RobotSpec:
    try:
        return replace(spec, actuator=replace(spec.actuator, delay_s=delay_s))
    except ValueError as error:
        raise ConfigError(f"--delay: {error}") from None


def _sentence(played: Any) -> str:
    errors = played.errors()
    return (
        f"joints: {math.degrees(errors['joint_rms_rad']):.2f} deg rms; head: {100 * errors['path_rms_m']:.1f} cm rms, "
        f"{100 * errors['path_end_m']:.1f} cm at the end of a path of {errors['path_length_m']:.2f} m"
    )


def _table(found: Any) -> list[str]:
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


def _write_robot(found: Any, path: str) -> None:
    from snake_gym.config.yaml_text import format_yaml

    head = [f"# {line.strip()}" for line in _table(found)]
    write_atomic(path, "\n".join(head) + "\n" + format_yaml(found.spec))


def _plot(options: argparse.Namespace, records: list[RunRecord], played: list[Any], name: str) -> list[str]:
    from snake_gym.render.plots import draw_comparison

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
