"""Command ``play`` on a port: keys and gamepad come through pygame's events, and a raw driver asks the servos."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.commands import play_robot as command
from snake_gym.commands.play_robot import WindowDriver, main
from snake_gym.config import ConfigError
from snake_gym.emulator.servo import EmulatedServo
from snake_gym.hardware.guard.body import BodySample
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.robot.presets import RESILIENT_SERVO
from tests.hardware.emulate_servos import emulated
from tests.hardware.patient import be_patient
from tests.hardware.raw_driver import RawDriver
from tests.hardware.rig import write_calibration

pytest.importorskip("pygame")
ROOT = Path(__file__).parents[2]
TORQUE_ENABLE, GOAL_POSITION = 40, 42
"""Addresses in the servos' memory table."""
Script = list[tuple[int, Callable[[Any], None]]]


def press(*keys: str) -> Callable[[Any], None]:
    def act(pygame: Any) -> None:
        for key in keys:
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.key.key_code(key)))

    return act


def post(kind: str, **more: Any) -> Callable[[Any], None]:
    return lambda pygame: pygame.event.post(pygame.event.Event(getattr(pygame, kind), **more))


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Callable[[Script], list[WindowDriver]]:
    """Somebody who does what a script says, each deed when the robot has done so many steps; not in real time."""

    def sit_down(script: Script) -> list[WindowDriver]:
        seen: list[WindowDriver] = []

        class Person(WindowDriver):
            def __init__(self, *arguments: Any, **more: Any) -> None:
                super().__init__(*arguments, **more | {"in_real_time": True})
                self.window.pygame.event.clear()
                seen.append(self)

            def look(self, sample: BodySample) -> None:
                while script and self._loop is not None and self._loop.step_count >= script[0][0]:
                    script.pop(0)[1](self.window.pygame)
                super().look(sample)

        monkeypatch.setattr(command, "WindowDriver", Person)
        monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
        return seen

    return sit_down


def test_a_drive_steers_changes_gaits_without_jumps_and_ends_with_the_window(
    person: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts: list[str] = []
    look = lambda pygame: texts.append(seen[0].helm.text())  # noqa: E731
    script: Script = [
        (2, press("2", *["up"] * 10)), (18, press("g", *["left"] * 8)), (19, look), (30, press("1", "c")),
        (38, press("backspace")), (52, press("h")), (54, post("QUIT")),
    ]  # fmt: skip
    seen = person(script)
    log, latch, png = tmp_path / "drive.jsonl", tmp_path / "estop", tmp_path / "drive.png"
    words = ["cc", "sjc", "cpg", "--latch", str(latch), "--log", str(log), "--screenshot", str(png)]
    code, text = main(words), capsys.readouterr().out
    assert code == 0, text
    assert texts == ["gait cpg   pace 100 %   left 80 %"] and png.read_bytes()[:4] == b"\x89PNG"
    assert re.search(r"the window was closed; progress \d\.\d\d m\n", text) and not EmergencyStop(latch).tripped
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    wanted = np.array([row["wanted"] for row in rows if row["kind"] == "step"])
    most = 2.0 * np.pi * RESILIENT_SERVO.control_dt_s  # as fast as the servos turn
    assert 0.2 < np.abs(np.diff(wanted, axis=0)).max() <= most + 1e-6, "whichever gait begins"
    assert np.ptp(wanted[:2], axis=0).max() < 1e-9, "it holds its shape until somebody asks for a pace"
    assert np.ptp(wanted[-8:], axis=0).max() < 0.02, "and stands at pace 0"
    assert seen[0].helm.pace == 0.0


def test_a_gamepad_drives_and_its_button_stops_the_robot(
    person: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = person([
        (1, post("JOYAXISMOTION", instance_id=3, axis=1, value=-1.0)), (2, post("WINDOWFOCUSLOST")),
        (3, post("JOYBUTTONDOWN", instance_id=3, button=0)), (20, post("JOYBUTTONDOWN", instance_id=3, button=1)),
    ])  # fmt: skip
    latch = tmp_path / "estop"
    words = ["--latch", str(latch), "--log", "none"]
    assert main(words) == 1
    assert "emergency stop: the stop button of the gamepad was pressed" in capsys.readouterr().out
    (driver,) = seen
    assert driver.helm.pace == 1.0 and driver.helm.gait == 1, "a stick is held, whatever has the focus"
    assert EmergencyStop(latch).tripped and driver._loop.body.stop_reason is not None
    person([])
    assert main([*words, "--time", "1"]) == 1
    assert "the emergency stop is tripped" in capsys.readouterr().out


def test_a_window_that_loses_the_focus_makes_the_robot_stand(person: Any, tmp_path: Path) -> None:
    paces: list[tuple[float, str]] = []

    def look(_: Any) -> None:
        paces.append((seen[0].helm.pace, seen[0].window.message))

    seen = person([(1, press("up", "up")), (4, look), (5, post("WINDOWFOCUSLOST")), (7, look), (8, press("escape"))])
    assert main(["cc", "--latch", str(tmp_path / "estop"), "--log", "none"]) == 0
    assert paces == [(0.2, ""), (0.0, "the window has lost the focus: the robot stands")]


# --- on servos behind a serial device: a driver that shares no code with the package is the witness -------------------


def words_for(port: str, folder: Path) -> list[str]:
    write_calibration(folder / "snake.json", [EmulatedServo(one) for one in range(1, 10)])
    return [
        "cc", "--port", port, "--calibration", str(folder / "snake.json"), "--latch", str(folder / "estop"),
        "--log", "none", "--set", "safety.lost_after_s=5",
    ]  # fmt: skip


def assert_limp(port: str) -> None:
    with RawDriver(port) as witness:
        for one in range(1, 10):
            witness.until(lambda one=one: witness.read(one, TORQUE_ENABLE), lambda torque: torque == 0)
        goals = [witness.read(one, GOAL_POSITION, 2) for one in range(1, 10)]
    assert any(abs(goal - 2048) > 20 for goal in goals), "it had been driven"


LOSSES: dict[str, tuple[Callable[[Any], None], int, str]] = {
    "the key": (press("space"), 1, "emergency stop: the key space was pressed"),
    "the window": (post("QUIT"), 0, "the window was closed"),
    "the gamepad": (post("JOYDEVICEREMOVED", instance_id=3), 1, "the gamepad is gone"),
    "the display": (lambda pygame: pygame.display.quit(), 1, "the window is gone"),
    "the terminal": (lambda _: os.kill(os.getpid(), signal.SIGHUP), 130, "interrupted"),
}


@pytest.mark.parametrize(
    "what", [w if w in ("the key", "the terminal") else pytest.param(w, marks=pytest.mark.slow) for w in LOSSES]
)
def test_whatever_is_lost_leaves_the_servos_limp(
    person: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    be_patient(monkeypatch.setattr)
    loss, code, fault = LOSSES[what]
    person([(2, post("JOYAXISMOTION", instance_id=3, axis=1, value=-1.0)), (15, loss)])
    with emulated(range(1, 10)) as port:
        ended, out = main(words_for(port, tmp_path)), capsys.readouterr().out
        assert ended == code and fault in out, out
        assert_limp(port)
    assert EmergencyStop(tmp_path / "estop").tripped == (what == "the key")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["ccc"], "did you mean 'cc'"),
        (["agents/pretrained/resilient_servo_locked_joints"], "is a policy file; expected classical controllers"),
        (["cc", "sjc", "--set", "controller.frequency_rad_s=1"], "there are 2 gaits to drive; expected one"),
    ],
)
def test_wrong_options_are_one_clear_line(person: Any, words: list[str], message: str) -> None:
    person([])
    with pytest.raises(ConfigError) as caught:
        main(words)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_without_a_display_and_a_terminal_it_ends_and_says_why() -> None:
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
    bare = {name: value for name, value in os.environ.items() if name not in screens}
    command = [sys.executable, "-m", "snake_gym", "play", "--port", "memory", "--time", "5"]
    done = subprocess.run(
        command, cwd=ROOT, env=bare, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: there is neither a display nor a terminal, so no key would reach the robot\n"
