"""The study of wang: torque-driven joints under partial feedback linearisation, on free ground and among pegs."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from typing import Any

from papers.study import Advance, Outcome
from papers.wang.boards import TIME_LIMIT_S, cross_boards
from papers.wang.claims import Results, crossing_table, judge
from papers.wang.collisions import free_link_impulse, linearization_error, throw_robots
from papers.wang.courses import follow_trajectory, free_course, pegboard_courses
from papers.wang.figures import make_figures
from snake_gym.config import ConfigError
from snake_gym.config.errors import show
from snake_gym.robot.presets import PEGBOARD

CONTROLLER: dict[str, Any] = {
    "kind": "pfl",
    "amplitude_rad": math.radians(30.0),
    "frequency_rad_s": 1.5,
    "phase_shift_rad": math.radians(40.0),
    "position_gain_per_s2": 25.0,
    "rate_gain_per_s": 10.0,
    "heading_gain": 0.6,
    "offset_bandwidth_rad_s": 1.5,
}
"""The paper gives no parameters: gait of about one wave on the robot, joint errors gone in half a second."""
EQ32 = {**CONTROLLER, "feedforward": False}
STRONG = replace(
    PEGBOARD,
    name="pegboard_strong",
    actuator=replace(PEGBOARD.actuator, torque_limit_nm=math.inf),
    control_dt_s=0.02,
)
"""Without torque limits and with quick samples, so that eq. 32 alone acts (``controllers.feedback_linearization``)."""
_EIGHT_S = 160.0
"""[s] for the trajectory: once round."""


class PegboardStudy:
    """See ``study.Study``."""

    name = "wang"
    title = "Partial feedback linearisation of a planar snake among obstacles"
    citation = (
        "T. Wang, Dynamic modeling and control of the planar snake robot interacting with obstacles in dense "
        "environments, report, Carnegie Mellon University"
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """See ``study.Study``."""
        parser.add_argument("--quick", action="store_true", help="fewer boards, one difficulty, shorter courses")
        parser.add_argument("--boards", default="100", help="random boards of each difficulty (%(default)s)")
        parser.add_argument("--difficulty", help="of the boards, 0 to 1; left out: 0, 0.5 and 1")
        parser.add_argument("--seed", default="0", help="of boards and random states (%(default)s)")

    def run(self, options: argparse.Namespace, advance: Advance) -> Outcome:
        """See ``study.Study``."""
        quick = bool(options.quick)
        n_boards = int(_number(options.boards, "--boards", "a whole number from 1 to 1000", 1, 1000, whole=True))
        seed = int(_number(options.seed, "--seed", "a whole number from 0 to 1e9", 0, 10**9, whole=True))
        difficulties = (1.0,) if quick else (0.0, 0.5, 1.0)
        if options.difficulty is not None:
            difficulties = (_number(options.difficulty, "--difficulty", "a number from 0 to 1", 0.0, 1.0),)
        if quick:
            n_boards = min(n_boards, 8)

        def part(begin: float, end: float, doing: str) -> Any:
            return lambda share: advance(begin + (end - begin) * share, doing)

        width = 0.5 / len(difficulties)
        crossings = [
            cross_boards(n_boards, d, seed, CONTROLLER, part(i * width, (i + 1) * width, f"boards, difficulty {d:g}"))
            for i, d in enumerate(difficulties)
        ]
        seconds = 20.0 if quick else _EIGHT_S
        results = Results(
            crossings,
            free_course(CONTROLLER, part(0.5, 0.6, "targets on free ground"), 2 if quick else 5),
            pegboard_courses(4 if quick else 20, 1.0, seed, CONTROLLER, part(0.6, 0.7, "targets among pegs")),
            follow_trajectory(CONTROLLER, seconds, part(0.7, 0.8, "trajectory")),
            follow_trajectory(EQ32, seconds, part(0.8, 0.9, "trajectory by eq. 32"), STRONG),
            linearization_error(16, seed),
            free_link_impulse(1000, seed),
            throw_robots(8 if quick else 32, seed),
            throw_robots(8 if quick else 32, seed, 0.1 * PEGBOARD.sim_dt_s),
        )
        data = {"controller": CONTROLLER, "seed": seed, "boards": n_boards, "time_limit_s": TIME_LIMIT_S}
        return Outcome(judge(results), (crossing_table(crossings),), make_figures(results), data)


def _number(text: str, where: str, expected: str, low: float, high: float, whole: bool = False) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high or (whole and value != round(value)):
        raise ConfigError(f"{where} is {show(text)}; expected {expected}")
    return value


STUDY = PegboardStudy()
