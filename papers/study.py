"""What the rerun of a paper consists of: claims with their verdicts, tables and figures, from one run.

A study module (or package) of ``papers`` offers ``STUDY``, an object with the attributes of ``Study``. The
command line, the JSON and the report know nothing else of it.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Verdict = Literal["reproduced", "partly", "not"]
Advance = Callable[[float, str], None]
"""Called now and then with (share done from 0 to 1, what is being done)."""


@dataclass(frozen=True)
class Claim:
    """One statement of a paper and what the rerun makes of it."""

    text: str
    """The claim in our words, with the condition that it holds under."""
    source: str
    """Section, equation, figure or table of the paper."""
    verdict: Verdict
    published: float | None = None
    """The paper's number; None where it states none."""
    measured: float | None = None
    unit: str = ""
    tolerance: float | None = None
    """Largest relative deviation that counts as reproduced; None where the verdict rests on something else."""
    note: str = ""
    """The numbers that the verdict rests on, or why it does not hold."""

    @property
    def deviation(self) -> float | None:
        """measured / published - 1."""
        if self.published is None or self.measured is None or self.published == 0.0:
            return None
        return self.measured / self.published - 1.0


def compare(
    text: str, source: str, published: float, measured: float, unit: str, tolerance: float, note: str = ""
) -> Claim:
    """A claim about a number: reproduced within ``tolerance`` (relative), partly within three times that, else not."""
    off = abs(measured / published - 1.0) if published else abs(measured)
    verdict: Verdict = "reproduced" if off <= tolerance else "partly" if off <= 3.0 * tolerance else "not"
    if not math.isfinite(measured):
        verdict = "not"
    return Claim(text, source, verdict, published, measured, unit, tolerance, note)


@dataclass(frozen=True)
class Table:
    """Rows under headings that name the unit; numbers stay numbers (formatted where they are shown)."""

    name: str
    """Short, for file names and JSON: ``arrivals``."""
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[float | str | None]]
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """A picture with axes, units and, where known, the paper's own values drawn in."""

    name: str
    """File name without its ending."""
    caption: str
    draw: Callable[[Canvas], None]
    """Draws on an empty matplotlib figure of ``size_inch``, made with ``layout='constrained'``."""
    size_inch: tuple[float, float] = (8.0, 4.5)


@dataclass(frozen=True)
class Outcome:
    """All that one rerun gave."""

    claims: Sequence[Claim]
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    """Anything else worth keeping, JSON-able: the settings of the run, its seeds."""
    single_runs: Sequence[Mapping[str, Any]] | None = None
    """Where the user asked for single runs and not for the study: one row each; ``--json`` then writes these alone."""


class Study(Protocol):
    """One paper."""

    name: str
    """As on the command line: author and year."""
    title: str
    citation: str

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """The study's own options. Every study has ``--quick``: a run of seconds that shows the same with less data."""

    def run(self, options: argparse.Namespace, advance: Advance) -> Outcome:
        """Rerun. Raises ConfigError for options that the user has to correct."""
