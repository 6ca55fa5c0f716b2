"""``limp`` and ``register``: what is left when nothing else works. A driver of another make is the witness."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from snake_gym.config import ConfigError
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.emulator.bus import EmulatedServo
from snake_gym.hardware.emulator.port import EmulatedPort
from tests.hardware.raw_driver import REBOOT, RawDriver
from tests.hardware.rig import serve

MAX_TORQUE, TORQUE, GOAL, TORQUE_LIMIT, LOCK = 16, 40, 42, 48, 55
SLOW = 115_200


@pytest.fixture
def port() -> Iterator[EmulatedPort]:
    servos = [EmulatedServo(1), EmulatedServo(2), EmulatedServo(7, settings={"baud_rate": 4}), EmulatedServo(200)]
    with serve(servos) as emulated:
        yield emulated


def repeated(words: list[str], capsys: pytest.CaptureFixture[str], n_lines: int) -> tuple[int, str]:
    """Exit code and output of a command; asked again where servos of this busy process missed their turn."""
    for _ in range(20):
        code, out = main(words), capsys.readouterr().out
        if len(out.splitlines()) == n_lines:
            break
    return code, out


def test_limp_reaches_servos_in_error_at_any_rate_and_with_any_id(
    port: EmulatedPort, capsys: pytest.CaptureFixture[str]
) -> None:
    port.bus.servo(2).temperature_c = 90.0
    with RawDriver(port.port) as fast:
        for one in (1, 2, 200):
            fast.write(one, GOAL, 2100, 2)
            assert fast.read(one, TORQUE) == 1
        assert fast.error(2), "too hot"
    with RawDriver(port.port, SLOW) as slow:
        slow.write(7, TORQUE, 1)
    code, out = repeated(["limp", "--port", port.port, "--ids", "1,2,7"], capsys, 3)
    with RawDriver(port.port) as fast:
        assert [fast.read(one, TORQUE) for one in (1, 2, 200)] == [0, 0, 0]
    with RawDriver(port.port, SLOW) as slow:
        assert slow.read(7, TORQUE) == 0
    assert code == 0, out
    assert "servo   2 at 1000000 baud: torque off (its error: heat)" in out
    assert "servo   7 at 115200 baud: torque off" in out


def test_limp_says_when_nobody_answers(port: EmulatedPort, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["limp", "--port", port.port, "--ids", "11-12", "--baud", "1000000"]) == 1
    out = capsys.readouterr().out
    assert "nobody of 11-12 answers" in out and "USE THE HARDWARE STOP" in out


def test_a_stored_register_is_written_for_good_and_the_lock_closed(
    port: EmulatedPort, capsys: pytest.CaptureFixture[str]
) -> None:
    with RawDriver(port.port) as raw:
        raw.write(1, GOAL, 2100, 2)
        code, out = repeated(["register", "write", "max_torque", "800", "--port", port.port, "--id", "1"], capsys, 1)
        assert code == 0 and "max_torque" in out and "800 (0.8 of stall), stored" in out
        assert raw.read(1, TORQUE) == 0, "nothing moves while its memory is written"
        assert (raw.read(1, MAX_TORQUE, 2), raw.read(1, LOCK)) == (800, 1)
        raw.send(1, REBOOT)
        raw.until(lambda: raw.read(1, TORQUE_LIMIT, 2), lambda limit: limit == 800)
        assert raw.read(1, MAX_TORQUE, 2) == 800
        assert raw.read(2, MAX_TORQUE, 2) == 1000


def test_a_register_that_is_not_stored_leaves_the_lock_alone(
    port: EmulatedPort, capsys: pytest.CaptureFixture[str]
) -> None:
    with RawDriver(port.port) as raw:
        raw.write(2, LOCK, 0)
        words = ["register", "write", "torque_limit", "250", "--port", port.port, "--id", "2"]
        assert repeated(words, capsys, 1)[0] == 0
        assert (raw.read(2, TORQUE_LIMIT, 2), raw.read(2, LOCK)) == (250, 0)


def test_registers_are_read_one_or_all(port: EmulatedPort, capsys: pytest.CaptureFixture[str]) -> None:
    out = repeated(["register", "read", "present_voltage", "--port", port.port, "--id", "1-2"], capsys, 2)[1]
    assert out.count("present_voltage      120 (12 V)") == 2
    n_registers = len(port.bus.servo(1).family.registers)
    out = repeated(["register", "read", "--port", port.port, "--id", "1"], capsys, n_registers)[1]
    assert any(line.split()[2:4] == ["overload_torque", "80"] for line in out.splitlines())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["write", "id", "3"], "scan --change-id"),
        (["write", "goal_position", "9"], "wiggle"),
        (["write", "torque_enable", "1"], "limp"),
        (["write", "present_load", "1"], "read-only"),
        (["write", "max_torque", "1001"], "max_torque is 1001; expected 0 to 1000"),
        (["write", "max_angle_limit", "-5"], "max_angle_limit is -5; expected 0 to 4095"),
        (["write", "min_angle_limit", "4096"], "min_angle_limit is 4096; expected 0 to 4095"),
        (["write", "homing_offset", "-2048"], "homing_offset is -2048; expected -2047 to 2047"),
        (["write", "position_p", "-1"], "position_p is -1; expected 0 to 255"),
        (["write", "max_tork", "1"], "register is 'max_tork'; expected one of"),
        (["write", "max_torque"], "expected write NAME COUNT"),
        (["read", "max_torque", "4"], "expected read NAME"),
    ],
)
def test_what_is_no_register_to_be_written_is_refused_before_a_byte_is_sent(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refusal:
        main(["register", *words, "--port", "/dev/there-is-none", "--id", "1"])
    assert "\n" not in str(refusal.value)
