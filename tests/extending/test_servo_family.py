"""The servo family of docs/extending.md, from a folder outside the package, on a real serial device."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from snake_gym.emulator.bus import EmulatedBus, EmulatedServo, FirstOrderPlant
from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.bus.bus import BusPort
from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.bus.family import ServoFamily, find_family
from snake_gym.hardware.calibration.calibration import load_calibration
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.client import GuardedBody
from tests.extending.test_plugins import example
from tests.hardware.programs import answering, repeated

ROOT = Path(__file__).parents[2]
N = 3


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's module, where Python finds it."""
    (tmp_path / "acme_servos.py").write_text(example("A servo family of your own"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    return tmp_path


@pytest.fixture
def acme(folder: Path) -> ServoFamily:
    return find_family("acme_servos:ACME")


@pytest.fixture
def port(acme: ServoFamily) -> Iterator[EmulatedPort]:
    servos = [EmulatedServo(k + 1, "A9", settings={"baud_rate": 1}) for k in range(N)]
    with EmulatedPort(EmulatedBus(servos, FirstOrderPlant(N), MonotonicClock(), baud=500_000, step_s=0.01)) as port:
        yield port


def test_its_bytes_are_where_and_how_the_table_says(acme: ServoFamily, port: EmulatedPort) -> None:
    assert acme.encode("goal_position", -300) == b"\x81\x2c"
    assert EmulatedServo(1, "A9").memory.read(10, 2) == b"\x03\xff"
    assert (acme.middle, acme.full_count("torque_limit"), acme.steps(math.pi)) == (512, 1000, 512)


def test_its_servos_are_found_calibrated_and_driven(
    acme: ServoFamily, folder: Path, port: EmulatedPort, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--port", port.port, "--baud", "500000", "--family", "acme_servos:ACME", "--ids", "1-3"]
    _, lines = repeated(["scan", *where], capsys, 1 + N)
    assert all("500000  A9" in line and "512" in line and "7.4 V" in line for line in lines[1:]), lines
    stop = ["--latch", str(folder / "estop")]
    with answering("\n" + "r\n" * N):
        assert main(["calibrate", *where, *stop, "--limit", "60", "--out", str(folder / "snake.json")]) == 0
    calibration = load_calibration(folder / "snake.json")
    assert (calibration.model, calibration.steps_per_turn) == ("A9", 1024)
    assert calibration.zero_steps.tolist() == [512] * N
    limits = SafetyLimits(ramp_time_s=0.05, lost_after_s=5.0, command_timeout_s=30.0)
    body = GuardedBody(BusPort(port.port, 500_000, acme), calibration, limits, 0.04, 4.0, folder / "estop")
    wanted = np.array([0.4, -0.3, 0.2])  # the guard's process knows the family by its table alone
    try:
        for _ in range(20):  # on a busy machine a servo of this process may miss its turn
            with contextlib.suppress(BringUpError):
                body.start()
                break
        when = body.clock.now()
        for _ in range(100):
            body.command(wanted)
            when += 0.1
            sample = body.run_until(when)
            if sample.health.answered.all() and np.abs(sample.joint_angle - wanted).max() < 0.005:
                break
        np.testing.assert_allclose(sample.joint_angle, wanted, atol=0.5 * acme.step_rad + 1e-3)
        assert body.stop_reason is None
        assert np.isnan(sample.health.current_a).all() and np.isfinite(sample.health.load).all()
        with port.bus.lock:
            assert {servo.memory.get("goal_speed") for servo in port.bus.servos} == {round(4.0 / acme.step_rad)}
            np.testing.assert_allclose(port.bus.plant.joint_angle(), wanted, atol=acme.step_rad)
    finally:
        body.close()
    with port.bus.lock:
        assert not any(servo.torque_on for servo in port.bus.servos)
