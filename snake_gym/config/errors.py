"""Messages on a wrong setting, argument or file of the user: one line, with the nearest valid choice.

``where`` names the origin of a setting in messages: a dotted path (``env.robot``), a file (``demo.yaml``), or both
(``demo.yaml: env.robot``).
"""

from __future__ import annotations

import difflib
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_BRIEF = reprlib.Repr()
"""Representation of a value's first parts, whatever its size."""
_BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxdict = 12
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = 200


class ConfigError(ValueError):
    """Error in a setting, argument or file that the user has to correct. The message is one line."""

    def __init__(self, message: object) -> None:
        super().__init__(" ".join(str(message).split()))


class UnexpectedKeywordError(ConfigError, TypeError):
    """Error of an unknown keyword argument; also a ``TypeError``, as of any function, so that callers can try."""


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice that ``name`` most likely means, or None. Case and ``-``/``_`` do not matter."""
    folded = {_fold(choice): choice for choice in choices}
    close = difflib.get_close_matches(_fold(name), folded, n=1)
    return folded[close[0]] if close else None


def choose(name: object, choices: Iterable[str], where: str) -> str:
    """Return ``name`` if it is one of ``choices``; otherwise raise a ConfigError that lists them and the nearest."""
    options = list(choices)
    if isinstance(name, str) and name in options:
        return name
    raise ConfigError(f"{where} is {show(name)}; expected one of {', '.join(options)}{hint(str(name), options)}")


def _fold(name: str) -> str:
    return name.lower().replace("-", "_").replace(" ", "_")


def hint(name: str, choices: Iterable[str]) -> str:
    guess = nearest(name, choices)
    return f"; did you mean {guess!r}?" if guess is not None else ""


def check_options(options: object, known: Sequence[str] = ()) -> Mapping[str, Any]:
    """Return the options of an env's reset, which takes the ``known``; keys of other libraries are ignored.

    Raises ConfigError unless they are None or a mapping, and for a key that nearly is a known one.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ConfigError(f"options is {show(options)}; expected None or a dict")
    for key in options:
        if key not in known and nearest(str(key), known):
            expected = f"expected one of {', '.join(known)}{hint(str(key), known)}"
            raise ConfigError(f"options has the key {show(key)}; {expected}")
    return options


def show(value: object, limit: int = 80) -> str:
    """Return ``value`` as it would stand in YAML, short enough for one line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    try:
        text = " ".join(_BRIEF.repr(value).split())
    except ValueError:
        text = "a number of thousands of digits"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def join(where: str, key: str) -> str:
    if not where:
        return key
    return f"{where}: {key}" if where.endswith((".yaml", ".yml", ".json")) else f"{where}.{key}"
