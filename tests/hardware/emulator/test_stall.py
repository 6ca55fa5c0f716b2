"""Jammed joints, sagging supply and registers that drivers write, as a driver of another make sees them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from snake_gym.hardware.emulator.bus import EmulatedServo
from tests.hardware.commands.test_emulate import emulator
from tests.hardware.raw_driver import REBOOT, WRITE, RawDriver
from tests.hardware.rig import serve

TORQUE, GOAL, TORQUE_LIMIT, LOCK, POSITION, LOAD, VOLTAGE, CURRENT = 40, 42, 48, 55, 56, 60, 62, 69
UNLOAD, OFFSET, PROTECTIVE, PROTECTION_TIME, OVERLOAD = 19, 31, 34, 35, 36
OVERLOADED = 0x20


@pytest.fixture
def wire() -> Iterator[RawDriver]:
    with serve([EmulatedServo(1), EmulatedServo(2)]) as port, RawDriver(port.port) as raw:
        yield raw


def stall(raw: RawDriver, servo_id: int, way: int) -> None:
    """Ask a jammed joint to move, and see it push: load and current at their most, and all voltages down. The servo's
    protection is off meanwhile."""
    raw.write(servo_id, UNLOAD, 0x0C)
    start = raw.read(servo_id, POSITION, 2)
    rest = raw.read(1, VOLTAGE)
    raw.write(servo_id, GOAL, start + way, 2)
    sign = 0x400 if way < 0 else 0
    assert raw.until(lambda: raw.read(servo_id, LOAD, 2), lambda load: load & 0x3FF > 900) == 1000 + sign
    assert (raw.read(servo_id, CURRENT, 2) & 0x7FFF) * 6.5e-3 == pytest.approx(2.7, rel=0.01), "amperes, from its sheet"
    assert raw.read(1, VOLTAGE) < rest, "they share a supply"
    assert abs(raw.read(servo_id, POSITION, 2) - start) <= 2
    assert raw.error(servo_id) == 0
    raw.write(servo_id, UNLOAD, 0x2C)


def test_a_jammed_joint_stalls_and_its_servo_protects_itself() -> None:
    with serve([EmulatedServo(1), EmulatedServo(2)]) as port, RawDriver(port.port) as raw:
        port.bus.jam(2)
        for address, value in ((PROTECTIVE, 30), (OVERLOAD, 70), (PROTECTION_TIME, 100)):
            raw.write(2, address, value)
        stall(raw, 2, 600)
        assert raw.until(lambda: raw.error(2), bool) == OVERLOADED
        assert raw.until(lambda: raw.read(2, LOAD, 2), lambda load: load < 900) == 300, "register 34, in percent"
        assert raw.error(1) == 0
        raw.write(2, GOAL, 2048 + 700, 2)
        assert raw.error(2) == OVERLOADED, "the same way again"
        raw.write(2, GOAL, 2048 - 600, 2)
        assert raw.error(2) == 0, "the other way sets it free"
        port.bus.jam(2, False)
        assert raw.until(lambda: raw.read(2, POSITION, 2), lambda at: at < 2048 - 590) < 2048 - 590


def test_a_load_below_the_threshold_trips_nothing() -> None:
    """Half of the torque is less than the 80 % of register 36, however long it lasts."""
    with serve([EmulatedServo(1), EmulatedServo(2)]) as port, RawDriver(port.port) as raw:
        port.bus.jam(2)
        port.bus.jam(1)
        for one, limit in ((1, 500), (2, 1000)):
            raw.write(one, TORQUE_LIMIT, limit, 2)
            raw.write(one, PROTECTION_TIME, 20)
            raw.write(one, GOAL, 2600, 2)
        raw.until(lambda: raw.error(2), bool)
        assert raw.error(1) == 0
        assert raw.read(1, LOAD, 2) == 500


@pytest.mark.slow
def test_emulate_jam_stalls_with_physics_behind_it(tmp_path: Path) -> None:
    with emulator(tmp_path / "bus", "--pose-port", "0") as robot, RawDriver(robot.port) as raw:
        robot.tell("jam 3")
        robot.wait_for(lambda line: line == "done\n")
        stall(raw, 3, -500)
        assert raw.until(lambda: raw.error(3), bool) == OVERLOADED
        robot.tell("free 3")
        robot.wait_for(lambda line: line == "done\n")
        raw.write(3, GOAL, 2048 + 200, 2)
        raw.until(lambda: raw.read(3, POSITION, 2), lambda at: at > 2048 + 150)


def test_a_joint_that_is_driven_too_far_stalls_at_its_stop(tmp_path: Path) -> None:
    """Ninety degrees are the robot's joint limit; its stop is a little further."""
    with emulator(tmp_path / "bus", "--pose-port", "0") as robot, RawDriver(robot.port) as raw:
        raw.write(5, UNLOAD, 0x0C)
        raw.write(5, GOAL, 4095, 2)
        raw.until(lambda: raw.read(5, LOAD, 2), lambda load: load == 1000)  # bit 10 is its direction
        raw.until(lambda: raw.read(5, POSITION, 2), lambda at: at > 2048 + 1024)
        raw.write(5, UNLOAD, 0x2C)
        assert raw.until(lambda: raw.error(5), bool) == OVERLOADED
        angles = robot.joint_angles_deg()
        assert 90.0 < angles[4] < 97.0 and max(map(abs, angles)) == angles[4], angles


def test_links_that_run_into_each_other_stall_their_servos(tmp_path: Path) -> None:
    """All nine joints by 69 degrees: the chain would lie in itself."""
    link = tmp_path / "bus"
    with emulator(link, "--pose-port", "0") as robot, RawDriver(str(link)) as raw:
        curled, straight = 2048 + 785, 2048
        for one in range(1, 10):
            raw.write(one, UNLOAD, 0x0C)
            raw.write(one, GOAL, curled, 2)
        stalls = raw.until(
            lambda: max(range(1, 10), key=lambda one: raw.read(one, LOAD, 2) & 0x3FF),
            lambda one: raw.read(one, LOAD, 2) == 1000,
        )
        assert abs(raw.read(stalls, POSITION, 2) - curled) > 100, "it pushes, and is not there"
        assert min(map(abs, robot.joint_angles_deg())) < 60.0
        for one in range(1, 10):
            raw.write(one, GOAL, straight, 2)
        for one in range(1, 10):
            raw.until(lambda one=one: raw.read(one, POSITION, 2), lambda at: abs(at - straight) < 20)


@pytest.mark.parametrize("address", range(80, 87))
def test_factory_registers_can_be_written(wire: RawDriver, address: int) -> None:
    wire.write(1, address, 3)
    assert wire.read(1, address) == 3


def test_register_71_repeats_the_goal(wire: RawDriver) -> None:
    wire.write(1, GOAL, 2100, 2)
    assert wire.read(1, 71, 2) == 2100
    wire.write(1, 71, 5, 2)
    assert wire.read(1, 71, 2) == 2100, "it is read-only"


def test_a_servo_that_is_told_to_restart_forgets_what_is_not_stored(wire: RawDriver) -> None:
    wire.write(1, TORQUE_LIMIT, 300, 2)
    wire.write(1, GOAL, 2100, 2)
    wire.until(lambda: wire.read(1, POSITION, 2), lambda at: at == 2100)
    wire.send(1, REBOOT)
    wire.until(lambda: wire.read(1, TORQUE), lambda on: on == 0)
    assert wire.read(1, TORQUE_LIMIT, 2) == 1000
    assert wire.read(1, POSITION, 2) == 2100


@pytest.mark.parametrize(
    ("code", "kept", "offset"), [(0, 0, 0), (1, 1, 0), (2, 2, 0), (128, 0, 52), (200, 1, 0), (3, 1, 0), (255, 1, 0)]
)
def test_codes_of_torque_enable(wire: RawDriver, code: int, kept: int, offset: int) -> None:
    wire.write(1, GOAL, 2100, 2)
    wire.until(lambda: wire.read(1, POSITION, 2), lambda at: at == 2100)
    wire.ask(1, WRITE, TORQUE, code)
    assert wire.read(1, TORQUE) == kept
    assert wire.read(1, OFFSET, 2) == offset, "only 128 makes the present position the middle"
    assert wire.read(1, POSITION, 2) == (2048 if offset else 2100)
    assert wire.read(1, LOCK) == 1
