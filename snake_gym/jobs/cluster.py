"""Workers of a Ray cluster. All its nodes have this package, and the same files under the same paths.

Ray starts a job again, on another worker, whose worker or node was lost; the job continues from its last checkpoint.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Sequence
from typing import Any

from snake_gym.config import ConfigError, require

from .job import STOPPED, Job, start_process

MAX_LOSSES = 20
"""Largest number of lost workers that a job survives."""
_POLL_S = 0.2
_PATIENCE_S = 10.0
_LOSSES = ("WorkerCrashedError", "NodeDiedError", "LocalRayletDiedError", "OutOfMemoryError")
"""Errors of Ray for a task whose process is gone."""
_NO_ANSWER = "--ray is {!r}, where no Ray cluster answers ({}); expected HOST:PORT, auto or local"


class JobKilledError(Exception):
    """Exception raised where a signal that we did not send killed the process of a job."""


def run_on_worker(job: Job, threads: int) -> int:
    """Run a job on the worker that calls this, and return its exit code; when cancelled, the job saves its state."""
    with start_process(job, threads) as process:
        try:
            while (code := process.poll()) is None:
                time.sleep(_POLL_S)
        except KeyboardInterrupt:  # how Ray cancels a task
            process.terminate()
            return process.wait()
    if code < 0:
        raise JobKilledError(f"signal {-code}")
    return code


def share_of_cores(cores: Sequence[float], n_jobs: int) -> int:
    """Return the most cores of one node, at least 1, that each of ``n_jobs`` can have on nodes with these ``cores``."""
    shares = range(1, int(max(cores)) + 1)
    return max((share for share in shares if sum(n // share for n in cores) >= n_jobs), default=1)


class RayJob:
    """Job that was given to the cluster."""

    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray, self._reference = ray, reference

    def poll(self) -> int | None:
        ready, _ = self._ray.wait([self._reference], timeout=0)
        if not ready:
            return None
        try:
            return int(self._ray.get(self._reference))
        except self._ray.exceptions.TaskCancelledError:
            return STOPPED
        except self._ray.exceptions.RayError as error:
            lost = tuple(getattr(self._ray.exceptions, name) for name in _LOSSES)
            if isinstance(error, (JobKilledError, *lost)):  # too often
                return -9
            reason = str(getattr(error, "cause", error)).strip().split("\n")[0]
            raise ConfigError(f"a Ray worker cannot run jobs: {reason}") from None

    def stop(self) -> None:
        self._ray.cancel(self._reference)

    def kill(self) -> None:
        self._ray.cancel(self._reference, force=True)


class RayWorkers:
    """Tasks of a Ray cluster, each of which has its share of the cluster's cores, on one node.

    ``n_jobs`` of them at a time; None: as many as have ``threads`` cores each; ``at_most`` so many. Raises ConfigError
    if the cluster does not answer.
    """

    def __init__(self, address: str, n_jobs: int | None, at_most: int, threads: int) -> None:
        require("--ray", "ray")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        import ray

        self._ray: Any = ray
        _connect(self._ray, address)
        cores = [node["Resources"].get("CPU", 0.0) for node in self._ray.nodes() if node["Alive"]]
        self.n_jobs = min(n_jobs or max(1, int(sum(n // threads for n in cores))), at_most)
        self._threads = share_of_cores(cores, self.n_jobs)
        self._run = self._ray.remote(
            num_cpus=min(self._threads, max(cores)), max_retries=MAX_LOSSES, retry_exceptions=[JobKilledError]
        )(run_on_worker)

    def start(self, job: Job) -> RayJob:
        return RayJob(self._ray, self._run.remote(job, self._threads))

    def close(self) -> None:
        self._ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    """Connect to the cluster, or start a local one, for which Ray waits half a minute."""
    _check_answers(address)
    options: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    try:
        ray.init(address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except Exception as error:  # a plain Exception if the node did not start in time
        raise ConfigError(_NO_ANSWER.format(address, str(error).split("\n")[0])) from None


def _check_answers(address: str) -> None:
    """Raise ConfigError, sooner than Ray does, if nothing listens at HOST:PORT."""
    host, colon, port = address.rpartition(":")
    if not colon or not port.isdecimal() or "/" in host:
        return
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE_S).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(_NO_ANSWER.format(address, getattr(error, "strerror", None) or error)) from None
