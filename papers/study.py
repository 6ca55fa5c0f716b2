"""Study of one paper: its published experiment, with options, claims, tables and figures.

The package of each study holds ``STUDY``, a record of the function that runs the experiment once (``experiment``)
and of those that process its results. The command line, the JSON and the report use nothing else of it.
"""

from __future__ import annotations

import argparse
import importlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypeVar, cast

from snake_gym.config import ConfigError, choose
from snake_gym.config.errors import show

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Verdict = Literal["reproduced", "by construction", "partly", "not"]
"""By construction: the rerun could not have given anything else, so its agreement says nothing about the paper."""
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


# --- what comes out --------------------------------------------------------------------------------------------------


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
    own: bool = False
    """True for a statement of ours, which the paper does not make; the counts of claims leave it out."""

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
    """Short name for file names and JSON, such as ``arrivals``."""
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
    single_runs: Sequence[Mapping[str, Any]] | None = None
    """Rows of single runs, if the user asked for these in place of the study; ``--json`` then writes these alone."""


# --- how a study is put down -----------------------------------------------------------------------------------------


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
    own: bool = False,
    built: bool = False,
) -> Callable[[Callable[[Results], Finding]], Callable[[Results], Claim]]:
    """Return a decorator that makes a claim of a function which measures it: see ``Claim`` and ``compare``."""

    def declare(measure: Callable[[Results], Finding]) -> Callable[[Results], Claim]:
        def judge(results: Results) -> Claim:
            verdict, note, measured = measure(results)
            if verdict is None:
                assert published is not None and measured is not None and tolerance is not None
                return compare(text, source, published, measured, unit, tolerance, note, own, built)
            return Claim(text, source, verdict, published, measured, unit, tolerance, note, own)

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
    own: bool = False,
    built: bool = False,
) -> Claim:
    """Return a claim about a number: reproduced within relative ``tolerance``, partly within 3 times it, else not.

    ``built``: our own settings bring the number about, so within ``tolerance`` it holds by construction.
    """
    off = abs(measured / published - 1.0) if published else abs(measured)
    verdict = grade(off <= tolerance, off <= 3.0 * tolerance) if math.isfinite(measured) else "not"
    verdict = grade_built(True) if built and verdict == "reproduced" else verdict
    return Claim(text, source, verdict, published, measured, unit, tolerance, note, own)


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

    def make(results: Results) -> Figure:
        def draw_results(canvas: Canvas) -> None:
            draw(canvas, results)

        return Figure(name, caption, draw_results, size_inch)

    return make


class Option(NamedTuple):
    """Option of a study on the command line."""

    flag: str
    help: str
    read: Callable[[str, str], Any]
    """Function that reads the user's text, given that and the flag; raises ConfigError."""
    default: str | None = None
    group: tuple[str, str] | None = None
    """Title and description of its group in the help."""


def number(expected: str, low: float, high: float = math.inf, whole: bool = False) -> Callable[[str, str], Any]:
    """Return a reader of a number from ``low`` to ``high``; ``expected`` describes it in words."""

    def read(text: str, flag: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low <= value <= high or (whole and not value.is_integer()):
            raise ConfigError(f"{flag} is {show(text)}; expected {expected}")
        return int(value) if whole else value

    return read


def one_of(*choices: str) -> Callable[[str, str], Any]:
    """Return a reader of one of the words ``choices``."""
    return lambda text, flag: choose(text, choices, flag)


@dataclass(frozen=True)
class Study(Generic[Results]):
    """Study of one paper. Functions of the results give claims, tables and figures; one function may give several."""

    name: str
    """Author and year, as on the command line."""
    title: str
    citation: str
    quick: str
    """Help for ``--quick``: a run of seconds that shows the same with less data."""
    experiment: Callable[[argparse.Namespace, Advance], Results | Outcome]
    """Function that runs everything with the read options; returns an Outcome if only single runs were asked for."""
    claims: Sequence[Callable[[Results], Claim | Iterable[Claim]]]
    tables: Sequence[Callable[[Results], Table]]
    figures: Sequence[Callable[[Results], Figure | Iterable[Figure]]]
    data: Callable[[Results], Mapping[str, Any]]
    """Function of further data for the record, such as seeds and settings."""
    options: Sequence[Option] = ()

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the study's own options to a parser, as text."""
        parser.add_argument("--quick", action="store_true", help=self.quick)
        groups: dict[tuple[str, str] | None, Any] = {None: parser}
        for option in self.options:
            if option.group is not None and option.group not in groups:
                groups[option.group] = parser.add_argument_group(*option.group)
            groups[option.group].add_argument(option.flag, default=option.default, help=option.help)

    def run(self, options: argparse.Namespace, advance: Advance) -> Outcome:
        """Run the study again. Raises ConfigError for options that the user has to correct."""
        values = vars(options).copy()
        for option in self.options:
            name = option.flag.removeprefix("--").replace("-", "_")
            values[name] = None if values.get(name) is None else option.read(values[name], option.flag)
        results = self.experiment(argparse.Namespace(**values), advance)
        if isinstance(results, Outcome):
            return results
        return Outcome(
            _all(Claim, self.claims, results),
            [table(results) for table in self.tables],
            _all(Figure, self.figures, results),
            self.data(results),
        )


def stage(advance: Advance, begin: float, end: float, doing: str = "") -> Callable[..., None]:
    """Return a progress function of a part, from share ``begin`` to ``end``, called with (its share done, activity)."""
    return lambda share, what=doing: advance(begin + (end - begin) * share, what)


def _all(
    kind: type[Item], makers: Sequence[Callable[[Results], Item | Iterable[Item]]], results: Results
) -> list[Item]:
    made = [maker(results) for maker in makers]
    return [item for some in made for item in ([some] if isinstance(some, kind) else cast("Iterable[Item]", some))]
