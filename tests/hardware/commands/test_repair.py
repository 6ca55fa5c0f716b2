"""``limp`` and ``register``: what is left when nothing else works. A driver of another make is the witness."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from snake_gym.emulator.bus import EmulatedServo
from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.__main__ import main
from tests.hardware.programs import repeated
from tests.hardware.raw_driver import REBOOT, RawDriver
from tests.hardware.rig import serve

MAX_TORQUE, TORQUE, GOAL, TORQUE_LIMIT, LOCK = 16, 40, 42, 48, 55
SLOW = 115_200


@pytest.fixture
def port() -> Iterator[EmulatedPort]:
    with serve([1, 2, EmulatedServo(7, settings={"baud_rate": 4}), 200]) as emulated:
        yield emulated


def test_limp_reaches_servos_in_error_at_any_rate_and_with_any_id(
    port: EmulatedPort, capsys: pytest.CaptureFixture[str]
) -> None:
    port.bus.servo(2).temperature_c = 90.0
    with RawDriver(port.port) as fast:
        for one in (1, 2, 200):
            fast.write(one, GOAL, 2100, 2)
            assert fast.read(one, TORQUE) == 1
    with RawDriver(port.port, SLOW) as slow:
        slow.write(7, TORQUE, 1)
    for _ in range(3):  # a busy computer may change the pty's rate before the emulator has read what was sent at it
        code, lines = repeated(["limp", "--port", port.port, "--ids", "1,2,7"], capsys, 3)
        with RawDriver(port.port) as fast:
            if limp := [fast.read(one, TORQUE) for one in (1, 2, 200)] == [0, 0, 0]:
                break
    assert limp
    with RawDriver(port.port, SLOW) as slow:
        assert slow.read(7, TORQUE) == 0
    assert code == 0, lines
    assert "servo   2 at 1000000 baud: torque off (its error: heat)" in lines
    assert "servo   7 at 115200 baud: torque off" in lines
    assert main(["limp", "--port", port.port, "--ids", "11-12", "--baud", "1000000"]) == 1


def test_a_stored_register_is_written_for_good_and_the_lock_closed(
    port: EmulatedPort, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--port", port.port, "--id"]
    with RawDriver(port.port) as raw:
        raw.write(1, GOAL, 2100, 2)
        code, (line,) = repeated(["register", "write", "max_torque", "800", *words, "1"], capsys, 1)
        assert code == 0 and "max_torque" in line and "800 (0.8 of stall), stored" in line
        assert raw.read(1, TORQUE) == 0, "nothing moves while its memory is written"
        assert (raw.read(1, MAX_TORQUE, 2), raw.read(1, LOCK)) == (800, 1)
        raw.send(1, REBOOT)
        raw.until(lambda: raw.read(1, TORQUE_LIMIT, 2), lambda limit: limit == 800)
        assert raw.read(1, MAX_TORQUE, 2) == 800
        assert raw.read(2, MAX_TORQUE, 2) == 1000
        raw.write(2, LOCK, 0)  # one that is not stored leaves the lock alone
        assert repeated(["register", "write", "torque_limit", "250", *words, "2"], capsys, 1)[0] == 0
        assert (raw.read(2, TORQUE_LIMIT, 2), raw.read(2, LOCK)) == (250, 0)


def test_registers_are_read_one_or_all(port: EmulatedPort, capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = repeated(["register", "read", "present_voltage", "--port", port.port, "--id", "1-2"], capsys, 2)
    assert all("present_voltage      120 (12 V)" in line for line in lines)
    n_registers = len(port.bus.servo(1).family.registers)
    _, lines = repeated(["register", "read", "--port", port.port, "--id", "1"], capsys, n_registers)
    assert any(line.split()[2:4] == ["overload_torque", "80"] for line in lines)
