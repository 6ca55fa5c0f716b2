"""The one line on a wrong setting: its place, its value and what was expected, from the errors that pydantic finds."""

from __future__ import annotations

import re
import types
import typing
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union

from snake_gym.config.errors import hint, join, show
from snake_gym.config.settings import Settings, declared_types, plain

_UNKNOWN = ("unexpected_keyword_argument", "invalid_key")
_EXPECTED = {
    "greater_than": "> {gt:g}", "greater_than_equal": ">= {ge:g}", "less_than": "< {lt:g}",
    "less_than_equal": "<= {le:g}", "finite_number": "a finite number",
    "disorder": "[low, high] with low <= high",
}  # fmt: skip
"""What was expected, by pydantic's type of error."""
Parts = tuple[Any, ...]


def explain(tp: Any, errors: Sequence[Mapping[str, Any]], value: Any, where: str) -> str:
    """Return the message on ``value``, which stands at ``where`` and is no ``tp`` because of these ``errors``.

    Of the members of a union, that with the deepest error was meant, then that with the fewest; ``Settings.check`` runs
    where all else is right.
    """
    problems = [(*_locate(error, value), error) for error in errors]
    members = Counter(member for _, member, _ in problems)

    def unlikely(one: tuple[Parts, Parts, Mapping[str, Any]]) -> tuple[bool, int, int, bool]:
        place, member, error = one
        return error["type"] != "value_error", -len(place), members[member], error["type"] not in _UNKNOWN

    place, _, error = min(problems, key=unlikely)
    kind, wrong, groups = error["type"], plain(error["input"]), groups_in(tp)
    for part in place:
        groups, where = groups_in(tp), f"{where}[{part}]" if isinstance(part, int) else join(where, part)
        found = [typing.get_args(one)[1] for one in _members(tp) if typing.get_origin(one) in (dict, Mapping)]
        found = found or [declared_types(group)[part] for group in groups if part in declared_types(group)]
        tp = Union[tuple(found)] if found else tp  # noqa: UP007
    if kind == "value_error":
        return _place(str(error["ctx"]["error"]), tp, where)
    if kind in _UNKNOWN:
        return _describe_unknown(groups, str(place[-1]), where)
    expected = _EXPECTED[kind].format(**error.get("ctx", {})) if kind in _EXPECTED else describe_type(tp)
    if kind == "missing" and isinstance(wrong, Mapping):
        return f"{where} is missing; expected {expected}"
    options = [option for one in _members(tp) for option in typing.get_args(one) if isinstance(option, str)]
    guess = hint(wrong, options) if isinstance(wrong, str) else ""
    return f"{where} is {f'{wrong:g}' if isinstance(wrong, float) else show(wrong)}; expected {expected}{guess}"


def _locate(error: Mapping[str, Any], value: Any) -> tuple[Parts, Parts]:
    """Split the ``loc`` of an error into names of settings and numbers of entries, and members of unions."""
    place, member = list[Any](), list[Any]()
    for part in error["loc"]:
        value = plain(value)
        if isinstance(value, Mapping) and isinstance(part, int) and part not in value:
            part = list(value)[part]  # an argument without a name
        inside = value if isinstance(value, Mapping) else range(len(value)) if isinstance(value, (list, tuple)) else ()
        (place if part in inside else member).append(part)
        value = value[part] if part in inside else value
    if error["type"] == "missing" and isinstance(member[-1], str):
        place.append(member.pop())
    return tuple(place), tuple(member)


def _place(message: str, tp: Any, where: str) -> str:
    """Prefix a message of ``check`` with ``where``, without naming a group or a field twice."""
    if not where:
        return message
    group = re.split(r"[.\s]", where)[-1]
    if message.startswith(f"{group}."):
        return where[: len(where) - len(group)] + message
    names = {f.name for group in groups_in(tp) for f in fields(group)}
    return join(where, message) if re.split(r"[.\s:;,[]", message)[0] in names else f"{where}: {message}"


def _describe_unknown(groups: Sequence[type[Any]], key: str, where: str) -> str:
    """Return the message on ``key`` at ``where``, no setting of the ``groups``."""
    own = {name: declared_types(group)[name] for group in groups for name in _names(group)}
    nested = {f"{name}.{inner}": inner for name, tp in own.items() for part in groups_in(tp) for inner in _names(part)}
    elsewhere = [path for path, name in nested.items() if key in (name, path.replace(".", "_"))]
    guess = f"; did you mean {elsewhere[0]!r}?" if elsewhere else hint(key, own)
    return f"{where} is not a setting{guess} (settings: {', '.join(own)})"


# --- types -----------------------------------------------------------------------------------------------------------


def _members(tp: Any) -> tuple[Any, ...]:
    """Return the alternatives of a union but for None, or the type itself."""
    if typing.get_origin(tp) in (Union, types.UnionType):
        return tuple(member for member in typing.get_args(tp) if member is not types.NoneType)
    return (tp,)


def _names(group: type[Any]) -> list[str]:
    return [f.name for f in fields(group) if f.init]


def groups_in(tp: Any) -> list[type[Any]]:
    """Return the groups of settings that values of a declared type are or contain."""
    if isinstance(tp, type) and issubclass(tp, Settings):
        return [tp]
    return [group for part in typing.get_args(tp) for group in groups_in(part)]


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
    """Return the range of a float or int: ``in (0, 1]``, ``> 0``."""
    found = bounds(tp)
    low = next((f"{sign} {found[name]:g}" for name, sign in (("ge", ">="), ("gt", ">")) if name in found), "")
    high = next((f"{sign} {found[name]:g}" for name, sign in (("le", "<="), ("lt", "<")) if name in found), "")
    if low and high:
        opening, closing = "(" if "gt" in found else "[", ")" if "lt" in found else "]"
        return f"in {opening}{low.split()[1]}, {high.split()[1]}{closing}"
    return f"{low}{high} (.inf for no limit)".strip() if found.get("allow_inf_nan") else low or high
