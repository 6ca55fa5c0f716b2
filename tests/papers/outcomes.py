"""A small study with every kind of claim, a table and a figure, for tests of what shows and saves studies."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

from papers.study import Advance, Claim, Figure, Outcome, Table, compare

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


def draw(canvas: Canvas) -> None:
    axes = canvas.add_subplot()
    axes.plot([0.0, 1.0], [0.0, 2.0], label="line")
    axes.set_xlabel("time [s]")
    axes.set_ylabel("way [m]")
    axes.legend()


class SmallStudy:
    """Runs in no time; counts how often."""

    name, title, citation = "small", "A study of <nothing>", "Nobody & Co. (2022)"

    def __init__(self) -> None:
        self.runs = 0

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--quick", action="store_true")
        parser.add_argument("--speed", type=float, default=1.0)

    def run(self, options: argparse.Namespace, advance: Advance) -> Outcome:
        self.runs += 1
        advance(0.5, "halfway")
        claims = (
            compare("The speed is 1 <m/s>", "eq. 1", 1.0, options.speed, "m/s", 0.03),
            Claim("It turns & turns", "Fig. 2", "partly", note="three of four times"),
            compare("The angle is 2 rad", "Table 3", 2.0, float("nan"), "rad", 0.1),
        )
        table = Table(
            "rows", "Some rows", ["name", "way [m]"], [["a", 1.5], ["b <c>", None], ["d", float("inf")]], "A note."
        )
        data = {"seed": np.int64(3), "course": np.array([1.0, np.nan])}
        return Outcome(claims, (table,), (Figure("line", "A line, in metres & seconds.", draw, (4.0, 2.5)),), data)
