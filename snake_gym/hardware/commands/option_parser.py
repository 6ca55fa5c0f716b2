"""The parser of all commands. It loads next to nothing: ``estop`` must not wait for what other commands need."""

from __future__ import annotations

import argparse
from typing import NoReturn

from snake_gym.config import ConfigError

PROGRAM = "python -m snake_gym.hardware"


class OptionParser(argparse.ArgumentParser):
    """Wrong options are a ConfigError: one line, exit code 2."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(f"{message} (see {self.prog} --help)")
