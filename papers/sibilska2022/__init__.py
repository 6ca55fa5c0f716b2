"""sibilska2022: resilient control of a snake robot with broken joints, single-joint (SJC) against coupled (CC).

``experiment`` holds the published simulations, ``study`` what is made of them; ``STUDY`` is for the command line.
"""

from papers.sibilska2022.experiment import (
    BROKEN_SETS,
    COUPLING,
    COURSE,
    PAPER_S,
    TIME_LIMIT_S,
    Broken,
    Case,
    as_rows,
    paper_time,
    select_cases,
    simulate,
)
from papers.sibilska2022.study import STUDY

__all__ = [
    "BROKEN_SETS",
    "COUPLING",
    "COURSE",
    "PAPER_S",
    "STUDY",
    "TIME_LIMIT_S",
    "Broken",
    "Case",
    "as_rows",
    "paper_time",
    "select_cases",
    "simulate",
]
