"""Baud rates changed for good, on emulated servos, also when packets get lost."""

from __future__ import annotations

import contextlib

import pytest

from snake_gym.config import ConfigError
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.bus.servo_bus import ServoBus
from snake_gym.hardware.calibration.procedures import ProcedureError, change_baud
from snake_gym.hardware.emulator.bus import EmulatedBus, EmulatedServo, WireFaults
from tests.hardware.rig import serve


class Bench:
    """Servos at 115200 baud and a host that opens their bus at any rate."""

    def __init__(self, n: int = 2, faults: WireFaults | None = None) -> None:
        self.servos = [EmulatedServo(k + 1, "SM8524BL") for k in range(n)]
        self.bus = EmulatedBus(self.servos, faults=faults)
        self.clock = self.bus.clock
        self.clock.sleep(0.5)

    def open(self, baud: int) -> ServoBus:
        self.bus.poll()  # what was sent before went at the rate before
        self.bus.baud = baud
        return ServoBus(self.bus.host_transport(), baud, self.clock)

    def change(self, servo_id: int, old: int, new: int) -> None:
        change_baud(self.open, servo_id, old, new)


def test_a_new_baud_rate_outlasts_power_off() -> None:
    bench = Bench()
    bench.change(1, 115_200, 1_000_000)
    first, second = bench.servos
    assert (first.baud, first.memory.get("lock"), first.torque_on) == (1_000_000, 1, False)
    assert second.baud == 115_200
    first.power_cycle(bench.clock.now())
    bench.clock.sleep(0.5)
    assert first.baud == 1_000_000
    assert bench.open(1_000_000).ping(1) is not None


def test_lost_packets_do_not_lose_the_servo() -> None:
    n_changed = 0
    for seed in range(12):
        bench = Bench(1, WireFaults(lost=0.15, corrupted=0.05, seed=seed))
        try:
            bench.change(1, 115_200, 500_000)
        except ProcedureError:
            continue  # told so
        assert (bench.servos[0].baud, bench.servos[0].memory.get("lock")) == (500_000, 1), seed
        n_changed += 1
    assert n_changed >= 8


def test_what_cannot_be_changed_is_told() -> None:
    bench = Bench()
    for servo_id, old, new, why in (
        (9, 115_200, 500_000, "servo 9 does not answer at 115200"),
        (1, 500_000, 250_000, "does not answer at 500000"),
        (1, 115_200, 76_800, r"new baud rate is 76800; expected one of 1000000.* \(nearest: 128000\)"),
        (1, 115_200, 115_200, "new baud rate is 115200"),
    ):
        with pytest.raises(ProcedureError, match=why):
            bench.change(servo_id, old, new)
    assert [servo.baud for servo in bench.servos] == [115_200, 115_200]


def test_the_command_changes_all_servos_that_answer(capsys: pytest.CaptureFixture[str]) -> None:
    servos = [EmulatedServo(k + 1, "SM8524BL") for k in range(2)]
    with serve(servos) as port:
        arguments = ["scan", "--port", port.port, "--ids", "1-3"]
        told = ""
        for _ in range(20):  # servos of this process may miss their turn on a busy machine
            with contextlib.suppress(ConfigError):
                main([*arguments, "--baud", "115200", "--change-baud", "1000000"])
            told += capsys.readouterr().out
            if servos[0].baud == servos[1].baud == 1_000_000:
                break
        assert "servo 1 talks at 1000000 baud now" in told and "servo 2 talks at 1000000 baud now" in told
        for _ in range(20):
            assert main(arguments) == 0
            if (found := capsys.readouterr().out.count("1000000")) == 2:
                break
        assert found == 2
