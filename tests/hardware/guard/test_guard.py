"""The guard process on a real pseudo terminal: it runs the robot, and torque goes off whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.bus.bus import BusPort
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.guard import client
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.client import GuardedBody
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from tests.hardware.patient import be_patient
from tests.hardware.rig import serve, torque_on, wait_until

ROOT = Path(__file__).parents[3]
N = 4
CHAIN = straight_chain(range(1, N + 1), 1.2)
# A busy machine may keep the servos and the policy of this process silent for a while: that is no reason to stop here.
PERIOD_S = 0.05
LIMITS = SafetyLimits(ramp_time_s=0.05, command_timeout_s=30.0, lost_after_s=5.0)


@pytest.fixture(autouse=True)
def patient_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # where guards find this
    be_patient(monkeypatch.setattr)


@pytest.fixture
def terminal() -> Iterator[EmulatedPort]:
    with serve(range(1, N + 1)) as port:
        yield port


@pytest.fixture
def make_body(terminal: EmulatedPort, tmp_path: Path) -> Iterator[Callable[..., GuardedBody]]:
    """Guarded bodies on the terminal with ``LIMITS`` and what else is asked for; closed at the end."""
    with ExitStack() as opened:

        def make(priority: int = 0, **limits: float) -> GuardedBody:
            chosen = replace(LIMITS, **limits)
            port, latch = BusPort(terminal.port), tmp_path / "estop"
            body = GuardedBody(port, CHAIN, chosen, PERIOD_S, latch=latch, priority=priority)
            opened.callback(body.close)
            return body

        yield make


@pytest.fixture
def body(make_body: Callable[..., GuardedBody]) -> GuardedBody:
    """A guarded body that is up."""
    made = make_body()
    made.start()
    return made


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits longer than a second for the end of a guard that cannot reach all servos."""
    monkeypatch.setattr(client, "_FAREWELL_S", 1.0)


def may_take_priority() -> bool:
    """Whether this user may have a real-time priority."""
    ask = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))"
    return subprocess.run([sys.executable, "-c", ask], capture_output=True, check=False).returncode == 0


def wait_for_off(terminal: EmulatedPort) -> None:
    wait_until(lambda: not any(torque_on(terminal)), 15.0)


def tell_guard(body: GuardedBody, number: signal.Signals) -> None:
    assert body.guard_pid is not None
    os.kill(body.guard_pid, number)


def drive(body: GuardedBody, seconds: float, angle: float) -> None:
    when = body.clock.now()
    for _ in range(round(seconds / 0.1)):
        body.command(np.full(N, angle))
        when += 0.1
        body.run_until(when)


def drive_until_on(terminal: EmulatedPort, body: GuardedBody) -> None:
    """All servos have torque: on a busy machine one that missed its turn gets the next goal."""
    for _ in range(50):
        drive(body, 0.2, 0.1)
        if all(torque_on(terminal)):
            break
    assert torque_on(terminal) == [True] * N


def test_a_guarded_robot_follows_with_the_priority_asked_for_and_goes_limp_at_the_end(
    terminal: EmulatedPort, make_body: Callable[..., GuardedBody]
) -> None:
    body = make_body(priority=10)
    sample = body.start()
    np.testing.assert_allclose(sample.joint_angle, 0.0, atol=2e-3)
    drive_until_on(terminal, body)
    assert body.guard_pid is not None
    given = os.sched_getscheduler(body.guard_pid) == os.SCHED_FIFO
    assert given == may_take_priority() != any("real-time priority" in line for line in body.news())
    for _ in range(100):
        drive(body, 0.2, 0.3)
        sample = body.run_until(body.clock.now())
        if np.abs(sample.joint_angle - 0.3).max() < 5e-3:
            break
    np.testing.assert_allclose(sample.joint_angle, 0.3, atol=5e-3)
    assert body.clock.now() - sample.stamp_s < 1.0
    assert body.stop_reason is None
    body.close()
    assert torque_on(terminal) == [False] * N and body.guard_pid is None


def test_no_command_means_no_torque_until_the_next_start_which_gives_a_fresh_sample(
    terminal: EmulatedPort, make_body: Callable[..., GuardedBody]
) -> None:
    body = make_body(command_timeout_s=0.4)
    body.start()
    wait_for_off(terminal)
    body.run_until(body.clock.now() + 0.1)
    assert body.stop_reason == "no command for 0.4 s (safety.command_timeout_s)"
    begun = body.clock.now()
    assert body.start().stamp_s >= begun
    drive_until_on(terminal, body)
    for _ in range(10):  # on a busy machine a reading may fail, and the one before comes again
        begun = body.clock.now()
        if body.start().stamp_s >= begun:
            break
    else:
        raise AssertionError("no fresh sample of a robot that is up")
    body.run_until(body.clock.now() + 0.2)
    assert body.stop_reason is None


def test_the_emergency_stop_of_another_process_is_obeyed(
    terminal: EmulatedPort, tmp_path: Path, body: GuardedBody
) -> None:
    body.command(np.zeros(N))
    EmergencyStop(tmp_path / "estop").trip("somebody pressed it")
    wait_for_off(terminal)
    body.run_until(body.clock.now() + 0.05)
    assert body.stop_reason is not None
    assert "somebody pressed it" in body.stop_reason
    with pytest.raises(BringUpError, match="clear it"):
        body.start()
    nowhere = GuardedBody(BusPort(str(tmp_path / "none")), CHAIN, LIMITS, latch=tmp_path / "other")
    with pytest.raises(BringUpError, match="cannot open"):
        nowhere.start()
    nowhere.close()


def test_a_guard_that_hangs_is_killed_and_the_torque_goes_off(terminal: EmulatedPort, body: GuardedBody) -> None:
    drive(body, 0.2, 0.1)
    tell_guard(body, signal.SIGSTOP)
    begun = time.monotonic()
    while body.stop_reason is None and time.monotonic() - begun < 10.0:
        drive(body, 0.1, 0.1)
    assert body.stop_reason == "the guard process hangs"
    assert torque_on(terminal) == [False] * N
    body.start()  # with a new one
    drive_until_on(terminal, body)
    tell_guard(body, signal.SIGSTOP)
    body.close()  # it hangs at the end
    assert torque_on(terminal) == [False] * N


def test_a_command_that_has_become_old_is_not_followed(
    terminal: EmulatedPort, make_body: Callable[..., GuardedBody]
) -> None:
    body = make_body(command_timeout_s=0.4)
    body.start()
    tell_guard(body, signal.SIGSTOP)
    body.command(np.full(N, 0.8))
    time.sleep(0.5)
    tell_guard(body, signal.SIGCONT)
    wait_for_off(terminal)
    body.run_until(body.clock.now() + 0.1)
    assert body.stop_reason == "no command for 0.4 s (safety.command_timeout_s)"
    with terminal.bus.lock:
        assert np.abs(terminal.bus.plant.joint_angle()).max() < 0.01


def test_the_way_up_can_be_interrupted(terminal: EmulatedPort, make_body: Callable[..., GuardedBody]) -> None:
    body = make_body(ramp_time_s=3.0)

    def interrupt() -> None:
        wait_until(lambda: any(torque_on(terminal)))
        tell_guard(body, signal.SIGTERM)
        wait_for_off(terminal)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(interrupt)
        with pytest.raises(BringUpError, match="ended by a signal"):
            body.start()
        done.result(5.0)


@pytest.mark.usefixtures("impatient")
def test_torque_goes_off_when_the_port_is_back_also_after_the_policy_has_left(
    terminal: EmulatedPort, body: GuardedBody
) -> None:
    drive_until_on(terminal, body)
    terminal.unplug()
    drive(body, 0.2, 0.1)
    body.close()
    assert any("use the hardware stop" in line for line in body.news())
    with pytest.raises(BringUpError, match="last guard"):
        body.start()
    assert torque_on(terminal) == [True] * N
    terminal.plug()
    wait_for_off(terminal)
    wait_until(lambda: body.guard_pid is None, 15.0)  # it ends once its work is done
    body.start()
    drive_until_on(terminal, body)


@pytest.mark.usefixtures("impatient")
def test_without_guard_and_port_the_policy_s_side_goes_on_trying(terminal: EmulatedPort, body: GuardedBody) -> None:
    terminal.unplug()
    tell_guard(body, signal.SIGKILL)
    body.run_until(body.clock.now() + 0.05)
    assert body.stop_reason == "the guard process has died"
    assert any("use the hardware stop" in line for line in body.news())
    terminal.plug()
    body.run_until(body.clock.now() + 0.1)
    assert torque_on(terminal) == [False] * N
    assert body.news() == ["torque is off in all servos now"]
