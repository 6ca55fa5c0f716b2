"""What a run makes of its settings, what it says where they name nothing that is there, its course, its warnings."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from snake_gym.config import build, load_yaml
from snake_gym.controllers.tuned import tuned_file
from snake_gym.emulator.pose import EmulatedPose
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.pose.udp_json import UdpJson
from snake_gym.hardware.robot.connection import ConnectionConfig, PoseConfig
from snake_gym.hardware.robot.heading_check import HeadingCheck
from snake_gym.hardware.robot.robot_loop import CourseConfig, LoopConfig, MeasuredCourse
from snake_gym.hardware.robot.run_config import RunConfig, open_loop, plan_run
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.presets import RESILIENT_SERVO


def test_without_a_first_pose_the_source_s_trouble_is_told(tmp_path: Path) -> None:
    free = UdpJson(port=0)
    free.close()
    pose = PoseConfig("udp_json", udp_port=free.port)
    config = RunConfig(
        policy="cc", connection=ConnectionConfig(latch=str(tmp_path / "estop"), pose=pose),
        loop=LoopConfig(first_pose_timeout_s=0.5),
    )  # fmt: skip
    loop, connected = open_loop(plan_run(config).contract, config)
    try:
        with pytest.raises(
            BringUpError, match=rf"no pose within 0\.5 s: nothing arrives on UDP 127\.0\.0\.1:{free.port}"
        ):
            loop.reset()
    finally:
        connected.close()


def test_a_controller_by_name_plays_as_tuned_for_the_robot_or_says_that_it_is_not() -> None:
    named, tuned = (plan_run(RunConfig(**told)) for told in ({"policy": "cc"}, {"controller": {"tuned": "cc"}}))
    assert named.contract.decoder.config.controller == tuned.contract.decoder.config.controller
    own = load_yaml(tuned_file("resilient_servo", "cc"))["controller"]
    assert named.contract.decoder.config.controller["amplitude_rad"] == own["amplitude_rad"]
    assert (named.name, named.notes) == ("cc", ())
    slower = plan_run(RunConfig(policy="cc", controller={"frequency_rad_s": 2.0})).contract.decoder.config.controller
    assert (slower["frequency_rad_s"], slower["amplitude_rad"]) == (2.0, own["amplitude_rad"])
    (note,) = plan_run(RunConfig(policy="cc", robot="configs/robot/heavy_head.yaml")).notes
    assert note.startswith("cc plays without settings tuned for heavy_head")


ACTION = np.zeros((1, RESILIENT_SERVO.n_joints))


def at(x: float, y: float, valid: bool = True) -> Measurement:
    joints = np.zeros((1, RESILIENT_SERVO.n_joints))
    return Measurement(joints, joints, np.array([[x, y]]), np.zeros(1), np.array([valid]))


def test_progress_and_targets_follow_the_measured_head() -> None:
    course = MeasuredCourse(CourseConfig(((1.0, 0.0), (1.0, 1.0)), 0.1, "head"), RESILIENT_SERVO)
    assert np.isnan(course.distance_m)
    course.begin(at(0.0, 0.0))
    assert course.distance_m == pytest.approx(1.0)
    for place, made, reached in ((at(0.5, 0.0), 0.5, 0), (at(0.5, 0.0, valid=False), 0.0, 0), (at(0.95, 0.0), 0.45, 1)):
        course.advance(place, ACTION)
        assert course.terms == {"progress": pytest.approx(made), "target": reached, "effort": 0.0}
    np.testing.assert_array_equal(course.goal().target_xy_w, [[1.0, 1.0]])
    assert course.distance_m == pytest.approx(np.hypot(0.05, 1.0))
    course.advance(at(1.0, 0.95), ACTION)
    assert course.complete
    assert not course.goal().active[0]
    course.advance(at(3.0, 3.0), ACTION)
    assert course.progress_m == pytest.approx(0.95 + np.hypot(0.05, 1.0) - 0.05)


def test_a_pose_source_follows_every_sample_of_the_bus_so_that_a_light_robot_reckons_its_way(tmp_path: Path) -> None:
    reckoned = {"latch": str(tmp_path / "estop"), "pose": {"kind": "dead_reckoning"}}
    told = {"policy": "cc", "robot": "configs/robot/sts3215_chain.yaml", "course": {"targets": [[50.0, 5.0]]}}
    config = build(RunConfig, {**told, "connection": reckoned})
    loop, connected = open_loop(plan_run(config).contract, config)
    truth = EmulatedPose(connected.emulated, config.connection.emulated)
    loop.reset()
    for _ in range(round(15.0 / loop.spec.control_dt_s)):
        loop.step(np.zeros(loop.decoder.size))
    there = truth.read(loop.body.clock.now())
    connected.close()
    assert np.hypot(*there.xy_w) > 1.0
    assert np.hypot(*(loop.last_pose.xy_w - there.xy_w)) < 0.05 * np.hypot(*there.xy_w)


def test_a_mirrored_robot_is_noticed_and_no_other(tmp_path: Path) -> None:
    noisy = {"pose_delay_s": 0.05, "position_noise_m": 0.003, "heading_noise_rad": 0.01}
    told = {"policy": "cc", "course": {"targets": [[50.0, 5.0]]}}
    config = build(RunConfig, {**told, "connection": {"latch": str(tmp_path / "estop"), "emulated": noisy}})
    plan = plan_run(config)
    loop, connected = open_loop(plan.contract, config)
    checks = {name: HeadingCheck(loop.spec) for name in ("right", "mirrored", "still", "blind")}
    warnings: dict[str, list[str | None]] = {name: [] for name in checks}
    loop.reset()
    for _ in range(round(8.0 / loop.spec.control_dt_s)):
        record = loop.step(np.zeros(loop.decoder.size))
        body, pose = record.body, record.pose
        mirrored = body._replace(joint_angle=-body.joint_angle)
        still = body._replace(joint_angle=0.0 * body.joint_angle)
        seen = {"right": (body, pose), "mirrored": (mirrored, pose), "still": (still, pose)}
        seen["blind"] = mirrored, pose._replace(valid=False)
        for name, (sample, where) in seen.items():
            warnings[name].append(checks[name].look(sample, where))
    connected.close()
    spoken = {name: [line for line in lines if line] for name, lines in warnings.items()}
    assert {name: len(lines) for name, lines in spoken.items()} == {"right": 0, "mirrored": 1, "still": 0, "blind": 0}
    assert "against its joints" in spoken["mirrored"][0]
