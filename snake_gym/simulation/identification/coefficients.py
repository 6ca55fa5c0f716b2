"""What is to be identified: numbers of a RobotSpec, each with a start and bounds.

A coefficient may stand in several fields of the specification, and in some links or joints only: irani2015's mu_lat is
the Coulomb coefficient across the thirteen links with wheels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from snake_gym.config import Settings, check_order
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
        check_order(self, "low", "start", "high")


def with_values(spec: RobotSpec, coefficients: Sequence[Coefficient], values: Sequence[float]) -> RobotSpec:
    """Return ``spec`` with the coefficients set to ``values``, one each."""
    for coefficient, value in zip(coefficients, values, strict=True):
        for place in coefficient.places:
            new: Any = float(value)
            if place.members is not None:
                is_of_links = place.path.startswith(("friction.", "link_"))
                row = (spec.links(place.path) if is_of_links else spec.joints(place.path)).copy()
                row[np.array(place.members) - 1] = value
                new = tuple(row.tolist())
            spec = _replaced(spec, place.path.split("."), new)
    return spec


def _replaced(holder: Any, path: Sequence[str], value: Any) -> Any:
    name, *rest = path
    return replace(holder, **{name: _replaced(getattr(holder, name), rest, value) if rest else value})
