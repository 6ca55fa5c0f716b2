"""Steps to angles and back, over every code and across the end of the turn; the file refuses what is wrong."""

from __future__ import annotations

import json
import math
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


def test_a_file_round_trips_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "snake.json"
    CHAIN.save(path)
    assert load_calibration(path) == CHAIN
    told = json.loads(path.read_text())
    without = {name: value for name, value in told["joints"][0].items() if name != "held"}
    for change, message in (
        ({"format": 7}, "format"),
        ({"format": "2"}, "is in format '2'; expected 2 without quotes"),
        ({"joints": [{"servo_id": 4, "direction": 2}]}, "direction of servo 4 is 2"),
        ({"joints": [{"servo_id": 4}, {"servo_id": 4}]}, "each once"),
        ({"joints": [without]}, "does not say what servos 4 held; calibrate again"),
        ({"joints": [{"servo_id": 4, "held": {"model": 777}}]}, "held"),
        ({"stepz_per_turn": 4096}, "steps_per_turn"),
    ):
        path.write_text(json.dumps({**told, **change}))
        with pytest.raises(ConfigError, match=message):
            load_calibration(path)
    path.write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_calibration(path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("direction", None, "joints[2].direction is missing; expected 1 or -1"),
        ("zero_steps", None, "joints[2].zero_steps is missing; expected 0 to 4095"),
        ("low_rad", None, "joints[2].low_rad is missing; expected the least joint angle [rad]"),
        ("high_rad", None, "joints[2].high_rad is missing; expected the largest joint angle [rad]"),
        ("model", None, "model is missing; expected the servos' model, as STS3215"),
        ("steps_per_turn", None, "steps_per_turn is missing; expected the steps of a turn, as 4096"),
        ("zero_steps", 9999, "joints[2].zero_steps is 9999; expected 0 to 4095"),
        ("zero_steps", -1, "joints[2].zero_steps is -1; expected 0 to 4095"),
    ],
)
def test_nothing_that_moves_a_joint_is_guessed(tmp_path: Path, name: str, value: int | None, message: str) -> None:
    path = tmp_path / "snake.json"
    CHAIN.save(path)
    told = json.loads(path.read_text())
    part = told if name in told else told["joints"][2]
    del part[name]
    part.update({} if value is None else {name: value})
    path.write_text(json.dumps(told))
    with pytest.raises(ConfigError) as refusal:
        load_calibration(path)
    assert str(refusal.value) == f"calibration {path}: {message}"


def test_a_file_of_nearly_that_name_is_offered(tmp_path: Path) -> None:
    straight_chain(range(1, 3), 1.0).save(tmp_path / "snake.json")
    with pytest.raises(ConfigError, match=rf"snaek.json does not exist; did you mean '{tmp_path}/snake.json'\?"):
        load_calibration(tmp_path / "snaek.json")
    with pytest.raises(ConfigError, match=r"other.txt does not exist; make it: python -m snake_gym.hardware calibrate"):
        load_calibration(tmp_path / "other.txt")


@pytest.mark.parametrize(("place", "depth"), [("all", 100000), ("joints", 900), ("in a joint", 300)])
def test_a_file_of_nothing_but_brackets_is_refused(tmp_path: Path, place: str, depth: int) -> None:
    path = tmp_path / "snake.json"
    deep = "[" * depth + "]" * depth
    joints = {"joints": deep, "in a joint": f'[{{"servo_id": {deep}}}]'}
    path.write_text(deep if place == "all" else f'{{"format": 2, "joints": {joints[place]}}}')
    with pytest.raises(ConfigError, match="calibration"):
        load_calibration(path)
    path.write_text("[" * depth)
    with pytest.raises(ConfigError, match="cannot be read"):
        load_calibration(path)


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        (("joints", 1, "zero_steps"), r"joints\[1\]\.zero_steps"),
        (("joints", 2, "held", "homing_offset"), r"joints\[2\]\.held\.homing_offset"),
        (("steps_per_turn",), "steps_per_turn"),
    ],
)
def test_a_number_that_is_written_as_a_text_is_refused(tmp_path: Path, keys: tuple[Any, ...], named: str) -> None:
    path = tmp_path / "snake.json"
    CHAIN.save(path)
    told = part = json.loads(path.read_text())
    for key in keys[:-1]:
        part = part[key]
    part[keys[-1]] = "2747"
    path.write_text(json.dumps(told))
    with pytest.raises(ConfigError, match=rf"{named} is '2747'; expected an integer.* \(without quotes\)$"):
        load_calibration(path)
