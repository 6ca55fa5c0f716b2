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

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as any parser does, but name an unknown option before one that is missing."""
        words = list(sys.argv[1:] if args is None else args)
        for word in words[: words.index("--")] if "--" in words else words:
            option = word.partition("=")[0]
            known = self._option_string_actions
            if option.startswith("--") and not any(name.startswith(option) for name in known):
                self.error(f"unrecognized arguments: {word}{hint(option, known)}")
        return super().parse_known_args(_one_for_each(words), namespace)

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError."""
        raise ConfigError(f"{message} (see {self.prog} --help)")


SET = "--set"


def add_set_option(parser: argparse.ArgumentParser, what: str = "change settings") -> None:
    """Give an ``OptionParser`` the option ``--set A.B=C ...``, which takes several assignments, repeatedly."""
    parser.add_argument(SET, action="append", default=[], metavar="A.B=C", help=f"{what}, as in {SET} a.b=1 c=2")


def _one_for_each(words: list[str]) -> list[str]:
    """Return the words with one ``--set`` for each assignment; what comes after them without ``=`` is no assignment."""
    found: list[str] = []
    among = False
    for i, word in enumerate(words):
        further = among and words[i - 1] != SET and not word.startswith("-") and "=" in word
        found += [SET, word] if further else [word]
        among = word == SET or (among and (words[i - 1] == SET or further))
    return found


def require(purpose: str, *libraries: str) -> None:
    """Raise ConfigError, with what to install, unless the optional ``libraries`` for ``purpose`` are installed."""
    missing = [library for library in libraries if importlib.util.find_spec(library) is None]
    if missing:
        names = ", ".join(EXTRAS[library][0] for library in missing)
        extras = {EXTRAS[library][1] for library in missing}
        are = "is" if len(missing) == 1 else "are"
        raise ConfigError(f"{purpose} needs {names}, which {are} not installed: {install_command(*extras)}")


def require_linux() -> None:
    """Raise ConfigError on other systems than Linux, where no robot is driven."""
    if sys.platform != "linux":
        raise ConfigError(f"the robot needs Linux, and this is {sys.platform}: here are simulation and training alone")


def install_command(*extras: str) -> str:
    """Return the command that installs this project with the ``extras``."""
    return f"pip install '{DISTRIBUTION}[{','.join(sorted(extras))}]'"


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
