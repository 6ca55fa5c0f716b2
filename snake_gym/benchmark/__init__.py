"""Benchmark of policies on the same scenarios: play them, summarise the episodes, report with intervals.

Needs no torch; only ``pictures`` needs more than the package's own dependencies.
"""
