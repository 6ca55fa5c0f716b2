"""Runs of the emulated robot beside their replay, and robots identified from them, also in the documented way: log two
gaits with little torque, replay, identify. The oracle is the robot that the emulator was given.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.config import ConfigError, build, dump_yaml, load_yaml, to_dict
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.commands.replay import resample
from snake_gym.hardware.commands.run import drive
from snake_gym.hardware.run.record import RecordWriter, read_record
from snake_gym.hardware.run.run_config import RunConfig, plan_run
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spatial_spec import SpatialSpec
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.identification.fit import with_delay
from snake_gym.simulation.identification.robot_fit import Miss, Proof, identify_robot, in_steps_of
from snake_gym.simulation.identification.robot_replay import fine, replay

ROOT = Path(__file__).parents[3]
CHAIN = load_robot(str(ROOT / "configs/robot/sts3215_chain.yaml"))
REAL = replace(CHAIN, name="real", actuator=replace(CHAIN.actuator, delay_s=0.004))
TRUTH = {"tangential_coulomb": 0.06, "normal_coulomb": 0.6, "kp": 15.0, "kd": 1.0}
BUS_S = 0.002
"""Goals follow a reading, which takes so long, and are on the wire for 0.8 ms."""


def wrong(factor: float) -> RobotSpec:
    """The nominal robot of somebody who knows neither friction nor servos."""
    friction, servo = CHAIN.friction, CHAIN.actuator
    return replace(
        CHAIN, friction=replace(friction, tangential_coulomb=0.06 / factor, normal_coulomb=0.6 * factor),
        actuator=replace(servo, kp=15.0 * factor, kd=1.0 / factor),
    )  # fmt: skip


def log_gait(folder: Path, name: str, seconds: float, torque_limit: float, *more: str) -> str:
    """A log as step 7 of docs/hardware.md makes it, of the robot in memory."""
    told = load_yaml(ROOT / "configs/hardware/sts3215.yaml")
    dump_yaml(REAL, folder / "real.yaml")
    told |= {"robot": str(folder / "real.yaml")}
    told["connection"] |= {"port": "memory", "calibration": None, "pose": {"kind": "truth"}}
    told["connection"]["latch"] = str(folder / "estop")
    told["safety"]["torque_limit"] = torque_limit
    (folder / "config.yaml").write_text(json.dumps(told))
    path = str(folder / f"{name}.jsonl")
    words = ["log", "--controller", "cc", "--seconds", f"{seconds:g}", "--config", str(folder / "config.yaml")]
    assert main([*words, "--log", path, "--plain", *more]) == 0
    return path


def identify(folder: Path, logs: list[str], robot: RobotSpec) -> tuple[int, dict[str, Any]]:
    """Exit code, and the numbers."""
    dump_yaml(robot, folder / "nominal.yaml")
    words = ["replay", *logs, "--robot", str(folder / "nominal.yaml"), "--identify", str(folder / "mine.yaml")]
    code = main([*words, "--no-backlash", "--json", str(folder / "found.json")])
    path = folder / "found.json"
    return code, json.loads(path.read_text())["identified"] if path.exists() else {}


@pytest.mark.slow
def test_a_robot_is_found_from_runs_with_little_torque(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fast = ["--set", "controller.frequency_rad_s=2"]
    logs = [log_gait(tmp_path, "slow", 6.0, 0.3), log_gait(tmp_path, "fast", 6.0, 0.3, *fast)]
    assert read_record(logs[0]).imposed.torque_limit == 0.3  # type: ignore[union-attr]
    code, found = identify(tmp_path, logs, wrong(1.3))
    assert code == 0
    out = capsys.readouterr().out
    assert "normal_coulomb" in out and "delay [ms]" in out
    assert (tmp_path / "slow.png").read_bytes()[:4] == (tmp_path / "fast.png").read_bytes()[:4] == b"\x89PNG"
    assert main(["replay", logs[0], "--robot", str(tmp_path / "mine.yaml"), "--no-plot", "--json", "-"]) == 0
    again = json.loads(capsys.readouterr().out)["runs"][logs[0]]
    assert again["path_rms_m"] < 5e-3 and again["joint_rms_rad"] < 5e-3
    for name, value in TRUTH.items():
        assert found["values"][name] == pytest.approx(value, rel=0.03), name
        assert abs(found["values"][name] - value) <= 3.0 * found["relative_std"][name] * value, name
    assert found["delay_s"] == pytest.approx(REAL.actuator.delay_s + BUS_S, abs=0.001)
    proof = found["proof"]["held_out"]
    assert proof["after"]["head_m"] < 0.3 * proof["before"]["head_m"]
    assert proof["after"]["joint_rad"] < 0.3 * proof["before"]["joint_rad"]
    assert load_robot(str(tmp_path / "mine.yaml")).actuator.torque_limit_nm == CHAIN.actuator.torque_limit_nm


def rewrite_start(path: str, **changes: Any) -> None:
    first, *rest = Path(path).read_text().splitlines()
    start = {**json.loads(first), **changes}
    Path(path).write_text("\n".join([json.dumps({k: v for k, v in start.items() if v != "gone"}), *rest]) + "\n")


@pytest.mark.slow
def test_a_robot_that_explains_its_log_worse_is_not_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_gait(tmp_path, "slow", 6.0, 0.5)
    rows = [json.loads(line) for line in Path(log).read_text().splitlines()]
    for row in rows:  # most of the run tells references that were never sent
        if row["kind"] == "cycle" and row["t"] < 4.5:
            row["sent"] = [0.6 * one for one in row["sent"]]
    Path(log).write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    code, found = identify(tmp_path, [log], REAL)
    assert (code, found) == (1, {})
    assert "mine.yaml is not written: it misses the head on the last quarter of the runs by" in capsys.readouterr().err
    assert not (tmp_path / "mine.yaml").exists()


def test_logs_of_before_say_in_one_line_what_is_assumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = log_gait(tmp_path, "slow", 1.0, 0.5)
    new = read_record(log).imposed
    assert new is not None
    rewrite_start(log, format=1, imposed="gone")
    old = read_record(log).imposed
    assert old is not None
    assert old.torque_limit == new.torque_limit == 0.5
    assert old.servo_speed_rad_s == pytest.approx(new.servo_speed_rad_s, abs=1e-3)
    rewrite_start(log, format=1, config="gone")
    assert read_record(log).imposed is None
    capsys.readouterr()
    assert main(["replay", log, "--no-plot"]) == 0
    said = capsys.readouterr().err
    assert said == f"note: {log}: it does not say how much torque the run used; all of it is assumed\n"


def test_logs_that_do_not_belong_together_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, other = log_gait(tmp_path, "slow", 1.0, 0.5), str(tmp_path / "other.jsonl")
    Path(other).write_text(Path(log).read_text())
    stiff = replace(REAL, name="stiff", actuator=replace(REAL.actuator, kp=30.0))
    rewrite_start(other, spec=to_dict(stiff))
    words = ["--identify", str(tmp_path / "mine.yaml"), "--no-plot"]
    with pytest.raises(ConfigError) as refused:
        main(["replay", log, other, *words])
    assert str(refused.value) == (
        f"log {other} is of stiff, {log} of real: actuator.kp 30 for 15; expected runs of one robot for --identify"
    )
    start, *rows = Path(log).read_text().splitlines()
    Path(log).write_text("\n".join([start, *rows[: len(rows) // 3], *rows[2 * len(rows) // 3 :]]) + "\n")
    with pytest.raises(ConfigError, match=rf"^log {log}: line \d+: the cycle at \S+ s follows the one at"):
        main(["replay", log, *words])
    capsys.readouterr()
    assert main(["replay", log, "--no-plot"]) == 0
    assert re.search(rf"note: {log}: line \d+: the cycle at", capsys.readouterr().err)
    assert not (tmp_path / "mine.yaml").exists()


def test_a_log_of_a_spatial_robot_is_refused_by_its_name(tmp_path: Path) -> None:
    log = tmp_path / "spatial.jsonl"
    RecordWriter(log, SpatialSpec(name="snake_robot_iii"), None, {}).close("after all")
    with pytest.raises(ConfigError) as refused:
        main(["replay", str(log), "--no-plot"])
    assert str(refused.value) == (
        f"log {log} is of snake_robot_iii, a spatial robot; replay and identification are for planar robots"
    )


def test_a_run_that_gets_worse_is_an_objection_though_all_runs_together_get_better() -> None:
    def miss(degrees: float) -> Miss:
        return Miss(0.01, math.radians(degrees))

    better = (miss(2.0), miss(1.0))
    assert Proof(better, better, (better, (miss(0.50), miss(0.52)))).objection() is None
    said = Proof(better, better, (better, (miss(0.50), miss(0.59)))).objection(["a.jsonl", "b.jsonl"])
    assert said == "b.jsonl gets worse by it: joints 0.50 -> 0.59 deg rms"


# --- without the command line -----------------------------------------------------------------------------------------

STIFFER = replace(
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
    record = read_record(record_run(tmp_path, STIFFER, 5.0))
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
        for spec in (STIFFER, with_delay(STIFFER, 0.02))
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
    slack = replace(STIFFER, actuator=replace(STIFFER.actuator, backlash_rad=0.03), sim_dt_s=0.0005)
    log = resample(read_record(record_run(tmp_path, slack)))
    found = identify_robot([log], RESILIENT_SERVO)
    assert found.values["backlash_rad"] == pytest.approx(0.03, rel=0.2)
    for name, value in VALUES.items():
        assert found.values[name] == pytest.approx(value, rel=0.1), name
    tight = identify_robot([resample(read_record(record_run(tmp_path, STIFFER)))], RESILIENT_SERVO)
    assert "backlash_rad" not in tight.values


@pytest.mark.slow
def test_the_alternating_search_finds_the_friction_too(tmp_path: Path) -> None:
    friction = replace(RESILIENT_SERVO, friction=STIFFER.friction)
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
    with pytest.raises(ConfigError, match=rf"--to is 0.1: {tmp_path}/run.jsonl has \d bus cycles; .* 10, as up to 0"):
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


VARIED = {
    "tangential_ns_m": 1.15, "normal_ns_m": 0.85, "tangential_coulomb": 1.15, "normal_coulomb": 0.85, "kp": 0.8,
    "kd": 1.2,
}  # fmt: skip
"""Factors on what the nominal robot has."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "model", "bus_s"), [("sts3215", "STS3215", 0.002), ("sm8524bl", "SM8524BL", 0.024)])
def test_the_page_s_steps_find_the_robot_of_each_configuration(
    name: str, model: str, bus_s: float, tmp_path: Path
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
    }  # fmt: skip
    words = ["--config", str(ROOT / f"configs/hardware/{name}.yaml"), "--seconds", "10", "--plain"]
    words += ["--controller", str(ROOT / f"configs/controllers/{nominal.name}/cc.yaml")]
    words += [word for key, value in told.items() for word in ("--set", f"{key}={value}")]
    logs = [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
    assert main(["log", *words, "--log", logs[0]]) == 0
    assert main(["log", *words, "--log", logs[1], "--set", "controller.frequency_rad_s=2"]) == 0
    code, found = identify(tmp_path, logs, nominal)
    assert code == 0
    truth = varied["friction"] | varied["actuator"]
    assert found["values"].keys() == truth.keys()
    for one, value in truth.items():
        off = abs(found["values"][one] / value - 1.0)
        assert off <= max(0.05, found["relative_std"][one]), one
    assert found["delay_s"] == pytest.approx(0.01 + bus_s, abs=max(0.003, found["delay_std_s"]))
