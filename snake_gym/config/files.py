"""Reading and writing YAML, by the rules of YAML 1.2: ``1e-3`` is a number, ``yes`` and ``010`` are text.

A key given twice is an error. What is written can be read back by this reader and by one for YAML 1.1.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, ClassVar

import yaml
from yaml.constructor import ConstructorError

from snake_gym.config.errors import ConfigError, nearest, show
from snake_gym.config.plain import to_dict

NUMBER = r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
"""A decimal number, as a regular expression. Not 010: nobody can say whether that is ten or eight."""


class _Loader(yaml.SafeLoader):
    """Safe YAML with the scalars of YAML 1.2's core schema and no duplicate keys."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]  # none of YAML 1.1's

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode) and key_node.value != "<<":
                if key_node.value in seen:
                    problem = f"{key_node.value!r} is given twice"
                    raise ConstructorError(problem=problem, problem_mark=key_node.start_mark)
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Writes text that both ``_Loader`` and a YAML 1.1 reader take for text."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_FLOAT = re.compile(rf"^(?:{NUMBER}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$")
for _tag, _pattern, _first in (
    ("merge", re.compile(r"^<<$"), "<"),
    ("null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    ("int", re.compile(r"^(?:[-+]?(?:0|[1-9][0-9_]*)|0x[0-9a-fA-F]+)$"), "-+0123456789"),
    ("float", _FLOAT, "-+0123456789."),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, list(_first))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))


def load_yaml(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The mapping in a YAML file ({} if it is empty). Raises ConfigError if it is missing, no YAML or no mapping."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(_missing(path)) from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder; expected a YAML file") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise ConfigError(f"{path} cannot be read: {reason}") from None
    data = parse_yaml(text, str(path))
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path} holds {show(data)}; expected settings of the form 'key: value'")
    return data


def parse_yaml(text: str, where: str) -> Any:
    """What a YAML text holds. Raises ConfigError, with the line and column, if it is no YAML."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise ConfigError(f"{where} is not valid YAML{place}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not valid YAML: {error}") from None


def _missing(path: Path) -> str:
    """Message for a file that is not there, naming what its deepest existing folder holds instead."""
    known = path
    while not known.parent.is_dir():
        known = known.parent
    folder = known.parent
    present = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() or entry.suffix in (".yaml", ".yml"))
    guess = nearest(known.name, present) or nearest(f"{known.name}.yaml", present)
    if guess is not None:
        return f"{path} does not exist; did you mean '{folder / guess}'?"
    if known != path:
        return f"{path} does not exist: there is no folder {known}"
    return f"{path} does not exist" + (f"; {folder} has {', '.join(present[:12])}" if present else "")


def write_atomic(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write a file so that a reader, or a crash, sees the old content or the new, never a part. Makes its folder."""
    path = Path(path)
    content = data.encode() if isinstance(data, str) else data
    if path.exists() and not path.is_file():  # a pipe or a terminal cannot be replaced
        path.write_bytes(content)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with partial.open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def dump_yaml(obj: object, path: str | os.PathLike[str]) -> None:
    """Write a dataclass or mapping as YAML, atomically; ``load_yaml`` and ``build`` read it back to the same value."""
    text = yaml.dump(to_dict(obj), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    write_atomic(path, text)
