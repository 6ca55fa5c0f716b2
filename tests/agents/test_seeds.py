"""Several seeds side by side: killed at any time and started again, they end as undisturbed single runs do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from snake_gym.agents import train
from snake_gym.agents.checkpoint import list_checkpoints
from snake_gym.agents.run_folder import RunFolder

from snake_gym.config import ConfigError
from snake_gym.jobs.seeds import read_seeds
from tests.agents.runs import PPO, SNAKE, assert_same_state

ROOT = Path(__file__).parents[2]


def write_config(path: Path, total_steps: int = 8192) -> Path:
    settings = {
        "env": SNAKE, "stagger": True, "algorithm": PPO, "n_envs": 16, "total_steps": total_steps,
        "log_every_steps": 1024, "eval": {"every_steps": 2048, "episodes": 4}, "checkpoint": {"every_steps": 256},
    }  # fmt: skip
    path.write_text(yaml.safe_dump(settings))
    return path


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(ROOT / "train.py"), *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def trainings(folder: Path) -> list[int]:
    """Process ids of the jobs that train in folders below ``folder``, as the system lists them."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if b"--progress" in words and words[words.index(b"--progress") + 1].startswith(str(folder).encode()):
            found.append(int(entry.name))
    return found


def wait_for(found: Callable[[], bool], process: subprocess.Popen[str], most_s: float = 900.0) -> None:
    give_up = time.monotonic() + most_s
    while not found():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.02)


@pytest.mark.check
@pytest.mark.parametrize(("text", "seeds"), [("3", (0, 1, 2)), ("0,1,7", (0, 1, 7)), ("7,", (7,)), (" 4 , 2", (4, 2))])
def test_seeds_are_a_number_or_a_list(text: str, seeds: tuple[int, ...]) -> None:
    assert read_seeds(text) == seeds


@pytest.mark.check
@pytest.mark.parametrize("text", ["0", "-1", "", ",", "1,,2", "1.5", "2,2", "a", "1000000", "1e2"])
def test_other_seeds_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"--seeds"):
        read_seeds(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "2", "--seed", "1"], "--seeds goes with neither --seed nor --resume"),
        (["--jobs", "2"], "--jobs and --ray go with --seeds"),
        (["--seeds", "2", "--jobs", "0"], "--jobs: '0'; expected 1 to"),
        (["--seeds", "2", "--set", "algorithm.gama=1"], "gama is not a setting; did you mean 'gamma'"),
    ],
)
def test_wrong_options_are_one_line_before_anything_runs(arguments: list[str], message: str, tmp_path: Path) -> None:
    config = write_config(tmp_path / "small.yaml")
    with pytest.raises(ConfigError, match=message):
        train.main(["--config", str(config), "--run-dir", str(tmp_path / "runs"), *arguments])
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_seeds_killed_at_random_end_with_the_weights_of_undisturbed_runs(tmp_path: Path) -> None:
    config = write_config(tmp_path / "small.yaml")
    group = tmp_path / "runs"
    seeds = [0, 5]
    arguments = ["--config", str(config), "--seeds", "0,5", "--jobs", "2", "--run-dir", str(group), "--quiet"]
    rng = np.random.default_rng(3)
    process = start(*arguments)
    wait_for(lambda: all(list_checkpoints(group / f"seed_{seed}") for seed in seeds), process)
    time.sleep(rng.uniform(0.0, 0.5))
    process.kill()
    process.communicate()
    wait_for_none(group)
    victim = group / f"seed_{rng.choice(seeds)}"
    newest = int(list_checkpoints(victim)[0].name[5:])
    process = start(*arguments)
    wait_for(lambda: int(list_checkpoints(victim)[0].name[5:]) > newest, process)
    (job,) = trainings(victim)
    os.kill(job, signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == 1, errors
    assert f"{victim.name} failed: killed by signal 9" in errors.replace("\n", " ")
    assert [run.name for run in sorted(group.iterdir()) if RunFolder(run).steps_done()] == [
        f"seed_{seed}" for seed in seeds if victim.name != f"seed_{seed}"
    ]
    process = start(*arguments)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "2 finished" in out
    for seed in seeds:
        alone = tmp_path / f"alone_{seed}"
        arguments = ["--config", str(config), "--seed", str(seed), "--run-dir", str(alone), "--quiet"]
        assert train.main(arguments) == 0
        assert_same_state(list_checkpoints(alone)[0], list_checkpoints(group / f"seed_{seed}")[0])
        assert RunFolder(alone).evaluations() == RunFolder(group / f"seed_{seed}").evaluations()
    assert len(RunFolder(victim).launches()) == 3


def wait_for_none(folder: Path) -> None:
    give_up = time.monotonic() + 60.0
    while trainings(folder):
        assert time.monotonic() < give_up, "a job outlived the process that started it"
        time.sleep(0.02)


@pytest.mark.slow
def test_a_run_that_somebody_else_stopped_is_not_finished(tmp_path: Path) -> None:
    config = write_config(tmp_path / "small.yaml", 10_000_000)
    run = tmp_path / "runs" / "seed_5"
    words = ["--config", str(config), "--seeds", "5,", "--run-dir", str(run.parent)]
    process = start(*words, "--set", "algorithm.batch_size=48")
    wait_for(lambda: bool(list_checkpoints(run)), process)
    (job,) = trainings(run)
    os.kill(job, signal.SIGTERM)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "stopped; the same command goes on" in errors
    assert errors.count("note: algorithm.batch_size is 48, which does not divide 128") == 1
    (launch,) = RunFolder(run).launches()
    assert launch["command"].startswith("snake-gym train "), "no user starts agents/train.py"
    assert "continue with: snake-gym train --resume" in (run / "log.txt").read_text()


@pytest.mark.slow
def test_ctrl_c_stops_all_and_the_same_command_goes_on(tmp_path: Path) -> None:
    config = write_config(tmp_path / "small.yaml", 10_000_000)
    group = tmp_path / "runs"
    arguments = ["--config", str(config), "--seeds", "2", "--jobs", "2", "--run-dir", str(group)]
    process = start(*arguments)
    wait_for(lambda: all(list_checkpoints(group / name) for name in ("seed_0", "seed_1")), process)
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "stopped; the same command goes on" in errors
    assert out.count("stopped") == 2
    assert not trainings(group)
    steps = [int(list_checkpoints(group / name)[0].name[5:]) for name in ("seed_0", "seed_1")]
    end = max(steps) + 512
    again = start(*arguments, "--set", f"total_steps={end}")
    out, errors = again.communicate()
    assert again.returncode == 0, errors
    assert [RunFolder(group / name).launches()[1]["from_step"] for name in ("seed_0", "seed_1")] == steps


@pytest.mark.slow
def test_a_seed_that_fails_is_told_and_the_others_end(tmp_path: Path) -> None:
    config = write_config(tmp_path / "small.yaml", 512)
    group = tmp_path / "runs"
    (group / "seed_1").mkdir(parents=True)
    (group / "seed_1" / "checkpoints").write_text("in the way")
    process = start("--config", str(config), "--seeds", "2", "--run-dir", str(group), "--quiet")
    _, errors = process.communicate()
    assert process.returncode == 1
    assert "seed_1 failed: " in errors
    assert "log.txt" in errors
    assert "Traceback" not in errors
    assert RunFolder(group / "seed_0").steps_done() == 512


def start_on_ray(*arguments: str) -> subprocess.Popen[str]:
    """A process whose local cluster has started, which takes a busy machine longer than Ray waits (ray issue 65983)."""
    for _ in range(20):
        process = start(*arguments, "--ray", "local")
        group = Path(arguments[arguments.index("--run-dir") + 1])
        while process.poll() is None:
            if trainings(group):
                return process
            time.sleep(0.1)
        errors = process.communicate()[1]
        assert "no Ray cluster answers (The current node timed out" in errors, errors
    raise AssertionError("Ray never started")


@pytest.mark.slow
def test_a_lost_ray_worker_loses_nothing(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    config = write_config(tmp_path / "small.yaml")
    group, alone = tmp_path / "runs", tmp_path / "alone"
    process = start_on_ray("--config", str(config), "--seeds", "5,", "--run-dir", str(group))
    run = group / "seed_5"
    wait_for(lambda: bool(list_checkpoints(run)), process)
    (job,) = trainings(run)
    status = Path(f"/proc/{job}/status").read_text()
    worker = int(next(line.split()[1] for line in status.splitlines() if line.startswith("PPid")))
    os.kill(worker, signal.SIGKILL)
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "finished" in out
    first, second = RunFolder(run).launches()
    assert "to_step" not in first, "the first launch was killed"
    assert second["from_step"] > 0
    assert train.main(["--config", str(config), "--seed", "5", "--run-dir", str(alone), "--quiet"]) == 0
    assert_same_state(list_checkpoints(alone)[0], list_checkpoints(run)[0])


@pytest.mark.slow
def test_a_ray_run_is_stopped_with_everything_saved(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    config = write_config(tmp_path / "small.yaml", 10_000_000)
    group = tmp_path / "runs"
    process = start_on_ray("--config", str(config), "--seeds", "5,", "--run-dir", str(group))
    wait_for(lambda: bool(list_checkpoints(group / "seed_5")), process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate()
    assert process.returncode == 130, errors
    (launch,) = RunFolder(group / "seed_5").launches()
    assert launch["to_step"] == int(list_checkpoints(group / "seed_5")[0].name[5:])
    assert not trainings(group)


def test_a_ray_cluster_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    config = write_config(tmp_path / "small.yaml")
    with pytest.raises(ConfigError, match=r"--ray is '127.0.0.1:1', where no Ray cluster answers"):
        train.main(["--config", str(config), "--seeds", "2", "--ray", "127.0.0.1:1", "--run-dir", str(tmp_path / "r")])
