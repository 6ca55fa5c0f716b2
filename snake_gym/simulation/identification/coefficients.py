"""What is to be identified: numbers of a RobotSpec, each with a start and bounds.

A coefficient may stand in several fields of the specification, and in some links or joints only: irani2015's mu_lat is
the Coulomb coefficient across the thirteen links with wheels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from snake_gym.robot.spec import RobotSpec


@dataclass(frozen=True)
class Place:
    """Where in a RobotSpec a coefficient stands."""

    path: str
    """Dotted name of a field: ``friction.normal_coulomb``, ``actuator.kp``."""
    members: tuple[int, ...] | None = None
    """Links or joints that have it, numbered from 1 at the tail; None: the field's one value for all."""


@dataclass(frozen=True)
class Coefficient:
    """One number to identify; searched on a logarithmic scale from ``start``, so it is positive."""

    name: str
    start: float
    low: float
    high: float
    places: tuple[Place, ...]


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


_GROUPS = 3
"""Most different numbers of a field that is identified."""
_FRICTION = ("tangential_ns_m", "normal_ns_m", "tangential_coulomb", "normal_coulomb")
_SERVO = ("kp", "kd", "backlash_rad")
_DELAY = Coefficient("delay_s", 0.01, 0.001, 0.15, (Place("actuator.delay_s"),))


def usual_coefficients(spec: RobotSpec) -> list[Coefficient]:
    """Return what is worth identifying of ``spec``, as far as it has any, and the delay of its references."""
    paths = [f"friction.{name}" for name in _FRICTION] + [f"actuator.{name}" for name in _SERVO] + ["joint_friction_nm"]
    return [*(one for path in paths for one in _grouped(spec, path)), _DELAY]


def _grouped(spec: RobotSpec, path: str) -> list[Coefficient]:
    """Return one coefficient for each different number > 0 in a field."""
    name = path.rpartition(".")[2]
    values = spec.links(path) if path.startswith("friction.") else spec.joints(path)
    groups = [value for value in np.unique(values).tolist() if value > 0.0]
    if len(groups) > _GROUPS:
        return []
    found = []
    for value in groups:
        members = None if len(np.unique(values)) == 1 else tuple((np.flatnonzero(values == value) + 1).tolist())
        label = name if members is None else f"{name}[{','.join(map(str, members))}]"
        found.append(Coefficient(label, value, value / 8.0, 8.0 * value, (Place(path, members),)))
    return found
