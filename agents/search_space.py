"""Ranges of a search: a YAML file with the dotted name of each setting and the values that it may have.

algorithm.learning_rate: {low: 1e-5, high: 1e-2, log: true}
algorithm.n_epochs: {low: 2, high: 10}
algorithm.network.net_arch: {choices: [[64, 64], [128, 128]]}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from snake_gym.config import ConfigError, Settings, build, load_yaml, to_json

FIXED = ("run_dir", "if_exists", "plugins", "eval", "total_steps", "checkpoint", "env_id", "env_file", "env")
"""Settings that are the same in all trials, so that these can be compared and continued."""
OPEN = ("env.action", "env.observation", "env.reward")
"""Settings of the env that leave robot and scenarios what they are."""


@dataclass(frozen=True)
class NumberRange(Settings):
    """Numbers from ``low`` to ``high``: integers if both are written as integers."""

    low: int | float
    high: int | float
    log: bool = False
    """True to search the logarithm of the number."""

    def check(self) -> None:
        if not self.low < self.high:
            raise ValueError(f"low is {self.low:g}, high is {self.high:g}; expected low < high")
        if self.log and self.low <= 0:
            raise ValueError(f"low is {self.low:g}; expected > 0 with log: true")

    @property
    def ends(self) -> tuple[Any, ...]:
        return self.low, self.high


@dataclass(frozen=True)
class Choices(Settings):
    """One value of a list."""

    choices: tuple[Any, ...]

    def check(self) -> None:
        texts = [to_json(choice, indent=None) for choice in self.choices]
        if len(set(texts)) < 2:
            raise ValueError(f"choices is {list(self.choices)}; expected two different values or more")

    @property
    def ends(self) -> tuple[Any, ...]:
        return self.choices


def read_space(path: Path) -> dict[str, NumberRange | Choices]:
    """Return the range of each setting in a YAML file. Raises ConfigError."""
    space: dict[str, NumberRange | Choices] = {}
    for name, value in load_yaml(path).items():
        where = f"{path}: {name}"
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} is {value!r}; expected {{low: ..., high: ...}} or {{choices: [...]}}")
        if str(name).split(".")[0] in FIXED and not f"{name}.".startswith(tuple(f"{group}." for group in OPEN)):
            raise ConfigError(f"{where} cannot be searched: it is the same in all trials")
        space[str(name)] = build(Choices, value, where) if "choices" in value else build(NumberRange, value, where)
    if not space:
        raise ConfigError(f"{path} has no ranges; expected at least one, as algorithm.gamma: {{low: 0.9, high: 0.999}}")
    return space


def assignment(name: str, value: object) -> str:
    """Return the ``--set`` argument that gives a setting a value."""
    return f"{name}={to_json(value, indent=None)}"
