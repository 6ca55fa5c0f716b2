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


@dataclass(frozen=True)
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
            spec = _set(spec, place, float(value))
    return spec


def check_places(spec: RobotSpec, coefficients: Sequence[Coefficient]) -> None:
    """Raise ConfigError unless every coefficient stands in a number of ``spec``."""
    names = [coefficient.name for coefficient in coefficients]
    if not names or len(set(names)) != len(names):
        raise ConfigError(f"coefficients are {names}; expected at least one, each once")
    for coefficient in coefficients:
        for place in coefficient.places:
            _, _, old = _find(spec, place)
            if not isinstance(old, float | int | tuple) or isinstance(old, bool):
                raise ConfigError(f"{coefficient.name}: robot.{place.path} is {old!r}; expected a field with numbers")
            if place.members is not None:
                size = _size(spec, place)
                if not place.members or not all(1 <= member <= size for member in place.members):
                    raise ConfigError(f"{coefficient.name}: members are {place.members}; expected 1 to {size}")


def _find(spec: RobotSpec, place: Place) -> tuple[Any, str, Any]:
    """The dataclass that holds the field, the field's name, its value."""
    group, _, name = place.path.rpartition(".")
    holder: Any = spec
    for part in group.split(".") if group else ():
        holder = getattr(holder, part, None)
    if not hasattr(holder, name):
        raise ConfigError(f"robot.{place.path} is no field of a robot")
    return holder, name, getattr(holder, name)


_PER_JOINT = ("joint_stop_rad", "free_joint_damping_nms_rad")


def _size(spec: RobotSpec, place: Place) -> int:
    return spec.n_joints if place.path.startswith("actuator.") or place.path in _PER_JOINT else spec.n_links


def _set(spec: RobotSpec, place: Place, value: float) -> RobotSpec:
    holder, name, old = _find(spec, place)
    new: Any = value
    if place.members is not None:
        row = np.broadcast_to(np.asarray(old, dtype=np.float64), (_size(spec, place),)).copy()
        row[np.array(place.members) - 1] = value
        new = tuple(row.tolist())
    changed = replace(holder, **{name: new})
    group = place.path.rpartition(".")[0]
    while group:
        above, _, part = group.rpartition(".")
        changed = replace(_find(spec, Place(group))[0], **{part: changed})
        group = above
    result: RobotSpec = changed
    return result
