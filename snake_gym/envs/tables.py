"""The reference page of the environments: its tables come from the layouts and dataclasses themselves.

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

from snake_gym.envs.config import EnvConfig, ObstacleFieldConfig, StartConfig, WaypointsConfig
from snake_gym.envs.core import SnakeCore
from snake_gym.envs.snake_env import ObstacleFieldEnv, SnakeEnv, WaypointsEnv
from snake_gym.interface.actions import ActionConfig, describe_action
from snake_gym.obstacles.plans import FieldConfig
from snake_gym.simulation.encoders import EncoderFaultConfig
from snake_gym.simulation.exteroception import ContactSensorConfig, RangeScanConfig
from snake_gym.simulation.faults import FaultConfig
from snake_gym.simulation.sensors import SensorConfig
from snake_gym.tasks.obstacle_field import FieldRewardConfig, GoalConfig
from snake_gym.tasks.waypoints import CourseConfig, RewardConfig

SHARED_PARTS = {
    "action": ActionConfig, "start": StartConfig, "faults": FaultConfig, "sensors": SensorConfig,
    "sensors.encoder_faults": EncoderFaultConfig,
}  # fmt: skip
WAYPOINTS_PARTS = {"course": CourseConfig, "reward": RewardConfig}
FIELD_PARTS = {
    "field": FieldConfig, "goal": GoalConfig, "reward": FieldRewardConfig, "contact_sensor": ContactSensorConfig,
    "range_scan": RangeScanConfig,
}  # fmt: skip

SHARED_INFOS = (
    ("energy_j", "J", "positive work of the actuators so far"),
    ("speed_m_s", "m/s", "speed of the centre of mass now"),
    ("n_failed_joints", "1", "joints that are failed now"),
    ("n_faults", "1", "joints that fail in this episode"),
    ("episode_time_s", "s", "time since the reset"),
)
WAYPOINTS_INFOS = (
    ("progress_m", "m", "way made towards the targets so far, all targets together"),
    ("targets_reached", "1", "targets reached so far"),
    ("time_to_first_target_s", "s", "when the first target was reached; inf until then"),
    ("last_target_time_s", "s", "when the last target so far was reached; inf until then"),
    ("is_success", "bool", "enough targets reached (`course.success_targets`, or the whole course)"),
    *SHARED_INFOS,
    ("reward/<term>", "1", "weighted reward term of this step: progress, target, effort, energy"),
    ("reward_raw/<term>", "m, 1, 1, J", "the same before weighting"),
)
FIELD_INFOS = (
    ("progress_m", "m", "way made along the route so far"),
    ("route_m", "m", "length of the route"),
    ("time_to_goal_s", "s", "when the goal was reached; inf until then"),
    ("is_success", "bool", "the goal has been reached"),
    ("n_contacts", "1", "places of contact now, mean over the step"),
    ("contact_force_n", "N", "contact forces now, mean over the step, summed over the links"),
    ("contact_time_s", "s", "time with at least one contact so far, in whole steps"),
    ("contact_impulse_ns", "N s", "contact forces of all links over time so far"),
    ("penetration_m", "m", "deepest penetration into an obstacle so far"),
    *SHARED_INFOS,
    ("reward/<term>", "1", "weighted reward term of this step: progress, goal, effort, energy, contact"),
    ("reward_raw/<term>", "m, 1, 1, J, N", "the same before weighting"),
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


def describe_env(env: type[SnakeEnv]) -> str:
    """An env's docstring with its headings as Markdown headings."""
    text = re.sub(r"^(\w+):\n", r"## \1\n\n", inspect.cleandoc(env.__doc__ or ""), flags=re.MULTILINE)
    return re.sub(r"^    ", "", text, flags=re.MULTILINE).replace("``", "`")


def default_core(config_type: type[EnvConfig], kind: str) -> SnakeCore:
    """The env with default settings but the kind of action."""
    return SnakeCore(config_type(action=ActionConfig(kind=kind)), 1)  # type: ignore[arg-type]


def observation_table(config_type: type[EnvConfig], kind: str) -> str:
    """The observation's parts for one kind of action on the default robot."""
    rows = [
        (f"{part.columns.start}-{part.columns.stop - 1}", part.name, part.unit, f"{part.scale:g}", part.meaning)
        for part in default_core(config_type, kind).layout.fields.values()
    ]
    return table(("columns", "name", "unit", "scale", "meaning"), rows)


def action_table(kind: str) -> str:
    """The action's entries for one kind on the default robot, the same in every env."""
    rows = describe_action(default_core(WaypointsConfig, kind).decoder)
    return table(("entry", "at -1", "at 1", "unit"), ((r["name"], r["low"], r["high"], r["unit"]) for r in rows))


def info_table(infos: Iterable[tuple[str, str, str]]) -> str:
    """Keys of the info."""
    return table(("key", "unit", "meaning"), ((f"`{key}`", unit, text) for key, unit, text in infos))


def group_tables(groups: Mapping[str, type[Any]]) -> list[str]:
    """One table of settings for each group."""
    parts: list[str] = []
    for name, cls in groups.items():
        parts += [f"### `{name}`", (cls.__doc__ or "").strip(), settings_table(cls, f"{name}.")]
    return parts


def write_page() -> str:
    """The whole page as Markdown."""
    scales = "## Observation table (robot `resilient_servo`)\n\nEach entry is `clip(value * scale, -10, 10)`."
    info = (
        "Single env: numbers. Vector env: arrays (W,), present at every step, all of one episode in each world. With\n"
        "autoreset mode SAME_STEP, the step that ends an episode returns the infos of the new episode's begin, reward\n"
        "terms 0; those of the end, whose reward the step returns, stand in `final_info`."
    )
    kinds = ("residual", "joint_reference", "gait")
    parts = [
        "# SnakeGym/Waypoints-v0", "<!-- made by: python -m snake_gym.envs.tables > docs/env.md -->",
        describe_env(WaypointsEnv), scales,
    ]  # fmt: skip
    for kind in kinds:
        parts += [f"### `action.kind: {kind}`", observation_table(WaypointsConfig, kind)]
    parts.append("## Action table (robot `resilient_servo`)")
    for kind in kinds:
        parts += [f"### `action.kind: {kind}`", action_table(kind)]
    parts += ["## Info", info, info_table(WAYPOINTS_INFOS), "## Settings", settings_table(WaypointsConfig, "")]
    parts += group_tables({**SHARED_PARTS, **WAYPOINTS_PARTS})
    parts += [
        "# SnakeGym/ObstacleField-v0", describe_env(ObstacleFieldEnv), scales,
        "### `action.kind: residual`", observation_table(ObstacleFieldConfig, "residual"),
        "The other kinds of action change columns as in Waypoints. The action tables are the same.",
        "## Info", info, info_table(FIELD_INFOS),
        "## Settings", "`robot`, `time_limit_s`, `n_threads`, `action`, `start`, `faults` and `sensors` are those of "
        "Waypoints.",
        *group_tables(FIELD_PARTS),
    ]  # fmt: skip
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    print(write_page(), end="")
