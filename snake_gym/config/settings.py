"""Settings: frozen dataclasses with fields of a stated type and range, checked by pydantic however one is made.

    class Gait(Settings):
        amplitude_rad: Annotated[float, Field(ge=0.0, le=math.pi)] = 0.3
        period_s: Positive = 2.0

        def check(self) -> None:      # conditions on several fields
            ...

Text and booleans are no numbers, 3e6 is an integer, a list becomes a tuple. A number is finite and at most ``LARGEST``
in size unless its field says otherwise.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import os
import typing
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar, cast, dataclass_transform

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass as validated
from pydantic_core import PydanticKnownError, core_schema

from snake_gym.config.errors import ConfigError, UnexpectedKeywordError, hint, show
from snake_gym.config.overrides import merge
from snake_gym.config.records import to_dict

T = TypeVar("T")

LARGEST = 1e9
"""Largest size of a setting without a bound of its own, in its unit; beyond it, arithmetic overflows."""

Positive = Annotated[float, Field(gt=0.0)]
NonNegative = Annotated[float, Field(ge=0.0)]
Limit = Annotated[float, Field(gt=0.0, allow_inf_nan=True)]
"""Positive bound on a quantity; infinite for none."""
Share = Annotated[float, Field(ge=0.0, le=1.0)]
PositiveShare = Annotated[float, Field(gt=0.0, le=1.0)]
Angle = Annotated[float, Field(ge=-math.pi, le=math.pi)]
"""Angle [rad] of at most half a turn to either side."""
Count = Annotated[int, Field(ge=0)]
PositiveCount = Annotated[int, Field(ge=1)]

_CONFIG = ConfigDict(extra="forbid", validate_default=True)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field, Field))
class Settings:
    """Base class of settings: a subclass is a frozen dataclass, and each of its objects has been checked.

    Raises ConfigError, a ValueError, naming the field.
    """

    def __init_subclass__(cls, kw_only: bool = False) -> None:
        super().__init_subclass__()
        validated(cls, frozen=True, kw_only=kw_only, config=_CONFIG)
        checked_init = cls.__init__

        @functools.wraps(checked_init)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            try:
                checked_init(self, *args, **kwargs)
            except ValidationError as error:
                given = dict(zip((f.name for f in dataclasses.fields(self)), args, strict=False)) | kwargs
                raise _refusal(cls, error, given, "") from error

        cls.__init__ = __init__  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise ValueError unless the fields, each in its range, are consistent."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        return cast(core_schema.CoreSchema, _made_strict(handler(source), nested=False))


def build(cls: type[T], mapping: Mapping[str, Any], where: str = "") -> T:
    """Return settings of class ``cls`` from ``mapping``, checked strictly. Raises ConfigError naming where.key."""
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{where or cls.__name__} is {show(mapping)}; expected a group of settings")
    try:
        return cast(T, cls.__pydantic_validator__.validate_python(dict(mapping)))  # type: ignore[attr-defined]
    except ValidationError as error:
        raise _refusal(cls, error, mapping, where) from error


def apply_keywords(
    cls: type[T],
    config: T | Mapping[str, Any] | None,
    keywords: Mapping[str, Any],
    where: str,
    further: Iterable[str] = (),
) -> T:
    """Return an instance of class ``cls`` from ``config``, an object or a mapping, overridden by keyword settings.

    All of it is checked strictly, as by ``build``; ``config`` is not changed. An object of a subclass stays one.
    Raises ConfigError. For a keyword that is no setting, this is a TypeError too; its message also considers names of
    ``further`` arguments.
    """
    kind = type(config) if isinstance(config, cls) else cls
    known = declared_types(kind)
    for key in keywords:
        if key not in known:
            guess = hint(key, [*known, *further])
            raise UnexpectedKeywordError(f"unexpected keyword argument {key!r} of {where}{guess}")
    own = to_dict({} if config is None else config)
    keywords = {key: to_dict(one) if isinstance(one, (Settings, os.PathLike)) else one for key, one in keywords.items()}
    return build(kind, merge(own, keywords) if isinstance(own, Mapping) else own, where)


def build_over(cls: type[T], in_file: Mapping[str, Any], settings: Mapping[str, Any], where: str) -> T:
    """Return an instance of class ``cls`` from ``settings``: those ``in_file`` with the user's own laid over them.

    Raises ConfigError, naming the file ``where`` only for what is wrong in it.
    """
    try:
        return build(cls, settings, where)
    except ConfigError:
        build(cls, in_file, where)
        return build(cls, settings)


def convert(tp: Any, value: Any, where: str) -> Any:
    """Return ``value`` as the type ``tp`` of a setting. Raises ConfigError naming ``where``."""
    try:
        return TypeAdapter(Annotated[tp, _Strict]).validate_python(value)
    except ValidationError as error:
        raise _refusal(tp, error, value, where) from error


def _refusal(tp: Any, error: ValidationError, given: Any, where: str) -> ConfigError:
    from snake_gym.config.refusals import explain

    return ConfigError(explain(tp, error.errors(include_url=False), given, where))


def check_order(settings: object, *names: str) -> None:
    """Raise ValueError unless the named fields do not decrease in this order."""
    values = [getattr(settings, name) for name in names]
    if values != sorted(values):
        others = ", ".join(f"{name} {value:g}" for name, value in zip(names[1:], values[1:], strict=True))
        raise ValueError(f"{names[0]} is {values[0]:g}, {others}; expected {' <= '.join(names)}")


def declared_types(cls: Any) -> dict[str, Any]:
    """Return field types of a class of settings by name, with the ranges that annotate them."""
    return typing.get_type_hints(cls, include_extras=True)


# --- strictness ------------------------------------------------------------------------------------------------------

_PARTS = ("schema", "fields", "items_schema", "choices", "keys_schema", "values_schema", "definitions")
"""Keys of pydantic's core schemas below which further schemas lie."""
_INFINITIES = {f"{sign}{dot}inf": float(f"{sign}inf") for sign in ("", "-") for dot in ("", ".")}
"""Texts of JSON, which has no infinities."""


def _made_strict(schema: Any, nested: bool = True) -> Any:
    """Return a core schema with strict numbers, booleans and text; fields of nested settings are so already."""
    if isinstance(schema, list):
        return [_made_strict(part) for part in schema]
    if not isinstance(schema, dict) or (nested and schema["type"] == "dataclass"):
        return schema
    kind = schema.get("type")
    schema = schema | {key: _made_strict(schema[key]) for key in _PARTS if key in schema}
    if kind in ("float", "int", "bool", "str"):
        schema["strict"] = True
    if kind == "float" and not schema.get("allow_inf_nan"):
        schema["allow_inf_nan"] = False
        schema |= {} if "gt" in schema else {"ge": max(schema.get("ge", -LARGEST), -LARGEST)}
        schema |= {} if "lt" in schema else {"le": min(schema.get("le", LARGEST), LARGEST)}
    before = _PLAIN.get(str(kind))
    return core_schema.no_info_before_validator_function(before, schema) if before else schema


class _Strict:
    """Annotation of a type that is checked as strictly as a field of ``Settings``."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> core_schema.CoreSchema:
        return cast(core_schema.CoreSchema, _made_strict(handler(source)))


def plain(value: Any) -> Any:
    """Return plain Python data for a numpy array or scalar."""
    return value.tolist() if hasattr(value, "tolist") else value


def _plain_number(value: Any) -> Any:
    value = plain(value)
    if isinstance(value, str):
        return _INFINITIES.get(value.strip().lower(), value)
    if value != value:
        raise PydanticKnownError("float_type")
    return value


def _plain_integer(value: Any) -> Any:
    value = plain(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


_PLAIN = {"float": _plain_number, "int": _plain_integer, "bool": plain, "tuple": plain, "list": plain}
"""Kind of a core schema -> what comes before it."""
