"""Jammed joints and registers that drivers write, as a driver of another make sees them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hardware.programs import emulator
from tests.hardware.raw_driver import WRITE, RawDriver
from tests.hardware.rig import serve

TORQUE, GOAL, TORQUE_LIMIT, LOCK, POSITION, LOAD, CURRENT = 40, 42, 48, 55, 56, 60, 69
UNLOAD, OFFSET, PROTECTIVE, PROTECTION_TIME, OVERLOAD = 19, 31, 34, 35, 36
OVERLOADED = 0x20


@pytest.fixture
def wire() -> Iterator[RawDriver]:
    with serve([1, 2]) as port, RawDriver(port.port) as raw:
        yield raw


def test_a_jammed_joint_stalls_and_its_servo_protects_itself() -> None:
    with serve([1, 2]) as port, RawDriver(port.port) as raw:
        port.bus.jam(2)
        for address, value in ((PROTECTIVE, 30), (OVERLOAD, 70), (PROTECTION_TIME, 100)):
            raw.write(2, address, value)
        start = raw.read(2, POSITION, 2)
        raw.write(2, GOAL, start + 600, 2)
        assert raw.until(lambda: raw.read(2, LOAD, 2), lambda load: load & 0x3FF > 900) == 1000
        assert raw.read(2, CURRENT, 2) * 6.5e-3 == pytest.approx(2.7, rel=0.01), "amperes, from its sheet"
        assert abs(raw.read(2, POSITION, 2) - start) <= 2
        assert raw.until(lambda: raw.error(2), bool) == OVERLOADED
        assert raw.until(lambda: raw.read(2, LOAD, 2), lambda load: load < 900) == 300, "register 34, in percent"
        assert raw.error(1) == 0
        raw.write(2, GOAL, 2048 + 700, 2)
        assert raw.error(2) == OVERLOADED, "the same way again"
        raw.write(2, GOAL, 2048 - 600, 2)
        assert raw.error(2) == 0, "the other way sets it free"
        port.bus.jam(2, False)
        assert raw.until(lambda: raw.read(2, POSITION, 2), lambda at: at < 2048 - 590) < 2048 - 590


def test_joints_stall_at_their_stops_and_where_links_run_into_each_other(tmp_path: Path) -> None:
    """Ninety degrees are the robot's joint limit, its stop is a little further; with all nine joints by 69 degrees the
    chain would lie in itself.
    """
    with emulator(tmp_path / "bus", "--pose-port", "0") as robot, RawDriver(robot.port) as raw:
        for one in range(1, 10):
            raw.write(one, UNLOAD, 0x0C)
        raw.write(5, GOAL, 4095, 2)
        raw.until(lambda: raw.read(5, LOAD, 2), lambda load: load == 1000)  # bit 10 is its direction
        raw.until(lambda: raw.read(5, POSITION, 2), lambda at: at > 2048 + 1024)
        raw.write(5, UNLOAD, 0x2C)
        assert raw.until(lambda: raw.error(5), bool) == OVERLOADED
        angles = robot.joint_angles_deg()
        assert 90.0 < angles[4] < 97.0 and max(map(abs, angles)) == angles[4], angles
        curled, straight = 2048 + 785, 2048
        raw.write(5, UNLOAD, 0x0C)
        for one in range(1, 10):
            raw.write(one, GOAL, curled, 2)
        stalls = raw.until(
            lambda: max(range(1, 10), key=lambda one: raw.read(one, LOAD, 2) & 0x3FF),
            lambda one: raw.read(one, LOAD, 2) == 1000,
        )
        assert abs(raw.read(stalls, POSITION, 2) - curled) > 60, "it pushes (all its torque from 65 steps on)"
        assert min(map(abs, robot.joint_angles_deg())) < 60.0
        for one in range(1, 10):
            raw.write(one, GOAL, straight, 2)
        for one in range(1, 10):
            raw.until(lambda one=one: raw.read(one, POSITION, 2), lambda at: abs(at - straight) < 20)


def test_codes_of_torque_enable(wire: RawDriver) -> None:
    """Only 128 makes the present position the middle; those that are in no table change nothing."""
    wire.write(1, GOAL, 2100, 2)
    wire.until(lambda: wire.read(1, POSITION, 2), lambda at: at == 2100)
    for code, kept, offset in ((200, 1, 0), (3, 1, 0), (255, 1, 0), (2, 2, 0), (0, 0, 0), (1, 1, 0), (128, 0, 52)):
        wire.ask(1, WRITE, TORQUE, code)
        assert (wire.read(1, TORQUE), wire.read(1, OFFSET, 2)) == (kept, offset), code
        assert wire.read(1, POSITION, 2) == (2048 if offset else 2100)
        assert wire.read(1, LOCK) == 1
