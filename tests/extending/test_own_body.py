"""Joints of the user's own, as on the page: a class of theirs, and a board at the other end of a socket."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import snake_gym  # noqa: F401  registers
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.emergency_stop import EmergencyStop, find_locks
from tests.extending.test_plugins import example
from tests.hardware.rig import wait_until

SECTION = "Joints of your own"


class Board(threading.Thread):
    """Microcontroller: joints that are at once where they are to be, some of them silent."""

    def __init__(self, line: socket.socket) -> None:
        super().__init__(daemon=True)
        self.line, self.angle, self.aims, self.silent = line, np.zeros(9), list[Any](), list[int]()

    def run(self) -> None:
        while data := self.line.recvfrom(4096):
            if (aim := json.loads(data[0])["aim"]) == "end":
                return
            self.aims.append(aim)
            self.angle = np.array(aim) if isinstance(aim, list) else self.angle
            said = self.angle.copy()
            said[self.silent] = np.nan
            self.line.sendto(json.dumps({"angle": said.tolist(), "rate": [0.0] * 9}).encode(), data[1])


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[gym.Env[Any, Any], Board, EmergencyStop]]:
    """The env of the page, and what is behind it."""
    (tmp_path / "udp_joints.py").write_text(example(SECTION))
    monkeypatch.syspath_prepend(str(tmp_path))
    stop, names = EmergencyStop(tmp_path / "estop"), dict[str, Any]()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.bind(("127.0.0.1", 0))
        (board := Board(line)).start()
        port = line.getsockname()[1]
        code = example(SECTION, which=1).replace('"127.0.0.1"}', f'"127.0.0.1", "port": {port}}}')
        code = code.replace("connection = {", f"connection = {{'latch': {str(stop.latch)!r}, ")
        patient = "safety={'command_timeout_s': 30.0, 'lost_after_s': 1.5}"  # the machine may be busy
        exec(code.replace("connection=connection", f"connection=connection, {patient}"), names)
        yield names["env"], board, stop
        names["env"].close()
        line.sendto(b'{"aim": "end"}', ("127.0.0.1", port))
        board.join(5.0)


def test_joints_of_one_s_own_are_the_same_env(played: Any) -> None:
    env, board, stop = played

    def play(until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        for _ in range(60):
            *_, info = env.step(0.0 * env.action_space.sample())
            if until(info):
                return dict(info)
        raise AssertionError(info)

    env.reset()
    assert len(find_locks(stop.latch)) == 1
    play(lambda info: isinstance(board.aims[-1], list) and max(board.aims[-1]) > 0.3)  # the gait of the policy
    aim = play(lambda info: True)["executed_reference_rad"]
    wait_until(lambda: np.allclose(board.aims[-1], aim))
    board.silent = [3, 4]
    info = play(lambda info: info["lost_joints"].sum() > 1)
    assert np.flatnonzero(info["lost_joints"]).tolist() == board.silent and info["stop_reason"] == ""
    board.silent = [3, 4, 5]
    with pytest.warns(UserWarning, match="joints 4, 5, 6 are lost"):
        play(lambda info: info["stop_reason"] != "")
    wait_until(lambda: board.aims[-1] == "off")
    assert find_locks(stop.latch) == []
    with pytest.raises(BringUpError, match="emergency stop: joints 4, 5, 6 are lost"):
        env.reset()
    stop.clear()
    board.silent = []
    env.reset()
    stop.trip("by hand")
    with pytest.warns(UserWarning, match="emergency stop: by hand"):
        play(lambda info: info["stop_reason"] != "")
    wait_until(lambda: board.aims[-1] == "off")
