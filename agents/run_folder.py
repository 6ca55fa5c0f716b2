"""Folder of a training run: its settings, its checkpoints, the software it ran with, and its progress.

``config.yaml`` (every setting, files written out), ``run.json`` (status; for each launch: command, time, git hash,
versions), ``evaluations.json`` (means of each), ``checkpoints/``, the policy files ``policy/best`` and
``policy/final``, ``tensorboard/``.

A checkpoint is a folder ``checkpoints/step_000123456`` that appears whole or not at all: ``state.pt`` (tensors and
plain values, read with ``weights_only``, so that nothing in it is executed) and ``policy``, the policy file.
"""

from __future__ import annotations

import datetime
import io
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch

import snake_gym
from snake_gym.config import (
    ConfigError,
    apply_overrides,
    build,
    build_over,
    dump_yaml,
    load_yaml,
    read_json,
    to_dict,
    to_json,
    write_atomic,
)
from snake_gym.config.program import DISTRIBUTION
from snake_gym.config.records import versions
from snake_gym.config.threads import process_cores
from snake_gym.plugins import check_plugins, plugin_options

from .config import TrainConfig, check_same_run

CONFIG, STATUS, EVALUATIONS, STATE = "config.yaml", "run.json", "evaluations.json", "state.pt"
FORMAT = "snake_gym checkpoint 5"
_SCRIPT = Path(__file__).resolve().parents[1] / "train.py"
PROGRAM = "python train.py" if Path(sys.argv[0]).resolve() == _SCRIPT else "snake-gym train"
"""Command that the user started, for messages."""
_PATIENCE_S = 2.0
"""Time for a killed process to give its folder back [s]."""
_PACKAGES = ("stable-baselines3", "sb3-contrib", "torch", "gymnasium", "numpy", "numba")


class RunFolder:
    """Folder of a run at ``path``, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.policies = path / "policy"
        self.tensorboard = path / "tensorboard"

    def holds_run(self) -> bool:
        return (self.path / CONFIG).is_file()

    def read_config(self) -> TrainConfig:
        """Return the settings of the run. Raises ConfigError if there is none."""
        if not self.holds_run():
            raise ConfigError(f"{self.path} holds no {CONFIG}; expected the folder of a run")
        settings = load_yaml(self.path / CONFIG)
        check_plugins(settings.get("plugins") or (), str(self.path / CONFIG))
        return build(TrainConfig, settings, str(self.path / CONFIG))

    def change_settings(self, assignments: Sequence[str]) -> TrainConfig:
        """Return the settings of the run with those changed that a resumed run may change. Raises ConfigError."""
        stored = self.read_config()
        in_file = to_dict(stored)
        config = build_over(TrainConfig, in_file, apply_overrides(in_file, assignments), str(self.path))
        check_same_run(stored, config, str(self.path))
        return config

    def check_run(self, config: TrainConfig) -> None:
        """Raise ConfigError if the folder holds a run that ``config`` does not continue."""
        if not self.holds_run():
            return
        if config.if_exists == "refuse":
            raise ConfigError(
                f"{self.path} holds a run already: continue it with {resume_command(self.path)}, or choose another "
                "--run-dir"
            )
        check_same_run(self.read_config(), config, str(self.path))

    def steps_done(self) -> int:
        """Return the steps of the run if it is finished, else 0."""
        content = self._read(STATUS, {})
        return int(content["launches"][-1]["to_step"]) if content.get("status") == "finished" else 0

    def launches(self) -> list[dict[str, Any]]:
        """Return the notes on each launch of the run so far, the first one first."""
        return list(self._read(STATUS, {}).get("launches", []))

    def begin_launch(self, config: TrainConfig, argv: Sequence[str], notes: Sequence[str] = ()) -> None:
        """Write the settings; note a launch from the newest checkpoint, and the ``notes`` on its settings."""
        dump_yaml(config, self.path / CONFIG)
        first = next(map(checkpoint_step, self.checkpoints()), 0)
        launch = {
            "command": shlex.join(argv), "started": _now(), "from_step": first, "git": git_hash(),
            "cores": process_cores(), "versions": run_versions(), "notes": list(notes),
        }  # fmt: skip
        self._write_status("running", [*self.launches(), launch])

    def end_launch(self, status: str, step: int, seconds: float) -> None:
        """Note the result of the last launch."""
        launches = self.launches()
        launches[-1] |= {"ended": _now(), "to_step": step, "seconds": round(seconds, 1)}
        self._write_status(status, launches)

    def note_evaluation(self, step: int, means: Mapping[str, float]) -> None:
        """Note the result of the evaluation at ``step``; a resumed run makes its last ones again."""
        before = [each for each in self.evaluations() if each["step"] < step]
        write_atomic(self.path / EVALUATIONS, to_json([*before, {"step": step, **means}]))

    def evaluations(self) -> list[dict[str, float]]:
        """Return the step and the means of each evaluation so far, the first one first."""
        return list(self._read(EVALUATIONS, []))

    def checkpoints(self) -> list[Path]:
        """Return the checkpoints, newest first."""
        found = [path for path in self.path.glob("checkpoints/step_*") if path.name[5:].isdecimal()]
        return sorted(found, key=checkpoint_step, reverse=True)

    def write_checkpoint(self, step: int, state: Mapping[str, Any], policy: Mapping[str, bytes], keep: int) -> None:
        """Write the checkpoint of ``step`` with ``policy`` files by name; of older checkpoints the newest stay.

        ``state`` holds tensors, arrays and plain values in dicts and lists; ``keep``: number of all that stay. Raises
        OSError, with nothing new in the folder, if it cannot be written.
        """
        stream = io.BytesIO()
        torch.save({"format": FORMAT, **_as_tensors(state)}, stream)
        files = {STATE: stream.getvalue(), **{f"policy/{name}": content for name, content in policy.items()}}
        write_folder(self.path / "checkpoints" / f"step_{step:012d}", files)
        for old in self.checkpoints()[keep:]:
            shutil.rmtree(old)

    def read_checkpoint(self, path: Path) -> dict[str, Any]:
        """Return the state of a checkpoint, its arrays as tensors. Raises ConfigError if it is not one of ours."""
        try:
            state: dict[str, Any] = torch.load(path / STATE, map_location="cpu", weights_only=True)
            if state.pop("format") != FORMAT:
                raise ValueError(f"expected {FORMAT!r}")
        except Exception as error:  # damaged files fail in any way
            reason = str(error).split("\n")[0]
            raise ConfigError(
                f"{path} is no checkpoint of this version of snake_gym, or it is damaged ({reason}); delete it to "
                "continue from the one before"
            ) from None
        return state

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder; the system frees it when we end.

        Raises ConfigError if another process trains in it, and still does after two seconds.
        """
        give_up = time.monotonic() + _PATIENCE_S
        self.path.mkdir(parents=True, exist_ok=True)
        with (self.path / ".lock").open("w") as stream:
            while not _take(stream):
                if time.monotonic() >= give_up:
                    raise ConfigError(f"{self.path} is in use: another process is training in it")
                time.sleep(0.1)
            yield

    def _read(self, name: str, absent: Any) -> Any:
        """Return the content of a JSON file, ``absent`` if there is none. Raises ConfigError if it is damaged."""
        path = self.path / name
        return read_json(path.read_bytes(), str(path)) if path.is_file() else absent

    def _write_status(self, status: str, launches: list[dict[str, Any]]) -> None:
        write_atomic(self.path / STATUS, to_json({"status": status, "launches": launches}))


def checkpoint_step(path: Path) -> int:
    """Return the step of a checkpoint."""
    return int(path.name[5:])


def write_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Replace ``folder`` by one with these files, by path in it, once all of them are on the disk.

    Raises OSError, with the folder as it was, if they cannot be written.
    """
    new, old = folder.with_name(".partial-new"), folder.with_name(".partial-old")
    for left_over in (new, old):
        shutil.rmtree(left_over, ignore_errors=True)
    try:
        for name, content in files.items():
            write_atomic(new / name, content)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)  # a full disk has a use for the room
        raise
    if folder.exists():
        folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _as_tensors(state: Any) -> Any:
    """Return ``state`` with tensors in place of its arrays."""
    if isinstance(state, Mapping):
        return {name: _as_tensors(value) for name, value in state.items()}
    return torch.from_numpy(np.array(state)) if isinstance(state, (np.ndarray, np.generic)) else state


def _take(stream: IO[str]) -> bool:
    """Lock a file and return True, or False if another process has locked it; Windows has no such locks."""
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def new_path(config_file: Path, config: TrainConfig) -> Path:
    """Return the path of a new run in ``runs``, named after settings file, algorithm, seed and time."""
    stem = f"{config_file.stem}-{str(config.algorithm.get('name')).lower()}-seed{config.seed}"
    return Path("runs") / f"{stem}-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def resume_command(run: Path) -> str:
    """Return the command that goes on with a run, for people to paste."""
    return " ".join([PROGRAM, "--resume", shlex.quote(str(run)), *plugin_options()])


def git_hash() -> str:
    """Return the hash of this code's commit, with "+" if files differ from it; "unknown" outside a repository."""
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():  # installed, perhaps below somebody else's repository
        return "unknown"
    command = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+"]
    try:
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "unknown"


def run_versions() -> dict[str, str]:
    """Return versions of the software that a result depends on."""
    return {DISTRIBUTION: snake_gym.__version__, **versions(_PACKAGES)}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
