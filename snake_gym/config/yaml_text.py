"""YAML text by the rules of YAML 1.2: ``1e-3`` is a number, ``yes`` and ``010`` are text.

A repeated key is an error. So are anchors, aliases and tags: a short text has no large content. This reader and one for
YAML 1.1 both read written text back. This is the only module that needs PyYAML. It is loaded when the first text is
read or written: programs that read no YAML run without it.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

from snake_gym.config.errors import ConfigError
from snake_gym.config.records import to_dict

NUMBER = r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
"""Regular expression of a decimal number. Not 010, which may be read as ten or as eight."""


class _Loader(yaml.SafeLoader):
    """Safe YAML loader with the scalars of YAML 1.2's core schema and no duplicate keys."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}  # type: ignore[misc]  # none of YAML 1.1's

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if event.anchor is not None or event.tag is not None:
            raise ComposerError(problem="anchors, aliases and tags are not read", problem_mark=event.start_mark)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if isinstance(key_node, yaml.ScalarNode):
                if key_node.value in seen:
                    problem = f"{key_node.value!r} is given twice"
                    raise ConstructorError(problem=problem, problem_mark=key_node.start_mark)
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Writer of text that both ``_Loader`` and a YAML 1.1 reader take for text."""

    def ignore_aliases(self, data: object) -> bool:
        return True


_FLOAT = re.compile(rf"^(?:{NUMBER}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$")
for _tag, _pattern, _first in (
    ("null", re.compile(r"^(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), "tTfF"),
    ("int", re.compile(r"^(?:[-+]?(?:0|[1-9][0-9_]*)|0x[0-9a-fA-F]+)$"), "-+0123456789"),
    ("float", _FLOAT, "-+0123456789."),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, list(_first))
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))


def parse_yaml(text: str, where: str) -> Any:
    """Return the content of a YAML text. Raises ConfigError, with the line and column, if it is no YAML."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506  a strict SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise ConfigError(f"{where} is not valid YAML{place}: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{where} is not valid YAML: {error}") from None


def format_yaml(obj: object) -> str:
    """Return a dataclass or mapping as YAML text."""
    return yaml.dump(to_dict(obj), Dumper=_Dumper, sort_keys=False, width=120)
