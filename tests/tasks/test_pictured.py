"""What a picture says of a task."""

import re

import numpy as np
import pytest

from snake_gym.envs import SnakeEnv


def test_a_picture_of_velocity_tells_the_command() -> None:
    core = SnakeEnv("SnakeGym/Velocity-v0").core
    for seed in range(3):
        infos = core.reset(np.array([seed])) is not None and core.infos()
        speed, heading = infos["commanded_speed_m_s"][0], np.degrees(infos["commanded_heading_rad"][0])
        told = re.fullmatch(r"commanded ([0-9.]+) m/s at (-?\d+) deg", core.task.caption(0))
        assert told is not None
        assert float(told[1]) == pytest.approx(speed, abs=0.006)
        assert abs((float(told[2]) - heading + 180.0) % 360.0 - 180.0) < 0.6
