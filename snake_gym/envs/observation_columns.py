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
        _layout_of(config)


def _layout_of(config: EnvConfig) -> tuple[ObservationLayout, Task]:
    spec = config.load_robot()
    task = config.make_task(spec, 1)
    decoder = ActionDecoder(config.action, spec, task.commands_speed)
    return make_layout(config, task, config.make_sensors(spec, 1), decoder), task


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


def _owners(name: str) -> Iterator[str]:
    """Yield the registered tasks that have the column, at their default settings or at others."""
    for env_id in TASKS:
        with suppress(Exception):  # a user's task may have no defaults
            layout, task = _layout_of(find_task(env_id)())
            if name in layout.fields or name in type(task).columns:
                yield env_id


def _refuse(config: EnvConfig, layout: ObservationLayout, task: Task, name: str) -> None:
    """Raise ConfigError for a column that the env does not have, with the setting or the tasks that have it.

    A column whose signal no task gives is left to the first observation, which says where it fails.
    """
    kind, column = type(config), COLUMNS[name]
    owners = "" if name in type(task).columns else " or ".join(_owners(name))
    if name in OWN and column.needs:
        needs = [f"{column.needs}, such as {owners}" if owners else column.needs]
    else:
        needs = [each for each in (owners, column.needs) if each]
    if not needs and column.width(layout) > 0:
        return
    env_id = next((env_id for env_id in TASKS if find_task(env_id) is kind), kind.__name__)
    cure = f"it needs {' and '.join(needs)}" if needs else column.meaning
    own = f"; this task's own are {', '.join(task.columns)}" if task.columns else ""
    there = [USUAL, *(one for one in COLUMNS if _has(layout, task, one))]
    raise ConfigError(
        f"the column {name} of the observations has no entries in {env_id} with these settings; {cure}{own}; expected "
        f"one of {', '.join(there)}{hint(name, there)}"
    )
