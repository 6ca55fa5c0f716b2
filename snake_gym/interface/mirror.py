"""What a policy sees and does, seen in a mirror.

A planar snake in the mirror ``(x, y) -> (x, -y)`` is again the same robot: angles, rates and what lies to the left
change their sign, ways and what lies ahead stay. Each column of observations and each kind of action says how it is
reflected, so that what was learned on one side can be used on the other.
"""

from __future__ import annotations

from collections.abc import Sequence
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


Mirror = int | tuple[int, ...] | Literal["reversed", "action"] | None
"""How a column is reflected: a sign, signs that repeat along it, ``reversed`` (entries from right to left), or
``action`` (as actions are); None: nobody has said it."""


def find_reflection(mirror: Mirror, width: int, what: str, action: Reflection | None = None) -> Reflection:
    """Return how ``width`` entries are reflected; ``what`` names them. Raises ConfigError where nobody has said it."""
    if mirror is None:
        raise ConfigError(
            f"{what} does not say how it looks in a mirror; register it with mirror=-1 (turned round), 1 (the same), a "
            "sign for each entry, or 'reversed' (entries from right to left)"
        )
    places = np.arange(width)
    if mirror == "action" and action is not None:
        return action
    if mirror == "reversed":
        return Reflection(places[::-1].copy(), np.ones(width, np.float32))
    signs = np.atleast_1d(mirror)
    if signs.size == 0 or width % signs.size or not np.isin(signs, (SAME, TURNED)).all():
        raise ConfigError(
            f"the mirror of {what} is {show(mirror)}; expected -1, 1, or signs that {width} entries are a multiple of"
        )
    return Reflection(places, np.tile(signs, width // signs.size).astype(np.float32))


def side_by_side(reflections: Sequence[Reflection]) -> Reflection:
    """Return the reflection of values that stand one after the other."""
    starts = np.cumsum([0, *(reflection.source.size for reflection in reflections)])
    source = [reflection.source + start for reflection, start in zip(reflections, starts, strict=False)]
    return Reflection(
        np.concatenate([np.zeros(0, np.int64), *source]),
        np.concatenate([np.zeros(0, np.float32), *(reflection.sign for reflection in reflections)]),
    )
