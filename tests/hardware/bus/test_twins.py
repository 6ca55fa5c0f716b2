"""Two servos with one id: heard by the scan, refused by a robot, and given ids in one sitting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from snake_gym.config import ConfigError
from snake_gym.emulator.bus import EmulatedServo, on_one_wire
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.bus.bus import GARBLED
from snake_gym.hardware.guard.body import BringUpError
from tests.hardware.rig import AdapterFaults, Bench, Rig, new_servo, serve

BAUD = 1_000_000
both = pytest.mark.usefixtures("family")


def test_bytes_that_overlap_are_anded() -> None:
    one, other = bytes([0xFF, 0x0F, 0xF0]), bytes([0x3C, 0xFF])
    assert on_one_wire([(0.0, one), (0.0, other)], BAUD) == [(0.0, bytes([0x3C, 0x0F, 0xF0]))]
    assert on_one_wire([(2e-5, other), (0.0, one)], BAUD) == [(0.0, bytes([0xFF, 0x0F, 0x30, 0xFF]))]
    assert on_one_wire([(0.0, one), (3e-5, other)], BAUD) == [(0.0, one), (3e-5, other)]


def twins(return_delay: int) -> list[EmulatedServo]:
    """Servos 7 and 9, and two with id 8 between them; the second answers ``return_delay`` counts of 2 us later."""
    servos = [new_servo(7), new_servo(8), new_servo(8, zero_steps=1200), new_servo(9)]
    servos[2].memory.set("return_delay", return_delay)
    return servos


@both
@pytest.mark.parametrize("return_delay", [0, 5, 250], ids=["at once", "overlapping", "in turn"])
def test_twins_are_heard_and_nobody_else_is_blamed(return_delay: int) -> None:
    bench = Bench(twins(return_delay))
    found = {one: bench.driver.ping(one) for one in (6, 7, 8, 9)}
    assert {one: info and info.ambiguous for one, info in found.items()} == {6: None, 7: False, 8: True, 9: False}
    bench.servos[2].dead = True
    info = bench.driver.ping(8)
    assert info is not None and (info.ambiguous, info.model) == (False, bench.servos[1].model.number)


def test_garbled_answers_are_called_so() -> None:
    bench = Bench(twins(0))
    assert bench.driver.read_block([7, 8, 9], "present_position").failures == {8: GARBLED}


def test_noise_is_no_twin() -> None:
    bench = Bench([1], faults=AdapterFaults(lost=0.05, corrupted=0.05, seed=4))
    assert not any(info.ambiguous for _ in range(200) if (info := bench.driver.ping(1)) is not None)


@both
def test_a_robot_with_twins_does_not_start_whatever_may_be_lost(tmp_path: Path) -> None:
    rig = Rig(tmp_path, 4)
    rig.servos[1].memory.set("id", 3)
    rig.servos[0].dead = True
    with pytest.raises(BringUpError, match=r"joint 3 .*: two servos .* answer as 3: give each") as refusal:
        rig.body.start()
    assert "joint 2 (servo 2) does not answer" in str(refusal.value)
    assert not any(rig.torque_on())


def test_scan_and_wiggle_name_twins(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(twins(0)) as port:
        assert main(["scan", "--port", port.port, "--ids", "7-9"]) == 1
        *rows, last = capsys.readouterr().out.splitlines()
        assert [int(row.split()[0]) for row in rows[1:]] == [7, 9]
        assert last.startswith("two servos (or more) answer as 8: give each its own id")
        with pytest.raises(ConfigError, match="answer as 8"):
            main(["wiggle", "--port", port.port, "--ids", "7-9", "--latch", str(tmp_path / "estop")])
        with pytest.raises(ConfigError, match="answer as 8"):
            main(["scan", "--port", port.port, "--change-id", "8", "6"])
        assert not any(servo.memory.get("torque_enable") for servo in port.bus.servos)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[list[EmulatedServo]]], None]:
    """Somebody who connects these servos, one group at each Enter, and then closes the input."""

    def begin(groups: list[list[EmulatedServo]]) -> None:
        rest = iter(groups)

        def enter() -> str:
            group = next(rest, None)
            if group is None:
                raise EOFError
            for servo in group:
                servo.dead = not servo.dead
            return ""

        monkeypatch.setattr("builtins.input", enter)

    return begin


def test_new_servos_get_their_ids_in_one_sitting(
    person: Callable[[list[list[EmulatedServo]]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    servos = [EmulatedServo(1, zero_steps=1000 + 300 * k) for k in range(4)]
    for servo in servos:
        servo.dead = True
    a, b, c, d = servos
    words = ["scan", "--assign", "1-4", "--port"]
    with serve(servos) as port:
        person([[a], [], [b, c], [c]])  # nobody is connected at the second Enter, two at the third; one is taken off
        with pytest.raises(ConfigError, match="before servo 2 had its id; scan --assign goes on there"):
            main([*words, port.port])
        said = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("supply off")]
        assert said == [
            "this is servo 4 now",
            "no servo answers as 1: look at power and cable, or scan --all-bauds",
            "two servos (or more) answer as 1: take off all but one",
            "this is servo 3 now",
        ]
        person([[c], [d]])
        assert main([*words, port.port]) == 0
        assert [servo.id for servo in servos] == [4, 3, 2, 1]
        for servo in servos:
            assert servo.memory.get("lock") == 1
            servo.power_cycle(0.0)
        assert [servo.id for servo in servos] == [4, 3, 2, 1], "for good"
