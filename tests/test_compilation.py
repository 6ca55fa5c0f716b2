"""Compilation of kernels by several processes, counted by numba's own events."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from snake_gym.physics.integrate import step_worlds
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.simulation.simulated_robot import SimulatedRobot

ROOT = Path(__file__).parents[1]
PROGRAM = """
import os, sys, time
from pathlib import Path
from numba.core import event
import kernels

class Note(event.Listener):
    def on_start(self, happened):
        with open("compiled", "a") as log:
            log.write(f"{os.getpid()}\\n")
        while Path("hold").exists():
            time.sleep(0.05)
    def on_end(self, happened):
        pass

event.register("numba:compile", Note())
Path(f"ready{sys.argv[1]}").touch()
while not Path("go").exists():
    time.sleep(0.01)
print(kernels.twice(21))
"""
KERNELS = """
from snake_gym.compilation import cached_njit

@cached_njit()
def half(x):
    return x / 2

@cached_njit()
def twice(x):
    return 4 * half(x)
"""


class Children:
    """Processes in a folder that call the same kernel, all at once."""

    def __init__(self, folder: Path, n: int, **env: str) -> None:
        self.folder = folder
        (folder / "kernels.py").write_text(KERNELS)
        own = {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "NUMBA_CACHE_DIR": str(folder / "cache"), **env}
        self.all = [
            subprocess.Popen(
                [sys.executable, "-c", PROGRAM, str(i)], cwd=folder, text=True, env={**os.environ, **own},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
            for i in range(n)
        ]  # fmt: skip

    def wait_for(self, *names: str) -> None:
        """Wait until the files exist."""
        while not all((self.folder / name).exists() for name in names):
            assert all(child.poll() is None for child in self.all), [child.communicate() for child in self.all]
            time.sleep(0.02)

    def start(self) -> None:
        self.wait_for(*(f"ready{i}" for i in range(len(self.all))))
        (self.folder / "go").touch()

    def finish(self) -> list[tuple[str, str]]:
        """Return what each printed, on standard output and on standard error."""
        return [child.communicate(timeout=120) for child in self.all]

    def compiling(self) -> list[int]:
        """Return the process of each compilation so far."""
        return [int(line) for line in (self.folder / "compiled").read_text().split()]


def test_one_of_three_processes_compiles(tmp_path: Path) -> None:
    (tmp_path / "hold").touch()
    children = Children(tmp_path, 3)
    children.start()
    children.wait_for("compiled")
    time.sleep(0.5)  # the others now wait, or compile too
    (tmp_path / "hold").unlink()
    said = children.finish()
    assert [out for out, _ in said] == ["42.0\n"] * 3
    compiling = children.compiling()
    assert len(compiling) == 2, "each of the two kernels is compiled once"
    assert len(set(compiling)) == 1
    told = [err for _, err in said]
    assert sum(err.count("compiling the physics") for err in told) == 1
    assert all(str(tmp_path / "cache") in err for err in told if err)
    later = Children(tmp_path, 1)
    later.start()
    assert later.finish() == [("42.0\n", "")] and len(later.compiling()) == 2, "what was compiled is loaded"


def test_a_process_that_dies_while_it_compiles_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "hold").touch()
    children = Children(tmp_path, 2)
    children.start()
    children.wait_for("compiled")
    (first,) = {child for child in children.all if child.pid == children.compiling()[0]}
    (other,) = set(children.all) - {first}
    first.send_signal(signal.SIGKILL)
    first.communicate()
    (tmp_path / "hold").unlink()
    assert other.communicate(timeout=120)[0] == "42.0\n"
    assert other.pid in children.compiling()


def test_kernels_compile_without_a_folder_for_them(tmp_path: Path) -> None:
    (tmp_path / "__pycache__").touch()  # a file, where numba wants a folder
    nowhere = "/dev/null/none"
    children = Children(tmp_path, 1, NUMBA_CACHE_DIR=nowhere, XDG_CACHE_HOME=nowhere, HOME=nowhere)
    children.start()
    ((out, err),) = children.finish()
    assert out == "42.0\n", err
    assert "set NUMBA_CACHE_DIR" in err


@pytest.mark.parametrize("kind", ["columns first", "read only", "single precision"])
def test_references_of_any_layout_run_the_same_compiled_physics(kind: str) -> None:
    wave = 0.3 * np.sin(np.arange(9) + np.arange(3)[:, None])
    reference = {
        "columns first": np.asfortranarray(wave),
        "read only": np.broadcast_to(wave[0], wave.shape),
        "single precision": wave.astype(np.float32),
    }[kind]
    robots = [SimulatedRobot(RESILIENT_SERVO, 3) for _ in range(2)]
    robots[0].step(np.array(reference, np.float64, order="C"))
    known = len(step_worlds.signatures)
    robots[1].step(reference)
    assert len(step_worlds.signatures) == known
    np.testing.assert_array_equal(robots[0].state.link_angle, robots[1].state.link_angle)
