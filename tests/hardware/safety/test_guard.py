"""The guard process on a real pseudo terminal: it runs the robot, and torque goes off whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from snake_gym.hardware.bus.clock import MonotonicClock
from snake_gym.hardware.bus.servo_bus import BusPort
from snake_gym.hardware.calibration.calibration import Calibration, straight_chain
from snake_gym.hardware.emulator.bus import EmulatedBus, EmulatedServo, FirstOrderPlant
from snake_gym.hardware.emulator.port import EmulatedPort
from snake_gym.hardware.safety.body import BringUpError
from snake_gym.hardware.safety.checks import SafetyLimits
from snake_gym.hardware.safety.emergency_stop import EmergencyStop
from snake_gym.hardware.safety.guard import Command, pack_command, pack_numbered, unpack_command, unpack_numbered
from snake_gym.hardware.safety.guarded_body import GuardedBody

N = 4
ROOT = Path(__file__).parents[3]
# A busy machine may keep the servos and the policy of this process silent for a while: that is no reason to stop here.
LIMITS = SafetyLimits(ramp_time_s=0.05, command_timeout_s=30.0, lost_after_s=5.0)


@pytest.fixture
def terminal() -> Iterator[EmulatedPort]:
    servos = [EmulatedServo(k + 1) for k in range(N)]
    bus = EmulatedBus(servos, FirstOrderPlant(N), clock=MonotonicClock(), step_s=0.01)  # easy on a busy machine
    with EmulatedPort(bus) as port:
        yield port


def calibration() -> Calibration:
    return straight_chain(range(1, N + 1), 1.2)


def body_on(terminal: EmulatedPort, folder: Path, limits: SafetyLimits = LIMITS) -> GuardedBody:
    return GuardedBody(BusPort(terminal.port), calibration(), limits, latch=folder / "estop")


def may_take_priority() -> bool:
    """Whether this user may have a real-time priority."""
    ask = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))"
    return subprocess.run([sys.executable, "-c", ask], capture_output=True, check=False).returncode == 0


def torque_on(terminal: EmulatedPort) -> list[bool]:
    """Of the registers: also of servos that do not answer now, and would go on once they do."""
    with terminal.bus.lock:
        return [servo.memory.get("torque_enable") == 1 for servo in terminal.bus.servos]


def wait_for_off(terminal: EmulatedPort, seconds: float = 15.0) -> None:
    """Wait until torque is off in all servos, and print how long it took; fails the test after ``seconds``."""
    begun = time.monotonic()
    while any(torque_on(terminal)):
        assert time.monotonic() - begun < seconds, f"torque is still on after {seconds} s"
        time.sleep(0.002)
    print(f"torque off after {1e3 * (time.monotonic() - begun):.0f} ms")


def drive(body: GuardedBody, seconds: float, angle: float) -> None:
    when = body.clock.now()
    for _ in range(round(seconds / 0.1)):
        body.command(np.full(N, angle))
        when += 0.1
        body.run_until(when)


def test_a_guarded_robot_follows_and_goes_limp_at_the_end(terminal: EmulatedPort, tmp_path: Path) -> None:
    body = body_on(terminal, tmp_path)
    try:
        sample = body.start()
        assert torque_on(terminal) == [True] * N
        np.testing.assert_allclose(sample.joint_angle, 0.0, atol=2e-3)
        drive(body, 1.0, 0.3)
        sample = body.run_until(body.clock.now())
        np.testing.assert_allclose(sample.joint_angle, 0.3, atol=5e-3)
        assert body.clock.now() - sample.stamp_s < 1.0
        assert body.stop_reason is None
    finally:
        body.close()
    assert torque_on(terminal) == [False] * N


def test_no_command_means_no_torque(terminal: EmulatedPort, tmp_path: Path) -> None:
    body = body_on(terminal, tmp_path, replace(LIMITS, command_timeout_s=1.0))
    try:
        body.start()
        wait_for_off(terminal)
        body.run_until(body.clock.now() + 0.1)
        assert body.stop_reason == "no command for 1 s"
        body.start()
        assert torque_on(terminal) == [True] * N
    finally:
        body.close()


def test_the_emergency_stop_of_another_process_is_obeyed(terminal: EmulatedPort, tmp_path: Path) -> None:
    body = body_on(terminal, tmp_path)
    try:
        body.start()
        body.command(np.zeros(N))
        EmergencyStop(tmp_path / "estop").trip("somebody pressed it")
        wait_for_off(terminal)
        body.run_until(body.clock.now() + 0.05)
        assert body.stop_reason is not None
        assert "somebody pressed it" in body.stop_reason
        with pytest.raises(BringUpError, match="clear it"):
            body.start()
    finally:
        body.close()


def test_when_the_guard_is_killed_the_policy_s_side_switches_the_torque_off(
    terminal: EmulatedPort, tmp_path: Path
) -> None:
    body = body_on(terminal, tmp_path)
    try:
        body.start()
        assert body.guard_pid is not None
        os.kill(body.guard_pid, signal.SIGKILL)
        body.run_until(body.clock.now() + 0.05)
        body.command(np.zeros(N))
        assert body.stop_reason == "the guard process has died"
        wait_for_off(terminal)
    finally:
        body.close()


def test_a_guard_that_hangs_is_killed_and_the_torque_goes_off(terminal: EmulatedPort, tmp_path: Path) -> None:
    body = body_on(terminal, tmp_path)
    try:
        body.start()
        drive(body, 0.2, 0.1)
        assert body.guard_pid is not None
        os.kill(body.guard_pid, signal.SIGSTOP)
        begun = time.monotonic()
        while body.stop_reason is None and time.monotonic() - begun < 10.0:
            drive(body, 0.1, 0.1)
        assert body.stop_reason == "the guard process hangs"
        assert torque_on(terminal) == [False] * N
        body.start()  # with a new one
        assert torque_on(terminal) == [True] * N
    finally:
        body.close()
    assert torque_on(terminal) == [False] * N


def test_a_guard_that_hangs_at_the_end_is_killed_too(terminal: EmulatedPort, tmp_path: Path) -> None:
    body = body_on(terminal, tmp_path)
    body.start()
    assert body.guard_pid is not None
    os.kill(body.guard_pid, signal.SIGSTOP)
    body.close()
    assert torque_on(terminal) == [False] * N


def test_a_command_that_has_become_old_is_not_followed(terminal: EmulatedPort, tmp_path: Path) -> None:
    limits = SafetyLimits(ramp_time_s=0.05, command_timeout_s=0.4, lost_after_s=5.0)
    body = GuardedBody(BusPort(terminal.port), calibration(), limits, latch=tmp_path / "estop")
    try:
        body.start()
        assert body.guard_pid is not None
        os.kill(body.guard_pid, signal.SIGSTOP)
        body.command(np.full(N, 0.8))
        time.sleep(1.0)
        os.kill(body.guard_pid, signal.SIGCONT)
        wait_for_off(terminal)
        body.run_until(body.clock.now() + 0.1)
        assert body.stop_reason == "no command for 0.4 s"
        assert any("old was refused" in line for line in body.news())
        with terminal.bus.lock:
            assert np.abs(terminal.bus.plant.joint_angle()).max() < 0.01
    finally:
        body.close()


def test_a_flood_of_commands_neither_blinds_the_guard_nor_counts_as_its_death(
    terminal: EmulatedPort, tmp_path: Path
) -> None:
    body = body_on(terminal, tmp_path)
    try:
        body.start()
        begun = time.monotonic()
        while time.monotonic() - begun < 2.0:
            body.command(np.zeros(N))
        assert body.stop_reason is None
        EmergencyStop(tmp_path / "estop").trip("enough")
        begun = time.monotonic()
        while any(torque_on(terminal)):
            body.command(np.zeros(N))
            assert time.monotonic() - begun < 15.0
    finally:
        body.close()


@pytest.mark.parametrize("who", ["guard", "latch"])
def test_the_way_up_can_be_interrupted(terminal: EmulatedPort, tmp_path: Path, who: str) -> None:
    limits = SafetyLimits(ramp_time_s=3.0)
    body = GuardedBody(BusPort(terminal.port), calibration(), limits, latch=tmp_path / "estop")

    def interrupt() -> None:
        while not any(torque_on(terminal)):
            time.sleep(0.002)
        if who == "latch":
            EmergencyStop(tmp_path / "estop").trip("not now")
        elif body.guard_pid is not None:
            os.kill(body.guard_pid, signal.SIGTERM)
        wait_for_off(terminal)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(interrupt)
        with pytest.raises(BringUpError, match="not now" if who == "latch" else "told to end"):
            body.start()
        done.result(5.0)
    body.close()


def test_torque_goes_off_when_the_port_is_back_also_after_the_policy_has_left(
    terminal: EmulatedPort, tmp_path: Path
) -> None:
    body = body_on(terminal, tmp_path)
    body.start()
    drive(body, 0.2, 0.1)
    terminal.unplug()
    drive(body, 0.2, 0.1)
    body.close()
    assert any("use the hardware stop" in line for line in body.news())
    with pytest.raises(BringUpError, match="last guard"):
        body.start()
    assert torque_on(terminal) == [True] * N
    terminal.plug()
    wait_for_off(terminal)
    begun = time.monotonic()
    while body.guard_pid is not None and time.monotonic() - begun < 15.0:
        time.sleep(0.02)
    assert body.guard_pid is None, "the guard does not end once its work is done"
    body.start()
    assert torque_on(terminal) == [True] * N
    body.close()


def test_a_servo_that_was_away_at_the_end_is_switched_off_when_it_is_back(
    terminal: EmulatedPort, tmp_path: Path
) -> None:
    body = body_on(terminal, tmp_path)
    body.start()
    terminal.bus.servos[2].dead = True
    drive(body, 0.3, 0.1)
    body.close()
    told = body.news()
    assert any("joints 3" in line and "use the hardware stop" in line for line in told), told
    assert torque_on(terminal) == [False, False, True, False]
    terminal.bus.servos[2].dead = False
    wait_for_off(terminal)


def test_without_guard_and_port_the_policy_s_side_goes_on_trying(terminal: EmulatedPort, tmp_path: Path) -> None:
    body = body_on(terminal, tmp_path)
    try:
        body.start()
        assert body.guard_pid is not None
        terminal.unplug()
        os.kill(body.guard_pid, signal.SIGKILL)
        body.run_until(body.clock.now() + 0.05)
        assert body.stop_reason == "the guard process has died"
        assert any("use the hardware stop" in line for line in body.news())
        terminal.plug()
        body.run_until(body.clock.now() + 0.1)
        assert torque_on(terminal) == [False] * N
        assert body.news() == ["torque is off in all joints now"]
    finally:
        body.close()


def test_a_second_start_gives_a_fresh_sample_of_a_robot_that_is_up(terminal: EmulatedPort, tmp_path: Path) -> None:
    limits = SafetyLimits(ramp_time_s=0.05, command_timeout_s=0.4, lost_after_s=5.0)
    body = GuardedBody(BusPort(terminal.port), calibration(), limits, latch=tmp_path / "estop")
    try:
        body.start()
        pid = body.guard_pid
        time.sleep(1.0)
        assert torque_on(terminal) == [False] * N
        begun = body.clock.now()
        assert body.start().stamp_s >= begun
        for _ in range(50):  # a busy machine's servo that missed its turn is told with the next goal
            drive(body, 0.2, 0.1)
            if all(torque_on(terminal)):
                break
        assert torque_on(terminal) == [True] * N
        begun = body.clock.now()
        assert body.start().stamp_s >= begun
        body.run_until(body.clock.now() + 0.2)
        assert body.stop_reason is None
        assert body.guard_pid == pid
    finally:
        body.close()


def test_what_is_no_message_for_this_robot_is_not_taken_for_one() -> None:
    command = Command(7, 1.5, np.arange(3.0))
    got = unpack_command(pack_command(command), 3)
    assert got is not None
    assert got[:2] == (7, 1.5)
    np.testing.assert_array_equal(got.reference, command.reference)
    assert unpack_command(pack_command(command), 4) is None
    assert unpack_command(b"", 3) is None
    assert unpack_numbered(pack_numbered(b"X", 9, "too hot")) == (9, "too hot")
    assert unpack_numbered(b"X") is None


POLICY = """
import sys, time
import numpy as np
from pathlib import Path
from snake_gym.hardware.bus.servo_bus import BusPort
from snake_gym.hardware.safety.guarded_body import GuardedBody
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.safety.checks import SafetyLimits
body = GuardedBody(BusPort(sys.argv[1]), straight_chain(range(1, 5), 1.2),
                   SafetyLimits(ramp_time_s=float(sys.argv[3]), command_timeout_s=30.0), latch=Path(sys.argv[2]))
body.start()
body.command(np.full(4, 0.2))
print("up", flush=True)
while True:
    body.run_until(body.clock.now() + 0.1)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_when_the_policy_is_killed_torque_goes_off(
    terminal: EmulatedPort, tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-c", POLICY, terminal.port, str(tmp_path / "estop"), "0.05"]
    policy = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True)
    try:
        assert policy.stdout is not None
        assert policy.stdout.readline() == "up\n"
        assert torque_on(terminal) == [True] * N
        policy.send_signal(number)
        wait_for_off(terminal)
    finally:
        policy.kill()
        policy.wait()
        if policy.stdout is not None:
            policy.stdout.close()


def test_when_the_policy_is_killed_on_the_way_up_torque_goes_off(terminal: EmulatedPort, tmp_path: Path) -> None:
    command = [sys.executable, "-c", POLICY, terminal.port, str(tmp_path / "estop"), "3.0"]
    policy = subprocess.Popen(command, cwd=ROOT)
    try:
        while not any(torque_on(terminal)):
            time.sleep(0.002)
    finally:
        policy.kill()
        policy.wait()
    wait_for_off(terminal)


def test_torque_goes_off_when_the_port_is_back_also_after_the_policy_was_killed(
    terminal: EmulatedPort, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", POLICY, terminal.port, str(tmp_path / "estop"), "0.05"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as policy:
        try:
            assert policy.stdout is not None
            assert policy.stdout.readline() == "up\n"
            terminal.unplug()
        finally:
            policy.kill()
    time.sleep(1.0)
    assert torque_on(terminal) == [True] * N
    terminal.plug()
    wait_for_off(terminal)


def test_a_port_that_does_not_exist_is_named(tmp_path: Path) -> None:
    body = GuardedBody(BusPort(str(tmp_path / "none")), calibration(), LIMITS, latch=tmp_path / "estop")
    with pytest.raises(BringUpError, match="cannot open"):
        body.start()
    body.close()


@pytest.mark.parametrize("priority", [0, 10])
def test_the_guard_has_the_priority_that_was_asked_for_or_says_so(
    terminal: EmulatedPort, tmp_path: Path, priority: int
) -> None:
    body = GuardedBody(BusPort(terminal.port), calibration(), LIMITS, latch=tmp_path / "estop", priority=priority)
    try:
        body.start()
        assert body.guard_pid is not None
        given = os.sched_getscheduler(body.guard_pid) == os.SCHED_FIFO
        complaints = [line for line in body.news() if "real-time priority" in line]
        assert given == (priority > 0 and may_take_priority())
        assert bool(complaints) == (priority > 0 and not given)
    finally:
        body.close()
