"""The one line on a wrong setting: its place, its value and what was expected, from the errors that pydantic finds."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union

from snake_gym.config.errors import hint, join, show
from snake_gym.config.settings import LARGEST, declared_types

Problem = dict[str, Any]
"""One error of ``pydantic.ValidationError.errors()``: its ``loc`` below the value, ``type`` and ``ctx``."""
_BOUNDS = ("greater_than", "greater_than_equal", "less_than", "less_than_equal", "finite_number")
_UNKNOWN = ("unexpected_keyword_argument", "invalid_key")


def explain(tp: Any, problems: Sequence[Problem], value: Any, where: str) -> str:
    """Return the message on ``value``, which stands at ``where`` and is no ``tp`` because of these ``problems``."""
    value = value.tolist() if hasattr(value, "tolist") else value  # a numpy array or scalar
    members = _members(tp)
    if len(members) > 1:
        return _explain_union(tp, members, problems, value, where)
    base = _plain_type(members[0])
    kind: Any = typing.get_origin(base) or base
    args = typing.get_args(base)
    problem = next((one for one in problems if one["type"] in _UNKNOWN and len(one["loc"]) == 1), problems[0])
    is_own = len(problem["loc"]) == 1
    if not problem["loc"] or (is_own and problem["type"] == "missing" and isinstance(value, (list, tuple))):
        return _explain_value(tp, problem, value, where)
    part = problem["loc"][0]
    below = [one | {"loc": one["loc"][1:]} for one in problems if one["loc"][:1] == (part,)]
    if isinstance(kind, type) and is_dataclass(kind):
        if is_own and problem["type"] in _UNKNOWN:
            return describe_unknown(kind, str(part), where)
        name = part if isinstance(part, str) else fields(kind)[part].name  # a number: an argument without a name
        default = getattr(kind, name, None)  # which may be wrong, too
        return explain(declared_types(kind)[name], below, value.get(name, default), join(where, name))
    if isinstance(value, Mapping):
        key = next(key for key in value if str(key) == str(part))
        if below[0]["loc"] == ("[key]",):
            return f"the key {show(key)} of {where} is {show(key)}; expected {describe_type(args[0])}"
        return explain(args[1], below, value[key], join(where, str(key)))
    element = args[0] if args[-1] is Ellipsis or kind is list else args[part]
    return explain(element, below, value[part], f"{where}[{part}]")


def _explain_union(tp: Any, members: Sequence[Any], problems: Sequence[Problem], value: Any, where: str) -> str:
    """Name the problem of the one member that was meant: of the value's shape, and with the fewest problems."""
    of_label: dict[Any, list[Problem]] = {}  # in the order of the members
    for problem in problems:
        of_label.setdefault(problem["loc"][:1], []).append(problem | {"loc": problem["loc"][1:]})
    pairs = zip(members, of_label.values(), strict=False)
    fitting = sorted((pair for pair in pairs if _is_shaped(pair[0], value)), key=lambda pair: len(pair[1]))
    if fitting and (len(fitting) == 1 or len(fitting[0][1]) < len(fitting[1][1])):
        return explain(*fitting[0], value, where)
    return f"{where} is {show(value)}; expected {describe_type(tp)}"


def _is_shaped(tp: Any, value: object) -> bool:
    """Return True if ``value`` can be meant for ``tp``: a mapping for a group, a list for a list, a number for one."""
    base = _plain_type(tp)
    kind = typing.get_origin(base) or base
    if isinstance(value, Mapping):
        return is_dataclass(kind) or kind in (dict, Mapping)
    if isinstance(value, (list, tuple)):
        return kind in (list, tuple)
    if isinstance(value, str):
        return kind is Literal
    return kind in (int, float) and isinstance(value, (int, float)) and not isinstance(value, bool)


def _explain_value(tp: Any, problem: Problem, value: Any, where: str) -> str:
    if problem["type"] == "value_error":  # of ``Settings.check``
        return _place(str(problem["ctx"]["error"]), tp, where)
    if problem["type"] == "missing" and value is None:
        return f"{where} is missing; expected {describe_type(tp)}"
    if problem["type"] in _BOUNDS and isinstance(value, (int, float)):
        return f"{where} is {value if isinstance(value, int) else f'{value:g}'}; expected {_describe_range(tp)}"
    options = [show(option).strip("'") for option in typing.get_args(_plain_type(_members(tp)[0]))]
    guess = hint(value, options) if isinstance(value, str) and problem["type"] == "literal_error" else ""
    return f"{where} is {show(value)}; expected {describe_type(tp)}{guess}"


def _place(message: str, tp: Any, where: str) -> str:
    """Prefix a message of ``check`` with ``where``, without naming a group or a field twice."""
    if not where:
        return message
    group = re.split(r"[.\s]", where)[-1]
    if message.startswith(f"{group}."):
        return where[: len(where) - len(group)] + message
    names = {f.name for member in _members(tp) if is_dataclass(member) for f in fields(member)}
    return join(where, message) if re.split(r"[.\s:;,[]", message)[0] in names else f"{where}: {message}"


def describe_unknown(cls: type[Any], key: str, where: str = "", further: Iterable[str] = ()) -> str:
    """Return the message on ``key``, which is no setting of ``cls`` and none of the ``further`` names."""
    settings = [f.name for f in fields(cls) if f.init]
    nested = {
        f"{group}.{inner.name}": inner.name
        for group in settings
        for part in _members(declared_types(cls)[group])
        if isinstance(part, type) and is_dataclass(part)
        for inner in fields(part)
    }
    elsewhere = [path for path, name in nested.items() if key in (name, path.replace(".", "_"))]
    guess = f"; did you mean {elsewhere[0]!r}?" if elsewhere else hint(key, [*settings, *further])
    return f"{join(where, key)} is not a setting{guess} (settings: {', '.join(settings)})"


# --- types -----------------------------------------------------------------------------------------------------------


def _members(tp: Any) -> tuple[Any, ...]:
    """Return the alternatives of a union but for None, or the type itself."""
    if typing.get_origin(tp) in (Union, types.UnionType):
        return tuple(member for member in typing.get_args(tp) if member is not types.NoneType)
    return (tp,)


def _plain_type(tp: Any) -> Any:
    return typing.get_args(tp)[0] if typing.get_origin(tp) is Annotated else tp


def describe_type(tp: Any) -> str:
    """Return a description, for the user, of values of this type."""
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if origin in (Union, types.UnionType):
        return " or ".join(describe_type(member) for member in args)
    if origin is Annotated:
        whole, found = describe_type(args[0]), bounds(tp)
        if args[0] in (int, float):
            return f"{whole} {_describe_range(tp)}".rstrip()
        words = (("min_length", "at least"), ("max_length", "at most"))
        size = "".join(f" of {text} {found[name]}" for name, text in words if name in found)
        return whole.replace("a list", f"a list{size}", 1) + (
            f" of the form {found['pattern']}" if "pattern" in found else ""
        )
    if origin is Literal:
        return ("one of " if len(args) > 1 else "") + ", ".join(show(arg) for arg in args)
    if (origin or tp) is list or (origin is tuple and args[-1] is Ellipsis):
        return f"a list, each {describe_type(args[0])}" if args else "a list"
    if origin is tuple:
        return f"a list of {len(args)}: {', '.join(describe_type(arg) for arg in args)}"
    if (origin or tp) in (dict, Mapping):
        is_open = not args or args[1] is Any
        return "a group of settings" if is_open else f"a group whose values are {describe_type(args[1])}"
    if isinstance(tp, type) and is_dataclass(tp):
        return f"a group of settings ({', '.join(f.name for f in fields(tp) if f.init)})"
    plain = {bool: "true or false", int: "an integer", float: "a number", str: "text", Path: "a path"}
    return "null" if tp in (None, types.NoneType) else plain.get(tp, getattr(tp, "__name__", str(tp)))


def bounds(tp: Any) -> dict[str, Any]:
    """Return the bounds of an annotated number, list or text by name, as given to ``Field``."""
    found: dict[str, Any] = {}
    for extra in typing.get_args(tp)[1:] if typing.get_origin(tp) is Annotated else ():
        for one in getattr(extra, "metadata", ()):
            names = ("ge", "gt", "le", "lt", "allow_inf_nan", "min_length", "max_length", "pattern")
            found |= {name: getattr(one, name) for name in names if getattr(one, name, None) is not None}
    return found


def _describe_range(tp: Any) -> str:
    """Return the range of a float or int: ``in (0, 1]``, ``finite and > 0, at most 1e+09``."""
    member = next((one for one in _members(tp) if _plain_type(one) in (int, float)), tp)
    found, is_float = bounds(member), _plain_type(member) is float
    low = next((f"{sign} {found[name]:g}" for name, sign in (("ge", ">="), ("gt", ">")) if name in found), "")
    high = next((f"{sign} {found[name]:g}" for name, sign in (("le", "<="), ("lt", "<")) if name in found), "")
    if low and high:
        opening, closing = "(" if "gt" in found else "[", ")" if "lt" in found else "]"
        return f"in {opening}{low.split()[1]}, {high.split()[1]}{closing}"
    if found.get("allow_inf_nan"):
        return f"{low}{high} (.inf for no limit)".strip()
    if not is_float:
        return low or high
    return f"finite and {low or high}, at most {LARGEST:g}" if low or high else f"finite, at most {LARGEST:g} in size"
