"""A learner that thinks between two steps of the real robot: the robot goes limp and says so, or holds its shape."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from snake_gym.emulator.port import EmulatedPort
from snake_gym.hardware.robot.real_env import RealSnakeEnv
from tests.hardware.patient import be_patient
from tests.hardware.programs import N, settings
from tests.hardware.rig import torque_on, wait_until, watch_torque


@contextmanager
def robot(port: EmulatedPort, folder: Path, **safety: float) -> Iterator[RealSnakeEnv]:
    """A guarded robot that is up."""
    settings(folder, port)  # writes the calibration
    connection = {
        "port": port.port, "calibration": str(folder / "snake.json"), "latch": str(folder / "estop"),
        "pose": {"kind": "dead_reckoning"}, "priority": 0,
    }  # fmt: skip
    env = RealSnakeEnv(connection=connection, safety={"lost_after_s": 5.0, **safety})
    try:
        env.reset()
        yield env
    finally:
        env.close()


@pytest.fixture(autouse=True)
def patient_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch.setattr)


def test_a_pause_that_is_too_long_is_said_to_whoever_steps_next(port: EmulatedPort, tmp_path: Path) -> None:
    with robot(port, tmp_path) as env:
        wait_until(lambda: not any(torque_on(port)))  # the learner thinks until then
        with pytest.warns(UserWarning, match=r"limp.*no command for 0.5 s \(safety.command_timeout_s\)"):
            _, _, terminated, truncated, info = env.step(np.zeros(env.action_space.shape))
        assert truncated and not terminated
        assert info["stop_reason"].startswith("no command for 0.5 s")


def test_a_robot_that_may_wait_holds_its_shape(port: EmulatedPort, tmp_path: Path) -> None:
    with robot(port, tmp_path, command_timeout_s=60.0) as env, warnings.catch_warnings():
        warnings.simplefilter("error")
        told = watch_torque(port)
        wait_until(lambda: len(told) > 60 * N)  # sixty bus cycles of 20 ms: 1.2 s at least
        assert all(on for _, on in told)
        _, _, _, truncated, info = env.step(np.zeros(env.action_space.shape))
        assert not truncated and info["stop_reason"] == ""
