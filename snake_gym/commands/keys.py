"""Keys of a window: what each does, for its panel on the screen and for the documentation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Key(NamedTuple):
    """Keys that do the same."""

    names: tuple[str, ...]
    """Pygame's names of them."""
    label: str
    meaning: str
    act: Callable[[Any, str], None]
    """Function of the owner of the window and the name of the pressed key."""


DRIVING = (
    Key(("left", "right"), "left, right", "by hand: steer", lambda owner, name: owner.helm.arrow(name)),
    Key(("up", "down"), "up, down", "by hand: faster; slower, and backwards below 0",
        lambda owner, name: owner.helm.arrow(name)),
    Key(("g",), "G", "by hand: the next gait", lambda owner, _: owner.helm.next_gait()),
)  # fmt: skip
"""Keys of a ``helm``."""


def press(keys: Sequence[Key], owner: Any, name: str) -> None:
    """Do what the key called ``name`` does, if any; H shows or hides the panel of the owner's window."""
    owner.window.message = ""
    owner.window.helping ^= name == "h"
    for key in keys:
        if name in key.names:
            key.act(owner, name)


def panel(keys: Sequence[Key], others: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return keys and ``others``, such as mouse buttons, with what they do."""
    return [*((key.label, key.meaning) for key in keys), ("H", "show the keys, or hide them"), *others]
