"""Job, and the process that runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import snake_gym
from snake_gym.config.threads import LIMIT

THREAD_LIMITS = (LIMIT, "NUMBA_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Environment variables that limit the threads of a process."""
STOPPED = 130
"""Exit code of a job that was asked to stop, with its state saved."""


@dataclass(frozen=True)
class Job:
    """Program ``python -m module arguments``, to be run in the folder ``cwd``.

    The program takes ``--progress FILE`` (see ``report``). Its paths lead to the same files on all machines.
    """

    name: str
    module: str
    arguments: tuple[str, ...]
    folder: Path
    """Folder of ``log.txt``, to which all output of the program is appended, and of ``progress.json``."""
    cwd: Path

    @property
    def log(self) -> Path:
        return self.cwd / self.folder / "log.txt"

    @property
    def progress(self) -> Path:
        return self.cwd / self.folder / "progress.json"

    def last_words(self) -> str:
        """Return the last line of the log, which tells the reason if the job failed."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1].removeprefix("error: ") if lines else ""


def start_process(job: Job, threads: int) -> subprocess.Popen[bytes]:
    """Start the job with at most ``threads`` threads in each of its libraries; it ends when this process dies.

    Signals of the terminal do not reach it: whoever started it passes them on.
    """
    source, here = str(Path(snake_gym.__file__).parents[1]), str(job.cwd)
    # -P: a folder "snake_gym" of the user's does not come before ours; his modules are found where we find them
    found = [source, os.environ.get("PYTHONPATH", ""), here if here in sys.path else ""]
    environment = {
        **os.environ,
        **dict.fromkeys(THREAD_LIMITS, str(threads)),
        "OMP_WAIT_POLICY": "passive",
        "PYTHONPATH": os.pathsep.join(filter(None, found)),
    }
    job.log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-m", job.module, *job.arguments, "--progress", str(job.progress)]
    with job.log.open("ab") as log:
        return subprocess.Popen(
            command, cwd=job.cwd, env=environment, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
