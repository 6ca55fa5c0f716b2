"""``emulate`` as a user has it: a robot in another process, told what to do by lines, heard by what it prints."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from snake_gym.hardware.__main__ import main
from tests.hardware.programs import emulator, repeated


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
