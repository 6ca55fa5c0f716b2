"""Servos with another protocol than Feetech's: a user's file with a bus and a table, played by the guard as it is."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import threading
import tty
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from snake_gym.config import ConfigError, build, to_dict
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.bus.bus import Bus, BusPort
from snake_gym.hardware.bus.family import ServoFamily, find_family
from snake_gym.hardware.calibration.calibration import load_calibration, straight_chain
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.client import GuardedBody
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from tests.extending import text_servos
from tests.hardware.programs import answering
from tests.hardware.rig import wait_until

ROOT = Path(__file__).parents[2]
IDS = (1, 2, 3)
LIMITS = SafetyLimits(ramp_time_s=0.05, lost_after_s=0.5, command_timeout_s=30.0, torque_limit=0.5)


class TextServos:
    """Stand-in for the servos: a ``bytearray`` each, joints that are where their goals are; call with what arrives."""

    def __init__(self, ids: Sequence[int]) -> None:
        self.memory = {one: bytearray(256) for one in ids}
        for one in ids:
            family, now = text_servos.X_SERIES, {"id": one, "present_position": 2048, "present_voltage": 120}
            for register in family.registers:
                self.set(one, register.name, now.get(register.name, family.models[0].default(register)))

    def get(self, one: int, name: str) -> int:
        register = text_servos.X_SERIES.register(name)
        return register.encoding.decode(bytes(self.memory[one][register.address : register.end]))

    def set(self, one: int, name: str, value: int) -> None:
        register = text_servos.X_SERIES.register(name)
        self.memory[one][register.address : register.end] = register.encoding.encode(value)

    def hear(self, line: str) -> str:
        """Carry out a request, and return the answer to it."""
        what, to, address, rest = line.split()
        for one, memory in self.memory.items():
            if int(to) not in (one, text_servos.ALL):
                continue
            if what == "R":
                return f"{one} 0 {memory[int(address) : int(address) + int(rest)].hex()}\n"
            data = bytes.fromhex(rest)
            memory[int(address) : int(address) + len(data)] = data
            if self.get(one, "torque_enable") and self.get(one, "mode") == text_servos.X_SERIES.position_mode:
                self.set(one, "present_position", self.get(one, "goal_position"))
        return ""


@pytest.fixture
def family(monkeypatch: pytest.MonkeyPatch) -> ServoFamily:
    """The table, as users name it: ``text_servos`` is a module outside the package."""
    folder = str(Path(text_servos.__file__).parent)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([folder, str(Path(folder).parents[1])]))
    return find_family("text_servos:X_SERIES")


@pytest.fixture
def servos() -> Iterator[tuple[TextServos, str]]:
    """Servos, and the device that they answer on."""
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    servos, ends = TextServos(IDS), threading.Event()

    def serve() -> None:
        heard = ""
        while not ends.is_set():
            if select.select([ours], [], [], 0.05)[0]:
                heard += os.read(ours, 4096).decode()
                *lines, heard = heard.split("\n")
                os.write(ours, "".join(servos.hear(line) for line in lines).encode())

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield servos, os.ttyname(theirs)
    ends.set()
    thread.join(5.0)
    for end in (ours, theirs):
        os.close(end)


def test_the_guard_plays_them(family: ServoFamily, servos: tuple[TextServos, str], tmp_path: Path) -> None:
    memory, device = servos
    body = GuardedBody(
        BusPort(device, 57_600, family), straight_chain(IDS, 1.0, "TX430"), LIMITS, 0.05, 4.0, tmp_path / "estop"
    )
    wanted = np.array([0.3, -0.4, 0.0])
    try:
        body.start()
        when = body.clock.now()
        for _ in range(60):
            body.command(wanted)
            when += 0.05
            sample = body.run_until(when)
            if np.abs(sample.joint_angle - wanted).max() < 0.002:
                break
        np.testing.assert_allclose(sample.joint_angle, wanted, atol=family.step_rad)
        assert [memory.get(one, "torque_limit") for one in IDS] == [round(0.5 * 885)] * 3
        assert body.guard_pid is not None
        os.kill(body.guard_pid, signal.SIGKILL)
        body.run_until(body.clock.now() + 0.2)
        wait_until(lambda: not any(memory.get(one, "torque_enable") for one in IDS))
    finally:
        body.close()


def test_estop_switches_them_off_from_any_folder(
    family: ServoFamily, servos: tuple[TextServos, str], tmp_path: Path
) -> None:
    (memory, device), latch = servos, tmp_path / "estop"
    port = BusPort.of(BusPort(device, 57_600, family).to_dict())
    assert Path(port.family.bus.rpartition(":")[0]).is_absolute()
    lock = EmergencyStop(latch)
    lock.hold("run", {**port.to_dict(), "ids": list(IDS)})
    lock._lock.close()  # type: ignore[union-attr]  # as its process would leave it
    memory.set(1, "torque_enable", 1)
    done = subprocess.run(
        [sys.executable, "-m", "snake_gym.hardware", "estop", "--latch", str(latch)], cwd="/",
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert memory.get(1, "torque_enable") == 0


def test_the_commands_take_them(
    family: ServoFamily, servos: tuple[TextServos, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory, device = servos
    where = ["--port", device, "--family", "text_servos:X_SERIES"]
    assert main(["scan", *where, "--ids", "1-4"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [[str(one), "57600", "TX430"] for one in IDS]
    assert main(["register", "write", "homing_offset", "-5", *where, "--id", "2"]) == 0
    assert memory.get(2, "homing_offset") == -5, "without a lock to open"
    with answering("\nr\nl\nr\n"):
        words = ["--ids", "1-3", "--limit", "60", "--out", str(tmp_path / "snake.json")]
        assert main(["calibrate", *where, *words, "--latch", str(tmp_path / "estop")]) == 0
    assert load_calibration(tmp_path / "snake.json").direction.tolist() == [1, -1, 1]
    memory.set(1, "torque_enable", 1)
    assert main(["limp", *where, "--ids", "1-3", "--baud", "57600"]) == 0
    assert memory.get(1, "torque_enable") == 0


def test_a_bus_that_is_not_there_is_named(family: ServoFamily) -> None:
    nowhere = build(ServoFamily, {**to_dict(family), "bus": "text_servos:NoBus"})
    with pytest.raises(ConfigError, match="bus of the servo family is 'text_servos:NoBus'"):
        BusPort("/dev/null", 57_600, nowhere).open()
    bus: type[Bus] = text_servos.TextBus
    assert all(hasattr(bus, name) for name in vars(Bus) if not name.startswith("_"))
