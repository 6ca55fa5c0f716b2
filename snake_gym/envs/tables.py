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
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from snake_gym.config import build
from snake_gym.config.refusals import describe_type, groups_in
from snake_gym.config.settings import Settings, declared_types
from snake_gym.controllers.fault_estimator import FAULT_PROBABILITY
from snake_gym.envs.core import SnakeCore
from snake_gym.envs.snake_env import SnakeEnv
from snake_gym.interface.actions import CONTROLLER_SIGNALS, describe_action
from snake_gym.interface.observations import FURTHER, JOINT_SIGN, OF_MUSCLES, USUAL, Field, ObservationLayout
from snake_gym.registry import TASKS, find_task
from snake_gym.tasks.costs import COST_NOTES
from snake_gym.tasks.privileged import PRIVILEGED
from snake_gym.tasks.task import EnvConfig

INFO_NOTES = {
    "energy_j": ("J", "positive work of the actuators so far, of muscles that of the supply's air"),
    "speed_m_s": ("m/s", "speed of the centre of mass now"),
    "n_failed_joints": ("1", "joints that are failed now"),
    "n_faults": ("1", "joints that fail in this episode"),
    "episode_time_s": ("s", "time since the reset"),
    "stood_still": ("1", "solutions of physics steps so far that did not settle, so that the robot stood still"),
    "self_overlap_m": (
        "m",
        "deepest overlap of two links so far, but for pairs that overlap when straight",
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
    """Return the string under each field of a dataclass, its bases or a named tuple, by the field's name."""
    notes: dict[str, str] = {}
    owners = [
        owner
        for owner in reversed(cls.__mro__)
        if issubclass(owner, Settings) or dataclasses.is_dataclass(owner) or hasattr(owner, "_fields")
    ]
    bodies = [ast.parse(textwrap.dedent(inspect.getsource(owner))).body[0] for owner in owners]
    lines = [line for body in bodies if isinstance(body, ast.ClassDef) for line in body.body]
    for line, after in itertools.pairwise(lines):
        is_note = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and is_note:
            notes[line.target.id] = " ".join(str(after.value.value).split())  # type: ignore[attr-defined]
    return notes | (cls.notes_of_tables() if hasattr(cls, "notes_of_tables") else {})


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


def groups(cls: type[Any], path: str = "", without: Sequence[str] = ()) -> Iterator[tuple[str, type[Any]]]:
    """Yield a dataclass and all groups of settings below it, with their paths; a kind of group once for each owner.

    ``without``: settings of ``cls`` to leave out.
    """
    yield path, cls
    shown: set[type[Any]] = set()
    for name, tp in declared_types(cls).items():
        if name in without or typing.get_origin(tp) is ClassVar:
            continue
        for group in groups_in(tp):
            if group not in shown:
                shown.add(group)
                within = {tuple: f"{name}[i]", dict: f"{name}.<name>"}
                place = name if tp is group else within.get(typing.get_origin(tp), f"<{group.__name__}>")
                yield from groups(group, f"{path}.{place}" if path else place)


def describe_allowed(tp: Any) -> str:
    """Return what values of a type a setting may have, shorter than in a message."""
    text = describe_type(tp).replace("a number in", "in")
    text, null = text.removesuffix(" or null"), "; or null" if text.endswith(" or null") else ""
    for group in groups_in(tp) if null else []:
        text = text.replace(describe_type(group), f"`<{group.__name__}>`")
    text = re.sub(r"^(.+) or a list of 2: \1, \1$", r"\1, or [low, high] of such", text)
    text = re.sub(r"^(.+) or a list, each \1$", r"\1, or a list of such", text)
    return text[0].upper() + text[1:] + null


def setting_rows(cls: type[Any], path: str = "") -> list[tuple[str, str, str, str]]:
    """Return name, default, allowed values and meaning of every setting of a dataclass that is not a group."""
    notes, types = setting_notes(cls), declared_types(cls)
    rows = []
    for f in dataclasses.fields(cls):
        if f.init and types[f.name] not in groups_in(types[f.name]):
            factory = f.default_factory
            default = f.default if factory is dataclasses.MISSING else factory()
            value = "-" if default is dataclasses.MISSING else f"`{show(default)}`"
            name = f"`{path}.{f.name}`" if path else f"`{f.name}`"
            note = re.sub(r"\bNone\b", "null", notes.get(f.name, "").replace("``", "`"))
            rows.append((name, value, describe_allowed(types[f.name]), note))
    return rows


def settings_table(cls: type[Any], path: str = "", without: Sequence[str] = ()) -> str:
    rows = [row for row in setting_rows(cls, path) if row[0].strip("`") not in without]
    return table(("setting", "default", "allowed", "meaning"), rows)


def describe(owner: type[Any]) -> str:
    """Return a class's docstring with its headings as Markdown headings."""
    text = re.sub(r"^(\w+):\n", r"## \1\n\n", inspect.cleandoc(owner.__doc__ or ""), flags=re.MULTILINE)
    return re.sub(r"^    ", "", text, flags=re.MULTILINE).replace("``", "`")


def default_core(config_type: type[EnvConfig], kind: str) -> SnakeCore:
    """Make the env with default settings except the kind of action."""
    return SnakeCore(build(config_type, {"action": {"kind": kind}}, "env"), 1)


def observation_table(fields: Mapping[str, Field]) -> str:
    rows = [
        (f"{part.first}-{part.first + part.width - 1}", part.name, str(part.width), part.unit, f"{part.scale:.4g}",
         f"{part.bound:g}", part.meaning)
        for part in fields.values()
    ]  # fmt: skip
    return table(("entries", "column", "width", "unit", "scale", "bound", "meaning"), rows)


def privileged_part() -> list[str]:
    """Return the text and table of the columns for critics alone."""
    names = list(PRIVILEGED)
    settings = {"faults": {"n_max": 1}, "observation": {"privileged": names}}
    core = SnakeCore(build(find_task("SnakeGym/ObstacleField-v0"), settings), 1)
    assert core.privileged is not None
    text = (
        "`observation: {privileged: [names]}` makes observations `Dict(policy=Box, privileged=Box)`. The second part\n"
        "is the truth, for the critic of a training (PPO, A2C, TRPO); no policy file and no robot has it. Entries are\n"
        "`clip(value * scale, -10, 10)`. `fault_kind` has an entry for each joint and each kind that may come, here\n"
        "one. `randomisation/<name>` is what was drawn for the episode, as in the info of that name: -1 the lowest\n"
        "value that any difficulty allows, 1 the highest."
    )
    return ["## Privileged table", text, observation_table(core.privileged.fields)]


def action_table(core: SnakeCore) -> str:
    rows = describe_action(core.decoder)
    return table(("entry", "at -1", "at 1", "unit"), ((r["name"], r["low"], r["high"], r["unit"]) for r in rows))


def info_table(core: SnakeCore) -> str:
    """Return unit and meaning of the infos of a task and of every task."""
    records = {name: (record.unit, record.meaning) for name, record in core.task.records.items()}
    infos = {**records, **INFO_NOTES}
    terms = f"reward term of this step: {', '.join(core.task.weights)}"
    infos |= {"reward/<term>": ("1", f"weighted {terms}"), "reward_raw/<term>": ("", "the same before weighting")}
    return table(("key", "unit", "meaning"), ((f"`{key}`", *note) for key, note in infos.items()))


def group_tables(cls: type[Any], without: Sequence[str] = ()) -> list[str]:
    """Return text and table of settings for each group below a dataclass."""
    parts: list[str] = []
    for path, group in list(groups(cls, without=without))[1:]:
        rows = setting_rows(group, path)
        parts += [f"### `{path}`", describe(group), *([settings_table(group, path)] if rows else [])]
    return parts


def describe_task(env_id: str, shared: Sequence[str]) -> list[str]:
    """Return a task's own part: its text, observations, infos and settings, except the ``shared`` ones."""
    config_type: type[EnvConfig] = find_task(env_id)
    core = default_core(config_type, "residual")
    own = [row for row in setting_rows(config_type) if row[0].strip("`") not in shared]
    return [
        f"# {env_id}", describe(config_type),
        f"## Observation table (robot `{core.spec.name}`, `action.kind: residual`)",
        observation_table(core.layout.fields),
        "## Info", info_table(core),
        "## Settings", *([settings_table(config_type, without=shared)] if own else []),
        *group_tables(config_type, shared),
    ]  # fmt: skip


def observation_part(cores: Mapping[str, SnakeCore]) -> list[str]:
    """Return text and tables of the observations of every task."""
    spec = next(iter(cores.values())).spec
    every = ObservationLayout(
        spec, spec.n_joints, True, "centre", reveal_faults=True, contact_limit_n=100.0, n_beams=16, max_range_m=2.0,
        columns=(USUAL, *FURTHER), controller_signals=(*CONTROLLER_SIGNALS, FAULT_PROBABILITY),
    )  # fmt: skip
    parts = [
        "## Observation table (robot `resilient_servo`)",
        "Each entry is `clip(value * scale, -bound, bound)`, float32, as it is at the end of a control step (the "
        f"robot's\n`control_dt_s`, here {spec.control_dt_s:g} s). Joints: {JOINT_SIGN}.",
    ]
    for kind, core in cores.items():
        parts += [f"### `action.kind: {kind}`", observation_table(core.layout.fields)]
    parts += [
        "### All columns",
        "By default an observation has the first ten of these, as far as they apply (`failed`: with `faults.reveal`; "
        "`contact_force`\nand `range`: in obstacle fields), then the task's own. `observation: {columns: [names]}` "
        "chooses others, in any order;\n`standard` stands for the default ones. `history: k` shows the last k control "
        "steps, newest first.", observation_table(every.fields), *privileged_part(),
    ]  # fmt: skip
    return parts


def write_page() -> str:
    """Return the whole page as Markdown."""
    shared = [f.name for f in dataclasses.fields(EnvConfig)]
    first: type[EnvConfig] = find_task(next(iter(TASKS)))
    ours = [env_id for env_id, task in TASKS.items() if isinstance(task, str)]
    cores = {kind: default_core(first, kind) for kind in ("residual", "joint_reference", "gait")}
    parts = [
        "# Environments", "<!-- made by: python -m snake_gym.envs.tables > docs/env.md -->",
        "What does an env show, accept and return? `snake-gym describe Waypoints` prints it for one env. First what "
        f"every env shares, then {', '.join(ours)}.\nOther settings: [settings.md](settings.md).",
        describe(SnakeEnv), *observation_part(cores),
        "## Action table (robot `resilient_servo`)",
    ]  # fmt: skip
    for kind, core in cores.items():
        parts += [f"### `action.kind: {kind}`", action_table(core)]
    settings = {"robot": "muscle", "action": {"kind": "pressure"}, "observation": {"columns": OF_MUSCLES}}
    core = SnakeCore(build(first, settings), 1)
    parts += [
        "### `action.kind: pressure` (robot `muscle`)", action_table(core),
        "Columns of robots with [muscles](physics.md#muscles), where they are named:",
        observation_table(core.layout.fields),
    ]  # fmt: skip
    parts += [
        "## Info", "Single env: numbers. Vector env: arrays (W,), present at every step, all of one episode in each "
        "world. With\nautoreset mode SAME_STEP, the step that ends an episode returns the infos of the new episode's "
        "begin, reward\nterms 0; those of the end, whose reward the step returns, stand in `final_info`. A vector env "
        "made with\n`lean_infos=True` works out `speed_m_s` and `reward/<term>` alone in a step;\n`final_info` of the "
        "mode SAME_STEP has all.",
        "## Settings", settings_table(EnvConfig), *group_tables(EnvConfig),
    ]  # fmt: skip
    for env_id in ours:
        parts += describe_task(env_id, shared)
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    print(write_page(), end="")
