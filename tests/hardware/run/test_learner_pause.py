"""A learner that thinks between two steps of the real robot: the robot goes limp and says so, or holds its shape.

A wire to the driver is the witness.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from snake_gym.hardware.emulator.port import EmulatedPort
from snake_gym.hardware.run.real_env import RealSnakeEnv
from tests.hardware.patient import be_patient
from tests.hardware.programs import N, settings
from tests.hardware.rig import wait_until
from tests.hardware.wiretap import Wiretap


@contextmanager
def robot(port: EmulatedPort, folder: Path, **safety: float) -> Iterator[tuple[RealSnakeEnv, Wiretap]]:
    """A guarded robot that is up."""
    with Wiretap(port) as wire:
        settings(folder, port)  # writes the calibration
        connection = {
            "port": wire.port, "calibration": str(folder / "snake.json"), "latch": str(folder / "estop"),
            "pose": {"kind": "dead_reckoning"}, "priority": 0,
        }  # fmt: skip
        env = RealSnakeEnv(connection=connection, safety={"lost_after_s": 5.0, **safety})
        try:
            env.reset()
            yield env, wire
        finally:
            env.close()


@pytest.fixture(autouse=True)
def patient_guards(monkeypatch: pytest.MonkeyPatch) -> None:
    be_patient(monkeypatch.setattr)


def test_a_pause_that_is_too_long_is_said_to_whoever_steps_next(port: EmulatedPort, tmp_path: Path) -> None:
    with robot(port, tmp_path) as (env, wire):
        begun_s = env.loop.body.clock.now()
        wire.torque_off_s(range(1, N + 1), begun_s)  # the learner thinks until then
        with pytest.warns(UserWarning, match=r"limp.*no command for 0.5 s \(safety.command_timeout_s\)"):
            _, _, terminated, truncated, info = env.step(np.zeros(env.action_space.shape))
        assert truncated and not terminated
        assert info["stop_reason"].startswith("no command for 0.5 s")


def test_a_robot_that_may_wait_holds_its_shape(port: EmulatedPort, tmp_path: Path) -> None:
    with robot(port, tmp_path, command_timeout_s=60.0) as (env, wire), warnings.catch_warnings():
        warnings.simplefilter("error")
        n_goals = len(wire.torqued())
        wait_until(lambda: len(wire.torqued()) > n_goals + 60 * N)  # sixty bus cycles of 20 ms: 1.2 s at least
        assert not any(one.takes_torque for one in wire.written[-60 * N :])
        _, _, _, truncated, info = env.step(np.zeros(env.action_space.shape))
        assert not truncated and info["stop_reason"] == ""
