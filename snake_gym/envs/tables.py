"""The reference page of ``SnakeGym/Waypoints-v0``: its tables come from the layouts and dataclasses themselves.

``python -m snake_gym.envs.tables > docs/env.md`` writes it; a test keeps the file equal to this.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from snake_gym.envs.config import StartConfig, WaypointsConfig
from snake_gym.envs.core import WaypointsCore
from snake_gym.envs.snake_env import SnakeEnv
from snake_gym.interface.actions import ActionConfig, describe_action
from snake_gym.simulation.encoders import EncoderFaultConfig
from snake_gym.simulation.faults import FaultConfig
from snake_gym.simulation.sensors import SensorConfig
from snake_gym.tasks.waypoints import CourseConfig, RewardConfig

PARTS = {
    "action": ActionConfig, "course": CourseConfig, "start": StartConfig, "faults": FaultConfig,
    "sensors": SensorConfig, "sensors.encoder_faults": EncoderFaultConfig, "reward": RewardConfig,
}  # fmt: skip

INFOS = (
    ("progress_m", "m", "way made towards the targets so far, all targets together"),
    ("targets_reached", "1", "targets reached so far"),
    ("time_to_first_target_s", "s", "when the first target was reached; inf until then"),
    ("last_target_time_s", "s", "when the last target so far was reached; inf until then"),
    ("energy_j", "J", "positive work of the actuators so far"),
    ("speed_m_s", "m/s", "speed of the centre of mass now"),
    ("n_failed_joints", "1", "joints that are failed now"),
    ("n_faults", "1", "joints that fail in this episode"),
    ("is_success", "bool", "enough targets reached (`course.success_targets`, or the whole course)"),
    ("episode_time_s", "s", "time since the reset"),
    ("reward/<term>", "1", "weighted reward term of this step: progress, target, effort, energy"),
    ("reward_raw/<term>", "m, 1, 1, J", "the same before weighting"),
)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def setting_notes(cls: type[Any]) -> dict[str, str]:
    """The string under each field of a dataclass, by the field's name."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    assert isinstance(body, ast.ClassDef)
    notes: dict[str, str] = {}
    for line, after in zip(body.body, body.body[1:], strict=False):
        is_note = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and is_note:
            notes[line.target.id] = " ".join(str(after.value.value).split())  # type: ignore[attr-defined]
    return notes


def show(value: Any) -> str:
    """A default as YAML would write it."""
    if isinstance(value, float):
        return ".inf" if math.isinf(value) else f"{value:.6g}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {show(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(show(entry) for entry in value) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def settings_table(cls: type[Any], prefix: str) -> str:
    """Name, default and meaning of every setting of a dataclass that is not a group."""
    notes = setting_notes(cls)
    default = cls()
    rows = [
        (f"`{prefix}{f.name}`", f"`{show(getattr(default, f.name))}`", notes.get(f.name, ""))
        for f in dataclasses.fields(cls)
        if not dataclasses.is_dataclass(getattr(default, f.name))
    ]
    return table(("setting", "default", "meaning"), rows)


def describe_env() -> str:
    """The env's docstring with its headings as Markdown headings."""
    text = re.sub(r"^(\w+):\n", r"## \1\n\n", inspect.cleandoc(SnakeEnv.__doc__ or ""), flags=re.MULTILINE)
    return re.sub(r"^    ", "", text, flags=re.MULTILINE).replace("``", "`")


def observation_table(kind: str) -> str:
    """The observation's parts for one kind of action on the default robot."""
    core = WaypointsCore(WaypointsConfig(action=ActionConfig(kind=kind)), 1)  # type: ignore[arg-type]
    rows = [
        (f"{part.columns.start}-{part.columns.stop - 1}", part.name, part.unit, f"{part.scale:g}", part.meaning)
        for part in core.layout.fields.values()
    ]
    return table(("columns", "name", "unit", "scale", "meaning"), rows)


def action_table(kind: str) -> str:
    """The action's entries for one kind on the default robot."""
    rows = describe_action(WaypointsCore(WaypointsConfig(action=ActionConfig(kind=kind)), 1).decoder)  # type: ignore[arg-type]
    return table(("entry", "at -1", "at 1", "unit"), ((r["name"], r["low"], r["high"], r["unit"]) for r in rows))


def write_page() -> str:
    """The whole page as Markdown."""
    parts = [
        "# SnakeGym/Waypoints-v0",
        "<!-- made by: python -m snake_gym.envs.tables > docs/env.md -->",
        describe_env(),
        "## Observation table (robot `resilient_servo`)\n\nEach entry is `clip(value * scale, -10, 10)`.",
    ]
    for kind in ("residual", "joint_reference", "gait"):
        parts += [f"### `action.kind: {kind}`", observation_table(kind)]
    parts.append("## Action table (robot `resilient_servo`)")
    for kind in ("residual", "joint_reference", "gait"):
        parts += [f"### `action.kind: {kind}`", action_table(kind)]
    parts += ["## Info", "Single env: numbers. Vector env: arrays (W,), present at every step."]
    parts.append(table(("key", "unit", "meaning"), ((f"`{key}`", unit, text) for key, unit, text in INFOS)))
    parts += ["## Settings", settings_table(WaypointsConfig, "")]
    for name, cls in PARTS.items():
        parts += [f"### `{name}`", (cls.__doc__ or "").strip(), settings_table(cls, f"{name}.")]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    print(write_page(), end="")
