"""What is to be identified: numbers of a RobotSpec, each with a start and bounds.

A coefficient may stand in several fields of the specification, and in some links or joints only: irani2015's mu_lat is
the Coulomb coefficient across the thirteen links with wheels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from snake_gym.config import ConfigError, Settings, check_order
from snake_gym.config.settings import Positive
from snake_gym.robot.spec import RobotSpec


@dataclass(frozen=True)
class Place:
    """Where in a RobotSpec a coefficient stands."""

    path: str
    """Dotted name of a field: ``friction.normal_coulomb``, ``actuator.kp``."""
    members: tuple[int, ...] | None = None
    """Links or joints that have it, numbered from 1 at the tail; None: the field's one value for all."""


class Coefficient(Settings):
    """One number to identify; searched on a logarithmic scale, so it is positive."""

    name: str
    start: Positive
    low: Positive
    high: Positive
    places: tuple[Place, ...]

    def check(self) -> None:
        try:
            check_order(self, "low", "start", "high")
        except ValueError as error:
            raise ConfigError(f"{self.name}: {error}") from error
        if not self.places:
            raise ConfigError(f"{self.name} stands nowhere; expected at least one place")


def with_values(spec: RobotSpec, coefficients: Sequence[Coefficient], values: Sequence[float]) -> RobotSpec:
    """``spec`` with the coefficients set to ``values``, one each."""
    for coefficient, value in zip(coefficients, values, strict=True):
        for place in coefficient.places:
            new: Any = float(value)
            if place.members is not None:
                old = np.asarray(_value(spec, place), dtype=np.float64)
                row = np.broadcast_to(old, (_size(spec, place),)).copy()
                row[np.array(place.members) - 1] = value
                new = tuple(row.tolist())
            spec = _replaced(spec, place.path.split("."), new)
    return spec


def check_places(spec: RobotSpec, coefficients: Sequence[Coefficient]) -> None:
    """Raise ConfigError unless every coefficient stands in a number of ``spec``."""
    names = [coefficient.name for coefficient in coefficients]
    if not names or len(set(names)) != len(names):
        raise ConfigError(f"coefficients are {names}; expected at least one, each once")
    for name, place in ((coefficient.name, place) for coefficient in coefficients for place in coefficient.places):
        old = _value(spec, place)
        if not isinstance(old, float | int | tuple) or isinstance(old, bool):
            raise ConfigError(f"{name}: robot.{place.path} is {old!r}; expected a field with numbers")
        size = _size(spec, place)
        if place.members is not None and not (place.members and all(1 <= one <= size for one in place.members)):
            raise ConfigError(f"{name}: members are {place.members}; expected 1 to {size}")


def _value(spec: RobotSpec, place: Place) -> Any:
    value: Any = spec
    for name in place.path.split("."):
        if not hasattr(value, name):
            raise ConfigError(f"robot.{place.path} is no field of a robot")
        value = getattr(value, name)
    return value


def _replaced(holder: Any, path: Sequence[str], value: Any) -> Any:
    name, *rest = path
    return replace(holder, **{name: _replaced(getattr(holder, name), rest, value) if rest else value})


def _size(spec: RobotSpec, place: Place) -> int:
    per_joint = place.path.startswith("actuator.") or place.path in ("joint_stop_rad", "free_joint_damping_nms_rad")
    return spec.n_joints if per_joint else spec.n_links
