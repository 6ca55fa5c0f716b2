"""The study of haghshenas2022: a snake driven by pneumatic muscles along a circle and a square."""

from __future__ import annotations

import argparse
from typing import Any

from papers.haghshenas2022.claims import GAIT_RAD_S, Results, judge, length_table, run_table
from papers.haghshenas2022.figures import make_figures
from papers.haghshenas2022.inverse import examine
from papers.haghshenas2022.runs import CONTROLLER, LOOKAHEAD_M, SHARP, follow, gait_speed
from papers.study import Advance, Outcome

_CIRCLE_S = 100.0
"""As in section 3.1: once round."""
_SQUARE_S = 140.0
_QUICK_S = 35.0
"""Up to the first corner."""
_STATES = 100


class MuscleStudy:
    """See ``study.Study``."""

    name = "haghshenas2022"
    title = "A planar snake driven by pneumatic muscles on a circle and a square"
    citation = (
        "M. Haghshenas-Jaryani, Dynamics and computed-muscle-force control of a planar muscle-driven snake robot, "
        "Actuators 11(7), 194 (2022)"
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """See ``study.Study``."""
        parser.add_argument("--quick", action="store_true", help="the first 35 s of each path")

    def run(self, options: argparse.Namespace, advance: Advance) -> Outcome:
        """See ``study.Study``."""
        circle_s, square_s = (_QUICK_S, _QUICK_S) if options.quick else (_CIRCLE_S, _SQUARE_S)

        def part(begin: float, end: float, doing: str) -> Any:
            return lambda share: advance(begin + (end - begin) * share, doing)

        circle = follow("circle", "tangent", circle_s, CONTROLLER, part(0.0, 0.2, "circle"))
        inner = follow("circle", "path", circle_s, CONTROLLER, part(0.2, 0.4, "circle, look-ahead along the path"))
        square = follow("square", "path", square_s, CONTROLLER, part(0.4, 0.65, "square"))
        sharp = follow("square", "tangent", square_s, SHARP, part(0.65, 0.9, "square, published guidance"))
        advance(0.9, "gait and inverse")
        results = Results(circle, square, sharp, gait_speed(GAIT_RAD_S), examine(_STATES, 0))
        tables = (run_table((circle, inner, square, sharp)), length_table((circle, square)))
        data = {"controller": CONTROLLER, "square_published_guidance": SHARP, "lookahead_m": LOOKAHEAD_M}
        return Outcome(judge(results), tables, make_figures(results), data)


STUDY = MuscleStudy()
