"""Observation of an env: its layout, and the refusal of columns that its task does not have with its settings."""

from __future__ import annotations

from collections.abc import Iterator

from snake_gym.config import ConfigError
from snake_gym.config.errors import hint
from snake_gym.interface.actions import ActionDecoder
from snake_gym.interface.observations import COLUMNS, OWN, USUAL, ObservationLayout, find_column
from snake_gym.simulation.sensors import SensorSuite
from snake_gym.tasks.task import EnvConfig, Task


def make_layout(config: EnvConfig, task: Task, sensors: SensorSuite, decoder: ActionDecoder) -> ObservationLayout:
    """Return the layout of an env's observations. Raises ConfigError for a column that the env does not have."""
    contact, scan = sensors.contact, sensors.range_scan
    _check_owners(config, task)
    return ObservationLayout(
        decoder.spec, decoder.size, decoder.has_phase, task.tracked_point, config.faults.reveal,
        None if contact is None else contact.limit_n, 0 if scan is None else scan.n_beams,
        1.0 if scan is None else scan.max_range_m, task_columns=task.columns, history=config.observation.history,
        told=decoder.told, columns=config.observation.columns,
    )  # fmt: skip


def check_columns(config: EnvConfig) -> None:
    """Raise ConfigError for a column that the env of complete settings does not have, without making the env."""
    if config.observation.columns != (USUAL,):
        spec = config.load_robot()
        task = config.make_task(spec, 1)
        decoder = ActionDecoder(config.action, spec, task.commands_speed)
        make_layout(config, task, config.make_sensors(spec, 1), decoder)


def _check_owners(config: EnvConfig, task: Task) -> None:
    """Raise ConfigError for a column of another task, or of this one with other settings."""
    others = {name for kind in _task_types() for name in kind.columns} - {*OWN, *task.columns}
    there = (*OWN, *task.columns)
    for name in config.observation.columns:
        if name != USUAL and find_column(name, "a column of the observations") and name in others:
            needs = COLUMNS[name].needs or "another task"
            raise ConfigError(
                f"the column {name} of the observations has no entries with these settings; it needs {needs}; expected "
                f"some of {', '.join(there)}{hint(name, there)}"
            )


def _task_types(base: type[Task] = Task) -> Iterator[type[Task]]:
    yield base
    for derived in base.__subclasses__():
        yield from _task_types(derived)
