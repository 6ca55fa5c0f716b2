"""The parser of all commands. It loads next to nothing: ``estop`` must not wait for what other commands need."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from snake_gym.config import ConfigError

PROGRAM = "python -m snake_gym.hardware"


class OptionParser(argparse.ArgumentParser):
    """Wrong options are a ConfigError: one line, exit code 2. What begins like a negative number is a value, as
    ``-1,0`` is: no option begins with a digit."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see {self.prog} --help)")
