"""Strict conversion of mappings into dataclasses: no unknown keys, every value coerced to its type or refused."""

from __future__ import annotations

import math
import numbers
import os
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, cast

from snake_gym.config.errors import ConfigError, hint, join, nearest, show
from snake_gym.config.settings import Range, declared_types

T = TypeVar("T")


class OutOfRangeError(ConfigError):
    """Error for a number of the right kind that is too small or too large."""


NUMBER = r"[-+]?(?:\.[0-9]+|(?:0|[1-9][0-9_]*)(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?"
"""Regular expression of a decimal number. Not 010, which may be read as ten or as eight."""
_INFINITY = re.compile(r"([-+]?)\.?(?:inf|Inf|INF)")
_ANY = Range()
_SEQUENCES = (tuple, list, Sequence)
_MAPPINGS = (dict, Mapping)


def build(cls: type[T], mapping: Mapping[str, Any], where: str = "") -> T:
    """Return an instance of dataclass ``cls`` from ``mapping``, checked strictly. Raises ConfigError naming where.key.

    A float field takes an int, an int field takes ``3e6``, a tuple takes a list, a nested dataclass a mapping. Text is
    no number, but for ``.inf`` and ``inf``, since JSON has no infinities. A ValueError of ``__post_init__`` becomes a
    ConfigError that names the place.
    """
    if not (isinstance(cls, type) and is_dataclass(cls)):
        raise TypeError(f"build needs a dataclass, not {cls!r}")
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{where or cls.__name__} is {show(mapping)}; expected {describe_type(cls)}")
    settings = {f.name: f for f in fields(cls) if f.init}
    declared = declared_types(cls)
    for key in mapping:
        if key not in settings:
            raise ConfigError(describe_unknown(cls, str(key), where))
    values = {}
    for name, setting in settings.items():
        if name in mapping:
            values[name] = coerce(declared[name], mapping[name], join(where, name))
        elif setting.default is MISSING and setting.default_factory is MISSING:
            raise ConfigError(f"{join(where, name)} is missing; expected {describe_type(declared[name])}")
    try:
        return cast(T, cls(**values))
    except ValueError as error:
        raise ConfigError(_place(str(error), settings, where)) from error


def describe_unknown(cls: type[Any], key: str, where: str = "", beside: Iterable[str] = ()) -> str:
    """Return the message on ``key``, which is no setting of dataclass ``cls`` and none of the names ``beside`` them."""
    settings = [f.name for f in fields(cls) if f.init]
    declared = declared_types(cls)  # type: ignore[arg-type]
    nested = {
        f"{group}.{inner.name}": inner.name
        for group in settings
        for part in _members(declared[group])
        if isinstance(part, type) and is_dataclass(part)
        for inner in fields(part)
    }
    elsewhere = [path for path, name in nested.items() if key in (name, path.replace(".", "_"))]
    guess = f"; did you mean {elsewhere[0]!r}?" if elsewhere else hint(key, [*settings, *beside])
    return f"{join(where, key)} is not a setting{guess} (settings: {', '.join(settings)})"


def _place(message: str, settings: Mapping[str, Field[Any]], where: str) -> str:
    """Prefix a ``__post_init__`` message with ``where``, without naming a group or a field twice."""
    if not where:
        return message
    group = re.split(r"[.\s]", where)[-1]
    if message.startswith(f"{group}."):
        return where[: len(where) - len(group)] + message
    if re.split(r"[.\s:;,[]", message)[0] in settings:
        return join(where, message)
    return f"{where}: {message}"


def _members(tp: Any) -> tuple[Any, ...]:
    """Return the alternatives of a union, or the type itself."""
    if typing.get_origin(tp) in (Union, types.UnionType):
        return typing.get_args(tp)
    return (tp,)


def describe_type(tp: Any) -> str:
    """Return a description, for the user, of values of this type."""
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if len(_members(tp)) > 1:
        return " or ".join(describe_type(member) for member in _members(tp))
    if origin is Annotated:
        allowed = _range_of(args)
        return describe_type(args[0]) + (f" {allowed.describe(args[0])}" if allowed != _ANY else "")
    if origin is Literal:
        return ("one of " if len(args) > 1 else "") + ", ".join(show(arg) for arg in args)
    if (origin or tp) in _SEQUENCES:
        return _describe_list(origin or tp, args)
    if (origin or tp) in _MAPPINGS:
        return (
            "a group of settings"
            if not args or args[1] is Any
            else f"a group whose values are {describe_type(args[1])}"
        )
    if isinstance(tp, type) and is_dataclass(tp):
        return f"a group of settings ({', '.join(f.name for f in fields(tp) if f.init)})"
    plain = {bool: "true or false", int: "an integer", float: "a number", str: "text", Path: "a path"}
    return "null" if tp in (None, types.NoneType) else plain.get(tp, getattr(tp, "__name__", str(tp)))


def _describe_list(kind: Any, args: tuple[Any, ...]) -> str:
    if not args:
        return "a list"
    if kind is tuple and args[-1] is not Ellipsis:
        return f"a list of {len(args)}: {', '.join(describe_type(arg) for arg in args)}"
    return f"a list, each {describe_type(args[0])}"


def _refuse(tp: Any, value: object, where: str, note: str = "") -> NoReturn:
    raise ConfigError(f"{where} is {show(value)}; expected {describe_type(tp)}{note}")


def coerce(tp: Any, value: Any, where: str, allowed: Range = _ANY) -> Any:
    """Return ``value`` as the declared type ``tp``; ConfigError if it does not fit or is outside ``allowed``."""
    origin, args = typing.get_origin(tp), typing.get_args(tp)
    if hasattr(value, "tolist"):  # numpy arrays and scalars, when the mapping was made in Python
        value = value.tolist()
    if tp is Any or tp is object:
        return value
    if origin is Annotated:
        return coerce(args[0], value, where, _range_of(args))
    if len(_members(tp)) > 1:
        return _coerce_union(tp, value, where)
    if origin is Literal:
        return _coerce_literal(tp, value, where)
    if (origin or tp) in _SEQUENCES:
        return _coerce_sequence(tp, value, where)
    if (origin or tp) in _MAPPINGS:
        return _coerce_mapping(tp, value, where)
    if isinstance(tp, type) and is_dataclass(tp):
        return value if isinstance(value, tp) else build(tp, value, where)
    if tp is float or tp is int:
        return _coerce_number(tp, value, where, allowed)
    return _coerce_scalar(tp, value, where)


def _coerce_scalar(tp: Any, value: Any, where: str) -> Any:
    if tp in (None, types.NoneType):
        return None if value is None else _refuse(tp, value, where)
    if tp is bool:
        return value if isinstance(value, bool) else _refuse(tp, value, where)
    if tp is str:
        note = "" if isinstance(value, (Mapping, list, tuple, type(None))) else " (put it in quotes)"
        return value if isinstance(value, str) else _refuse(tp, value, where, note)
    if tp is Path:
        return Path(value) if isinstance(value, (str, os.PathLike)) else _refuse(tp, value, where)
    raise TypeError(f"{where} is declared as {tp!r}, which no setting can be")


def _coerce_number(tp: type, value: Any, where: str, allowed: Range) -> float | int:
    number = _read_number(value)
    whole = isinstance(number, int) or (number is not None and math.isfinite(number) and number == int(number))
    if number is None or number != number or (tp is int and not whole):
        note = " (without quotes)" if isinstance(value, str) and re.fullmatch(NUMBER, value.strip()) else ""
        _refuse(Annotated[tp, allowed], value, where, note)
    try:
        number = float(number) if tp is float else int(number)
        short = f"{float(number):g}"
        told = short if tp is float else f"{number}"
        admitted = allowed.admits(number)
    except (OverflowError, ValueError):
        told, admitted = "a number of hundreds of digits", False
    if not admitted:
        raise OutOfRangeError(f"{where} is {told}; expected {allowed.describe(tp)}")
    return number


def _range_of(annotated: tuple[Any, ...]) -> Range:
    return next((extra for extra in annotated[1:] if isinstance(extra, Range)), _ANY)


def _read_number(value: object) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, numbers.Real):
        try:
            return int(value) if isinstance(value, numbers.Integral) else float(value)
        except OverflowError:  # a fraction of hundreds of digits
            return int(math.trunc(value))  # noqa: RUF046  a Real may truncate to its own kind
    if isinstance(value, str) and (infinite := _INFINITY.fullmatch(value.strip())):  # JSON has no other
        return -math.inf if infinite[1] == "-" else math.inf
    return None


def _coerce_literal(tp: Any, value: object, where: str) -> Any:
    options = typing.get_args(tp)
    for option in options:
        if type(option) is type(value) and option == value:
            return option
    _refuse(tp, value, where, hint(str(value), [str(option) for option in options]))


def _coerce_sequence(tp: Any, value: object, where: str) -> Any:
    kind, args = typing.get_origin(tp) or tp, typing.get_args(tp)
    if not isinstance(value, (list, tuple)):
        _refuse(tp, value, where)
    if kind is tuple and args and args[-1] is not Ellipsis:
        if len(value) != len(args):
            _refuse(tp, list(value), where)
        element_types: Sequence[Any] = args
    else:
        element_types = [args[0] if args else Any] * len(value)
    pairs = zip(element_types, value, strict=True)
    items = [coerce(element, item, f"{where}[{i}]") for i, (element, item) in enumerate(pairs)]
    return items if kind is list else tuple(items)


def _coerce_mapping(tp: Any, value: object, where: str) -> dict[str, Any]:
    args = typing.get_args(tp)
    if not isinstance(value, Mapping):
        _refuse(tp, value, where)
    key_type, value_type = args if args else (str, Any)
    return {
        coerce(key_type, key, f"the key {show(key)} of {where}"): coerce(value_type, item, join(where, str(key)))
        for key, item in value.items()
    }


def _coerce_union(tp: Any, value: Any, where: str) -> Any:
    """Return the first member's value, preferring members that keep the value's type (so ``int | str`` keeps '3')."""
    members = _members(tp)
    by_kind = _groups_by_kind(members)
    if by_kind and isinstance(value, Mapping):
        kind = value.get("kind", next(iter(by_kind)))
        if kind not in list(by_kind):
            _refuse(Literal[tuple(by_kind)], kind, join(where, "kind"), hint(str(kind), list(by_kind)))
        return coerce(by_kind[kind], value, where)
    accepted = []
    errors: list[tuple[Any, ConfigError]] = []
    for member in members:
        try:
            accepted.append(coerce(member, value, where))
        except ConfigError as error:
            errors.append((member, error))
    if accepted:
        same = [result for result in accepted if type(result) is type(value)]
        return (same or accepted)[0]
    fitting = [error for member, error in errors if _is_shaped(member, value) or isinstance(error, OutOfRangeError)]
    if len(fitting) > 1 and isinstance(value, Mapping):  # several groups: the one that has just these settings
        for correct in (False, True):
            fitting = [error for member, error in errors if _has_settings(member, value, correct)] or fitting
    if len(fitting) == 1:
        raise fitting[0]
    _refuse(tp, value, where)


def _groups_by_kind(members: tuple[Any, ...]) -> dict[str, Any]:
    """Return groups of settings by the text that their field ``kind`` takes, the default first; {} for others."""
    found = {}
    for member in members:
        kind = declared_types(member).get("kind") if isinstance(member, type) and is_dataclass(member) else None
        if typing.get_origin(kind) is not Literal:
            return {}
        found.update(dict.fromkeys(typing.get_args(kind), member))
    return found


def _has_settings(tp: Any, value: Mapping[str, Any], correct: bool = False) -> bool:
    """Return True if ``tp`` is a group that takes exactly the keys of ``value``, with ``correct`` mistyped ones too."""
    if not (isinstance(tp, type) and is_dataclass(tp)):
        return False
    required = {f.name for f in fields(tp) if f.init and f.default is MISSING and f.default_factory is MISSING}
    known = {f.name for f in fields(tp) if f.init}
    keys = [nearest(str(key), known) if correct and key not in known else key for key in value]
    return len(set(keys)) == len(keys) and required <= set(keys) <= known


def _is_shaped(tp: Any, value: object) -> bool:
    """Return True if ``value`` is clearly meant for ``tp``: mapping for a group, list for a list, text for a name."""
    kind = typing.get_origin(tp) or tp
    if isinstance(value, Mapping):
        return kind in _MAPPINGS or (isinstance(tp, type) and is_dataclass(tp))
    if isinstance(value, (list, tuple)):
        return kind in _SEQUENCES
    return isinstance(value, str) and kind is Literal
