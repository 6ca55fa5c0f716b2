"""Messages on a wrong setting, argument or file of the user: one line, with the nearest valid choice.

``where`` names the origin of a setting in messages: a dotted path (``env.robot``), a file (``demo.yaml``), or both
(``demo.yaml: env.robot``).
"""

from __future__ import annotations

import operator
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_SHORTEST_BEGINNING = 3
"""Smallest number of letters by which a word is recognised."""
_WORDS = re.compile(r"[_/.]")
"""What stands between the words of a name."""
_BRIEF = reprlib.Repr()
"""Representation of a value's first parts, whatever its size."""
_BRIEF.maxlist = _BRIEF.maxtuple = _BRIEF.maxdict = 12
_BRIEF.maxstring = _BRIEF.maxlong = _BRIEF.maxother = 200


RESET_OPTIONS = ("reset_mask", "targets")
"""Keys of ``reset(options=)`` that envs of ours take."""


class ConfigError(ValueError):
    """Error in a setting, argument or file that the user has to correct. The message is one line."""

    def __init__(self, message: object) -> None:
        super().__init__(" ".join(str(message).split()))


class UnexpectedKeywordError(ConfigError, TypeError):
    """Error of an unknown keyword argument; also a ``TypeError``, as of any function, so that callers can try."""


def nearest(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice that ``name`` most likely means, or None. Case and ``-``/``_`` do not matter.

    The choice is ``name`` but for a slip of the keys in each word, or in the whole, or one of the two begins, or ends
    with whole words of the other, as ``evaluation`` and ``eval``, ``distance_m`` and ``max_distance_m``.
    """
    folded = {_fold(choice): choice for choice in choices}
    word = _fold(name)
    close = sorted((one for one in folded if _is_slip(word, one)), key=lambda one: _slips(word, one))
    if not close and len(word) >= _SHORTEST_BEGINNING:
        longer = [one for one in folded if one.startswith(word) or one.endswith(f"_{word}")]
        known = (one for one in folded if len(one) >= _SHORTEST_BEGINNING)
        shorter = [one for one in known if word.startswith(one) or word.endswith(f"_{one}")]
        close = [*sorted(longer, key=len), *sorted(shorter, key=len, reverse=True)]
    return folded[close[0]] if close else None


def _is_slip(one: str, other: str) -> bool:
    """Return True if two names are near: in each word, which may be cut short if another one is not, or, where they
    have other numbers of words, in the whole without gaps."""
    words, others = _WORDS.split(one), _WORDS.split(other)
    if len(words) != len(others):
        return _are_near("".join(words), "".join(others))
    pairs = list(zip(words, others, strict=True))
    near = [_are_near(a, b) for a, b in pairs]
    cut_short = [a.startswith(b) or b.startswith(a) for a, b in pairs]
    told = any(is_near and len(a + b) > 4 for is_near, (a, b) in zip(near, pairs, strict=True))
    return told and all(map(operator.or_, near, cut_short))


def _are_near(one: str, other: str) -> bool:
    """Return True if a letter in four differs, or one more where the first halves are the same, as in gate and gait."""
    length = max(len(one), len(other))
    half = length // 2
    return _slips(one, other) <= max(1, length // 4) + (half > 1 and one[:half] == other[:half])


def _slips(one: str, other: str) -> int:
    """Return how many letters are added, left out, changed or swapped with the next between two words."""
    before, last = list(range(len(other) + 1)), [0] * (len(other) + 1)
    for i, a in enumerate(one):
        row = [i + 1]
        for j, b in enumerate(other):
            row.append(min(row[j] + 1, before[j + 1] + 1, before[j] + (a != b)))
            if i and j and a == other[j - 1] and b == one[i - 1]:
                row[-1] = min(row[-1], last[j - 1] + 1)
        before, last = row, before
    return before[-1]


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

    Raises ConfigError unless they are None or a mapping, and for a key that is, or nearly is, another one of ours.
    """
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        raise ConfigError(f"options is {show(options)}; expected None or a dict")
    for key in options:
        if key not in known and nearest(str(key), RESET_OPTIONS):
            expected = f"expected one of {', '.join(known)}{hint(str(key), known)}" if known else "this env takes none"
            raise ConfigError(f"options has the key {show(key)}; {expected}")
    return options


def show(value: object, limit: int = 80) -> str:
    """Return ``value`` as it would stand in YAML, short enough for one line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    try:
        text = _BRIEF.repr(value)
    except ValueError:
        text = "a number of thousands of digits"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def join(where: str, key: str) -> str:
    if not where:
        return key
    return f"{where}: {key}" if where.endswith((".yaml", ".yml", ".json")) else f"{where}.{key}"
