"""Options of the study, and what they ask for: the whole study, or single runs."""

from __future__ import annotations

import argparse
import math
from typing import NamedTuple, cast

from papers.dynamics import Point
from papers.sibilska2022.experiment import (
    COUPLING,
    TIME_LIMIT_S,
    Broken,
    Case,
    ControllerName,
    ModelName,
    select_cases,
)
from snake_gym.config import ConfigError, choose
from snake_gym.config.errors import show
from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.robot.presets import RESILIENT


class Request(NamedTuple):
    """What the options ask for."""

    cases: list[Case] | None
    """Single runs; None: the whole study."""
    amplitude_rad: float
    time_limit_s: float
    quick: bool


def add_options(parser: argparse.ArgumentParser) -> None:
    """The study's own options."""
    parser.add_argument("--quick", action="store_true", help="some of the runs, in seconds")
    parser.add_argument("--time-limit-s", default=str(TIME_LIMIT_S), help="give up after (%(default)s)")
    single = parser.add_argument_group("single runs", "with any of these, only the runs that they select, and no study")
    single.add_argument("--point", help="centre or head: what is guided to the targets")
    single.add_argument("--model", help="published or consistent (they differ for the head only)")
    single.add_argument("--controller", help="sjc or cc")
    single.add_argument("--broken", help="joints that get no control signal: 2,7 (1 is the tail's), or none")
    single.add_argument("--amplitude-deg", help="amplitude of the gait (20)")


def read(options: argparse.Namespace) -> Request:
    """Raises ConfigError for what the user has to correct."""
    point, model, controller = (
        None if value is None else choose(value, choices, where)
        for value, choices, where in (
            (options.point, ("centre", "head"), "--point"),
            (options.model, ("published", "consistent"), "--model"),
            (options.controller, tuple(COUPLING), "--controller"),
        )
    )
    broken = None if options.broken is None else _broken(options.broken)
    amplitude = GaitConfig.amplitude_rad
    if options.amplitude_deg is not None:
        amplitude = math.radians(_number(options.amplitude_deg, "--amplitude-deg", "degrees from 0 to 90", 0.0, 90.0))
    limit = _number(options.time_limit_s, "--time-limit-s", "seconds from 1 to 1e5", 1.0, 1e5)
    single = (options.point, options.model, options.controller, options.broken, options.amplitude_deg)
    if all(value is None for value in single):
        return Request(None, amplitude, limit, options.quick)
    cases = select_cases(
        cast("Point | None", point), cast("ModelName | None", model), cast("ControllerName | None", controller), broken
    )
    return Request(cases, amplitude, limit, options.quick)


def _broken(text: str) -> Broken:
    """Joint numbers from ``2,7``; ``none`` is no joint."""
    if text.strip().lower() in ("none", ""):
        return ()
    n = RESILIENT.n_joints
    joints = []
    for part in text.split(","):
        try:
            joint = int(part)
        except ValueError:
            raise ConfigError(f"--broken is {show(text)}; expected joint numbers such as 3,5,8, or none") from None
        if not 1 <= joint <= n:
            nearest = min(max(joint, 1), n)
            raise ConfigError(f"--broken names joint {joint}; expected joints from 1 to {n} (nearest: {nearest})")
        if joint in joints:
            raise ConfigError(f"--broken names joint {joint} twice; expected each joint once")
        joints.append(joint)
    return tuple(joints)


def _number(text: str, where: str, expected: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise ConfigError(f"{where} is {show(text)}; expected {expected}")
    return value
