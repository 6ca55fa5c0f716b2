"""Joints of the user's own: those of docs/extending.md, with a microcontroller, and a simulation with its own clock."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import snake_gym  # noqa: F401  registers
from snake_gym.hardware.bus.clock import VirtualClock
from snake_gym.hardware.guard.body import BodySample, BringUpError
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.guard.emergency_stop import EmergencyStop, find_locks
from snake_gym.hardware.guard.own_body import Joints, OwnBody
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.simulation.servo_plant import RobotPlant
from tests.extending.test_plugins import example

SECTION = "Joints of your own"


class Simulated(Joints):
    """Our own physics, as somebody else's robot."""

    def __init__(self, robot: Any) -> None:
        self.clock, self.plant = VirtualClock(), RobotPlant(robot)
        self.aim = self.plant.joint_angle()
        self.is_on, self.done_s = True, 0.0
        self.silent: list[int] = []

    def read(self) -> tuple[Any, Any, float]:
        now, one = self.clock.now(), np.ones(self.aim.size)
        self.plant.advance(now - self.done_s, self.aim, np.full(self.aim.size, self.is_on), one, 100.0 * one)
        self.done_s, angle = now, self.plant.joint_angle().copy()
        angle[self.silent] = np.nan
        return angle, self.plant.joint_rate(), now

    def send(self, reference: Any) -> None:
        self.aim = reference

    def let_go(self) -> bool:
        self.is_on = False
        return True


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The page's module where Python finds it, and the state of a microcontroller that answers it."""
    (tmp_path / "udp_joints.py").write_text(example(SECTION))
    monkeypatch.syspath_prepend(str(tmp_path))
    board: dict[str, Any] = {"angle": [0.0] * 9, "rate": [0.0] * 9, "aims": []}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind(("127.0.0.1", 0))
        line.settimeout(0.05)
        ends = threading.Event()

        def serve() -> None:
            while not ends.is_set():
                try:
                    data, back = line.recvfrom(4096)
                except TimeoutError:
                    continue
                board["aims"].append(aim := json.loads(data)["aim"])
                board["angle"] = aim if isinstance(aim, list) else board["angle"]
                line.sendto(json.dumps({name: board[name] for name in ("angle", "rate")}).encode(), back)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield board | {"port": line.getsockname()[1], "aims": board["aims"]}
        ends.set()
        thread.join(5.0)


def test_the_env_plays_on_the_page_s_joints(page: dict[str, Any], tmp_path: Path) -> None:
    code = example(SECTION, which=1).replace('"127.0.0.1"}', f'"127.0.0.1", "port": {page["port"]}}}')
    where: dict[str, Any] = {}
    exec(code.replace("connection = {", f'connection = {{"latch": {str(tmp_path / "estop")!r}, '), where)
    env: gym.Env[Any, Any] = where["env"]
    observation, _ = env.reset()
    for _ in range(5):
        observation, *_, info = env.step(0.0 * env.action_space.sample())
    assert info["stop_reason"] == "" and np.isfinite(observation).all()
    np.testing.assert_allclose(info["executed_reference_rad"], page["aims"][-1], atol=1e-9)
    assert np.abs(page["aims"][-1]).max() > 0.05, "the gait of the policy"
    env.close()
    assert page["aims"][-1] == "off"


def test_what_stops_joints_of_one_s_own(tmp_path: Path) -> None:
    stop, limits = EmergencyStop(tmp_path / "estop"), SafetyLimits(max_lost_joints=1)
    joints = Simulated(RESILIENT_SERVO)
    body = OwnBody(joints, "mine:Simulated", np.full(9, 1.0), limits, 0.02, stop)

    def play(wanted_rad: float = 0.0) -> BodySample:
        for _ in range(10):
            body.command(np.full(9, wanted_rad))
            sample = body.run_until(body.clock.now() + 0.1)
        return sample

    def start() -> None:
        stop.clear()
        joints.is_on, joints.silent = True, []
        body.start()
        assert len(find_locks(stop.latch)) == 1

    start()
    assert play(9.0).reference.max() == 1.0
    joints.silent = [3]
    assert np.flatnonzero(play().lost).tolist() == joints.silent and body.stop_reason is None
    joints.silent = [3, 4]
    play()
    assert "joints 4, 5 are lost" in str(body.stop_reason) and not joints.is_on and find_locks(stop.latch) == []
    with pytest.raises(BringUpError, match="are lost"):
        body.start()
    start()
    body.run_until(body.clock.now() + 1.0)
    assert "no command" in str(body.stop_reason) and not joints.is_on
    start()
    stop.trip("by hand")
    play()
    assert "emergency stop: by hand" in str(body.stop_reason) and not joints.is_on
    body.close()
