"""A board without the libraries of simulation and training, and without YAML, scans and runs the robot."""

from __future__ import annotations

import tomllib
from pathlib import Path

from snake_gym.emulator.servo import EmulatedServo
from tests.hardware.emulate_servos import emulated
from tests.hardware.programs import ROOT
from tests.hardware.rig import write_calibration
from tests.interface.test_small_board import run_on_board

PROGRAM = """
import sys
sys.modules["snake_gym.emulator"] = None  # a real robot is not emulated
from snake_gym.hardware.__main__ import main
for words in " ".join(sys.argv[2:]).split(" ; "):
    for attempt in range(5):  # servos of a busy machine miss their turn
        main(["estop", "--clear", "--latch", sys.argv[1]])
        if (code := main(words.split())) == 0:
            break
    if code:
        sys.exit(code)
"""


def test_the_file_asks_for_what_the_project_asks_for() -> None:
    lines = (ROOT / "configs/hardware/small_board.txt").read_text().splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {line for line in lines if line[0] != "#"}
    assert required <= {*project["dependencies"], *project["optional-dependencies"]["hardware"]}


def test_a_board_scans_and_runs_policies_and_controllers(tmp_path: Path) -> None:
    write_calibration(tmp_path / "snake.json", [EmulatedServo(one) for one in range(1, 10)])
    latch = str(tmp_path / "estop")
    with emulated(range(1, 10)) as port:
        here = ["--port", port, "--calibration", str(tmp_path / "snake.json"), "--pose", "dead_reckoning"]
        limits = ["--time", "0.4", "--latch", latch, "--log", "none", "--targets", "9,0"]
        runs = [["run", policy, *here, *limits] for policy in ("agents/pretrained/resilient_servo_locked_joints", "cc")]
        words = ["scan", "--port", port, "--ids", "1-9", *(word for run in runs for word in (";", *run))]
        said = run_on_board(PROGRAM, latch, *words)
    assert "STS3215" in said and said.count("the time is over") == 2
