"""Runs of the emulated robot next to their replay, and robots identified from them, also in the documented way: two
gaits with part of the torque, replay, identify. The oracle is the robot that the emulator was given.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.config import ConfigError, build, dump_yaml, load_yaml
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.commands.replay import describe_late
from snake_gym.hardware.commands.run import drive
from snake_gym.hardware.robot.record import RecordWriter, read_record
from snake_gym.hardware.robot.run_config import RunConfig, plan_run
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.identification.fit import identify_robot
from snake_gym.simulation.identification.replay import replay
from snake_gym.simulation.identification.run_log import resample
from snake_gym.spatial.spec import SpatialSpec

ROOT = Path(__file__).parents[3]
STIFFER = replace(
    RESILIENT_SERVO, name="real", friction=replace(RESILIENT_SERVO.friction, tangential_ns_m=1.5, normal_ns_m=7.0),
    actuator=replace(RESILIENT_SERVO.actuator, kp=45.0, kd=9.0),
)  # fmt: skip
VALUES = {"tangential_ns_m": 1.5, "normal_ns_m": 7.0, "kp": 45.0, "kd": 9.0}


def record_run(folder: Path, spec: RobotSpec, seconds: float = 10.0) -> Path:
    """A log of the emulated robot ``spec`` under CC."""
    dump_yaml(spec, folder / "real.yaml")
    course = {"targets": [[2.0, 1.0], [50.0, 0.0]]}
    told = {"policy": "cc", "robot": str(folder / "real.yaml"), "time_limit_s": seconds, "course": course}
    config = build(RunConfig, {**told, "connection": {"latch": str(folder / "estop")}})
    path = folder / "run.jsonl"
    path.unlink(missing_ok=True)
    assert drive(config, plan_run(config), str(path)) == 0
    return path


def test_a_replay_of_the_right_robot_follows_it_closely(tmp_path: Path) -> None:
    record = read_record(record_run(tmp_path, STIFFER, 5.0))
    log = resample(record)
    assert log.period_s == 0.02
    right, wrong = (
        replay(log, replace(spec, actuator=replace(spec.actuator, delay_s=0.004))).errors()
        for spec in (record.spec, RESILIENT_SERVO)
    )
    assert right["joint_rms_rad"] < 2e-3
    assert right["path_rms_m"] < 5e-3
    assert right["path_length_m"] > 0.5
    assert wrong["joint_rms_rad"] > 5.0 * right["joint_rms_rad"]
    assert wrong["path_rms_m"] > 5.0 * right["path_rms_m"]
    assert describe_late([record]) == []
    (line,) = describe_late([replace(record, cycle_s=np.append(record.cycle_s[:-1], record.cycle_s[-1] + 0.1))])
    assert f"1 of {record.cycle_s.size - 1} bus cycles came late" in line
    blind = replace(record, pose_valid=np.zeros_like(record.pose_valid))
    with pytest.raises(ConfigError, match=rf"{tmp_path}/run.jsonl has no pose of the head"):
        resample(blind)
    spatial = str(tmp_path / "spatial.jsonl")
    RecordWriter(spatial, SpatialSpec(name="snake_robot_iii"), None, {}).close("after all", {})
    with pytest.raises(ConfigError, match="is of snake_robot_iii, a spatial robot"):
        main(["replay", spatial, "--no-plot"])


@pytest.mark.slow
def test_backlash_is_identified_of_a_robot_that_has_some(tmp_path: Path) -> None:
    slack = replace(STIFFER, actuator=replace(STIFFER.actuator, backlash_rad=0.03), sim_dt_s=0.0005)
    log = resample(read_record(record_run(tmp_path, slack)))
    nominal = replace(RESILIENT_SERVO, actuator=replace(RESILIENT_SERVO.actuator, backlash_rad=0.02), sim_dt_s=0.002)
    found = identify_robot([log], nominal)
    assert found.values["backlash_rad"] == pytest.approx(0.03, rel=0.2)
    for name, value in VALUES.items():
        assert found.values[name] == pytest.approx(value, rel=0.25), name


VARIED = {
    "tangential_ns_m": 1.15, "normal_ns_m": 0.85, "tangential_coulomb": 1.15, "normal_coulomb": 0.85, "kp": 0.8,
    "kd": 1.2,
}  # fmt: skip
"""Factors on what the nominal robot has."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model", "bus_s"), [("sts3215", "STS3215", 0.002), ("sm8524bl", "SM8524BL", 0.024)])
def test_the_page_s_steps_find_the_robot_of_each_configuration(
    name: str, model: str, bus_s: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Baud rate, bus period, limits and gaits are those that a user has; the robot differs from its file."""
    settings = load_yaml(ROOT / f"configs/hardware/{name}.yaml")
    nominal = load_robot(settings["robot"])
    varied = {
        place: {one: VARIED[one] * getattr(part, one) for one in VARIED if getattr(part, one, 0.0) > 0.0}
        for place, part in (("friction", nominal.friction), ("actuator", nominal.actuator))
    }
    real = replace(
        nominal, name="real", friction=replace(nominal.friction, **varied["friction"]),
        actuator=replace(nominal.actuator, delay_s=0.01, **varied["actuator"]),
    )  # fmt: skip
    dump_yaml(real, tmp_path / "real.yaml")
    dump_yaml(nominal, tmp_path / "nominal.yaml")
    told = {
        "robot": tmp_path / "real.yaml", "connection.port": "memory", "connection.calibration": "null",
        "connection.pose.kind": "truth", "connection.latch": tmp_path / "estop", "connection.servo_model": model,
        "controller.file": ROOT / f"configs/controllers/{nominal.name}/cc.yaml",
    }  # fmt: skip
    words = ["--config", str(ROOT / f"configs/hardware/{name}.yaml"), "--time", "10", "--targets", "1000,0"]
    words += [word for key, value in told.items() for word in ("--set", f"{key}={value}")]
    logs = [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
    assert main(["run", *words, "--log", logs[0]]) == 0
    assert main(["run", *words, "--log", logs[1], "--set", "controller.frequency_rad_s=2"]) == 0
    assert read_record(logs[0]).torque_share == settings["safety"]["torque_limit"]
    words = ["--robot", str(tmp_path / "nominal.yaml"), "--identify", str(tmp_path / "mine.yaml")]
    assert main(["replay", *logs, *words, "--json", str(tmp_path / "found.json")]) == 0
    out = capsys.readouterr().out
    assert "kp" in out and "delay_s" in out and f"wrote {tmp_path}/mine.yaml" in out
    assert all(Path(log).with_suffix(".png").read_bytes()[:4] == b"\x89PNG" for log in logs)
    assert load_robot(tmp_path / "mine.yaml").actuator.torque_limit_nm == nominal.actuator.torque_limit_nm
    found: dict[str, Any] = json.loads((tmp_path / "found.json").read_text())["identified"]
    truth = varied["friction"] | varied["actuator"]
    assert found["values"].keys() == {*truth, "delay_s"}
    for one, value in truth.items():
        off = abs(found["values"][one] / value - 1.0)
        assert off <= max(0.05, found["relative_std"][one]), one
    delay_s = found["values"]["delay_s"]
    assert delay_s == pytest.approx(0.01 + bus_s, abs=max(0.003, delay_s * found["relative_std"]["delay_s"]))
