"""Whatever moves servos and is killed, hangs or loses its guard leaves no torque on; ``estop`` does the rest.

The witness of the last word is a driver that shares no code with the package: ``RawDriver``, or Robotis's SDK.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import dynamixel_sdk
import pytest

from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.__main__ import main
from snake_gym.hardware.guard.emergency_stop import find_locks
from tests.hardware.programs import N, guard_of, launch, press, settings, where
from tests.hardware.raw_driver import RawDriver
from tests.hardware.rig import ending, torque_on, wait_until

TORQUE = 40
MODELS = ["STS3215", pytest.param("XL430-W250", marks=pytest.mark.slow)]
pytestmark = [pytest.mark.usefixtures("family"), pytest.mark.parametrize("family", MODELS, indirect=True)]


def start(what: str, port: EmulatedPort, folder: Path) -> subprocess.Popen[str]:
    """A command that moves servos, as far as the first torque."""
    words = {
        "wiggle": [*where(port), "--ids", f"1-{N}", "--degrees", "30", "--latch", str(folder / "estop")],
        "calibrate": [
            *where(port), "--ids", f"1-{N}", "--limit", "60", "--out", str(folder / "out.json"),
            "--latch", str(folder / "estop"),
        ],
        "run": ["cc", *settings(folder, port), "--targets", "9,0", "--log", "none"],
    }[what]  # fmt: skip
    for _ in range(5):  # servos of this process may miss their turn on a busy machine
        process = launch(what, *words, patient=True)
        if what == "calibrate":
            press(process, "\n")
        wait_until(lambda one=process: any(torque_on(port)) or one.poll() is not None, 60.0)
        if process.poll() is None:
            return process
    raise AssertionError(process.communicate()[0])


def assert_limp(port: EmulatedPort, ids: Sequence[int] = range(1, N + 1)) -> None:
    if port.bus.servos[0].family.protocol == 2:
        line, packets = dynamixel_sdk.PortHandler(port.port), dynamixel_sdk.PacketHandler(2.0)
        assert line.setBaudRate(1_000_000)
        for one in ids:
            wait_until(lambda one=one: packets.read1ByteTxRx(line, one, 64) == (0, dynamixel_sdk.COMM_SUCCESS, 0))
        line.closePort()
        return
    with RawDriver(port.port) as raw:
        assert [raw.read(one, TORQUE) for one in ids] == [0] * len(ids)


def end_both(process: subprocess.Popen[str]) -> int:
    """Kill a command and its guard at once, so that neither sees the other die."""
    guard = guard_of(process)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for one in (guard, process.pid):
            os.kill(one, number)
    process.communicate()
    return guard


@pytest.mark.parametrize("what", ["run", pytest.param("wiggle", marks=pytest.mark.slow), "calibrate"])
def test_what_is_killed_leaves_no_torque_on(port: EmulatedPort, tmp_path: Path, what: str) -> None:
    process = start(what, port, tmp_path)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=20)
    wait_until(lambda: not find_locks(tmp_path / "estop"), 10.0)
    assert_limp(port)


@pytest.mark.parametrize("what", ["run", "wiggle", pytest.param("calibrate", marks=pytest.mark.slow)])
def test_estop_switches_off_what_two_dead_processes_left_on(
    port: EmulatedPort, tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    guard = end_both(start(what, port, tmp_path))
    assert any(torque_on(port)), "nobody has switched them off"
    servos = [servo for servo in port.bus.servos if servo.memory.get("torque_enable")]
    if servos[0].family.protocol == 2:  # but they brake by themselves
        wait_until(lambda: all(servo.memory.get("bus_watchdog") < 0 for servo in servos), 1.0)
    (lock,) = find_locks(tmp_path / "estop")
    assert (lock.pid, lock.what, lock.alive, lock.servos["ids"]) == (guard, what, False, list(range(1, N + 1)))
    words = ["estop", "--latch", str(tmp_path / "estop"), "--wait"]
    if what == "wiggle":
        port.unplug()
        assert main([*words, "0.1"]) == 1
        assert f"wiggle (process {guard}) died before it said" in capsys.readouterr().out
        port.plug()
    assert main([*words, "20"]) == 0
    out = capsys.readouterr().out
    assert f"{what} (process {guard}) had died; switched off from here: torque is off in all servos" in out
    assert_limp(port)
    assert not find_locks(tmp_path / "estop")


def test_a_run_that_is_killed_while_the_port_is_away_is_switched_off_when_it_is_back(
    port: EmulatedPort, tmp_path: Path
) -> None:
    process = start("run", port, tmp_path)
    wait_until(lambda: all(round(one.memory.value("torque_limit"), 2) == 0.5 for one in port.bus.servos))  # it is up
    with ending(process):
        port.unplug()
    assert any(torque_on(port)) and [lock.alive for lock in find_locks(tmp_path / "estop")] == [True]
    port.plug()
    wait_until(lambda: not find_locks(tmp_path / "estop"))
    assert_limp(port)
    process.communicate(timeout=20)


def test_a_wiggle_that_loses_its_guard_ends_with_the_torque_off(port: EmulatedPort, tmp_path: Path) -> None:
    process = start("wiggle", port, tmp_path)
    with ending(process):
        os.kill(guard_of(process), signal.SIGKILL)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 1, out
    assert out.count("the guard process has died") == 1, out
    assert_limp(port)
    assert not find_locks(tmp_path / "estop") and not (tmp_path / "estop").exists(), "nothing has to be cleared"


def test_a_wiggle_that_hangs_is_switched_off_and_does_not_move_again(port: EmulatedPort, tmp_path: Path) -> None:
    process = start("wiggle", port, tmp_path)
    with ending(process):
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: not any(torque_on(port)))
        assert_limp(port)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 1 and "stopped: nothing was asked for" in out, out
    assert_limp(port)
