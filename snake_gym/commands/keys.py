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


def key_table(rows: Sequence[tuple[str, str]]) -> str:
    """Return a panel as Markdown."""
    lines = [f"| {label} | {meaning} |" for label, meaning in rows]
    return "\n".join(["| key | what it does |", "| --- | --- |", *lines])
