"""Common parts of all command line programs: options, checks for optional libraries, and the exit.

This module imports very little: ``estop`` must not wait for libraries of other programs.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from snake_gym.config.errors import ConfigError, hint

DISTRIBUTION = "snake-robot-gym"
"""Pip's name of this project; its ``snake-gym`` is somebody else's."""
EXTRAS = {
    "cv2": ("OpenCV", "camera"),
    "mujoco": ("MuJoCo", "spatial"),
    "matplotlib": ("matplotlib", "render"),
    "PIL": ("pillow", "render"),
    "onnx": ("onnx", "export"),
    "onnxruntime": ("onnxruntime", "export"),
    "pygame": ("pygame", "render"),
    "ray": ("Ray", "cluster"),
    "serial": ("pyserial", "hardware"),
    "stable_baselines3": ("Stable-Baselines3", "train"),
    "tensorboard": ("TensorBoard", "train"),
    "torch": ("torch", "train"),
}
"""Import name of an optional library -> its own name, and the extra that installs it."""


class OptionParser(argparse.ArgumentParser):
    """Parser, without subparsers, that raises ConfigError for wrong options.

    Text like a negative number is a value, as ``-1,0``.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as any parser does; an unknown option is named with the nearest known one."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            guess = hint(unknown[0].partition("=")[0], self._option_string_actions)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{guess}")
        return found

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError."""
        raise ConfigError(f"{message} (see {self.prog} --help)")


def add_set_option(parser: argparse.ArgumentParser, what: str = "change settings") -> None:
    """Give a program the option ``--set A.B=C ...``, which takes several assignments, repeatedly."""
    text = f"{what}, as in --set a.b=1 c=2"
    parser.add_argument("--set", action="extend", nargs="+", default=[], metavar="A.B=C", help=text)


def require(purpose: str, *libraries: str) -> None:
    """Raise ConfigError, with what to install, unless the optional ``libraries`` for ``purpose`` are installed."""
    missing = [library for library in libraries if importlib.util.find_spec(library) is None]
    if missing:
        names = ", ".join(EXTRAS[library][0] for library in missing)
        extras = ",".join(sorted({EXTRAS[library][1] for library in missing}))
        are = "is" if len(missing) == 1 else "are"
        raise ConfigError(f"{purpose} needs {names}, which {are} not installed: pip install '{DISTRIBUTION}[{extras}]'")


def require_linux() -> None:
    """Raise ConfigError on other systems than Linux, where no robot is driven."""
    if sys.platform != "linux":
        raise ConfigError(f"the robot needs Linux, and this is {sys.platform}: here are simulation and training alone")


def run_program(main: Callable[[list[str] | None], int]) -> NoReturn:
    """Run ``main`` and exit with its code. An error for the user to correct is one line on stderr and exit code 2."""
    try:
        code = main(None)
        sys.stdout.flush()
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 2
    except BrokenPipeError:  # the reader of our output (`| head`) has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as error:
        if error.filename is None:
            raise
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)
