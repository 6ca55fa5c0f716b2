"""Progress of a training on the terminal: a bar, or an occasional line where there is no terminal."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_REFRESH_S = 0.25
_LINE_S = 15.0
"""Time between two lines if there is no terminal [s]."""


class TrainingDisplay:
    """Steps done of ``total``, their rate and the latest note, on standard error; ``quiet``: messages only."""

    def __init__(self, total: int, quiet: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.total = total
        self.quiet = quiet
        self.note = ""
        """Latest measurement, as text."""
        self._bar = self.console.is_terminal and not quiet
        self._begin: tuple[int, float] | None = None
        """Steps and time [s] at the first step of this launch."""
        self._last = 0.0
        self.progress = Progress(
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} steps"), BarColumn(24), TaskProgressColumn(),
            TextColumn("{task.fields[rate]:,.0f}/s"), TimeElapsedColumn(), TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"), console=self.console, auto_refresh=False, disable=not self._bar,
        )  # fmt: skip
        self._task = self.progress.add_task("training", total=total, rate=0.0, note="")

    def advance(self, steps: int) -> None:
        """Show that ``steps`` have been done; cheap enough for every step."""
        now = time.monotonic()
        if self._begin is None:  # kernels were compiled until now: that tells nothing of the speed
            self._begin, self._last = (steps, now), now
        ended = self._bar and steps >= self.total  # the end of a bar is always shown
        if self.quiet or (now - self._last < (_REFRESH_S if self._bar else _LINE_S) and not ended):
            return
        self._last = now
        first, begun = self._begin
        rate = (steps - first) / max(now - begun, 1e-9)
        if self._bar:
            self.progress.update(self._task, completed=min(steps, self.total), rate=rate, note=self.note)
            self.progress.refresh()
        else:
            left = (self.total - steps) / max(rate, 1e-9)
            note = f"; {self.note}" if self.note else ""
            self.say(f"{steps:,}/{self.total:,} steps, {rate:,.0f}/s, {left:.0f} s left{note}")

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self.console.print(text, soft_wrap=True, markup=False)
