"""Colours shared by frames, plots and replays: Okabe and Ito's set, distinct in any kind of colour vision."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from snake_gym.physics.faults import BURST_LEFT, FREE, LEAK_LEFT, LOCKED, OFFSET, SLOW, WEAK, WEAK_LEFT
from snake_gym.simulation.fault_kinds import FAULT_KINDS, kinds_of

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

ORACLES = ("#2222DD", "#22DD77", "#AA22AA")
_FAULTS: dict[int, str] = {LOCKED: VERMILION, FREE: SKY, WEAK: YELLOW, SLOW: "#CC79A7", OFFSET: "#117733"}
for _code, _colour in ((BURST_LEFT, VERMILION), (LEAK_LEFT, SKY), (WEAK_LEFT, YELLOW)):
    _FAULTS |= {_code: _colour, _code + 1: _colour}
_FURTHER = ("#33DD22", "#DD22DD", "#88DD66", "#8877DD", "#DD2233", "#DDAA66")
"""Colours of further kinds of faults, far from all others."""


def fault_colours() -> dict[int, str]:
    """Return a colour for every kind of joint fault, by its code; kinds beyond ours are all ``MUTED``."""
    others = [code for name in kinds_of("joint") if (code := FAULT_KINDS[name].code) not in _FAULTS]
    return {**_FAULTS, **dict(zip(others, itertools.chain(_FURTHER, itertools.repeat(MUTED)), strict=False))}


def policy_colours(kinds: Sequence[str]) -> list[str]:
    """Return a colour for each policy of the given kinds (as of entrants), in their order; each set begins anew."""
    sets = {"learned": itertools.cycle(LEARNED), "oracle": itertools.cycle(ORACLES)}
    classical = itertools.cycle(CLASSICAL)
    return [next(sets.get(kind, classical)) for kind in kinds]


def rgb(colour: str) -> tuple[int, int, int]:
    """Return ``"#RRGGBB"`` as three integers 0-255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def blend(colour: str, background: str, share: float) -> str:
    """Return ``colour`` with opacity ``share`` (0-1) over ``background``."""
    mixed = (round(share * a + (1.0 - share) * b) for a, b in zip(rgb(colour), rgb(background), strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)
