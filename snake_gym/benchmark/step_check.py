"""Error of the physics step in a benchmark: some of its scenarios, played again at half the step."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from snake_gym.benchmark.runner import Episodes, play
from snake_gym.benchmark.scenarios import Entrant, Scenarios
from snake_gym.config import to_dict

SCENARIOS = 16
"""Number of scenarios that are played again, the first ones."""


def check_step(entrant: Entrant, scenarios: Scenarios, episodes: Episodes) -> dict[str, Any]:
    """Return the differences of progress that half the step makes in the first of the ``episodes``, for JSON."""
    spec, n = replace(scenarios.spec, sim_dt_s=0.5 * scenarios.spec.step_s), min(SCENARIOS, scenarios.episodes)
    finer = replace(scenarios, env=replace(scenarios.env, robot=to_dict(spec)), spec=spec, episodes=n)
    before, after = (np.asarray(each.columns["progress_m"][:n]) for each in (episodes, play(entrant, finer)))
    return {
        "scenarios": n, "step_s": spec.step_s, "mean": float(before.mean()), "mean_at_half": float(after.mean()),
        "largest_difference_m": float(np.abs(after - before).max()),
    }  # fmt: skip


def step_check_note(name: str, found: dict[str, Any]) -> str:
    """Return the line that tells people of a policy's ``check_step``."""
    return (
        f"{name}: at half the physics step ({1e3 * found['step_s']:g} ms), {found['scenarios']} scenarios give "
        f"{found['mean_at_half']:.3f} m on average for {found['mean']:.3f} m; single ones differ by up to "
        f"{found['largest_difference_m']:.3f} m"
    )
