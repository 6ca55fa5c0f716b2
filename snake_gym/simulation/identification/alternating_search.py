"""Alternating variable search (AVS): one variable at a time is moved to the best of some values, in turn, until moves
of a given size gain nothing.

irani2015, section 4 and Table 1 (after Antia, Numerical Methods for Scientists and Engineers): starting from hand-tuned
coefficients, one coefficient in each iteration, ten iterations for five. The paper gives neither its grid nor its rule
to stop. Here an iteration tries ``n_trials`` values around the present one, evenly spaced on a logarithmic scale, and
the lowest point of the parabola through the best three; the grids follow the moves in width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from snake_gym.robot.spec import FloatArray

BatchObjective = Callable[[FloatArray], FloatArray]
"""From candidates (K, n) to their costs (K,)."""


class SearchStep(NamedTuple):
    """One iteration."""

    variable: int
    """Which variable was varied, from 0."""
    trials: FloatArray
    """Values tried, the present one among them."""
    costs: FloatArray
    """Their costs."""
    values: FloatArray
    """(n,) all variables after the iteration."""
    cost: float


_MOVES = 2.0
"""The next grid of a variable reaches this many times as far as the variable has just moved,"""
_NARROWER = 0.6
"""but by no more than this factor less, or its inverse more, than the grid before (in logarithms)."""


def alternating_variable_search(
    objective: BatchObjective,
    start: FloatArray,
    low: FloatArray,
    high: FloatArray,
    n_trials: int = 4,
    reach: float = 1.2,
    final_reach: float = 1.0005,
    max_iterations: int = 600,
) -> list[SearchStep]:
    """Minimise ``objective`` over positive variables within ``low`` and ``high`` (n,); returns every iteration.

    Args:
        n_trials: values tried in an iteration, besides the present one; even.
        reach: factor up and down of the first grids; no grid is wider.
        final_reach: stop when the grids of a whole round were no wider than this factor.
    """
    if n_trials < 2 or n_trials % 2 or not 1.0 < final_reach <= reach:
        raise ValueError(f"n_trials is {n_trials}, reach {reach:g} to {final_reach:g}; expected even, and factors > 1")
    values = np.array(start, dtype=np.float64)
    cost = float(objective(values[None])[0])
    steps: list[SearchStep] = []
    exponents = np.linspace(-1.0, 1.0, n_trials + 1)
    middle = n_trials // 2
    widths = np.full(values.size, np.log(reach))
    while len(steps) < max_iterations and (widths > np.log(final_reach)).any():
        variable = len(steps) % values.size
        grid = np.clip(values[variable] * np.exp(widths[variable] * exponents), low[variable], high[variable])
        trials, costs = np.delete(grid, middle), np.full(n_trials + 1, cost)
        costs[exponents != 0.0] = _along(objective, values, variable, trials)
        best = int(np.argmin(costs))
        if 0 < best < n_trials:
            vertex = np.clip(_vertex(np.log(grid), costs, best), low[variable], high[variable])
            cost_there = _along(objective, values, variable, vertex[None])
            grid, costs = np.append(grid, vertex), np.append(costs, cost_there)
        best = int(np.argmin(costs))
        moved = abs(float(np.log(grid[best] / values[variable])))
        wanted = np.clip(_MOVES * moved, _NARROWER * widths[variable], widths[variable] / _NARROWER)
        widths[variable] = min(float(wanted), np.log(reach))
        values[variable], cost = grid[best], float(costs[best])
        steps.append(SearchStep(variable, grid, costs, values.copy(), cost))
    return steps


def _along(objective: BatchObjective, values: FloatArray, variable: int, trials: FloatArray) -> FloatArray:
    """Costs with ``variable`` at each of ``trials`` (K,)."""
    candidates = np.tile(values, (trials.size, 1))
    candidates[:, variable] = trials
    return objective(candidates)


def _vertex(x: FloatArray, costs: FloatArray, best: int) -> FloatArray:
    """exp of the lowest point of the parabola through the best value and its neighbours."""
    left, mid, right = costs[best - 1 : best + 2]
    bend = left - 2.0 * mid + right
    shift = 0.5 * (left - right) / bend if bend > 0.0 else 0.0
    return np.exp(x[best] + np.clip(shift, -1.0, 1.0) * (x[best + 1] - x[best]))
