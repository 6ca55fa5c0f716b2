"""What a policy sees and does, seen in a mirror.

A planar snake in the mirror ``(x, y) -> (x, -y)`` is again the same robot: angles, rates and what lies to the left
change their sign, ways and what lies ahead stay. Each column of observations and each kind of action says how it is
reflected, so that what was learned on one side can be used on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError
from snake_gym.config.errors import show

SAME, TURNED = 1, -1
"""Signs of what stays in a mirror, and of what is turned round."""
ALONG_LEFT = (SAME, TURNED)
"""Signs of pairs: along a direction, and to its left."""


class Reflection(NamedTuple):
    """Mirrored values are ``sign * values[..., source]``."""

    source: NDArray[np.int64]
    """Entry (n,) that each entry comes from: another one where left and right have entries of their own."""
    sign: NDArray[np.float32]
    """(n,)."""

    def __call__(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the mirrored values (..., n)."""
        return np.asarray(self.sign * values[..., self.source], dtype=values.dtype)


Mirror = int | tuple[int, ...] | Literal["reversed", "action"] | Reflection | Callable[[Any], Any] | None
"""How a column is reflected: a sign, signs that repeat along it, ``reversed`` (entries from right to left), ``action``
(as actions are), a ``Reflection``, or a function of the layout to one of these; None: nobody has said it."""


def find_reflection(mirror: Mirror, of: Any, width: int, what: str, action: Reflection | None = None) -> Reflection:
    """Return how ``width`` entries are reflected; ``of`` is the layout, ``what`` names them.

    Raises ConfigError where nobody has said it, or where twice in the mirror is not what it was.
    """
    given = mirror(of) if callable(mirror) and not isinstance(mirror, Reflection) else mirror
    if given is None:
        raise ConfigError(
            f"{what} does not say how it looks in a mirror; register it with mirror=-1 (turned round), 1 (the same), a "
            "sign for each entry, or 'reversed' (entries from right to left)"
        )
    places = np.arange(width)
    if isinstance(given, Reflection):
        found = given
    elif given == "action" and action is not None:
        found = action
    elif given == "reversed":
        found = Reflection(places[::-1].copy(), np.ones(width, np.float32))
    else:
        signs = np.atleast_1d(given)
        whole = signs.size > 0 and width % signs.size == 0 and np.isin(signs, (SAME, TURNED)).all()
        found = Reflection(places, np.tile(signs, width // signs.size if whole else 0).astype(np.float32))
    if found.sign.shape != (width,) or not _is_its_own_inverse(found):
        raise ConfigError(
            f"the mirror of {what} is {show(given)}; expected -1, 1, signs that {width} entries are a multiple of, or "
            "a Reflection that undoes itself"
        )
    return found


def side_by_side(reflections: Sequence[Reflection]) -> Reflection:
    """Return the reflection of values that stand one after the other."""
    starts = np.cumsum([0, *(reflection.source.size for reflection in reflections)])
    source = [reflection.source + start for reflection, start in zip(reflections, starts, strict=False)]
    return Reflection(
        np.concatenate([np.zeros(0, np.int64), *source]),
        np.concatenate([np.zeros(0, np.float32), *(reflection.sign for reflection in reflections)]),
    )


def _is_its_own_inverse(reflection: Reflection) -> bool:
    places = np.arange(len(reflection.source))
    return np.array_equal(reflection.source[reflection.source], places) and np.array_equal(
        reflection.sign * reflection.sign[reflection.source], np.ones(len(places))
    )
