"""The pose source of docs/extending.md, from a folder outside the package, with a sensor on a pseudo terminal."""

from __future__ import annotations

import contextlib
import math
import os
import struct
import subprocess
import sys
import time
import tty
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from snake_gym.hardware.robot.connection import ConnectionConfig, PoseConfig, make_pose
from snake_gym.robot.presets import RESILIENT_SERVO
from tests.extending.test_plugins import example
from tests.hardware.rig import wait_until

JOINTS = np.zeros(9)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the page's module, where Python finds it."""
    (tmp_path / "bno08x.py").write_text(example("A pose source of your own"))
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


class Sensor:
    """Sensor at the other end of a serial line."""

    def __init__(self) -> None:
        self._ours, self._theirs = os.openpty()
        tty.setraw(self._theirs)
        os.set_blocking(self._ours, False)
        self.port = os.ttyname(self._theirs)

    def send(self, yaw_deg: float, damage: int = 0) -> None:
        body = struct.pack("<B6h3x", 7, round(100 * yaw_deg), 12, -34, 1, 2, 1000)
        with contextlib.suppress(BlockingIOError):  # nobody reads
            os.write(self._ours, b"\xaa\xaa" + body + bytes([(sum(body) + damage) & 0xFF]))

    def send_noise(self) -> None:
        os.write(self._ours, b"\x00\xaa\xaa\xaa\x01")

    def close(self) -> None:
        os.close(self._ours)
        os.close(self._theirs)


@pytest.fixture
def sensor() -> Iterator[Sensor]:
    made = Sensor()
    yield made
    made.close()


def test_the_heading_is_the_sensor_s_and_grows_stale(folder: Path, sensor: Sensor) -> None:
    config = PoseConfig(kind="bno08x:Bno08x", arguments={"port": sensor.port})
    source = make_pose(ConnectionConfig(pose=config), RESILIENT_SERVO)
    source.follow(JOINTS, JOINTS, 0.0)
    assert not source.read(0.0).valid and "no packet" in source.trouble
    for k, yaw_deg in enumerate((170.0, 179.0, -172.0)):  # across the seam, clockwise
        sensor.send_noise()
        sensor.send(-90.0, damage=1)
        sensor.send(yaw_deg)
        source.read(0.01 * k)
    wait_until(lambda: source.read(0.02).angle == pytest.approx(math.radians(-18.0)))  # the terminal takes its time
    assert source.read(0.02).valid and source.trouble == ""
    assert source.read(0.1).valid and not source.read(0.5).valid
    source.close()


def test_a_run_has_its_pose_from_it(folder: Path, sensor: Sensor) -> None:
    words = ["run", "cc", "--port", "memory", "--pose", "bno08x:Bno08x", "--time", "2", "--log", "none"]
    arguments = f"connection.pose.arguments={{port: {sensor.port}, stale_s: 1000}}"
    command = [sys.executable, "-m", "snake_gym.hardware", *words, "--latch", "estop", "--set", arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, text=True, stdout=pipe, stderr=subprocess.STDOUT) as process:
        while process.poll() is None:
            sensor.send(10.0)
            time.sleep(0.001)
        out, _ = process.communicate()
    assert process.returncode == 0, out
    assert "the time is over" in out and "no pose" not in out
