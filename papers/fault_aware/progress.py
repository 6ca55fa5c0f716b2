"""How far robots with failed joints get: the fault-aware controller beside the others, on the same scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import bootstrap

from papers.fault_aware.contenders import ROBOT, Contender
from papers.fault_aware.episodes import SEED, play
from snake_gym.robot.spec import FloatArray

SCENARIOS: dict[str, dict[str, Any]] = {
    "locked": {"n_min": 0, "n_max": 3, "kinds": ["locked"]},
    "locked in mid-run": {"n_min": 1, "n_max": 3, "kinds": ["locked"], "onset_min_s": 10.0, "onset_max_s": 30.0},
    "free": {"n_min": 1, "n_max": 2, "kinds": ["free"]},
    "weak": {"n_min": 1, "n_max": 3, "kinds": ["weak"]},
    "mixed": {"n_min": 0, "n_max": 3, "kinds": ["locked", "free", "weak"]},
}
"""Faults of an episode; ``locked`` are the benchmark's."""
RESAMPLES = 4000


class Result(NamedTuple):
    """What one contender did in the scenarios of one kind."""

    name: str
    scenario: str
    progress_m: FloatArray
    """(W,)."""
    n_faults: FloatArray
    """(W,)."""


class Difference(NamedTuple):
    """Mean and its 95 % interval."""

    mean: float
    low: float
    high: float


def compete(contender: Contender, scenario: str, n_episodes: int, seed: int = SEED, **env: Any) -> Result:
    """Play the scenarios ``seed`` to ``seed + n_episodes``; ``env`` are further settings."""
    faults = {**SCENARIOS[scenario], "reveal": contender.told}
    core = play(contender.settings, {"robot": ROBOT, "faults": faults, **env}, n_episodes, seed)
    infos = core.infos()
    return Result(contender.name, scenario, infos["progress_m"], infos["n_faults"])


def compete_with_one_failed(contender: Contender, kind: str, joint: int, n_episodes: int, seed: int = SEED) -> float:
    """Mean progress [m] with joint ``joint`` (from 1 at the tail) failed from the start."""
    faults = {"joints": [joint], "kinds": [kind], "reveal": contender.told}
    core = play(contender.settings, {"robot": ROBOT, "faults": faults}, n_episodes, seed)
    return float(core.infos()["progress_m"].mean())


def mean_with_interval(values: FloatArray, seed: int = 0) -> Difference:
    """Mean of ``values`` (n,) with its BCa bootstrap interval (Efron 1987); the mean thrice where all are equal."""
    mean = float(values.mean())
    if values.size < 2 or np.ptp(values) == 0.0:
        return Difference(mean, mean, mean)
    rng = np.random.default_rng(seed)
    interval = bootstrap((values,), np.mean, n_resamples=RESAMPLES, method="BCa", random_state=rng).confidence_interval
    return Difference(mean, float(interval.low), float(interval.high))


def against(results: Sequence[Result], name: str, other: str, scenario: str) -> Difference:
    """By how much ``name`` is ahead of ``other`` [m]; scenarios are paired."""
    one, two = (find(results, who, scenario).progress_m for who in (name, other))
    return mean_with_interval(one - two)


def find(results: Sequence[Result], name: str, scenario: str) -> Result:
    """The result of one contender."""
    return next(r for r in results if (r.name, r.scenario) == (name, scenario))
