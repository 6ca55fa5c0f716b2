"""JSON schemas of the files in ``configs/``, by which editors complete and check them.

    python -m snake_gym.agents.settings_schemas configs/schemas

A file names its own in its first line, relative to itself: ``# yaml-language-server: $schema=../schemas/env.json``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, TypeAdapter, create_model

from snake_gym.benchmark.scenarios import BenchmarkConfig
from snake_gym.config import Settings, to_json, write_atomic
from snake_gym.controllers import CONTROLLERS
from snake_gym.envs.tables import groups, setting_notes
from snake_gym.hardware.pose.april_tags import CameraConfig
from snake_gym.hardware.robot.run_config import RunConfig
from snake_gym.interface.actions import ActionConfig
from snake_gym.registry import TASKS, find_task
from snake_gym.robot.catalogue import KINDS, find_kind
from snake_gym.robot.spec import RobotSpec

from .algorithms import PARAMETER_TYPES, NetworkConfig, defaults_of, known_algorithms
from .config import TrainConfig

Schema = dict[str, Any]
ELSEWHERE = {"controller": "controller", "env": "env", "robot": "robot", "action": "action", "algorithm": "algorithm"}
"""Settings that hold any mapping for Python, as a plugin may define it -> the schema of those that we ship."""
OTHERS_OF: dict[str, tuple[str, ...]] = {"robot": ("preset", "source"), "controller": ("kind", "tuned", "file")}
"""Schema -> texts that a file may give beside the settings of its class."""


def schema_of(kind: type[Settings], name: str, partial: bool = False) -> Schema:
    """Return the schema of a class of settings; ``partial``: of changes to a whole, where nothing is required."""
    schema = TypeAdapter(kind).json_schema()
    of_name = {group.__name__: group for _, group in groups(kind)}
    _refer(schema)
    for name_of, part in {**schema.get("$defs", {}), kind.__name__: schema}.items():
        _add_notes(part, of_name[name_of])
    if partial:
        schema.pop("required", None)
    schema["properties"] |= {other: {"type": "string"} for other in OTHERS_OF.get(name, ())}
    return schema


def one_of(schemas: Mapping[str, Schema]) -> Schema:
    """Return the schema of a file that is one of several kinds; their definitions stand under their own names."""
    definitions: Schema = {}
    for name, schema in schemas.items():
        definitions |= schema.pop("$defs", {})
        definitions[name] = schema
    return {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in schemas], "$defs": definitions}


def make_schemas() -> dict[str, Schema]:
    """Return the schemas by the names of their files."""
    controllers = {kind: schema_of(one.config_type, "controller", True) for kind, one in CONTROLLERS.items()}
    for kind, schema in controllers.items():
        schema["properties"]["kind"] = {"const": kind}
    robots: dict[str, type[Any]] = {"planar": RobotSpec, **{kind: find_kind(kind) for kind in KINDS}}
    tuned = {"properties": {"controller": {"$ref": "controller.json"}, "tuning": {"type": "object"}, "found": {}}}
    return {
        "action": schema_of(ActionConfig, "action", True),
        "algorithm": algorithm_schema(),
        "benchmark": schema_of(BenchmarkConfig, "benchmark"),
        "camera": schema_of(CameraConfig, "camera"),
        "controller": one_of(controllers),
        "env": one_of({name.split("/")[-1]: schema_of(find_task(name), "env", True) for name in TASKS}),
        "hardware": schema_of(RunConfig, "hardware"),
        "robot": one_of({kind: schema_of(one, "robot", True) for kind, one in robots.items()}),
        "train": schema_of(TrainConfig, "train"),
        "tuned": {"type": "object", **tuned, "required": ["controller"], "additionalProperties": False},
    }


def algorithm_schema() -> Schema:
    """Return the schema of ``algorithm``: a name and the parameters of all algorithms, each by its type."""
    classes = known_algorithms()
    fields: dict[str, Any] = {"name": (Literal[tuple(classes)], ...), "network": (NetworkConfig, NetworkConfig())}
    for cls in classes.values():
        for name, default in defaults_of(cls).items():
            own = type(default) if isinstance(default, (bool, int, float, str)) else Any
            tp = PARAMETER_TYPES.get(name, own)
            fields[name] = (fields[name][0] | tp if name in fields and tp is not Any else tp, None)
    model = create_model("Algorithm", __config__=ConfigDict(extra="forbid"), **fields)
    schema = model.model_json_schema()
    schema.pop("required")  # a change to a recipe names no algorithm
    return schema


def _refer(schema: Any) -> None:
    """Let settings that hold any mapping refer to the schema of their kind, in place."""
    if isinstance(schema, dict):
        settings = schema.get("properties", {})
        for name in ELSEWHERE.keys() & settings.keys():
            settings[name] = _with_reference(settings[name], f"{ELSEWHERE[name]}.json")
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _refer(part)


def _with_reference(schema: Schema, file: str) -> Schema:
    if schema.get("additionalProperties") is True:
        return {"$ref": file}
    return schema | {"anyOf": [_with_reference(one, file) for one in schema["anyOf"]]} if "anyOf" in schema else schema


def _add_notes(schema: Schema, kind: type[Settings]) -> None:
    """Add what the sources say about each setting, which editors show."""
    for name, note in setting_notes(kind).items():
        if name in schema["properties"]:
            schema["properties"][name]["description"] = note.replace("``", "")
    for part in (schema, *schema["properties"].values()):
        part.pop("title", None)


def main(folder: str) -> None:
    """Write the schemas into a folder."""
    for name, schema in make_schemas().items():
        head = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        write_atomic(Path(folder) / f"{name}.json", to_json(head | schema))


if __name__ == "__main__":
    main(*sys.argv[1:])
