"""Differences between the settings that a policy or gait was made for and those it plays with, in a line for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from snake_gym.config import to_dict
from snake_gym.robot.catalogue import changed_settings
from snake_gym.robot.chain import ChainSpec

_SHOWN_FIRST = ("control_dt_s", "actuator.kind")
_MOST_SHOWN = 4
"""Most settings that a line names."""


def describe_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Return the first settings of ``after`` that differ from ``before``, with both values; None if none does."""
    changed = sorted(changed_settings(before, after).items(), key=lambda item: item[0] not in _SHOWN_FIRST)
    if not changed:
        return None
    shown = ", ".join(f"{name} {_show(new)} for {_show(old)}" for name, (old, new) in changed[:_MOST_SHOWN])
    return shown + (f" and {len(changed) - _MOST_SHOWN} more" if len(changed) > _MOST_SHOWN else "")


def robot_note(own: ChainSpec, here: ChainSpec, made: str = "trained") -> str | None:
    """Return the differences of the robot ``here`` from ``own``, which a policy or gait was made for; None if none."""
    shown = describe_changes(to_dict(own), to_dict(here))
    if shown is None:
        return None
    if own.name != here.name:
        return f"{made} on {own.name}, plays on {here.name}: {shown}"
    return f"plays on a changed {own.name}: {shown}"


def _show(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
