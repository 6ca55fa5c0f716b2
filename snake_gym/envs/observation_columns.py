"""Observation of an env: its layout, and the refusal of columns that its task does not have with its settings."""

from __future__ import annotations

from snake_gym.config import ConfigError
from snake_gym.interface.actions import ActionDecoder
from snake_gym.interface.observations import COLUMNS, OWN, USUAL, ObservationLayout
from snake_gym.simulation.sensors import SensorSuite
from snake_gym.tasks.task import EnvConfig, Task


def make_layout(config: EnvConfig, task: Task, sensors: SensorSuite, decoder: ActionDecoder) -> ObservationLayout:
    """Return the layout of an env's observations. Raises ConfigError for a column that the env does not have."""
    contact, scan = sensors.contact, sensors.range_scan
    layout = ObservationLayout(
        decoder.spec, decoder.size, decoder.has_phase, task.tracked_point, config.faults.reveal,
        None if contact is None else contact.limit_n, 0 if scan is None else scan.n_beams,
        1.0 if scan is None else scan.max_range_m, task_columns=task.columns, history=config.observation.history,
        controller_signals=decoder.signal_names, columns=config.observation.columns,
    )  # fmt: skip
    n_worlds = len(task.rows)
    signals = {**task.signals(), **decoder.signals(decoder.initial_state(n_worlds))}
    for name in layout.fields:
        if name not in (*OWN, *task.columns) and layout.lacks_signal(name, signals, n_worlds):
            raise ConfigError(
                f"the column {name} of the observations has no entries with these settings; it needs "
                f"{COLUMNS[name].needs or 'another task'}"
            )
    return layout


def check_columns(config: EnvConfig) -> None:
    """Raise ConfigError for a column that the env of complete settings does not have, without making the env."""
    if config.observation.columns != (USUAL,):
        spec = config.load_robot()
        task = config.make_task(spec, 1)
        decoder = ActionDecoder(config.action, spec, task.commands_speed)
        make_layout(config, task, config.make_sensors(spec, 1), decoder)
