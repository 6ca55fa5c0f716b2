"""Whether a learned policy plays on the robot and the observations that it was trained with.

Columns that mean something else are an error. Another robot, or another scale of a column, may be what an experiment
is about: it is said beside the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gymnasium.vector import AutoresetMode

from snake_gym.config import ConfigError, build, to_dict
from snake_gym.envs import VECTOR_ENVS
from snake_gym.interface.observations import ObservationLayout
from snake_gym.robot.catalogue import changed_settings
from snake_gym.robot.spec import RobotSpec

_SHOWN_FIRST = ("control_dt_s", "actuator.kind")
_MOST_SHOWN = 4
"""Settings that a note names."""


def layout_in(trained_in: Mapping[str, Any]) -> ObservationLayout | None:
    """The observations of the env with these settings; None where they are of no env of this version."""
    for env in VECTOR_ENVS.values():
        try:
            return env(1, AutoresetMode.DISABLED, config=build(env.config_type, trained_in)).core.layout
        except (ConfigError, ValueError):
            continue
    return None


def column_fault(own: ObservationLayout, here: ObservationLayout) -> str | None:
    """The first column that is another one ``here`` than a policy's ``own``; None if they are the same."""
    before, after = _columns(own), _columns(here)
    for i, (trained, played) in enumerate(zip(before, after, strict=False)):
        if trained != played:
            return f"column {i + 1} is {trained}, here it is {played}"
    return None if len(before) == len(after) else f"there are {len(before)} columns, here {len(after)}"


def scale_note(own: ObservationLayout, here: ObservationLayout) -> str | None:
    """Which of equal columns have another scale, or are seen from another point; None if none."""
    parts = [
        f"{name} is scaled by {here.fields[name].scale:.4g} (trained with {field.scale:.4g})"
        for name, field in own.fields.items()
        if here.fields[name].scale != field.scale
    ]
    if own.point != here.point:
        parts.append(f"the target is seen from the {here.point} (trained: {own.point})")
    return "; ".join(parts) or None


def robot_note(own: RobotSpec, here: RobotSpec) -> str | None:
    """How the robot ``here`` differs from ``own``, which a policy was trained on; None if it does not."""
    before, after = to_dict(own), to_dict(here)
    changed = changed_settings(before, after)
    changed.sort(key=lambda name: name not in _SHOWN_FIRST)
    if not changed:
        return None
    shown = ", ".join(f"{name} {_value(after, name)} for {_value(before, name)}" for name in changed[:_MOST_SHOWN])
    more = f" and {len(changed) - _MOST_SHOWN} more" if len(changed) > _MOST_SHOWN else ""
    where = (
        f"trained on {own.name}, plays on {here.name}" if own.name != here.name else f"plays on a changed {own.name}"
    )
    return f"{where}: {shown}{more}"


def _columns(layout: ObservationLayout) -> list[str]:
    return [field.name for field in layout.fields.values() for _ in range(field.columns.start, field.columns.stop)]


def _value(settings: Mapping[str, Any], name: str) -> str:
    value: Any = settings
    for key in name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return f"{value:.6g}" if isinstance(value, float) else str(value)
