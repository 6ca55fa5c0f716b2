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
from snake_gym.hardware.calibration.calibration import (
    Calibration,
    JointCalibration,
    ServoSettings,
    load_calibration,
    straight_chain,
)

HELD = ServoSettings(777, 3, 10, -85, 0, 4095, 0, 12, 1)
CHAIN = Calibration(
    tuple(JointCalibration(*one, held=HELD) for one in ((4, 1, 2048), (2, -1, 100), (9, 1, 4000)))  # type: ignore[arg-type]
)


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


def test_a_file_round_trips(tmp_path: Path) -> None:
    CHAIN.save(tmp_path / "snake.json")
    assert load_calibration(tmp_path / "snake.json") == CHAIN


GONE = "(not there)"
JOINT = ("joints", 2)


@pytest.mark.parametrize(
    ("place", "value", "fragment"),
    [
        (("format",), 7, "format"),
        (("format",), "2", "is in format '2'; expected 2 without quotes"),
        (("joints",), [{"servo_id": 4, "direction": 2}], "direction of servo 4 is 2"),
        (("joints",), [{"servo_id": 4}, {"servo_id": 4}], "each once"),
        (("stepz_per_turn",), 4096, "steps_per_turn"),
        (("model",), GONE, "model is missing; expected the servos' model, as STS3215"),
        (("steps_per_turn",), GONE, "steps_per_turn is missing; expected the steps of a turn, as 4096"),
        (("steps_per_turn",), "2747", "steps_per_turn is '2747'; expected an integer"),
        ((*JOINT, "direction"), GONE, "joints[2].direction is missing; expected 1 or -1"),
        ((*JOINT, "zero_steps"), GONE, "joints[2].zero_steps is missing; expected 0 to 4095"),
        ((*JOINT, "low_rad"), GONE, "joints[2].low_rad is missing; expected the least joint angle [rad]"),
        ((*JOINT, "high_rad"), GONE, "joints[2].high_rad is missing; expected the largest joint angle [rad]"),
        ((*JOINT, "zero_steps"), 9999, "joints[2].zero_steps is 9999; expected 0 to 4095"),
        ((*JOINT, "zero_steps"), -1, "joints[2].zero_steps is -1; expected 0 to 4095"),
        ((*JOINT, "zero_steps"), "2747", "joints[2].zero_steps is '2747'; expected an integer"),
        ((*JOINT, "held"), GONE, "does not say what servos 9 held; calibrate again"),
        ((*JOINT, "held"), {"model": 777}, "held"),
        ((*JOINT, "held", "homing_offset"), "2747", "joints[2].held.homing_offset is '2747'; expected an integer"),
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


@pytest.mark.parametrize("text", ["{", "[" * 500, "[" * 100000 + "]" * 100000, '{"format": 2, "joints": [[]]}'])
def test_what_is_no_calibration_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "snake.json").write_text(text)
    with pytest.raises(ConfigError, match="calibration"):
        load_calibration(tmp_path / "snake.json")


def test_a_file_of_nearly_that_name_is_offered(tmp_path: Path) -> None:
    straight_chain(range(1, 3), 1.0).save(tmp_path / "snake.json")
    with pytest.raises(ConfigError, match=rf"snaek.json does not exist; did you mean '{tmp_path}/snake.json'\?"):
        load_calibration(tmp_path / "snaek.json")
