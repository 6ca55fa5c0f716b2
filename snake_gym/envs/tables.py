"""Generator of the reference page of the environments, with tables from the layouts and dataclasses themselves.

``python -m snake_gym.envs.tables > docs/env.md`` writes it; a test compares the file.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from snake_gym.envs.core import SnakeCore
from snake_gym.envs.snake_env import SnakeEnv
from snake_gym.interface.actions import ActionConfig, describe_action
from snake_gym.registry import TASKS, find_task
from snake_gym.tasks.costs import COST_NOTES
from snake_gym.tasks.task import EnvConfig

INFO_NOTES = {
    "energy_j": ("J", "positive work of the actuators so far"),
    "speed_m_s": ("m/s", "speed of the centre of mass now"),
    "n_failed_joints": ("1", "joints that are failed now"),
    "n_faults": ("1", "joints that fail in this episode"),
    "episode_time_s": ("s", "time since the reset"),
    "stood_still": ("1", "solutions of physics steps so far that did not settle, so that the robot stood still"),
    "self_overlap_m": (
        "m",
        "deepest overlap of two links so far, but for pairs that overlap when straight: the robot is folded",
    ),
    "difficulty": ("1", "share of what makes an episode hard that this one has, see `difficulty`"),
    "cost": ("1", "sum of the costs of this step, where any is on (`costs`)"),
    **{f"cost/{name}": ("1", f"cost of this step, where it is on: {note}") for name, note in COST_NOTES.items()},
    "randomisation/<name>": ("", "what was drawn of each quantity that varies in this episode"),
}
"""Unit and meaning of the infos of every task."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def setting_notes(cls: type[Any]) -> dict[str, str]:
    """Return the string under each field of a dataclass and its bases, by the field's name."""
    notes: dict[str, str] = {}
    owners = [owner for owner in reversed(cls.__mro__) if dataclasses.is_dataclass(owner)]
    bodies = [ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0] for owner in owners]
    lines = [line for body in bodies if isinstance(body, ast.ClassDef) for line in body.body]
    for line, after in itertools.pairwise(lines):
        is_note = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and is_note:
            notes[line.target.id] = " ".join(str(after.value.value).split())  # type: ignore[attr-defined]
    return notes


def show(value: Any) -> str:
    """Return a default as YAML would write it."""
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
    """Return name, default and meaning of every setting of a dataclass that is not a group."""
    notes = setting_notes(cls)
    default = cls()
    rows = [
        (f"`{prefix}{f.name}`", f"`{show(getattr(default, f.name))}`", notes.get(f.name, ""))
        for f in dataclasses.fields(cls)
        if not dataclasses.is_dataclass(getattr(default, f.name))
    ]
    return table(("setting", "default", "meaning"), rows)


def describe(owner: type[Any]) -> str:
    """Return a class's docstring with its headings as Markdown headings."""
    text = re.sub(r"^(\w+):\n", r"## \1\n\n", inspect.cleandoc(owner.__doc__ or ""), flags=re.MULTILINE)
    return re.sub(r"^    ", "", text, flags=re.MULTILINE).replace("``", "`")


def default_core(config_type: type[EnvConfig], kind: str) -> SnakeCore:
    """Make the env with default settings except the kind of action."""
    return SnakeCore(config_type(action=ActionConfig(kind=kind)), 1)  # type: ignore[arg-type]


def observation_table(core: SnakeCore) -> str:
    rows = [
        (f"{part.first}-{part.first + part.width - 1}", part.name, part.unit, f"{part.scale:g}", part.meaning)
        for part in core.layout.fields.values()
    ]
    return table(("columns", "name", "unit", "scale", "meaning"), rows)


def action_table(core: SnakeCore) -> str:
    rows = describe_action(core.decoder)
    return table(("entry", "at -1", "at 1", "unit"), ((r["name"], r["low"], r["high"], r["unit"]) for r in rows))


def info_table(core: SnakeCore) -> str:
    """Return unit and meaning of the infos of a task and of every task."""
    records = {name: (record.unit, record.meaning) for name, record in core.task.records.items()}
    infos = {**records, **core.task.further_infos, **INFO_NOTES}
    terms = f"reward term of this step: {', '.join(core.task.weights)}"
    infos |= {"reward/<term>": ("1", f"weighted {terms}"), "reward_raw/<term>": ("", "the same before weighting")}
    return table(("key", "unit", "meaning"), ((f"`{key}`", *note) for key, note in infos.items()))


def group_tables(config: Any, without: Sequence[str] = (), prefix: str = "") -> list[str]:
    """Return one table of settings for each group of a dataclass, and for each group within it."""
    parts: list[str] = []
    for f in dataclasses.fields(config):
        group = getattr(config, f.name)
        if dataclasses.is_dataclass(group) and f.name not in without:
            kind, name = type(group), prefix + f.name
            parts += [f"### `{name}`", (kind.__doc__ or "").strip(), settings_table(kind, f"{name}.")]
            parts += group_tables(group, prefix=f"{name}.")
    return parts


def describe_task(env_id: str, shared: Sequence[str]) -> list[str]:
    """Return a task's own part: its text, observations, infos and settings, except the ``shared`` ones."""
    config_type: type[EnvConfig] = find_task(env_id)
    core = default_core(config_type, "residual")
    return [
        f"# {env_id}", describe(config_type),
        "## Observation table (robot `resilient_servo`, `action.kind: residual`)", observation_table(core),
        "## Info", info_table(core),
        "## Settings", *group_tables(config_type(), shared),
    ]  # fmt: skip


def write_page() -> str:
    """Return the whole page as Markdown."""
    shared = [f.name for f in dataclasses.fields(EnvConfig)]
    first: type[EnvConfig] = find_task(next(iter(TASKS)))
    own = [f.name for f in dataclasses.fields(first) if f.name not in shared]
    ours = [env_id for env_id, task in TASKS.items() if isinstance(task, str)]
    parts = [
        "# Environments", "<!-- made by: python -m snake_gym.envs.tables > docs/env.md -->",
        f"What every task has comes first, then each task: {', '.join(ours)}.", describe(SnakeEnv),
        "## Observation table (robot `resilient_servo`)", "Each entry is `clip(value * scale, -10, 10)`.",
    ]  # fmt: skip
    cores = {kind: default_core(first, kind) for kind in ("residual", "joint_reference", "gait")}
    for kind, core in cores.items():
        parts += [f"### `action.kind: {kind}`", observation_table(core)]
    parts.append("## Action table (robot `resilient_servo`)")
    for kind, core in cores.items():
        parts += [f"### `action.kind: {kind}`", action_table(core)]
    parts += [
        "## Info", "Single env: numbers. Vector env: arrays (W,), present at every step, all of one episode in each "
        "world. With\nautoreset mode SAME_STEP, the step that ends an episode returns the infos of the new episode's "
        "begin, reward\nterms 0; those of the end, whose reward the step returns, stand in `final_info`.",
        "## Settings", settings_table(first, ""), *group_tables(first(), own),
    ]  # fmt: skip
    for env_id in ours:
        parts += describe_task(env_id, shared)
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    print(write_page(), end="")
