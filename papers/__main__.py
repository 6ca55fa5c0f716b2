"""Program ``python -m papers``: rerun the published experiments of a paper and compare them with it in tables.

    python -m papers sibilska2022                      # claims and tables; with its figures in runs/papers/sibilska2022
    python -m papers all --quick --out runs/quick      # every study, in minutes, with less data

A study is loaded when it is asked for, not before.
"""

from __future__ import annotations

import argparse
import traceback
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown

from papers.record import PROGRAM, Record, rerun
from papers.report import matrix, page, summary
from papers.study import CATALOGUE, load_study
from snake_gym.config import OptionParser, choose, make_folder, require, run_program, write_atomic

ALL = "all"


def main(argv: list[str] | None = None) -> int:
    """Rerun one paper, or all. Raises ConfigError for what the user has to correct."""
    rows = [*CATALOGUE.items(), (ALL, "every one of them, and a matrix of the verdicts")]
    parser = OptionParser(
        prog=PROGRAM, description="Rerun the published experiments of a paper.",
        epilog="papers:\n" + "\n".join(f"  {name:<16}{about}" for name, about in rows),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("paper", help="one of those below")
    parser.add_argument("--quick", action="store_true", help="runs of seconds that show the same with less data")
    parser.add_argument("--out", metavar="DIR", default="runs/papers",
                        help="where to: DIR/PAPER/report.md, outcome.json and pictures (%(default)s)")  # fmt: skip
    options = parser.parse_args(argv)
    paper, out = choose(options.paper, [*CATALOGUE, ALL], "paper"), Path(options.out)
    require("a picture", "matplotlib")
    make_folder(out)
    if paper != ALL:
        _show(_rerun(paper, options.quick, out)[1])
        return 0
    records, failed = list[Record](), dict[str, str]()
    for name in CATALOGUE:
        try:
            records.append(_rerun(name, options.quick, out)[0])
            print(f"{name} ({records[-1]['wall_s']:.0f} s): {summary(records[-1])}", flush=True)
        except Exception as error:  # the other studies are worth having
            traceback.print_exc()
            failed[name] = f"{type(error).__name__}: {error}"
    write_atomic(out / "report.md", matrix(records, failed))
    _show(matrix(records, failed))
    return 1 if failed else 0


def _rerun(name: str, quick: bool, out: Path) -> tuple[Record, str]:
    """Run a study into its folder; return its record and its page."""
    record = rerun(load_study(name), quick, out / name)
    text = page(record)
    write_atomic(out / name / "report.md", text)
    return record, text


def _show(text: str) -> None:
    """Print Markdown, set as text and tables in a terminal."""
    console = Console()
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        print(text)


if __name__ == "__main__":
    run_program(main)
