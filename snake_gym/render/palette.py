"""Colours shared by frames, plots and replays: Okabe and Ito's set, told apart with any kind of colour vision."""

from __future__ import annotations

from snake_gym.physics.faults import FAULT_CODES, FREE, LOCKED, OFFSET, SLOW, WEAK

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
"""Contact forces; away from the colours of faults and policies."""

LEARNED = ("#AA3377", "#EE6677", "#661100")
CLASSICAL = (BLUE, "#999933", "#555555", "#88CCEE")
"""Policies; from Tol's sets, away from the colours of faults and targets."""

FAULT_COLOURS: dict[int, str] = {LOCKED: VERMILION, FREE: SKY, WEAK: YELLOW, SLOW: "#CC79A7", OFFSET: "#117733"}
FAULT_NAMES: dict[int, str] = {code: name for name, code in FAULT_CODES.items()}


def rgb(colour: str) -> tuple[int, int, int]:
    """``"#RRGGBB"`` as three integers 0-255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def blend(colour: str, background: str, share: float) -> str:
    """``colour`` with opacity ``share`` (0-1) over ``background``."""
    mixed = (round(share * a + (1.0 - share) * b) for a, b in zip(rgb(colour), rgb(background), strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)
