"""Program ``python -m papers``: rerun the published experiments of a paper and compare them with it in tables.

    python -m papers sibilska2022 --plot figures       # claims, tables; pictures into the folder
    python -m papers liu2024 --json -                  # the same as JSON
    python -m papers all --quick --out runs/papers     # every study, and one HTML report

``NAME --help`` lists a study's own options. A study is loaded when it is asked for, not before.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import traceback
from typing import Any

from rich.console import Console
from rich.markup import escape

from papers.record import (
    PROGRAM,
    Record,
    claim_of,
    plain,
    require_folder,
    rerun,
    rerun_into,
    study_parser,
    write_figures,
)
from papers.report import claims_table, data_table, matrix_table, published_verdicts, summary_line, write_report
from papers.study import CATALOGUE, Study, load_study
from snake_gym.config import OptionParser, choose, make_folder, prepare_file, run_program, to_json, write_atomic

ALL, OUT = "all", "runs/papers"


def main(argv: list[str] | None = None) -> int:
    """Rerun one paper, or all. Raises ConfigError for what the user has to correct."""
    words = sys.argv[1:] if argv is None else list(argv)
    rows = [*CATALOGUE.items(), (ALL, "every one of them, and one report in HTML")]
    top = OptionParser(
        prog=PROGRAM, description="Rerun the published experiments of a paper.",
        epilog="papers:\n" + "\n".join(f"  {name:<16}{about}" for name, about in rows),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    top.add_argument("paper", help="one of those below; NAME --help lists its options")
    if not words or words[0].startswith("-"):
        top.parse_args([word for word in words if word in ("-h", "--help")])
        raise AssertionError("the parser ends the program")  # pragma: no cover
    paper = choose(words[0], [*CATALOGUE, ALL], "paper")
    return _run_all(words[1:]) if paper == ALL else _run_one(load_study(paper), words[1:])


def _run_one(study: Study[Any], words: list[str]) -> int:
    parser = study_parser(study)
    parser.add_argument("--json", metavar="FILE", help="write the outcome as JSON; - is stdout, without the tables")
    parser.add_argument("--plot", metavar="DIR", help="write the figures as PNG into this folder")
    options = parser.parse_args(words)
    if options.json not in (None, "-"):
        prepare_file(options.json, "--json")
    folder = None if options.plot is None else require_folder(options.plot, "--plot")
    if folder is not None:
        make_folder(folder)
    outcome, record = rerun(study, options, words)
    text = to_json(record if outcome.single_runs is None else plain(outcome.single_runs))
    pictures = [] if folder is None else write_figures(outcome.figures, folder)
    if options.json == "-":
        sys.stdout.write(text)
        return 0
    terminal = _terminal()
    if outcome.claims:
        terminal.print(claims_table(outcome.claims, f"{study.name}: {study.title}"), summary_line(outcome.claims), "")
    for table in outcome.tables:
        terminal.print(data_table(table), "")
    if options.json is not None:
        write_atomic(options.json, text)
    for path in [*([options.json] if options.json is not None else []), *pictures]:
        terminal.print(f"wrote {escape(str(path))}", highlight=False)
    return 0


def _run_all(words: list[str]) -> int:
    parser = OptionParser(prog=f"{PROGRAM} {ALL}", description="Rerun every study and write one HTML report.")
    parser.add_argument("--quick", action="store_true", help="runs of seconds that show the same with less data")
    parser.add_argument("--out", metavar="DIR", default=OUT, help="where to (%(default)s)")
    parser.add_argument("--only", metavar="NAMES", help="these studies, with commas between them")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--resume", action="store_true", help="leave out what is done, by the same code (as always)")
    again.add_argument("--fresh", action="store_true", help="run also what is done already")
    options = parser.parse_args(words)
    chosen = list(CATALOGUE)
    if options.only is not None:
        asked = {choose(name.strip(), CATALOGUE, "--only") for name in options.only.split(",")}
        chosen = [name for name in CATALOGUE if name in asked]
    out = require_folder(options.out, "--out")
    make_folder(out)
    terminal, records, failed = _terminal(), list[Record](), dict[str, str]()
    for name in chosen:
        try:
            record, before = rerun_into(out / name, load_study(name), ["--quick"] * options.quick, options.fresh)
        except Exception as error:  # the other studies are worth having
            traceback.print_exc()
            failed[name] = f"{type(error).__name__}: {error}"
            terminal.print(f"[red]{name} failed[/]: {escape(failed[name])}", highlight=False)
            continue
        records.append(record)
        when = "done before" if before else f"{record['wall_s']:.0f} s"
        terminal.print(
            f"{name} ({when}): ", summary_line(list(map(claim_of, record["claims"]))), sep="", highlight=False
        )
        write_report(out / "report.html", out, records, failed, _command(options))
    terminal.print(
        "", matrix_table({r["paper"]: published_verdicts(r) for r in records}, "verdicts on claims of the papers")
    )
    write_report(out / "report.html", out, records, failed, _command(options))
    terminal.print(f"wrote {escape(str(out / 'report.html'))}", highlight=False)
    return 1 if failed else 0


def _command(options: argparse.Namespace) -> str:
    words = [*PROGRAM.split(), ALL, *["--quick"] * options.quick]
    words += ["--only", options.only] if options.only else []
    words += ["--out", options.out] if options.out != OUT else []
    return shlex.join(words)


def _terminal() -> Console:
    terminal = Console()
    if not terminal.is_terminal:
        terminal.width = 140
    return terminal


if __name__ == "__main__":
    run_program(main)
