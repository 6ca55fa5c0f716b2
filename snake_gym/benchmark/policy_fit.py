"""Comparison of the robot, observations and scenarios that a policy plays with those that it was trained with.

Columns with another meaning are an error. Another robot, other scenarios, or another scale of a column may be the point
of an experiment: a note with the results says so. The same holds for a tuned gait.
"""

from __future__ import annotations

from itertools import zip_longest

from snake_gym.config import ConfigError
from snake_gym.controllers.tuned import Tuning
from snake_gym.envs import DEFAULT_ENV, EnvConfig
from snake_gym.interface.observations import ObservationLayout
from snake_gym.robot.difference import describe_changes
from snake_gym.robot.spec import RobotSpec
from snake_gym.tasks.task_settings import build_env, scenario_settings


def column_fault(own: ObservationLayout, here: ObservationLayout) -> str | None:
    """Return the first column that differs ``here`` from a policy's ``own``, as text; None if all are the same."""
    columns = ([field.name for field in each.fields.values() for _ in range(field.width)] for each in (own, here))
    for i, (trained, played) in enumerate(zip_longest(*columns, fillvalue="missing")):
        if trained != played:
            return f"column {i + 1} is {trained}, here it is {played}"
    return None


def env_note(own_id: str, own: EnvConfig, here_id: str, here: EnvConfig, made: str = "trained") -> str | None:
    """Return the differences of the env ``here`` from the scenarios of a policy's training; None if there are none.

    Robots have a note of their own; the meaning of actions and rewards is no part of a scenario.
    """
    before, after = scenario_settings(own), scenario_settings(here)
    shared = [name for name in after if name in before]
    shown = describe_changes({name: before[name] for name in shared}, {name: after[name] for name in shared})
    if own_id != here_id:
        return f"{made} in {own_id}, plays in {here_id}" + (f": {shown}" if shown else "")
    return None if shown is None else f"{made} in other scenarios: {shown}"


def tuning_notes(tuning: Tuning | None, spec: RobotSpec, env_id: str, here: EnvConfig) -> tuple[str, ...]:
    """Return notes on a tuned gait on this robot and in this env; none if its file does not name its purpose."""
    if tuning is None:
        return ()
    own_id = tuning.env_id or DEFAULT_ENV
    try:
        scenarios = env_note(own_id, build_env(own_id, tuning.env), env_id, here, "tuned")
    except ConfigError:
        scenarios = "the env it was tuned in is not known to this version"
    return tuple(note for note in (tuning.robot_note(spec), scenarios) if note is not None)
