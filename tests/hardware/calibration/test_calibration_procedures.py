"""Guided calibration of servos that were put on at random, with a person who sees and moves the joints; new IDs and
baud rates, also when packets get lost.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from snake_gym.config import ConfigError
from snake_gym.emulator.bus import EmulatedServo, FirstOrderPlant
from snake_gym.hardware.bus.feetech import FEETECH
from snake_gym.hardware.calibration.procedures import (
    ProcedureError,
    Side,
    StoppedError,
    find_direction,
    passes_encoder_zero,
    watch_range,
    wiggle,
)
from snake_gym.hardware.commands.calibrate import calibrate, odd_ones_out
from snake_gym.hardware.commands.stored_registers import change_baud, change_id
from tests.hardware.rig import AdapterFaults, Bench

STOPS = math.radians(70.0)


class HandledPlant(FirstOrderPlant):
    """Limp joints follow a hand."""

    def __init__(self, n: int) -> None:
        super().__init__(n, joint_angle=[0.4 * math.sin(3.0 * k) for k in range(n)])
        self.hand: np.ndarray | None = None
        self.moved_with_torque = False

    def advance(self, dt_s: float, target_rad: Any, enabled: Any, torque_limit: Any, speed_limit_rad_s: Any) -> None:
        super().advance(dt_s, target_rad, enabled, torque_limit, speed_limit_rad_s)
        if self.hand is not None:
            self.moved_with_torque |= bool(enabled.any())
            way = np.clip(self.hand - self._angle, -2.0 * dt_s, 2.0 * dt_s)
            self._angle = self._angle + np.where(enabled, 0.0, way)


class TruthfulGuide:
    """Sees and moves the joints as they are."""

    def __init__(self, bench: Bench, plant: HandledPlant) -> None:
        self.bench, self.plant = bench, plant
        self.said: list[str] = []
        self.stage = 0

    def say(self, line: str) -> None:
        self.said.append(line)

    def straighten(self) -> None:
        self.plant.hand = np.zeros(len(self.bench.servos))
        self.bench.clock.sleep(1.0)
        self.bench.bus.poll()
        self.plant.hand = None

    def come_back(self, joint: int, servo_id: int) -> None:
        raise AssertionError("somebody looks all the time")

    def look(self, joint: int, servo_id: int) -> Side | None:
        angle = self.bench.angle(joint - 1)
        return "unseen" if abs(angle) < math.radians(1.0) else ("right" if angle > 0 else "left")

    def moved_to_stops(self, widths_rad: Mapping[int, float]) -> bool:
        ways = [STOPS, -0.8 * STOPS]
        if self.stage == len(ways):
            return True
        self.plant.hand = np.full(len(self.bench.servos), ways[self.stage])
        if np.allclose(self.plant.joint_angle(), ways[self.stage], atol=1e-6):
            self.stage += 1
        return False


def mounted(n: int, seed: int) -> tuple[list[EmulatedServo], np.ndarray]:
    rng = np.random.default_rng(seed)
    zero, direction = rng.integers(0, 4096, n), rng.choice([-1, 1], n)
    zero[0], zero[1] = 4090, 3  # two of them at the encoder's zero
    return [EmulatedServo(k + 1, "STS3215", int(zero[k]), int(direction[k])) for k in range(n)], direction


def test_a_robot_put_together_anyhow_is_calibrated_right() -> None:
    servos, direction = mounted(5, 0)
    plant = HandledPlant(5)
    bench = Bench(servos, plant)
    guide = TruthfulGuide(bench, plant)
    found = calibrate(bench.driver, [1, 2, 3, 4, 5], guide)
    assert found.direction.tolist() == direction.tolist()
    assert found.model == "STS3215"
    assert not plant.moved_with_torque
    assert bench.torque_on() == [False] * 5
    margin = math.radians(3.0)
    np.testing.assert_allclose(found.high_rad, STOPS - margin, atol=4e-3)
    np.testing.assert_allclose(found.low_rad, -0.8 * STOPS + margin, atol=4e-3)
    # What the calibration reads is what the joints do, wherever they are.
    plant.hand = np.linspace(-0.9, 0.9, 5)
    bench.clock.sleep(2.0)
    bench.bus.poll()
    read = bench.driver.read_block([1, 2, 3, 4, 5], "present_position")
    steps = np.array([read.values[one]["present_position"] for one in found.ids], dtype=float)  # type: ignore[index]
    np.testing.assert_allclose(found.angles(steps), plant.hand, atol=2.5e-3)
    assert not any(passes_encoder_zero(FEETECH, joint.zero_steps, STOPS) for joint in found.joints)
    assert found.zero_steps[:2].tolist() == [2048, 2048]


def test_a_wiggle_moves_gently_and_ends_limp() -> None:
    bench = Bench([EmulatedServo(1, zero_steps=2000, direction=-1)])
    seen: list[float] = []
    done = wiggle(
        bench.driver, 1, math.radians(6.0), 0.2,
        at_the_end=lambda: seen.append(bench.servos[0].memory.get("torque_limit") + bench.angle(0)),
    )  # fmt: skip
    assert done.moved
    assert done.moved_rad == pytest.approx(math.radians(6.0), abs=8e-3)
    assert abs(done.returned_rad) <= 8e-3
    assert seen[0] == pytest.approx(200 - math.radians(6.0), abs=0.01)
    assert bench.servos[0].memory.get("torque_limit") == 1000
    assert bench.torque_on() == [False]


def test_a_wiggle_moves_an_x_servo_that_has_stopped_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.hardware.rig.MODEL", "XL430-W250")
    bench = Bench([1])
    assert bench.driver.torque([1], True) == {1: True}
    bench.wait(1.0)
    assert bench.servos[0].memory.get("bus_watchdog") == -1
    assert wiggle(bench.driver, 1).moved


def test_a_joint_that_is_blocked_is_named() -> None:
    bench = Bench([1])
    bench.bus.jam(1)
    assert not wiggle(bench.driver, 1).moved
    with pytest.raises(ProcedureError, match="servo 1 was not seen to move"):
        find_direction(bench.driver, 1, lambda: "right")
    with pytest.raises(ProcedureError, match="servo 1 does not answer any more"):
        wiggle(bench.driver, 1, at_the_end=lambda: setattr(bench.servos[0], "dead", True))
    with pytest.raises(ProcedureError, match="servos 1 do not answer"):
        wiggle(bench.driver, 1)


def test_a_joint_that_nobody_looks_at_is_let_go_and_shown_again() -> None:
    servos, direction = mounted(3, 1)
    plant = HandledPlant(3)
    bench = Bench(servos, plant)

    class Absent(TruthfulGuide):
        """Does not look at the second joint at first."""

        def look(self, joint: int, servo_id: int) -> Side | None:
            return None if joint == 2 and not left else super().look(joint, servo_id)

        def come_back(self, joint: int, servo_id: int) -> None:
            assert bench.torque_on() == [False] * 3
            left.append(joint)

    left: list[int] = []
    guide = Absent(bench, plant)
    assert calibrate(bench.driver, [1, 2, 3], guide, limit_rad=1.0).direction.tolist() == direction.tolist()
    assert left == [2]


def test_servos_that_count_the_other_way_than_most_are_named() -> None:
    assert odd_ones_out({1: 1, 2: 1, 3: 1}) == []
    assert odd_ones_out({1: -1, 2: 1, 3: -1})[0].startswith("servos 2 count the other way")


def test_a_wiggle_that_is_interrupted_ends_limp_at_once() -> None:
    bench = Bench([1])
    asked_s: list[float] = []

    def interrupted() -> str | None:
        asked_s.append(bench.clock.now())
        return "enough" if bench.angle(0) > math.radians(3.0) else None

    bench.driver.interrupted = interrupted  # type: ignore[method-assign]
    with pytest.raises(StoppedError, match="stopped: enough"):
        wiggle(bench.driver, 1, math.radians(30.0))
    assert bench.torque_on() == [False]
    assert bench.angle(0) < math.radians(5.0)
    assert max(np.diff(asked_s)) < 0.04


def test_a_joint_that_jumps_has_not_been_moved_there_by_a_hand() -> None:
    bench = Bench([1])
    angles = iter([0.0, 1.0, 1.0 + math.pi, 1.0 + 0.6 * math.pi, 0.9, -0.5])

    def until(widths_rad: Mapping[int, float]) -> bool:
        angle = next(angles, None)
        bench.plant._angle[0] = 0.0 if angle is None else angle
        return angle is None

    steps = 2048 + np.array([-0.5, 1.0]) * 4096 / (2.0 * math.pi)
    np.testing.assert_allclose(watch_range(bench.driver, [1], until)[1], steps, atol=2)


def blue(n: int = 2, **more: Any) -> Bench:
    """Servos as they leave the factory, at 115200 baud."""
    return Bench([EmulatedServo(k + 1, "SM8524BL") for k in range(n)], baud=115_200, **more)


def test_new_ids_and_baud_rates_outlast_power_off() -> None:
    bench = blue()
    change_id(bench.driver, 1, 4)
    change_baud(bench.open, 4, 115_200, 1_000_000)
    first, second = bench.servos
    assert (first.id, first.baud, first.memory.get("lock"), first.torque_on) == (4, 1_000_000, 1, False)
    assert (second.id, second.baud) == (2, 115_200)
    first.power_cycle(bench.clock.now())
    bench.clock.sleep(0.5)
    fast = bench.open(1_000_000)
    assert fast.ping(4) is not None and fast.ping(1) is None


def test_lost_packets_do_not_lose_the_servo() -> None:
    n_changed = 0
    for seed in range(12):
        bench = blue(1, faults=AdapterFaults(lost=0.15, corrupted=0.05, seed=seed))
        try:
            change_baud(bench.open, 1, 115_200, 500_000)
        except ConfigError:
            continue  # told so
        assert (bench.servos[0].baud, bench.servos[0].memory.get("lock")) == (500_000, 1), seed
        n_changed += 1
    assert n_changed >= 8
