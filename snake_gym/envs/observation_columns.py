"""Observation of an env: its layout, and the refusal of columns that its task does not have with its settings.

A column is refused before the first step if it has no entries, if the task declares it but not with these settings
(``Task.columns``), or if it is made from a signal that only other tasks give.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.config.errors import hint
from snake_gym.interface.actions import ActionDecoder
from snake_gym.interface.observations import COLUMNS, OWN, USUAL, ObservationLayout, find_column
from snake_gym.registry import TASKS, find_task
from snake_gym.simulation.sensors import SensorSuite
from snake_gym.tasks.task import EnvConfig, Task


def make_layout(config: EnvConfig, task: Task, sensors: SensorSuite, decoder: ActionDecoder) -> ObservationLayout:
    """Return the layout of an env's observations. Raises ConfigError for a column that the env does not have."""
    contact, scan = sensors.contact, sensors.range_scan
    layout_of = partial(
        ObservationLayout, decoder.spec, decoder.size, decoder.has_phase, task.tracked_point, config.faults.reveal,
        None if contact is None else contact.limit_n, 0 if scan is None else scan.n_beams,
        1.0 if scan is None else scan.max_range_m, task_columns=task.columns, history=config.observation.history,
        told=decoder.told,
    )  # fmt: skip
    named = [name for name in config.observation.columns if name != USUAL]
    if named:
        usual = layout_of()
        for name in named:
            find_column(name, "a column of the observations")
            if not _has(usual, task, name):
                _refuse(config, usual, task, name)
    return layout_of(columns=config.observation.columns)


def check_columns(config: EnvConfig) -> None:
    """Raise ConfigError for a column that the env of complete settings does not have, without making the env."""
    if config.observation.columns != (USUAL,):
        spec = config.load_robot()
        task = config.make_task(spec, 1)
        decoder = ActionDecoder(config.action, spec, task.commands_speed)
        make_layout(config, task, config.make_sensors(spec, 1), decoder)


def _has(layout: ObservationLayout, task: Task, name: str) -> bool:
    """Return True if the column has entries here, made from what the task tells with its settings."""
    if COLUMNS[name].width(layout) == 0:
        return False
    if name in OWN or name in task.columns:
        return True
    if name in type(task).columns:
        return False
    with suppress(Exception), np.errstate(all="ignore"):  # a user's task may have no signals before an episode
        return not layout.lacks_signal(name, task.signals(), len(task.index))
    return True


def _task_types(base: type[Task] = Task) -> Iterator[type[Task]]:
    yield base
    for derived in base.__subclasses__():
        yield from _task_types(derived)


def _refuse(config: EnvConfig, layout: ObservationLayout, task: Task, name: str) -> None:
    """Raise ConfigError for a column that the env does not have, with what it needs.

    A column that no task declares is left to the first observation, which says where it fails.
    """
    column = COLUMNS[name]
    if not column.needs and column.width(layout) > 0 and not any(name in kind.columns for kind in _task_types()):
        return
    env_id = next((env_id for env_id in TASKS if find_task(env_id) is type(config)), type(config).__name__)
    cure = f"it needs {column.needs}" if column.needs else column.meaning
    there = [USUAL, *(one for one in COLUMNS if _has(layout, task, one))]
    raise ConfigError(
        f"the column {name} of the observations has no entries in {env_id} with these settings; {cure}; expected one "
        f"of {', '.join(there)}{hint(name, there)}"
    )
