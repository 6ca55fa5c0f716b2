"""Command ``run``: a trained policy or a classical controller on the robot, watched, logged, and stopped by a key."""

from __future__ import annotations

import argparse
import contextlib
import shlex
import sys
import time
from collections.abc import Callable
from typing import cast

from snake_gym.config import to_dict
from snake_gym.hardware.calibration.calibration import load_calibration
from snake_gym.hardware.commands.options import add_settings, ending_by_signal, read_settings
from snake_gym.hardware.guard.body import BodySample, BringUpError
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.robot.driving import Driver, LetGo
from snake_gym.hardware.robot.heading_check import HeadingCheck
from snake_gym.hardware.robot.key_watch import KeyWatch
from snake_gym.hardware.robot.live_view import Timing, describe_step
from snake_gym.hardware.robot.record import RecordWriter
from snake_gym.hardware.robot.robot_loop import MeasuredCourse, RobotLoop
from snake_gym.hardware.robot.run_config import Plan, RunConfig, open_loop, plan_run
from snake_gym.interface.policy import Policy
from snake_gym.robot.spec import RobotSpec

_LINE_EVERY_S = 1.0
DONE, OUT_OF_TIME, INTERRUPTED = "all targets reached", "the time is over", "interrupted"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "policy", nargs="?",
        help="policy file, its folder, a shipped policy, a controller (cc, sjc, cpg, ...), or a tuned YAML file; "
        "default: policy or controller of --config and --set, as in --set controller.tuned=cc",
    )  # fmt: skip
    add_settings(parser)
    parser.add_argument(
        "--targets", dest="course.targets", nargs="+", type=read_target, metavar="X,Y", help="where to go [m], in order"
    )
    add_run_options(parser, RunConfig.time_limit_s)


def add_run_options(parser: argparse.ArgumentParser, longest_s: float) -> None:
    """Add the options of commands that drive the robot and log; ``longest_s``: usual time limit [s]."""
    parser.add_argument("--time", dest="time_limit_s", type=float, metavar="S", help=f"time limit ({longest_s:g})")
    parser.add_argument("--log", metavar="FILE", help="log of the run (runs/hardware/DATE.jsonl); none for none")


def run(options: argparse.Namespace) -> int:
    config = read_settings(options)
    return drive(config, plan_run(config), options.log)


def read_target(text: str) -> tuple[float, float]:
    """Return a place [m] written as ``1.5,-0.2``."""
    try:
        x, y = (float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}; expected X,Y in metres, as in 1.5,0") from None
    return x, y


def drive(config: RunConfig, plan: Plan, log: str | None, driver: Driver | None = None) -> int:
    """Drive the robot. Return 0: done; 1: it stopped, may not move, may still have torque, or its log is cut off; 130:
    interrupted.

    A robot that did not come up leaves no log. With a ``driver`` there are no targets.
    """
    for note in plan.notes:
        print(f"note: {note}", file=sys.stderr)
    stop, timing = config.connection.stop(), Timing(config.connection.period_s)
    course = MeasuredCourse(config.course, plan.contract.decoder.spec, is_free=driver is not None)
    with contextlib.ExitStack() as closing:
        writer = _writer(config, plan, log)
        closing.callback(writer.discard)  # unless it was closed
        ends = closing.enter_context(ending_by_signal())
        closing.enter_context(KeyWatch(stop))
        loop, connected = open_loop(plan.contract, config, course)
        closing.callback(connected.close)
        if driver is not None:
            driver.take(loop, stop)
        body, ended = loop.body, False

        def take(sample: BodySample) -> None:
            writer.cycle(sample)
            if not ended:
                timing.cycle(sample.cycle_s)
                if driver is not None:
                    driver.look(sample)

        loop.watch = take
        print(f"{plan.name} on {loop.spec.name}, {config.connection.place}", flush=True)
        reason, code = INTERRUPTED, 130
        try:
            reason, code = _steps(config, loop, plan.policy, stop, timing, writer, driver, ends)
        except LetGo as left:
            reason, code = str(left), left.code
        except BringUpError as error:
            reason, code = str(error), 1
        except KeyboardInterrupt:
            pass
        finally:
            ended = True
            connected.close()
            came_up = loop.measurement is not None
            lines = [line for line in body.news() if line not in ("stopped: closed", f"stopped: {reason}")]
            if came_up:  # before anything is printed: the terminal may be gone
                made = {"progress_m": course.progress_m, "targets_reached": course.index, "news": lines}
                writer.close(reason, timing.summary() | made)
            print(*lines, sep="\n", end="\n" if lines else "")
    if not came_up:
        print(reason)
    else:
        targets = f", {course.index} of {len(course.targets_xy)} targets" if driver is None else ""
        print(f"{reason}; progress {course.progress_m:.2f} m{targets}\n{timing}")
        if log != "none":
            print(writer.fault or f"wrote {writer.path}")
    return code or int(body.torque_off_pending or (came_up and writer.fault != ""))


def _steps(
    config: RunConfig, loop: RobotLoop, policy: Policy, stop: EmergencyStop, timing: Timing, writer: RecordWriter,
    driver: Driver | None, ends: Callable[[], bool],
) -> tuple[str, int]:  # fmt: skip
    """Step until the run ends. Return the reason and the exit code."""
    observation, clock = loop.reset(), loop.body.clock
    writer.pose(loop.last_pose)
    is_seen = not loop.spec.in_space and config.connection.pose.kind != "dead_reckoning"
    check = HeadingCheck(cast(RobotSpec, loop.spec)) if is_seen else None
    timing.begin()
    begun_s = next_line_s = clock.now()
    carried = None
    while not ends():
        if driver is not None:
            driver.steer()
        action, carried = policy.predict(observation, carried)
        record = loop.step(action)
        observation, now = record.observation, clock.now()
        timing.step(record.late_s)
        writer.step(record, now, loop.course.goal().target_xy_w[0], loop.course.progress_m)
        for line in record.news:
            print(line, flush=True)
        if now >= next_line_s:
            next_line_s = now + _LINE_EVERY_S
            print(describe_step(now - begun_s, record, loop.course, timing), flush=True)
        warning = None if check is None else check.look(record.body, record.pose)
        if warning is not None:
            print(f"warning: {warning}", file=sys.stderr, flush=True)
        if record.stop_reason is not None:
            return record.stop_reason, 1
        if stop.tripped:  # the port's owner sees it first, unless the latch could not be written
            return f"emergency stop: {stop.reason}", 1
        if loop.course.complete:
            return DONE, 0
        if now - begun_s > config.time_limit_s - 0.5 * loop.spec.control_dt_s:
            return OUT_OF_TIME, 0
    return INTERRUPTED, 130


def _writer(config: RunConfig, plan: Plan, log: str | None) -> RecordWriter:
    """Open the log. Raises ConfigError."""
    path = None if log == "none" else log or f"runs/hardware/{time.strftime('%Y%m%d-%H%M%S')}.jsonl"
    file = config.connection.calibration
    start = {
        "time": time.strftime("%Y-%m-%d %H:%M:%S"), "policy": plan.name, "config": to_dict(config),
        "command": shlex.join(["python", "-m", "snake_gym.hardware", *sys.argv[1:]]),
        "action": to_dict(plan.contract.decoder.config), "notes": list(plan.notes),
    }  # fmt: skip
    return RecordWriter(path, plan.contract.robot, None if file is None else load_calibration(file), start)
