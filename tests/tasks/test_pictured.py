"""What a picture says of a task, and whether its target can be moved."""

import re

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.envs import SnakeEnv

MOVES = [
    ("Waypoints", {}, True), ("Velocity", {}, True), ("PathFollow", {}, False), ("Escape", {}, False),
    ("ObstacleField", {}, False), ("ObstacleField", {"goal": {"guidance": "goal"}}, True),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings", "moves"), MOVES)
def test_a_task_says_whether_its_target_moves(name: str, settings: dict[str, object], moves: bool) -> None:
    core = SnakeEnv(f"SnakeGym/{name}-v0", **settings).core
    core.reset(np.arange(1))
    assert core.task.target_moves is moves
    if moves:
        core.task.move_target(0, [3.0, 1.0])
    else:
        with pytest.raises(ConfigError):
            core.task.move_target(0, [3.0, 1.0])


def test_a_picture_of_velocity_tells_the_command() -> None:
    core = SnakeEnv("SnakeGym/Velocity-v0").core
    for seed in range(3):
        infos = core.reset(np.array([seed])) is not None and core.infos()
        speed, heading = infos["commanded_speed_m_s"][0], np.degrees(infos["commanded_heading_rad"][0])
        told = re.fullmatch(r"commanded ([0-9.]+) m/s at (-?\d+) deg", core.task.caption(0))
        assert told is not None
        assert float(told[1]) == pytest.approx(speed, abs=0.006)
        assert abs((float(told[2]) - heading + 180.0) % 360.0 - 180.0) < 0.6
