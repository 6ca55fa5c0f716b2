"""Which papers can be rerun, and where each one's study is: nothing of a study is loaded before it is asked for."""

from __future__ import annotations

import importlib
import importlib.util
from typing import NamedTuple, cast

from papers.study import Study
from snake_gym.config import choose


class Entry(NamedTuple):
    """Where a study is, and what it is about in one line."""

    module: str
    about: str


CATALOGUE: dict[str, Entry] = {
    "sibilska2022": Entry("papers.sibilska2022", "resilient control with broken joints, SJC and CC"),
    "irani2015": Entry("papers.irani2015", "joint power failures of Robo-Conda 1, identified friction"),
    "haghshenas2022": Entry("papers.haghshenas2022", "a snake driven by pneumatic muscles on two paths"),
    "liu2024": Entry("papers.liu2024", "Hopf oscillators as pattern generator, creeping gait of SnakeSys"),
    "wang": Entry("papers.wang", "partial feedback linearisation, contacts with many obstacles"),
    "faults": Entry("papers.fault_aware", "no paper: fault-aware baselines, failure detection and recovery"),
}
"""In the order of the report."""


def available() -> list[str]:
    """Names of the studies that are installed, in the order of the catalogue."""
    return [name for name, entry in CATALOGUE.items() if importlib.util.find_spec(entry.module) is not None]


def load_study(name: str) -> Study:
    """The study called ``name``. Raises ConfigError if there is none."""
    choose(name, available(), "paper")
    return cast(Study, importlib.import_module(CATALOGUE[name].module).STUDY)
