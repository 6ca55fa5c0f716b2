"""irani2015: joint power failures of Robo-Conda 1, friction identified from logs, and a bias against the drift.

``crawling`` and ``motion`` run and judge trials, ``failures`` scans them, ``claims`` says where the paper's statements
hold; ``friction`` identifies the coefficients again, ``learned_bias`` is its future work. ``STUDY`` is for the command
line.
"""

from papers.irani2015.study import STUDY

__all__ = ["STUDY"]
