"""Fault-aware classical control, which none of the papers has: how well joint faults are found, and what knowing helps.

``detection``: delay, confusion and false alarms of the detector. ``progress``: the fault-aware controller, each of its
means switched off in turn, beside SJC, CC and CPG on the scenarios of the benchmark. docs/papers/faults.md has the
conclusions.
"""

from papers.fault_aware.study import STUDY

__all__ = ["STUDY"]
