"""The outcome of a study as plain data: what ``--json`` writes, what a report is made from, what a rerun looks up.

A record is a JSON object: paper, title, citation, command, settings, versions, source (digest of the code that the
numbers depend on), wall_s, finished, claims, tables, figures (name, caption, file) and data. Numbers that are not
finite are null.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import platform
from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import papers
import snake_gym
from papers.catalogue import CATALOGUE
from papers.study import Claim, Outcome, Study
from snake_gym.config import digest, write_atomic

Record = dict[str, Any]

OUTPUT_OPTIONS = ("json", "plot", "out", "resume", "fresh", "only", "paper")
"""Options that say where results go, not what they are."""

_PRESENTATION = ("__main__", "table", "report", "report_style", "pictures", "catalogue", "rerun", "outcome_record")
_ELSEWHERE = ("benchmark", "render", "hardware")
_FILE = "outcome.json"


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """The options that the numbers depend on, JSON-able."""
    return {name: plain(value) for name, value in sorted(vars(options).items()) if name not in OUTPUT_OPTIONS}


def make_record(
    study: Study, outcome: Outcome, settings: Mapping[str, Any], command: str, wall_s: float, finished: str = ""
) -> Record:
    """What one run of a study gave, and everything that it takes to get it again."""
    return {
        "paper": study.name,
        "title": study.title,
        "citation": study.citation,
        "command": command,
        "settings": dict(settings),
        "versions": versions(),
        "source": source_digest(study.name),
        "wall_s": round(wall_s, 3),
        "finished": finished or datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "claims": [{**plain(asdict(claim)), "deviation": plain(claim.deviation)} for claim in outcome.claims],
        "tables": [plain(asdict(table)) for table in outcome.tables],
        "figures": [
            {"name": figure.name, "caption": figure.caption, "file": f"{figure.name}.png"} for figure in outcome.figures
        ],
        "data": plain(outcome.data),
    }


def claim_of(row: Mapping[str, Any]) -> Claim:
    """The claim that a record's row was made from."""
    return Claim(**{name: row[name] for name in Claim.__dataclass_fields__})


def as_json(value: Any) -> str:
    """JSON text for a file or stdout."""
    return json.dumps(value, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def save_record(folder: Path, record: Record) -> None:
    """Write the record into the study's folder, last of all its files: a record that is there is complete."""
    write_atomic(folder / _FILE, as_json(record))


def load_record(folder: Path) -> Record | None:
    """The record of a study's folder, or None where there is none that is complete: figures included."""
    try:
        record = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    wanted = {"paper", "claims", "tables", "figures", "settings", "source", "data"}
    if not isinstance(record, dict) or not wanted <= record.keys():
        return None
    return record if all((folder / figure["file"]).is_file() for figure in record["figures"]) else None


def is_current(record: Record, settings: Mapping[str, Any]) -> bool:
    """Whether a run with these settings, by this code and these libraries, would give this record again."""
    return bool(
        record["settings"] == dict(settings)
        and record["source"] == source_digest(record["paper"])
        and record.get("versions") == versions()
    )


@cache
def source_digest(paper: str) -> str:
    """Digest of the modules that a study's numbers depend on.

    Left out are the other studies and what draws, prints, compares or drives hardware.
    """
    others = {entry.module.rpartition(".")[2] for name, entry in CATALOGUE.items() if name != paper}
    library, here = Path(snake_gym.__file__).parent, Path(papers.__file__).parent
    return digest(_sources(library, _ELSEWHERE), _sources(here, {*_PRESENTATION, *others}))[:16]


def _sources(root: Path, without: Collection[str]) -> list[str]:
    """Names and digests of a package's modules, but for modules and folders of its own whose names are ``without``."""
    paths = sorted(root.rglob("*.py"))
    kept = [path for path in paths if path.relative_to(root).with_suffix("").parts[0] not in without]
    return [f"{path.relative_to(root)} {digest(path.read_bytes())}" for path in kept]


@cache
def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    found = {"snake_gym": snake_gym.__version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "numba", "matplotlib"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {**found, "machine": f"{platform.system()} {platform.machine()}"}


def plain(value: Any) -> Any:
    """``value`` in the types of JSON; NumPy arrays as lists, numbers that are not finite as None."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in (sorted(value) if isinstance(value, (set, frozenset)) else value)]
    return value if value is None or isinstance(value, (bool, int, str)) else str(value)
