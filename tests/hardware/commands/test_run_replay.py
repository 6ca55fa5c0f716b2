"""A run of the emulated robot beside its replay, and the robot identified from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.config import ConfigError, build, dump_yaml
from snake_gym.hardware.commands.replay import resample
from snake_gym.hardware.commands.run import drive
from snake_gym.hardware.run.record import read_record
from snake_gym.hardware.run.run_config import RunConfig, plan_run
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.identification.fit import with_delay
from snake_gym.simulation.identification.robot_fit import identify_robot, in_steps_of
from snake_gym.simulation.identification.robot_replay import fine, replay

REAL = replace(
    RESILIENT_SERVO, name="real", friction=replace(RESILIENT_SERVO.friction, tangential_ns_m=1.5, normal_ns_m=7.0),
    actuator=replace(RESILIENT_SERVO.actuator, kp=45.0, kd=9.0),
)  # fmt: skip
VALUES = {"tangential_ns_m": 1.5, "normal_ns_m": 7.0, "kp": 45.0, "kd": 9.0}


def record_run(folder: Path, spec: RobotSpec, seconds: float = 10.0, **settings: Any) -> Path:
    """A log of the emulated robot ``spec`` under CC."""
    dump_yaml(spec, folder / "real.yaml")
    config = build(
        RunConfig,
        {
            "policy": "cc", "robot": str(folder / "real.yaml"), "time_limit_s": seconds,
            "course": {"targets": [[2.0, 1.0], [50.0, 0.0]]}, **settings,
            "connection": {"latch": str(folder / "estop"), **settings.get("connection", {})},
        },
    )  # fmt: skip
    path = folder / "run.jsonl"
    path.unlink(missing_ok=True)
    assert drive(config, plan_run(config), str(path), plain=True) == 0
    return path


def test_a_replay_of_the_right_robot_follows_it_closely(tmp_path: Path) -> None:
    record = read_record(record_run(tmp_path, REAL, 5.0))
    log = resample(record)
    assert log.period_s == 0.02
    right, wrong = (replay(log, with_delay(spec, 0.004)).errors() for spec in (record.spec, RESILIENT_SERVO))
    assert right["joint_rms_rad"] < 2e-3
    assert right["path_rms_m"] < 5e-3
    assert right["path_length_m"] > 0.5
    assert wrong["joint_rms_rad"] > 5.0 * right["joint_rms_rad"]
    assert wrong["path_rms_m"] > 5.0 * right["path_rms_m"]
    part = resample(record, to_s=3.0)
    assert part.n_periods < 0.7 * log.n_periods
    np.testing.assert_array_equal(part.reference_rad[:50], log.reference_rad[:50])


@pytest.mark.slow
def test_the_robot_behind_a_log_is_identified_and_late_servos_are_told_from_slow_ones(tmp_path: Path) -> None:
    found, late = (
        identify_robot(
            [resample(read_record(record_run(tmp_path, spec)))], RESILIENT_SERVO, backlash=False, said="a test"
        )
        for spec in (REAL, with_delay(REAL, 0.02))
    )
    for name, value in VALUES.items():
        assert found.values[name] == pytest.approx(value, rel=0.05), name
    assert 0.0 <= found.delay_s < 0.008  # bus and servo: goals go out some 3 ms after a reading began
    dump_yaml(found.spec, tmp_path / "found.yaml")
    loaded = load_robot(tmp_path / "found.yaml")
    assert loaded == found.spec
    assert loaded.control_dt_s == RESILIENT_SERVO.control_dt_s
    assert "a test" in loaded.source
    assert late.delay_s - found.delay_s == pytest.approx(0.02, abs=0.003)
    for name in ("kp", "normal_ns_m"):
        assert late.values[name] == pytest.approx(VALUES[name], rel=0.05)


@pytest.mark.slow
def test_backlash_is_found_where_there_is_some_and_not_where_there_is_none(tmp_path: Path) -> None:
    slack = replace(REAL, actuator=replace(REAL.actuator, backlash_rad=0.03), sim_dt_s=0.0005)
    log = resample(read_record(record_run(tmp_path, slack)))
    found = identify_robot([log], RESILIENT_SERVO)
    assert found.values["backlash_rad"] == pytest.approx(0.03, rel=0.2)
    for name, value in VALUES.items():
        assert found.values[name] == pytest.approx(value, rel=0.1), name
    tight = identify_robot([resample(read_record(record_run(tmp_path, REAL)))], RESILIENT_SERVO)
    assert "backlash_rad" not in tight.values


@pytest.mark.slow
def test_the_alternating_search_finds_the_friction_too(tmp_path: Path) -> None:
    friction = replace(RESILIENT_SERVO, friction=REAL.friction)
    log = resample(read_record(record_run(tmp_path, friction)))
    found = identify_robot([log], RESILIENT_SERVO, "avs")
    assert found.relative_std is None
    assert replay(log, found.spec).errors()["path_end_m"] < 0.01


def test_logs_that_cannot_be_replayed_are_named(tmp_path: Path) -> None:
    record = read_record(record_run(tmp_path, RESILIENT_SERVO, 2.0))
    blind = replace(record, pose_valid=np.zeros_like(record.pose_valid))
    limp = replace(record, start={**record.start, "limp": True})
    for bad, message in [(blind, "no pose of the head"), (limp, "limp robot")]:
        with pytest.raises(ConfigError, match=rf"{tmp_path}/run.jsonl .*{message}"):
            resample(bad)
    with pytest.raises(ConfigError, match=rf"{tmp_path}/run.jsonl has \d bus cycles; expected at least 10"):
        resample(record, to_s=0.1)
    with pytest.raises(ConfigError, match="has 9 joints; expected 14"):
        replay(resample(record), load_robot("snakesys"))


@pytest.mark.parametrize("period_s", [0.02, 0.035, 0.045, 0.3])
def test_a_found_robot_has_steps_that_go_into_its_control_step(period_s: float) -> None:
    slack = replace(RESILIENT_SERVO, actuator=replace(RESILIENT_SERVO.actuator, backlash_rad=0.02))
    found = in_steps_of(fine(slack, period_s), RESILIENT_SERVO)
    assert found.control_dt_s == RESILIENT_SERVO.control_dt_s
    assert found.sim_dt_s <= 0.002 + 1e-12
    plain = in_steps_of(fine(RESILIENT_SERVO, period_s), RESILIENT_SERVO)
    assert plain.sim_dt_s == RESILIENT_SERVO.sim_dt_s
