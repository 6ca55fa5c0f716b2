"""Options that several commands share, and the settings that they make."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from snake_gym.config import ConfigError, apply_overrides, build, load_yaml, merge
from snake_gym.hardware.commands import PROGRAM
from snake_gym.hardware.connection import EMULATED
from snake_gym.hardware.emergency_stop import EmergencyStop
from snake_gym.hardware.line import LineTiming
from snake_gym.hardware.registers import BAUD_RATES
from snake_gym.hardware.run_config import RunConfig
from snake_gym.hardware.servo_bus import FeetechBus
from snake_gym.hardware.transport import PortGone, SerialTransport

_PATIENT = LineTiming(latency_s=0.02)
"""Nobody waits for a scan or a wiggle as a control loop does: a busy machine may take its time."""


def add_settings(parser: argparse.ArgumentParser, pose: bool = True) -> None:
    """--config, --set and the settings that are asked for most."""
    parser.add_argument("--config", metavar="FILE", help="settings (YAML), as in configs/hardware")
    parser.add_argument("--port", help="serial device, or memory or pty for an emulated robot")
    parser.add_argument("--baud", type=int, help=f"baud rate of the bus ({BAUD_RATES[0]})")
    parser.add_argument("--calibration", metavar="FILE", help="file that calibrate wrote")
    parser.add_argument("--robot", help="preset or YAML file of the robot (default: the policy's, or resilient_servo)")
    add_latch(parser)
    if pose:
        parser.add_argument("--pose", metavar="KIND", help="truth, dead_reckoning, serial_imu, udp_json or april_tags")
    parser.add_argument("--set", action="append", default=[], metavar="A.B=C", help="change one setting")


def read_settings(options: argparse.Namespace, asked: dict[str, Any] | None = None) -> RunConfig:
    """The settings of --config, the options and --set, each laid over the one before. Raises ConfigError.

    Args:
        asked: what options of the command itself ask for.
    """
    settings: dict[str, Any] = {}
    where = "settings"
    if options.config is not None:
        settings = load_yaml(options.config)
        where = options.config
    connection: dict[str, Any] = {}
    for name in ("port", "baud", "calibration", "latch"):
        if getattr(options, name, None) is not None:
            connection[name] = getattr(options, name)
    if getattr(options, "pose", None) is not None:
        connection["pose"] = {"kind": options.pose}
    settings = merge(settings, asked or {})
    if connection:
        settings = merge(settings, {"connection": connection})
    if options.robot is not None:
        settings["robot"] = options.robot
    if options.set:
        settings = apply_overrides(settings, options.set)
    return build(RunConfig, settings, where)


def is_emulated(config: RunConfig) -> bool:
    """Whether the robot would be emulated in this process."""
    return config.connection.port in EMULATED


def open_bus(port: str, baud: int, retries: int = 2) -> FeetechBus:
    """The bus behind a serial device. Raises ConfigError."""
    if port in EMULATED:
        raise ConfigError(f"--port is {port!r}; expected a serial device (of an emulated robot: see {PROGRAM} emulate)")
    try:
        return FeetechBus(SerialTransport(port, baud), baud, timing=_PATIENT, retries=retries)
    except PortGone as error:
        raise ConfigError(f"--port: {error}") from None


def add_bus(parser: argparse.ArgumentParser) -> None:
    """--port and --baud of commands that talk to the servos themselves."""
    parser.add_argument("--port", required=True, help="serial device")
    parser.add_argument("--baud", type=baud_rate, default=BAUD_RATES[0], help="baud rate of the bus (%(default)s)")


def add_latch(parser: argparse.ArgumentParser) -> None:
    """--latch of everything that moves the robot."""
    parser.add_argument("--latch", metavar="FILE", help="file of the emergency stop (this machine's)")


def stop_of(options: argparse.Namespace) -> EmergencyStop:
    """The emergency stop that --latch names."""
    return EmergencyStop(None if options.latch is None else Path(options.latch))


def baud_rate(text: str) -> int:
    """One of the servos' baud rates."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value not in BAUD_RATES:
        raise argparse.ArgumentTypeError(f"baud rate is {text}; expected one of {', '.join(map(str, BAUD_RATES))}")
    return value


def id_list(text: str) -> tuple[int, ...]:
    """IDs written as ``1-9``, ``1,2,5`` or both; in the order given."""
    ids: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            low, high = int(first), int(last if dash else first)
        except ValueError:
            raise argparse.ArgumentTypeError(f"ids are {text!r}; expected numbers as in 1-9 or 1,2,5") from None
        ids += range(low, high + 1) if low <= high else range(low, high - 1, -1)
    wrong = [one for one in ids if not 0 <= one <= 253]
    if wrong or len(set(ids)) != len(ids):
        raise argparse.ArgumentTypeError(f"ids are {text!r}; expected each once, 0 to 253")
    return tuple(ids)


def say_ids(ids: Iterable[int]) -> str:
    """IDs as ``id_list`` reads them: ``1-9,77``."""
    parts: list[list[int]] = []
    for one in sorted(ids):
        if parts and one == parts[-1][-1] + 1:
            parts[-1][1:] = [one]
        else:
            parts.append([one])
    return ",".join("-".join(map(str, part)) for part in parts)


def check_new_file(path: str) -> None:
    """Raises ConfigError where ``--out`` cannot be written, before anybody has answered anything."""
    out = Path(path)
    if out.is_dir():
        raise ConfigError(f"--out is '{out}', which is a folder; expected a file")
    if os.path.lexists(out):
        raise ConfigError(f"--out is '{out}', which exists; move it away or name another")
    if not out.parent.is_dir():
        raise ConfigError(f"--out is '{out}': there is no folder {out.parent}")
    if not os.access(out.parent, os.W_OK | os.X_OK):
        raise ConfigError(f"--out is '{out}': the folder {out.parent} cannot be written")
