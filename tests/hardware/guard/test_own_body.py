"""Joints of one's own that go on where they are: after a stop, a silence, a pause, an exception, a late let-go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from snake_gym.hardware.bus.clock import VirtualClock
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.guard.own_body import Joints, OwnBody

N, PERIOD_S = 3, 0.02


class Desk(Joints):
    """Joints that are at once where they are to be, and say so half a cycle later."""

    def __init__(self) -> None:
        self.clock, self.angle, self.on, self.refusals = VirtualClock(), np.zeros(N), False, 0
        self.silent = np.zeros(N, bool)
        self.heard = np.zeros(N), np.zeros(N), -1.0
        self.broken: Exception | None = None

    def start(self) -> None:
        self.on = True

    def read(self) -> tuple[np.ndarray, np.ndarray, float]:
        if self.broken is not None:
            raise self.broken
        said = self.heard
        if self.on:
            self.heard = np.where(self.silent, np.nan, self.angle), np.zeros(N), self.clock.now()
        return said

    def send(self, reference: np.ndarray) -> None:
        self.angle = np.where(self.silent, self.angle, reference)

    def let_go(self) -> bool:
        self.refusals -= 1
        self.on = self.refusals >= 0
        return not self.on


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def body(desk: Desk, tmp_path: Path) -> Iterator[OwnBody]:
    limits = SafetyLimits(command_timeout_s=0.5, lost_after_s=0.2, max_lost_joints=1, max_speed_rad_s=1.0)
    body = OwnBody(desk, "desk:Desk", np.full(N, 1.5), limits, PERIOD_S, EmergencyStop(tmp_path / "estop"))
    yield body
    body.close()


def play(body: OwnBody, aim: float, duration_s: float) -> None:
    for _ in range(round(duration_s / 0.1)):
        body.command(np.full(N, aim))
        body.run_until(body.clock.now() + 0.1)


def test_after_a_stop_it_begins_where_the_joints_are_now(body: OwnBody, desk: Desk) -> None:
    body.start()
    play(body, 0.5, 2.0)
    desk.refusals = -1
    body.close()
    desk.angle = np.full(N, -0.8)  # bent by hand
    body.start()
    assert body.sample().reference == pytest.approx(-0.8)


def test_a_joint_that_answers_again_goes_on_from_where_it_is(body: OwnBody, desk: Desk) -> None:
    body.start()
    play(body, 0.6, 2.0)
    desk.silent[1], desk.angle[1] = True, -0.4
    play(body, 0.6, 1.0)
    assert body.sample().lost.tolist() == [False, True, False]
    desk.silent[1] = False
    while body.sample().lost[1]:
        body.command(np.full(N, 0.6))
        body.run_until(body.clock.now() + PERIOD_S)
    assert body.sample().reference[1] < -0.3


def test_a_pause_an_exception_and_joints_that_let_go_late_all_end_without_power(body: OwnBody, desk: Desk) -> None:
    body.start()
    play(body, 0.3, 0.5)
    desk.clock.sleep(2.0)
    body.command(np.full(N, 0.3))
    assert body.stop_reason is not None and "no command" in body.stop_reason and not desk.on
    body.start()
    play(body, 0.3, 0.5)
    desk.broken = ConnectionError("gone")
    with pytest.raises(ConnectionError):
        play(body, 0.3, 0.5)
    assert body.stop_reason == "ConnectionError: gone" and not desk.on
    desk.broken = None
    body.start()
    desk.refusals = 5
    body.close()
    assert not desk.on and not body.torque_off_pending
