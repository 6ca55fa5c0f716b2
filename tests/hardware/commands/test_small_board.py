"""A board that has the libraries of ``configs/hardware/small_board.txt`` and no others scans and runs the robot."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from snake_gym.hardware.emulator.servo import EmulatedServo
from tests.hardware.emulate_servos import emulated
from tests.hardware.rig import write_calibration

ROOT = Path(__file__).parents[3]
REQUIRED = [line for line in (ROOT / "configs/hardware/small_board.txt").read_text().splitlines() if line[0] != "#"]


def with_dependencies(names: list[str]) -> Iterator[metadata.Distribution]:
    """The distributions of these names, and those that they need."""
    for name in names:
        found = metadata.distribution(re.split(r"[^\w.-]", name)[0])
        yield found
        yield from with_dependencies([need for need in found.requires or () if "extra ==" not in need])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with these libraries alone."""
    folder = tmp_path_factory.mktemp("site")
    for one in with_dependencies(REQUIRED):
        for top in {file.parts[0] for file in one.files or ()} - {"..", "__pycache__"}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(one.locate_file(top))))
    return folder


def run_on_board(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A command where nothing is installed but what lies in ``site``, and no emulator is at hand."""
    module = "snake_gym.hardware"
    code = f"import runpy, sys; sys.modules['{module}.emulator'] = None; runpy.run_module({module!r}, alter_sys=True, "
    command = [sys.executable, "-S", "-c", code + "run_name='__main__')", *arguments]
    env = {**os.environ, "PYTHONPATH": f"{site}{os.pathsep}{ROOT}"}
    return subprocess.run(command, cwd=site, env=env, capture_output=True, text=True, check=False, timeout=60)


def test_the_file_asks_for_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(REQUIRED) <= {*project["dependencies"], *project["optional-dependencies"]["hardware"]}


def test_a_board_scans_and_runs_policies_controllers_and_settings_files(site: Path, tmp_path: Path) -> None:
    write_calibration(tmp_path / "snake.json", [EmulatedServo(one) for one in range(1, 10)])
    assert "numba" in run_on_board(site, "replay", "--help").stderr  # nothing else is in reach
    with emulated(range(1, 10)) as port:
        here = ["--port", port, "--calibration", str(tmp_path / "snake.json"), "--pose", "dead_reckoning"]
        limits = ["--time", "0.4", "--latch", str(tmp_path / "estop"), "--log", "none", "--targets", "9,0"]
        commands = [
            ["scan", "--port", port, "--ids", "1-9"],
            ["run", "resilient_servo_locked_joints", *here, *limits],
            ["run", "cc", *here, *limits],
            ["run", "cc", "--config", "configs/hardware/emulated.yaml", *here, *limits],
        ]
        for command in commands:
            for _ in range(5):  # servos of a busy machine miss their turn
                run_on_board(site, "estop", "--clear", "--latch", str(tmp_path / "estop"))
                done = run_on_board(site, *command)
                if done.returncode == 0:
                    break
            assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
