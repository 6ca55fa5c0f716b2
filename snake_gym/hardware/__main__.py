"""Command line of the hardware, ``python -m snake_gym.hardware``: all work with the robot from a terminal.

    python -m snake_gym.hardware emulate                 # an emulated robot on a serial port
    python -m snake_gym.hardware scan --port /dev/ttyUSB0
    python -m snake_gym.hardware calibrate --port /dev/ttyUSB0 --ids 1-9 --out snake.json
    python -m snake_gym.hardware run cc --config configs/hardware/sts3215.yaml --targets 1,0
    python -m snake_gym.hardware estop

docs/hardware.md explains them. Only what a command needs is loaded.
"""

from __future__ import annotations

import argparse
import signal
import sys
from importlib import import_module

from snake_gym.config import ConfigError, OptionParser, choose, run_program
from snake_gym.config.program import require_linux
from snake_gym.hardware.commands import PROGRAM

COMMANDS = {
    "scan": "list the servos on the bus; give one a new id",
    "calibrate": "make the calibration file: zero, direction and limits of every joint",
    "limp": "torque off in every servo of a bus, whatever else is wrong",
    "register": "read or write a register of a servo by its name",
    "wiggle": "move servos a few degrees and back, to see that they are alive",
    "run": "run a policy file or a classical controller on the robot",
    "estop": "stop the robot: torque off, and nothing moves until the stop is cleared",
    "replay": "compare a log with the simulation, and identify the robot from it",
    "emulate": "an emulated robot on a serial port",
    "camera": "look through the camera of the pose source",
}
"""Description of each command, by its name."""


def main(argv: list[str] | None = None) -> int:
    """Run one command. Raises ConfigError for errors that the user can correct."""
    words = sys.argv[1:] if argv is None else list(argv)
    if not words or words[0] in ("-h", "--help"):
        print("usage:", PROGRAM, "COMMAND ...\n\nCOMMAND --help lists its options:")
        print(*(f"  {name:10s} {what}" for name, what in COMMANDS.items()), sep="\n")
        raise SystemExit(0 if words else 2)
    name = choose(words[0], COMMANDS, "command")
    try:
        module = import_module(
            "snake_gym.emulator.emulate" if name == "emulate" else f"snake_gym.hardware.commands.{name}"
        )
        parser = OptionParser(prog=f"{PROGRAM} {name}", description=COMMANDS[name])
        module.add_options(parser)
        return int(module.run(parser.parse_args(words[1:])))
    except argparse.ArgumentTypeError as error:
        raise ConfigError(str(error)) from None
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library in ("", "snake_gym"):
            raise
        package = {"yaml": "PyYAML", "serial": "pyserial"}.get(library, library)
        raise ConfigError(f"{name} needs {package} for this, which is not installed: pip install {package}") from None


def program(argv: list[str] | None = None) -> int:
    """Run ``main`` as a program, and ignore signals once it has ended: a signal during the interpreter's exit would
    change the exit code."""
    require_linux()
    try:
        return main(argv)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)


if __name__ == "__main__":
    run_program(program)
