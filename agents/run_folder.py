"""Folder of a training run: its settings, the software it ran with, and its progress.

``config.yaml`` (every setting, files written out), ``run.json`` (status; for each launch: command, time, git hash,
versions), ``evaluations.json`` (means of each), ``checkpoints/``, the policy files ``policy/best`` and
``policy/final``, ``tensorboard/``.
"""

from __future__ import annotations

import datetime
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import snake_gym
from snake_gym.config import ConfigError, build, dump_yaml, load_yaml, near_path, read_json, to_json, write_atomic
from snake_gym.config.program import DISTRIBUTION
from snake_gym.config.records import versions
from snake_gym.config.threads import process_cores
from snake_gym.plugins import check_plugins

from .config import TrainConfig

CONFIG, STATUS, EVALUATIONS = "config.yaml", "run.json", "evaluations.json"
Status = Literal["running", "stopped", "finished"]
_PATIENCE_S = 2.0
"""Time for a killed process to give its folder back [s]."""
_PACKAGES = ("stable-baselines3", "sb3-contrib", "torch", "gymnasium", "numpy", "numba")


class RunFolder:
    """Folder of a run at ``path``, which need not exist yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.policies = path / "policy"
        self.tensorboard = path / "tensorboard"

    @property
    def name(self) -> str:
        return self.path.resolve().name

    def holds_run(self) -> bool:
        return (self.path / CONFIG).is_file()

    def read_config(self) -> TrainConfig:
        """Return the settings of the run. Raises ConfigError if there is none."""
        if not self.path.exists():
            guess = near_path(self.path)
            raise ConfigError(f"{self.path} does not exist" + (f"; did you mean '{guess}'?" if guess else ""))
        if not self.holds_run():
            raise ConfigError(f"{self.path} holds no {CONFIG}; expected the folder of a run that train.py made")
        settings = load_yaml(self.path / CONFIG)
        check_plugins(settings.get("plugins") or (), str(self.path / CONFIG))
        return build(TrainConfig, settings, str(self.path / CONFIG))

    def write_config(self, config: TrainConfig) -> None:
        dump_yaml(config, self.path / CONFIG)

    def steps_done(self) -> int:
        """Return the steps of the run if it is finished, else 0."""
        content = self._read_status()
        return int(content["launches"][-1]["to_step"]) if content.get("status") == "finished" else 0

    def launches(self) -> list[dict[str, Any]]:
        """Return the notes on each launch of the run so far, the first one first."""
        return list(self._read_status().get("launches", []))

    def begin_launch(self, argv: Sequence[str], step: int, notes: Sequence[str] = ()) -> None:
        """Note a launch that starts from ``step``, and the ``notes`` on its settings."""
        launch = {
            "command": shlex.join(argv), "started": _now(), "from_step": step, "git": git_hash(),
            "cores": process_cores(), "versions": run_versions(), "notes": list(notes),
        }  # fmt: skip
        self._write("running", [*self.launches(), launch])

    def end_launch(self, status: Status, step: int, seconds: float) -> None:
        """Note the result of the last launch."""
        launches = self._read_status().get("launches", [{}])
        launches[-1] |= {"ended": _now(), "to_step": step, "seconds": round(seconds, 1)}
        self._write(status, launches)

    def note_evaluation(self, step: int, means: Mapping[str, float]) -> None:
        """Note the result of the evaluation at ``step``; a resumed run makes its last ones again."""
        before = [each for each in self.evaluations() if each["step"] < step]
        write_atomic(self.path / EVALUATIONS, to_json([*before, {"step": step, **means}]))

    def evaluations(self) -> list[dict[str, float]]:
        """Return the step and the means of each evaluation so far, the first one first.

        Raises ConfigError if their file is damaged.
        """
        return list(self._read(EVALUATIONS, []))

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

    def _read_status(self) -> dict[str, Any]:
        return dict(self._read(STATUS, {}))

    def _read(self, name: str, absent: Any) -> Any:
        """Return the content of a JSON file, ``absent`` if there is none. Raises ConfigError if it is damaged."""
        path = self.path / name
        try:
            return read_json(path.read_bytes(), str(path)) if path.is_file() else absent
        except ConfigError as error:
            raise ConfigError(f"{error}; restore it, or delete it to go on without that history") from None

    def _write(self, status: Status, launches: list[dict[str, Any]]) -> None:
        write_atomic(self.path / STATUS, to_json({"status": status, "launches": launches}))


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


def new_run_path(config_path: Path, config: TrainConfig, root: Path = Path("runs")) -> Path:
    """Return a folder named after config, algorithm, seed and time."""
    stem = f"{config_path.stem}-{str(config.algorithm.get('name')).lower()}-seed{config.seed}"
    return root / f"{stem}-{datetime.datetime.now():%Y%m%d-%H%M%S}"


def git_hash() -> str:
    """Return the hash of this code's commit, with "+" if files differ from it; "unknown" outside a repository."""
    root = Path(__file__).parents[1]
    if not (root / ".git").exists():  # installed, perhaps below somebody else's repository
        return "unknown"
    try:
        head, changes = (
            subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True, timeout=10).stdout
            for arguments in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return head.strip() + ("+" if changes.strip() else "")


def run_versions() -> dict[str, str]:
    """Return versions of the software that a result depends on."""
    return {DISTRIBUTION: snake_gym.__version__, **versions(_PACKAGES)}


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
