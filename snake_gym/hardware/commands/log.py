"""Command ``log``: record the robot, limp and moved by hand or driven by a controller, for ``replay``.

Without a controller the servos have no torque: they are read and never sent a goal, which would switch it on. They must
have the settings of their calibration, as in a run: otherwise the logged angles would be wrong.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.hardware.bus.family import READING
from snake_gym.hardware.bus.servo_bus import BusPort
from snake_gym.hardware.calibration.calibration import load_calibration
from snake_gym.hardware.calibration.procedures import ProcedureError, limp
from snake_gym.hardware.commands import PROGRAM
from snake_gym.hardware.commands.options import add_settings, open_bus, read_settings
from snake_gym.hardware.commands.run import add_output, drive, new_log
from snake_gym.hardware.run.connection import check_joints, make_pose
from snake_gym.hardware.run.record import RecordWriter
from snake_gym.hardware.run.run_config import RunConfig, plan_run, robot_of
from snake_gym.hardware.safety.body import BodySample, BringUpError, ServoReadings
from snake_gym.hardware.safety.bring_up import find_missing

_FAR = ((1000.0, 0.0),)
"""Target that is never reached [m], whatever --config says, so that the run lasts as long as was asked for."""


def add_options(parser: argparse.ArgumentParser) -> None:
    add_settings(parser)
    parser.add_argument("--controller", metavar="NAME", help="drive the robot with it; default: limp")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long (%(default)s)")
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    if not (math.isfinite(options.seconds) and options.seconds > 0.0):
        raise ConfigError(f"--seconds is {options.seconds:g}; expected > 0")
    asked: dict[str, Any] = {"time_limit_s": options.seconds, "course": {"targets": _FAR}}
    if options.controller is not None:
        asked["policy"] = options.controller
    config = read_settings(options, asked)
    if options.controller is not None:
        return drive(config, plan_run(config), options.log, options.plain)
    return log_limp(config, new_log(options.log), options.seconds)


def log_limp(config: RunConfig, path: Path, seconds: float) -> int:
    """Log limp servos and the pose for ``seconds`` [s]."""
    connection, spec = config.connection, robot_of(config)
    if connection.calibration is None:
        raise ConfigError(f"connection.calibration is missing; expected a file: {PROGRAM} calibrate")
    calibration = load_calibration(connection.calibration)
    check_joints(calibration, spec)
    pose = None if connection.pose.kind == "truth" else make_pose(connection, spec, None)
    bus = open_bus(BusPort(connection.port, connection.baud, calibration.family))
    writer = RecordWriter(path, spec, calibration, {"policy": "", "limp": True})
    reason = "interrupted"
    try:
        with limp(bus, calibration.ids):
            find_missing(bus, calibration, 0, lambda: None)
            print(f"the servos are limp; reading them for {seconds:g} s (Ctrl-C ends)", flush=True)
            begun = next_s = time.monotonic()
            readings, n = ServoReadings(calibration), len(calibration.joints)
            nothing, none = np.full(n, math.nan), np.zeros(n, bool)  # limp servos are sent no references
            while next_s < begun + seconds:
                time.sleep(max(0.0, next_s - time.monotonic()))
                read = bus.read_block(calibration.ids, *READING, deadline_s=next_s + connection.period_s)
                readings.take(read)
                now = readings.angle, readings.rate, readings.stamp_s
                writer.cycle(BodySample(*now, read.stamp_s, nothing, none, none, readings.health))
                if pose is not None:
                    pose.follow(readings.angle, readings.rate, read.stamp_s)
                    writer.pose(pose.read(time.monotonic()))
                writer.flush()
                next_s = max(next_s + connection.period_s, time.monotonic())
        reason = "the time is over"
    except (ProcedureError, BringUpError) as error:
        writer.discard()
        raise ConfigError(str(error)) from None
    except KeyboardInterrupt:
        pass
    finally:
        writer.close(reason)
        bus.close()
        if pose is not None:
            pose.close()
    print(writer.fault or f"wrote {writer.path}")
    return 0
