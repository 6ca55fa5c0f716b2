"""Several seeds side by side: killed at any time and started again, they end as undisturbed single runs do."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from snake_gym.agents import command
from snake_gym.agents.run_folder import RunFolder

from snake_gym.config import ConfigError
from tests.agents.runs import assert_same_state, checkpoints, start, wait_for, write_small

ROOT = Path(__file__).parents[2]
OFTEN = {"log_every_steps": 1024, "eval": {"every_steps": 2048, "episodes": 4}, "checkpoint": {"every_steps": 256}}


def trainings(run: Path) -> list[int]:
    """Process ids that hold the lock of a run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if any(os.readlink(fd) == str(run / ".lock") for fd in (entry / "fd").iterdir()):
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "2", "--seed", "1"], "--seeds goes with neither --seed nor --resume"),
        (["--jobs", "2"], "--jobs and --ray go with --seeds"),
        (["--seeds", "2", "--ray", "127.0.0.1:1"], "--ray is '127.0.0.1:1', where no Ray cluster answers"),
    ],
)
def test_wrong_options_are_one_line_before_anything_runs(arguments: list[str], message: str, tmp_path: Path) -> None:
    if "--ray" in arguments:
        pytest.importorskip("ray")
    config = write_small(tmp_path / "small.yaml")
    with pytest.raises(ConfigError, match=message):
        command.main(["--config", str(config), "--run-dir", str(tmp_path / "runs"), *arguments])
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
@pytest.mark.parametrize("where", [["--jobs", "2"], ["--ray", "local"]], ids=["processes", "ray"])
def test_seeds_and_their_workers_killed_end_with_the_weights_of_undisturbed_runs(
    where: list[str], tmp_path: Path
) -> None:
    if "--ray" in where:
        pytest.importorskip("ray")
    config, group, seeds = write_small(tmp_path / "small.yaml", total_steps=8192, **OFTEN), tmp_path / "runs", [0, 5]
    arguments = ["--config", str(config), "--seeds", "0,5", "--run-dir", str(group), *where]
    rng = np.random.default_rng(3)
    if "--ray" not in where:  # a cluster outlives the program that asked it
        process = start(*arguments)
        wait_for(lambda: all(checkpoints(group / f"seed_{seed}") for seed in seeds), process)
        time.sleep(rng.uniform(0.0, 0.5))
        process.kill()
        process.communicate()
        wait_for(lambda: not any(trainings(group / f"seed_{seed}") for seed in seeds), most_s=60.0)  # workers end too
    victim = group / f"seed_{rng.choice(seeds)}"
    process = start(*arguments)
    wait_for(lambda: bool(trainings(victim)) and bool(checkpoints(victim)), process)
    (worker,) = trainings(victim)
    os.kill(worker, signal.SIGKILL)
    _, errors = process.communicate()
    if "--ray" not in where:
        assert process.returncode == 2 and "the same command goes on" in errors
    process = start(*arguments)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "2 finished" in out
    for seed in seeds:
        alone = tmp_path / f"alone_{seed}"
        assert command.main(["--config", str(config), "--seed", str(seed), "--run-dir", str(alone), "--quiet"]) == 0
        assert_same_state(alone, group / f"seed_{seed}")
        assert RunFolder(alone).evaluations() == RunFolder(group / f"seed_{seed}").evaluations()


@pytest.mark.slow
def test_a_seed_that_fails_is_told_and_the_others_end(tmp_path: Path) -> None:
    config = write_small(tmp_path / "small.yaml", total_steps=512)
    group = tmp_path / "runs"
    (group / "seed_1").mkdir(parents=True)
    (group / "seed_1" / "checkpoints").write_text("in the way")
    process = start("--config", str(config), "--seeds", "2", "--run-dir", str(group), "--quiet")
    _, errors = process.communicate()
    assert process.returncode == 1
    assert "seed_1 failed: " in errors
    assert "Traceback" not in errors
    assert RunFolder(group / "seed_0").steps_done() == 512


@pytest.mark.slow
def test_a_search_of_settings_goes_on_with_its_trials(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    config, out = write_small(tmp_path / "small.yaml", total_steps=512), tmp_path / "search"
    command = [sys.executable, "examples/search_settings.py", "--config", str(config), "--out", str(out), "--trials"]
    for trials in ("1", "2"):
        done = subprocess.run([*command, trials], cwd=ROOT, capture_output=True, text=True, check=True)
        assert "best: " in done.stdout
    assert sorted(path.name for path in out.glob("trial_*")) == ["trial_0000", "trial_0001"]
