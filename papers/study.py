"""Study of one paper: its published experiment, with claims, tables and figures.

The package of each study holds ``STUDY``, a record of the function that runs the experiment once (``experiment``)
and of those that process its results. The command line, the JSON and the report use nothing else of it.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, cast, get_args

from snake_gym.config import choose

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Verdict = Literal["reproduced", "by construction", "partly", "not"]
"""By construction: the rerun could not have given anything else, so its agreement says nothing about the paper."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
Advance = Callable[[float, str], None]
"""Function that is called now and then with (share done from 0 to 1, current activity)."""
Cell = float | str | None
Results = TypeVar("Results")
Item = TypeVar("Item")

CATALOGUE = {
    "sibilska2022": "resilient control with broken joints, SJC and CC",
    "irani2015": "joint power failures of Robo-Conda 1, identified friction",
    "haghshenas2022": "a snake driven by pneumatic muscles on two paths",
    "liu2024": "Hopf oscillators as pattern generator, creeping gait of SnakeSys",
    "liu2024_spatial": "five gaits of Snake Robot III in space, on rough ground and a pole",
    "wang": "partial feedback linearisation, contacts with many obstacles",
}
"""Studies in the order of the report: name, which is also that of the package, and subject in one line."""


def load_study(name: str) -> Study[Any]:
    """Import and return the study called ``name``. Raises ConfigError if there is none."""
    return cast("Study[Any]", importlib.import_module(f"papers.{choose(name, CATALOGUE, 'paper')}").STUDY)


@dataclass(frozen=True)
class Claim:
    """Statement of a paper and its result in the rerun."""

    text: str
    """Claim in our words, with the condition that it holds under."""
    source: str
    """Section, equation, figure or table of the paper."""
    verdict: Verdict
    published: float | None = None
    """Number that the paper states; None if it states none."""
    measured: float | None = None
    unit: str = ""
    tolerance: float | None = None
    """Largest relative deviation that counts as reproduced; None if the verdict rests on other grounds."""
    note: str = ""
    """Numbers that the verdict rests on, or the reason why the claim does not hold."""

    @property
    def deviation(self) -> float | None:
        """Relative deviation, measured / published - 1."""
        if self.published is None or self.measured is None or self.published == 0.0:
            return None
        return self.measured / self.published - 1.0


@dataclass(frozen=True)
class Table:
    """Table of rows under headings that name the unit; numbers stay numbers (formatted where they are shown)."""

    name: str
    """Short name, such as ``arrivals``."""
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


@dataclass(frozen=True)
class Figure:
    """Picture with axes, units and, where known, the paper's own values drawn in."""

    name: str
    """File name without its ending."""
    caption: str
    draw: Callable[[Canvas], None]
    """Function that draws on an empty matplotlib figure of ``size_inch``, made with ``layout='constrained'``."""
    size_inch: tuple[float, float] = (8.0, 4.5)


@dataclass(frozen=True)
class Outcome:
    """Results of one rerun."""

    claims: Sequence[Claim]
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    """Further JSON-able data: the settings of the run, its seeds."""


class Finding(NamedTuple):
    """Outcome of a claim's measurement."""

    verdict: Verdict | None
    """Verdict; None: by the published value and the tolerance."""
    note: str = ""
    measured: float | None = None


def claim(
    text: str,
    source: str,
    published: float | None = None,
    unit: str = "",
    tolerance: float | None = None,
    built: bool = False,
) -> Callable[[Callable[[Results], Finding]], Callable[[Results], Claim]]:
    """Return a decorator that makes a claim of a function which measures it: see ``Claim`` and ``compare``."""

    def declare(measure: Callable[[Results], Finding]) -> Callable[[Results], Claim]:
        def judge(results: Results) -> Claim:
            verdict, note, measured = measure(results)
            if verdict is None:
                assert published is not None and measured is not None and tolerance is not None
                return compare(text, source, published, measured, unit, tolerance, note, built)
            return Claim(text, source, verdict, published, measured, unit, tolerance, note)

        return judge

    return declare


def compare(
    text: str,
    source: str,
    published: float,
    measured: float,
    unit: str,
    tolerance: float,
    note: str = "",
    built: bool = False,
) -> Claim:
    """Return a claim about a number: reproduced within relative ``tolerance``, partly within 3 times it, else not.

    ``built``: our own settings bring the number about, so within ``tolerance`` it holds by construction.
    """
    off = abs(measured / published - 1.0) if published else abs(measured)
    verdict = grade(off <= tolerance, off <= 3.0 * tolerance) if math.isfinite(measured) else "not"
    verdict = grade_built(True) if built and verdict == "reproduced" else verdict
    return Claim(text, source, verdict, published, measured, unit, tolerance, note)


def grade(holds: object, nearly: object = False) -> Verdict:
    """Return the verdict on a claim that holds, nearly holds, or does not."""
    return "reproduced" if holds else "partly" if nearly else "not"


def grade_built(holds: object) -> Verdict:
    """Return the verdict on a claim that the rerun's own settings bring about, as far as it holds."""
    return "by construction" if holds else "not"


def figure(
    name: str, caption: str, draw: Callable[[Canvas, Results], None], size_inch: tuple[float, float] = (8.0, 4.5)
) -> Callable[[Results], Figure]:
    """Return a maker of a figure of every run: see ``Figure``; ``draw`` also gets the results."""
    return lambda results: Figure(name, caption, lambda canvas: draw(canvas, results), size_inch)


@dataclass(frozen=True)
class Study(Generic[Results]):
    """Study of one paper. Functions of the results give claims, tables and figures; one function may give several."""

    name: str
    """Author and year, as on the command line."""
    title: str
    citation: str
    experiment: Callable[[bool, Advance], Results]
    """Function that runs everything; its first argument is True for a quick run that shows the same with less data."""
    claims: Sequence[Callable[[Results], Claim | list[Claim]]]
    tables: Sequence[Callable[[Results], Table]]
    figures: Sequence[Callable[[Results], Figure | list[Figure]]]
    data: Callable[[Results], Mapping[str, Any]]
    """Function of further data for the record, such as seeds and settings."""

    def run(self, quick: bool, advance: Advance) -> Outcome:
        """Run the study again."""
        results = self.experiment(quick, advance)
        tables = [table(results) for table in self.tables]
        return Outcome(_all(self.claims, results), tables, _all(self.figures, results), self.data(results))


def stage(advance: Advance, begin: float, end: float, doing: str = "") -> Callable[..., None]:
    """Return a progress function of a part, from share ``begin`` to ``end``, called with (its share done, activity)."""
    return lambda share, what=doing: advance(begin + (end - begin) * share, what)


def _all(makers: Sequence[Callable[[Results], Item | list[Item]]], results: Results) -> list[Item]:
    made = [maker(results) for maker in makers]
    return [item for some in made for item in (some if isinstance(some, list) else [some])]
