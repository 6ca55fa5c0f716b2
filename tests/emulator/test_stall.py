"""Jammed joints and registers that drivers write, as a driver of another make sees them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from snake_gym.emulator.robot import emulate
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.robot.connection import ConnectionConfig
from snake_gym.robot.presets import RESILIENT_SERVO
from tests.hardware.raw_driver import WRITE, RawDriver
from tests.hardware.rig import Movable, serve

TORQUE, GOAL, LOCK, POSITION, LOAD, CURRENT = 40, 42, 55, 56, 60, 69
OFFSET, PROTECTIVE, PROTECTION_TIME, OVERLOAD = 31, 34, 35, 36
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


def test_a_joint_stalls_at_its_stop_a_little_beyond_the_robot_s_limit() -> None:
    bus = emulate(ConnectionConfig(), RESILIENT_SERVO, straight_chain(range(1, 10), 1.5), None)
    driver = Movable(bus.host_transport(), clock=bus.clock)
    driver.write_targets([5], [4095])
    bus.clock.sleep(1.5)
    bus.poll()
    assert 90.0 < math.degrees(bus.plant.joint_angle()[4]) < 97.0
    assert driver.read_block([5], "present_load").values[5] == {"present_load": 1000}


def test_codes_of_torque_enable(wire: RawDriver) -> None:
    """Only 128 makes the present position the middle; those that are in no table change nothing."""
    wire.write(1, GOAL, 2100, 2)
    wire.until(lambda: wire.read(1, POSITION, 2), lambda at: at == 2100)
    for code, kept, offset in ((200, 1, 0), (3, 1, 0), (255, 1, 0), (2, 2, 0), (0, 0, 0), (1, 1, 0), (128, 0, 52)):
        wire.ask(1, WRITE, TORQUE, code)
        assert (wire.read(1, TORQUE), wire.read(1, OFFSET, 2)) == (kept, offset), code
        assert wire.read(1, POSITION, 2) == (2048 if offset else 2100)
        assert wire.read(1, LOCK) == 1
