"""``emulate`` as a user has it: a robot in another process, told what to do by lines, heard by what it prints; and what
it says of a wiggle: the side, while the joint is on its way, for every robot that can be emulated.
"""

from __future__ import annotations

import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from snake_gym.emulator.emulate import WiggleWatch, mounted_at_random
from snake_gym.emulator.robot import emulate
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.calibration.procedures import wiggle
from snake_gym.hardware.robot.connection import ConnectionConfig
from snake_gym.robot.catalogue import load_robot
from tests.hardware.programs import emulator, repeated
from tests.hardware.rig import Movable


def test_an_emulated_robot_can_be_scanned_moved_and_hurt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = tmp_path / "bus"
    with emulator(link, "--mounting", "3", "--pose-port", "47913") as robot:
        assert any(line.startswith(f"resilient_servo on {link}") for line in robot.said)
        assert any(line.startswith("joint  servo") for line in robot.said)
        words = ["wiggle", "--port", str(link), "--ids", "4", "--latch", str(tmp_path / "estop")]
        assert any(main(words) == 0 for _ in range(10)), "on a busy machine a servo answers too late now and then"
        robot.wait_for(lambda line: line.startswith("joint 4 bends to the "))
        robot.tell("bend 2 40")
        assert robot.joint_angles_deg()[1] > 30.0
        robot.tell("nonsense")
        assert "expected one of" in robot.wait_for(lambda line: line.startswith("nonsense?"))
        robot.tell("dead 2")
        robot.wait_for(lambda line: line == "done\n")
        capsys.readouterr()
        _, lines = repeated(["scan", "--port", str(link), "--ids", "1-3"], capsys, 3)
        assert [int(line.split()[0]) for line in lines[1:]] == [1, 3]
        robot.tell("state")
        assert "torque on: 0" in robot.wait_for(lambda line: line.startswith("joints [deg]"))
        for _ in range(100):  # that come close together
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                robot.process.send_signal(number)
        assert robot.process.wait(20) == 0
    assert not link.is_symlink()


ROBOTS = ["resilient_servo", *sorted(Path(__file__).parents[2].glob("configs/robot/*.yaml"))]


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: Path(robot).stem)
def test_the_side_is_told_before_the_joint_is_at_its_far_end(robot: str | Path) -> None:
    spec = load_robot(str(robot))
    if spec.actuator.kind != "position":
        pytest.skip("no servos")
    mounting = mounted_at_random(straight_chain(range(1, spec.n_links), spec.joint_limit_rad), 5)
    bus = emulate(ConnectionConfig(), spec, mounting, None)
    driver, watch = Movable(bus.host_transport(), clock=bus.clock), WiggleWatch(spec)
    told: list[str] = []

    def look() -> None:
        seen = watch.see(bus.plant.joint_angle(), [servo.torque_on for servo in bus.servos])
        told.extend([] if seen is None else [seen])

    turned, together = bus.plant.joint_angle() + 0.2, np.arange(spec.n_joints) < 2
    assert watch.see(turned, together) is None, "joints that move together are a run, which nobody wants told"
    for joint in (0, spec.n_joints // 2, spec.n_joints - 1):
        look()
        told.clear()
        at_end: list[str] = []
        driver.interrupted = look  # type: ignore[method-assign]
        done = wiggle(driver, joint + 1, at_the_end=partial(at_end.extend, told))
        assert at_end == told and len(told) == 1, (robot, joint, told)
        side = done.moved_rad * mounting.joints[joint].direction > 0.0
        assert told[0].startswith(f"joint {joint + 1} bends")
        assert told[0].split()[-1] == (("right", "left") if "to the" in told[0] else ("lower", "higher"))[not side]
