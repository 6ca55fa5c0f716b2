"""``emulate`` as a user has it: a robot in another process, told what to do by lines, heard by what it prints."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from snake_gym.emulator.emulate import mounted_at_random
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.bus.bus import BusPort
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.calibration.procedures import Side
from snake_gym.hardware.commands.calibrate import calibrate
from snake_gym.hardware.commands.options import open_bus
from tests.hardware.programs import EmulatorProcess, emulator, repeated


class Neighbour:
    """A guide who sees what the emulator says and bends joints by its lines."""

    def __init__(self, robot: EmulatorProcess) -> None:
        self.robot = robot
        self.told = False

    def say(self, line: str) -> None:
        pass

    def straighten(self) -> None:
        pass

    def look(self, joint: int, servo_id: int) -> Side:
        line = self.robot.wait_for(lambda one: one.startswith(f"joint {joint} bends to the "))
        return "right" if "right" in line else "left"

    def come_back(self, joint: int, servo_id: int) -> None:
        raise AssertionError(f"joint {joint} was let go")

    def moved_to_stops(self, widths_rad: Mapping[int, float]) -> bool:
        if not self.told:
            self.told, self.give_up_s = True, time.monotonic() + 60.0
            for joint in (1, 2):
                for angle in (90, -90, 0):
                    self.robot.tell(f"bend {joint} {angle}")
        assert time.monotonic() < self.give_up_s, widths_rad
        return all(width > math.radians(179.0) for width in widths_rad.values())


@pytest.mark.slow
def test_an_emulated_robot_is_calibrated_by_hand_with_what_it_says(tmp_path: Path) -> None:
    # The settings name a calibration that is not there yet: servos put on at random do not need it.
    unmade = ["--set", f"connection.calibration={tmp_path / 'unmade.json'}"]
    with emulator(tmp_path / "bus", "--mounting", "3", "--pose-port", "0", *unmade) as robot:
        assert any("first time" in line for line in robot.said)
        bus = open_bus(BusPort(robot.port, latency_s=0.025))
        try:
            bus.interrupted = lambda: None  # type: ignore[attr-defined]
            found = calibrate(bus, [1, 2], Neighbour(robot))  # type: ignore[arg-type]
            truth = mounted_at_random(straight_chain(range(1, 10), math.radians(90.0)), 3)
            assert found.direction.tolist() == truth.direction[:2].tolist()
            np.testing.assert_allclose(np.degrees([found.low_rad, found.high_rad]), [[-87] * 2, [87] * 2], atol=1.0)
            robot.joint_angles_deg()
            assert sum("bends to the" in line for line in robot.said) == 2
            # Joints that move together are a run, which nobody wants told.
            at = [int(truth.zero_steps[k] + 200 * (1 if truth.zero_steps[k] < 2048 else -1)) for k in (2, 3)]
            bus.write_targets([3, 4], at, 600)
            give_up = time.monotonic() + 20.0
            while min(abs(angle) for angle in robot.joint_angles_deg()[2:4]) < 12.0:
                assert time.monotonic() < give_up
            bus.torque([3, 4], False)
            robot.joint_angles_deg()
            assert sum("bends to the" in line for line in robot.said) == 2
        finally:
            bus.close()


def test_an_emulated_robot_can_be_scanned_moved_and_hurt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    link = tmp_path / "bus"
    with emulator(link, "--mounting", "3", "--pose-port", "47913") as robot:
        assert any(line.startswith(f"resilient_servo on {link}") for line in robot.said)
        assert any(line.startswith("joint  servo") for line in robot.said)
        words = ["wiggle", "--port", str(link), "--ids", "4", "--latch", str(tmp_path / "estop")]
        assert any(main(words) == 0 for _ in range(10)), "on a busy machine a servo answers too late now and then"
        robot.wait_for(lambda line: line.startswith("joint 4 bends to the "))
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
