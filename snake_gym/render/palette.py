"""Colours shared by frames, plots and replays: Okabe and Ito's set, distinct in any kind of colour vision."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from snake_gym.physics.faults import BIASED, DEAD, FAULT_CODES, FREE, HEALTHY, LOCKED, NOISY, OFFSET, SLOW, WEAK

BLUE = "#0072B2"
ORANGE = "#E69F00"
GREEN = "#009E73"
SKY = "#56B4E9"
VERMILION = "#D55E00"
YELLOW = "#F0E442"
INK = "#22303C"
MUTED = "#7A8791"
GRID = "#E3E7EA"
LINE = "#D5DADD"
PAPER = "#FBFBF9"
BODY = "#5F7486"
JOINT = "#DCE3E8"
ROCK = "#C9BFB2"
FORCE = "#7030C0"
"""Colour of contact forces, distinct from those of faults and policies."""

LEARNED = ("#AA3377", "#EE6677", "#661100")
CLASSICAL = (BLUE, "#999933", "#555555", "#88CCEE", "#332288", "#8A5A2B", "#44AA99", "#BBBBBB")
"""Colours of policies, from Tol's sets, distinct from those of faults and targets."""

_FAULTS: dict[int, str] = {LOCKED: VERMILION, FREE: SKY, WEAK: YELLOW, SLOW: "#CC79A7", OFFSET: "#117733"}
_TAKEN = (PAPER, INK, BODY, JOINT, ORANGE, GREEN, FORCE, *LEARNED, *CLASSICAL, *_FAULTS.values())
"""Colours from which a further one has to be distinct."""


def fault_colours() -> dict[int, str]:
    """Return a distinct colour for every kind of joint fault, by its code."""
    others = [code for code in FAULT_CODES.values() if code not in (HEALTHY, DEAD, BIASED, NOISY, *_FAULTS)]
    return {**_FAULTS, **dict(zip(others, _further(len(others), _TAKEN), strict=True))}


def fault_name(code: int) -> str:
    """Return the name of a kind of fault."""
    return next((name for name, known in FAULT_CODES.items() if known == code), "failed")


def policy_colours(kinds: Sequence[str]) -> list[str]:
    """Return a distinct colour for each policy of the given kinds (as of entrants), in their order."""
    sets: dict[str, list[str]] = {"learned": list(LEARNED), "classical": list(CLASSICAL), "oracle": []}
    kinds = [kind if kind in sets else "classical" for kind in kinds]
    missing = {kind: max(kinds.count(kind) - len(own), 0) for kind, own in sets.items()}
    further = _further(sum(missing.values()), [*_TAKEN, *fault_colours().values()])
    for kind, own in sets.items():
        own += [further.pop(0) for _ in range(missing[kind])]
    return [sets[kind].pop(0) for kind in kinds]


def _further(count: int, taken: Iterable[str]) -> list[str]:
    """Return ``count`` new colours, each the farthest from those taken and from the ones before."""
    used = [rgb(colour) for colour in taken]
    levels = range(34, 222, 17)  # neither glaring nor nearly black
    grid = list(itertools.product(levels, levels, levels))
    apart = [min(_distance(colour, other) for other in used) for colour in grid] if count else []
    chosen = []
    for _ in range(count):
        best = grid[max(range(len(grid)), key=apart.__getitem__)]
        apart = [min(before, _distance(colour, best)) for before, colour in zip(apart, grid, strict=True)]
        chosen.append("#" + "".join(f"{part:02X}" for part in best))
    return chosen


def _distance(one: tuple[int, int, int], other: tuple[int, int, int]) -> float:
    """Return the visible difference of two colours: a weighted distance in RGB (Riemersma's "redmean")."""
    red = (one[0] + other[0]) / 512.0
    squares = [(a - b) ** 2 for a, b in zip(one, other, strict=True)]
    return (2.0 + red) * squares[0] + 4.0 * squares[1] + (3.0 - red) * squares[2]


def rgb(colour: str) -> tuple[int, int, int]:
    """Return ``"#RRGGBB"`` as three integers 0-255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def blend(colour: str, background: str, share: float) -> str:
    """Return ``colour`` with opacity ``share`` (0-1) over ``background``."""
    mixed = (round(share * a + (1.0 - share) * b) for a, b in zip(rgb(colour), rgb(background), strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)
