"""Compilation of kernels: said on standard error, done by one process while the others wait, kept for later ones.

Numba compiles a kernel at its first call and keeps the result in a folder. Processes that begin together, as the
workers of a learner do, would each compile the same for a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.compiler_lock import global_compiler_lock

LOCK_NAME = "snake_gym.lock"
"""Name of the file, in the folder with the compiled kernels, that the compiling process has locked."""
_said: set[str] = set()
_held: set[Path] = set()
"""Locks of this process; only touched under numba's own lock for threads."""


def cached_njit(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator like ``numba.njit(cache=True, error_model="numpy")``, for kernels that are called from Python.

    Of several processes one compiles. Without a folder that can be written to, every process compiles for itself.
    """
    options.setdefault("error_model", "numpy")

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            kernel = njit(cache=True, **options)(function)
        except RuntimeError:  # numba found no folder
            kernel = njit(**options)(function)
        if not hasattr(kernel, "compile"):  # numba is switched off (NUMBA_DISABLE_JIT)
            return kernel
        compile_now = kernel.compile

        def compile_once(signature: Any) -> Any:
            with global_compiler_lock:
                if signature in kernel.overloads or _is_kept(kernel, signature):
                    return compile_now(signature)
                with _alone(_folder(kernel)):
                    if not _is_kept(kernel, signature):
                        _announce(_folder(kernel))
                    return compile_now(signature)

        kernel.compile = compile_once
        return kernel

    return decorate


def _folder(kernel: Any) -> Path | None:
    """Return the folder where numba keeps a compiled kernel; None if it keeps none."""
    path = kernel._cache.cache_path
    return None if path is None else Path(path)


def _is_kept(kernel: Any, signature: Any) -> bool:
    cache = kernel._cache
    if _folder(kernel) is None:
        return False
    kernel.targetctx.refresh()
    key = cache._index_key(signature, kernel.targetctx.codegen())
    return key in cache._cache_file._load_index()


@contextmanager
def _alone(folder: Path | None) -> Iterator[None]:
    """Hold the folder's lock, which the system takes back from a process that dies; none where there can be none."""
    if folder is None or folder in _held:  # a kernel that another one calls
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        stream = (folder / LOCK_NAME).open("wb")
    except OSError:
        yield
        return
    _held.add(folder)
    try:
        with stream:  # closing it gives the lock back
            _take(stream, folder)
            yield
    finally:
        _held.discard(folder)


def _take(stream: Any, folder: Path) -> None:
    try:
        import fcntl

        try:
            fcntl.lockf(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            _say(f"snake_gym: waiting for another process, which compiles the physics into {folder}")
            fcntl.lockf(stream, fcntl.LOCK_EX)
    except (ImportError, OSError):  # Windows, or a file system without locks
        return


def _announce(folder: Path | None) -> None:
    what = "snake_gym: compiling the physics, which takes up to a minute"
    if folder is None:
        _say(f"{what}, in every process: no folder for numba can be written to; set NUMBA_CACHE_DIR to one that can")
    elif not any(line.startswith(what) for line in _said):
        _say(f"{what}, once: later processes load it from {folder}")


def _say(line: str) -> None:
    """Print a line on standard error, once in a process."""
    if line not in _said:
        _said.add(line)
        print(line, file=sys.stderr, flush=True)
