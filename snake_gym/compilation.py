"""Compilation of kernels: by one process while the others wait, kept for later ones, and said on standard error.

Numba compiles a kernel at its first call and keeps the result in a folder. Processes that begin together, as the
workers of a learner do, would each compile the same for a minute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

LOCK_NAME = "snake_gym.lock"
"""File next to the compiled kernels, locked by the process that compiles."""
_state = {"locked": False, "said": False}
"""Of this process; only touched under numba's own lock for threads."""


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
        compile_now, folder = kernel.compile, kernel.stats.cache_path

        def compile_once(signature: Any) -> Any:
            with global_compiler_lock:
                if signature in kernel.overloads or _state["locked"]:  # of a kernel that another one calls
                    return compile_now(signature)
                with _alone(folder):
                    return compile_now(signature)

        kernel.compile = compile_once
        return kernel

    return decorate


def typed(kernel: Any, arguments: Iterable[Any]) -> Any:
    """Return ``kernel`` for arguments of these types and layouts only, unchecked: 15 us less in a call."""
    is_compiled = hasattr(kernel, "compile")  # numba may be switched off (NUMBA_DISABLE_JIT)
    return kernel.compile(tuple(map(kernel.typeof_pyval, arguments))) if is_compiled else kernel


@contextmanager
def _alone(folder: str | None) -> Iterator[None]:
    """Hold the folder's lock, which the system takes back from a process that dies; none where there can be none."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):  # Windows, a folder or file system without locks
            import fcntl

            if folder is not None:
                Path(folder).mkdir(parents=True, exist_ok=True)
                fcntl.lockf(stack.enter_context(Path(folder, LOCK_NAME).open("wb")), fcntl.LOCK_EX)
        stack.enter_context(event.install_listener("numba:compile", _Announcer(folder)))
        _state["locked"] = True
        try:
            yield
        finally:
            _state["locked"] = False


class _Announcer(event.Listener):
    """Says on standard error, once in a process, that kernels are compiled and not loaded."""

    def __init__(self, folder: str | None) -> None:
        self._where = f"once, into {folder}" if folder else "in every process: set NUMBA_CACHE_DIR to a folder"

    def on_start(self, event: Any) -> None:
        if not _state["said"]:
            _state["said"] = True
            what = "snake_gym: compiling the physics, which takes up to a minute"
            print(f"{what}, {self._where}", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        pass
