"""Jobs: how many run at a time, with how many threads, and how they end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from snake_gym.config import ConfigError
from snake_gym.config.threads import process_cores, process_threads
from snake_gym.jobs import cluster
from snake_gym.jobs.job import Job
from snake_gym.jobs.report import ProgressFile, read_progress
from snake_gym.jobs.run import run_jobs
from snake_gym.jobs.workers import LocalWorkers

PROBE = """
import json, os, signal, sys, time
what, folder = sys.argv[1], os.path.dirname(sys.argv[-1])
limits = {name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")}
with open(os.path.join(folder, "seen.json"), "w") as file:
    json.dump({"limits": limits, "begun": time.time()}, file)
if what == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if what in ("wait", "deaf"):
    if what == "wait":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(130))
    open(os.path.join(folder, "ready"), "w").close()
    while True:
        time.sleep(0.05)
print("error: so it goes" if what == "fail" else "well")
open(os.path.join(folder, "ended"), "w").close()
sys.exit(3 if what == "fail" else 0)
"""


@pytest.fixture
def make_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    (tmp_path / "probe_of_jobs.py").write_text(PROBE)
    monkeypatch.syspath_prepend(tmp_path)
    return lambda name, what: Job(name, "probe_of_jobs", (what,), Path(name), tmp_path)


@pytest.mark.check
@pytest.mark.parametrize(("limit", "threads"), [("1", 1), ("0", None), ("-3", None), ("4,2", None), ("1000000", None)])
def test_a_process_uses_its_cores_or_fewer(limit: str, threads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert process_threads() == (threads or process_cores())


def test_the_cores_are_shared_out_and_each_end_is_told(make_job, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    ends: dict[str, int] = {}
    taken: list[tuple[str, int]] = []

    def jobs() -> Iterator[Job]:
        for name, what in (("a", "fail"), ("b", "well"), ("c", "kill"), ("d", "well")):
            taken.append((name, len(taken) - len(ends)))
            yield make_job(name, what)

    def end(job: Job, code: int) -> None:
        ends[job.name] = code
        if job.name == "a":
            assert job.last_words() == "so it goes"

    assert run_jobs(LocalWorkers(2), jobs(), end, quiet=True)
    assert ends == {"a": 3, "b": 0, "c": -9, "d": 0}
    assert max(running for _, running in taken) < 2, "a job was taken while both workers were busy"
    share = str(max(1, len(os.sched_getaffinity(0)) // 2))
    for name in ends:
        limits = json.loads((tmp_path / name / "seen.json").read_text())["limits"]
        assert limits["OMP_NUM_THREADS"] == limits["NUMBA_NUM_THREADS"] == share


def test_an_unwanted_job_is_stopped_and_the_next_one_begins(make_job, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    ends: dict[str, int] = {}
    jobs = iter([make_job("a", "wait"), make_job("b", "deaf"), make_job("c", "well")])

    def is_unwanted(job: Job) -> bool:
        return (tmp_path / job.name / "ready").exists()

    assert run_jobs(LocalWorkers(1), jobs, lambda job, code: ends.update({job.name: code}), is_unwanted, quiet=True)
    assert ends == {"a": 130, "b": 130, "c": 0}, "b had no time yet to listen to signals"


def test_the_users_own_folders_do_not_come_before_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / "snake_gym"
    theirs.mkdir()
    (theirs / "__init__.py").write_text("raise SystemExit('of the user')")
    monkeypatch.syspath_prepend(tmp_path)
    job, ends = Job("a", "snake_gym.benchmark.evaluate", ("--help",), Path("out"), tmp_path), []
    assert run_jobs(LocalWorkers(1), iter([job]), lambda job, code: ends.append(code), quiet=True)
    assert ends == [0], job.last_words()
    assert "usage: snake-gym evaluate" in job.log.read_text()


@pytest.mark.check
@pytest.mark.parametrize(
    ("cores", "n_jobs", "share"), [((4.0, 4.0, 4.0), 4, 2), ((4.0, 4.0, 4.0), 3, 4), ((8.0, 2.0), 2, 4), ((2.0,), 9, 1)]
)
def test_as_many_jobs_as_asked_for_fit_on_the_nodes(cores: tuple[float, ...], n_jobs: int, share: int) -> None:
    assert cluster.share_of_cores(cores, n_jobs) == share


@pytest.mark.slow
def test_a_ray_worker_that_cannot_run_jobs_says_why_and_a_lost_one_was_killed() -> None:
    ray = pytest.importorskip("ray")
    cluster._connect(ray, "local")
    try:

        def ends(what: Callable[[], int]) -> int | None:
            job = cluster.RayJob(ray, ray.remote(num_cpus=1, max_retries=0)(what).remote())
            while (code := job.poll()) is None:
                time.sleep(0.1)
            return code

        def missing() -> int:
            raise ModuleNotFoundError("No module named 'snake_gym'")

        def lost() -> int:
            os._exit(1)

        def killed() -> int:
            raise cluster.JobKilledError("signal 9")

        with pytest.raises(ConfigError, match="a Ray worker cannot run jobs: No module named 'snake_gym'"):
            ends(missing)
        assert (ends(lost), ends(killed), ends(lambda: 3)) == (-9, -9, 3)
    finally:
        ray.shutdown()


def test_progress_is_read_as_written(tmp_path: Path) -> None:
    file = ProgressFile(tmp_path / "progress.json")
    file.write(3, 10, "half-way, nearly")
    assert read_progress(tmp_path / "progress.json") == (3.0, 10.0, "half-way, nearly")
    file.write(4, 10)
    assert read_progress(tmp_path / "progress.json") == (3.0, 10.0, "half-way, nearly"), "a moment ago"
    file.write(10, 10)
    assert read_progress(tmp_path / "progress.json") == (10.0, 10.0, ""), "the end is always written"
    (tmp_path / "progress.json").write_text("{")
    assert read_progress(tmp_path / "progress.json") is None


def test_a_ray_that_starts_too_slowly_is_one_line() -> None:
    class SlowRay:
        @staticmethod
        def init(where: str, **options: object) -> None:
            raise Exception("The current node timed out during startup.\nSee the logs.")

    with pytest.raises(
        ConfigError, match=r"--ray is 'local', where no Ray cluster answers \(The current node timed out"
    ):
        cluster._connect(SlowRay, "local")
