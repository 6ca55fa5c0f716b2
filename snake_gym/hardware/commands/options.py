"""Code that several commands share: options, their settings, and supervision of whatever moves servos."""

from __future__ import annotations

import argparse
import contextlib
import functools
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

from snake_gym.config import ConfigError, add_set_option, apply_overrides, build, choose, load_yaml, merge
from snake_gym.config.settings import declared_types
from snake_gym.hardware.bus.bus import Bus, BusPort, say_twins
from snake_gym.hardware.bus.family import find_family
from snake_gym.hardware.bus.transport import PortGone
from snake_gym.hardware.commands import PROGRAM
from snake_gym.hardware.guard.client import GuardedBus
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.robot.connection import EMULATED, POSE_KINDS
from snake_gym.hardware.robot.key_watch import KeyWatch
from snake_gym.hardware.robot.run_config import RunConfig

FAMILIES = "feetech, xl330, xl430, xm430, or module:NAME of your own"
_PATIENCE_S = 0.025
"""Wait for answers of scans and wiggles [s], longer than that of a control loop."""
CAREFUL = {"safety": {"torque_limit": 0.5, "max_speed_rad_s": 3.0}}
"""Settings of a device without ``--config``, below all others."""


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add --config, --set, and options for the settings that change most.

    The ``dest`` of an option is the dotted name of its setting; commands may add more in this way.
    """
    parser.add_argument("--config", metavar="FILE", help="settings (YAML), as in configs/hardware")
    for option, setting, metavar, text in (
        ("--port", "connection.port", "DEVICE", "serial device, or memory or pty for an emulated robot"),
        ("--baud", "connection.baud", "RATE", "of the bus (1000000)"),
        ("--calibration", "connection.calibration", "FILE", "file that calibrate wrote"),
        ("--pose", "connection.pose.kind", "KIND", f"{', '.join(POSE_KINDS)}, or module:NAME of your own"),
        ("--robot", "robot", "ROBOT", "preset or YAML file of the robot (default: the policy's, or resilient_servo)"),
        ("--family", "connection.family", "FAMILY", f"servo family: {FAMILIES}"),
        ("--latch", "connection.latch", "FILE", "file of the emergency stop (this user's)"),
    ):
        parser.add_argument(option, dest=setting, metavar=metavar, help=text, type=int if metavar == "RATE" else str)
    add_set_option(parser)


def read_settings(options: argparse.Namespace) -> RunConfig:
    """Return the settings of --config, the options and --set, each laid over the one before. Raises ConfigError."""
    settings: dict[str, Any] = {} if options.config is None else load_yaml(options.config)
    groups = declared_types(RunConfig)
    for name, value in vars(options).items():
        if value is not None and name.partition(".")[0] in groups:
            settings = merge(settings, functools.reduce(lambda part, key: {key: part}, name.split(".")[::-1], value))
    if options.set:  # a small board may be without PyYAML
        settings = apply_overrides(settings, options.set)
    config = build(RunConfig, settings, options.config or "settings")
    if options.config is None and config.connection.port not in EMULATED:
        config = build(RunConfig, merge(CAREFUL, settings), "settings")
        limits = f"torque_limit {config.safety.torque_limit:g} (of stall), safety.max_speed_rad_s "
        note = f"note: a device without --config: safety.{limits}{config.safety.max_speed_rad_s:g}"
        print(note, file=sys.stderr)
    return config


def open_bus(port: BusPort, retries: int = 2) -> Bus:
    """Open the bus behind a serial device. Raises ConfigError."""
    if port.device in EMULATED:
        raise ConfigError(
            f"--port is {port.device!r}; expected a serial device (of an emulated robot: see {PROGRAM} emulate)"
        )
    try:
        return port.open(retries)
    except PortGone as error:
        raise ConfigError(f"--port: {error}") from None


def add_bus(parser: argparse.ArgumentParser, usual: str = "the factory's") -> None:
    """Add --port, --baud and --family, for commands that talk to the servos themselves; ``usual``: the default rate."""
    parser.add_argument("--port", required=True, help="serial device")
    parser.add_argument("--baud", type=int, help=f"baud rate of the bus (default: {usual})")
    parser.add_argument("--family", default="feetech", help=f"servo family: {FAMILIES} (%(default)s)")


def bus_port(options: argparse.Namespace) -> BusPort:
    """Return port, baud rate and family that the options name. Raises ConfigError."""
    family = find_family(options.family)
    factory = family.baud_rates[family.register("baud_rate").default]
    baud = factory if options.baud is None else options.baud
    choose(str(baud), map(str, family.baud_rates), "--baud")
    return BusPort(options.port, baud, family, _PATIENCE_S)


def add_motion(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that wiggle joints."""
    add = parser.add_argument
    add("--latch", metavar="FILE", help="file of the emergency stop (this user's)")
    add("--degrees", type=within(1.0, 30.0), default=6.0, help="of the wiggle, 1 to 30 (%(default)s)")
    add("--torque", type=within(0.01, 1.0), default=0.25, help="of the wiggle, share of stall (%(default)s)")
    add("--heartbeat", metavar="DEVICE", help="serial device of a board on the servos' supply")


def within(low: float, high: float) -> Callable[[str], float]:
    """Return a type of options: a number from ``low`` to ``high``."""

    def number(text: str) -> float:
        value = float(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text} is not in range; expected {low:g} to {high:g}")
        return value

    return number


def id_list(text: str) -> tuple[int, ...]:
    """Return IDs written as ``1-9``, ``1,2,5`` or both; in the order given."""
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
    """Return IDs as ``id_list`` reads them: ``1-9,77``."""
    parts: list[list[int]] = []
    for one in sorted(ids):
        if parts and one == parts[-1][-1] + 1:
            parts[-1][1:] = [one]
        else:
            parts.append([one])
    return ",".join("-".join(map(str, part)) for part in parts)


def check_new_file(path: str) -> None:
    """Raise ConfigError if ``--out`` exists or has no folder, before any question is asked."""
    out = Path(path)
    if os.path.lexists(out):
        raise ConfigError(f"--out is '{out}', which exists; move it away or name another")
    if not out.parent.is_dir():
        raise ConfigError(f"--out is '{out}': there is no folder {out.parent}")


ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that end a command."""


@contextlib.contextmanager
def ending_by_signal() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM and SIGHUP end the block as Ctrl-C does: torque off, log whole. Only the first one counts: those that
    follow must not cut the torque-off short.

    The function given says if a signal has come. Loops ask it, for Python drops exceptions raised in finalisers.
    """
    ends = False

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal ends
        if not ends:
            ends = True
            raise KeyboardInterrupt

    with contextlib.ExitStack() as after:
        with contextlib.suppress(ValueError):  # not the main thread
            for one in ENDING:
                after.callback(signal.signal, one, signal.signal(one, end))
        yield lambda: ends


@contextlib.contextmanager
def guarded_bus(options: argparse.Namespace, what: str) -> Iterator[tuple[GuardedBus, KeyWatch]]:
    """Open the servos of --ids behind a guard, for the command ``what``, which moves them, until a signal comes; keys
    stop it. Raises ConfigError: the port cannot be opened, or the stop of --latch is tripped or cannot be."""
    port, stop = bus_port(options), EmergencyStop(options.latch)
    with (
        ending_by_signal(),
        GuardedBus(port, options.ids, stop, what, options.heartbeat) as bus,
        KeyWatch(stop) as keys,
    ):
        twins = [say_twins(one) for one in options.ids if (info := bus.ping(one)) is not None and info.ambiguous]
        if twins:
            raise ConfigError("; ".join(twins))
        yield bus, keys
