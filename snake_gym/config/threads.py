"""Number of threads that a process may use."""

from __future__ import annotations

import os

LIMIT = "OMP_NUM_THREADS"
"""Environment variable that limits the threads of a process, ours as well as those of other libraries."""


def process_cores() -> int:
    """Return the number of cores that the process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def process_threads() -> int:
    """Return the number of threads that the process may use: its cores, or fewer if ``LIMIT`` is set to fewer."""
    limit = os.environ.get(LIMIT, "")
    return min(process_cores(), int(limit)) if limit.isdecimal() and int(limit) > 0 else process_cores()
