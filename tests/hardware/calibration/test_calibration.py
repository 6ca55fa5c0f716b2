"""Steps to angles and back, over every code and across the end of the turn; the file refuses what is wrong."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.hardware.calibration.calibration import Calibration, JointCalibration, load_calibration

HELD = {"model": 777, "homing_offset": -85, "mode": 0, "position_p": 32}
CHAIN = Calibration(
    tuple(JointCalibration(*one, -1.5, 1.5, HELD) for one in ((4, 1, 2048), (2, -1, 100), (9, 1, 4000))),
    "STS3215", 4096,
)  # fmt: skip


def test_every_position_comes_back_through_its_angle() -> None:
    for steps in range(4096):
        there = np.full(3, float(steps))
        np.testing.assert_array_equal(CHAIN.steps(CHAIN.angles(there)), there)


def test_the_angle_is_continuous_where_the_counter_wraps() -> None:
    near_zero = CHAIN.angles(np.array([2048.0, 90.0, 4095.0])), CHAIN.angles(np.array([2048.0, 4096.0 + 90.0, 4095.0]))
    np.testing.assert_allclose(*near_zero)
    across = CHAIN.angles(np.array([0.0, 0.0, 4095.0]))[2], CHAIN.angles(np.array([0.0, 0.0, 0.0]))[2]
    assert across[1] - across[0] == pytest.approx(2.0 * math.pi / 4096)


def test_a_joint_that_counts_backwards_bends_the_other_way() -> None:
    angle = CHAIN.angles(np.array([2058.0, 110.0, 4010.0]))
    np.testing.assert_allclose(angle, np.array([10.0, -10.0, 10.0]) * 2.0 * math.pi / 4096)
    np.testing.assert_allclose(CHAIN.rates(np.array([100.0, 100.0, 0.0]))[:2], np.array([1.0, -1.0]) * math.pi / 20.48)
    present = np.array([2048.0 + 3 * 4096, 100.0, -96.0])  # the nearest position is asked for
    np.testing.assert_array_equal(CHAIN.steps(np.zeros(3), present), present)


def test_a_range_wider_than_the_robot_s_is_cut() -> None:
    cut = CHAIN.within(1.0)
    assert (cut.low_rad == -1.0).all() and (cut.high_rad == 1.0).all() and CHAIN.within(2.0) == CHAIN


def test_a_file_round_trips(tmp_path: Path) -> None:
    CHAIN.save(tmp_path / "snake.json")
    assert load_calibration(tmp_path / "snake.json") == CHAIN


GONE = "(not there)"
JOINT = ("joints", 2)


@pytest.mark.parametrize(
    ("place", "value", "fragment"),
    [
        (("format",), "2", "is in format '2'; expected 2"),
        (("joints",), [], "each once"),
        ((*JOINT, "servo_id"), 4, "each once"),
        ((*JOINT, "direction"), 2, "direction of servo 9 is 2"),
        ((*JOINT, "zero_steps"), GONE, "joints[2].zero_steps"),
        ((*JOINT, "zero_steps"), 9999, "joints[2].zero_steps is 9999; expected 0 to 4095"),
        ((*JOINT, "held"), GONE, "does not say what servos 9 held; calibrate again"),
    ],
)
def test_nothing_that_moves_a_joint_is_guessed(
    tmp_path: Path, place: tuple[Any, ...], value: Any, fragment: str
) -> None:
    path = tmp_path / "snake.json"
    CHAIN.save(path)
    told = part = json.loads(path.read_text())
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    if value == GONE:
        del part[place[-1]]
    path.write_text(json.dumps(told))
    with pytest.raises(ConfigError, match=re.escape(fragment)):
        load_calibration(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "snake.json"
    for text in ("{", "[" * 500, '{"format": 2, "joints": [[]]}'):
        file.write_text(text)
        with pytest.raises(ConfigError, match="calibration"):
            load_calibration(file)
