"""Alternating variable search (AVS): one variable at a time is moved to the best of some values, in turn, until moves
of a given size gain nothing.

irani2015, section 4 and Table 1 (after Antia, Numerical Methods for Scientists and Engineers): starting from hand-tuned
coefficients, one coefficient in each iteration, ten iterations for five. The paper gives neither its grid nor its rule
to stop. Here an iteration tries ``n_trials`` values around the present one, evenly spaced on a logarithmic scale, and
the lowest point of the parabola through the best three; the grids follow the moves in width.

Coefficients that make up for one another lie in a narrow valley, across which the search only crawls. So after each
round it also tries to go on in the direction of the round's total move (Hooke and Jeeves, Direct search solution of
numerical and statistical problems, JACM 1961); ``pattern_moves=False`` is the plain search.
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
    """Which variable was varied, from 0; -1: a pattern move of all."""
    trials: FloatArray
    """Values tried, the present one among them; of a pattern move: multiples of the round's move."""
    costs: FloatArray
    """Their costs."""
    values: FloatArray
    """(n,) all variables after the iteration."""
    cost: float


_PATTERN = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
"""Multiples of a round's move that are tried."""
_MOVES = 2.0
"""Reach of the next grid of a variable, in moves that the variable has just made."""
_NARROWER = 0.6
"""Least reach of the next grid, as a share of the grid before (in logarithms); the inverse is the largest."""


def alternating_variable_search(
    objective: BatchObjective,
    start: FloatArray,
    low: FloatArray,
    high: FloatArray,
    n_trials: int = 4,
    reach: float = 1.2,
    final_reach: float = 1.0005,
    max_iterations: int = 600,
    pattern_moves: bool = True,
) -> list[SearchStep]:
    """Minimise ``objective`` over positive variables within ``low`` and ``high`` (n,); returns every iteration.

    Args:
        n_trials: values tried in an iteration, besides the present one; even.
        reach: factor up and down of the first grids; no grid is wider.
        final_reach: stop when the grids of a whole round were no wider than this factor.
    """
    if n_trials < 2 or n_trials % 2 or not 1.0 < final_reach <= reach:
        raise ValueError(f"n_trials is {n_trials}, reach {reach:g} to {final_reach:g}; expected even, and factors > 1")
    search = _Search(objective, np.array(start, dtype=np.float64), low, high)
    widths = np.full(search.values.size, np.log(reach))
    steps: list[SearchStep] = []
    exponents = np.linspace(-1.0, 1.0, n_trials + 1)
    while len(steps) < max_iterations and (widths > np.log(final_reach)).any():
        begin = search.values.copy()
        for variable in range(search.values.size):
            before = search.values[variable]
            steps.append(search.vary(variable, widths[variable] * exponents))
            moved = _MOVES * abs(float(np.log(search.values[variable] / before)))
            wanted = np.clip(moved, _NARROWER * widths[variable], widths[variable] / _NARROWER)
            widths[variable] = min(float(wanted), np.log(reach))
        move = np.log(search.values / begin)
        if pattern_moves and move.any():
            steps.append(search.go_on(move))
    return steps[:max_iterations]


class _Search:
    """Where the search is, and its two kinds of iterations."""

    def __init__(self, objective: BatchObjective, values: FloatArray, low: FloatArray, high: FloatArray) -> None:
        self.values = values
        self.cost = float(objective(values[None])[0])
        self._objective, self._low, self._high = objective, low, high

    def vary(self, variable: int, steps: FloatArray) -> SearchStep:
        """Try ``steps`` (logarithms, the middle one 0) on one variable, then the parabola's lowest point."""
        grid = self._clip(self.values[variable] * np.exp(steps), variable)
        costs = np.full(steps.size, self.cost)
        costs[steps != 0.0] = self._costs(variable, grid[steps != 0.0])
        best = int(np.argmin(costs))
        if 0 < best < steps.size - 1:
            vertex = self._clip(_vertex(np.log(grid), costs, best)[None], variable)
            grid, costs = np.append(grid, vertex), np.append(costs, self._costs(variable, vertex))
            best = int(np.argmin(costs))
        self.values[variable], self.cost = grid[best], float(costs[best])
        return SearchStep(variable, grid, costs, self.values.copy(), self.cost)

    def go_on(self, move: FloatArray) -> SearchStep:
        """Try multiples of ``move`` (n,), in logarithms, on all variables at once."""
        candidates = np.clip(self.values * np.exp(_PATTERN[:, None] * move), self._low, self._high)
        costs = self._objective(candidates)
        best = int(np.argmin(costs))
        if costs[best] < self.cost:
            self.values, self.cost = candidates[best].copy(), float(costs[best])
        return SearchStep(-1, _PATTERN, costs, self.values.copy(), self.cost)

    def _clip(self, trials: FloatArray, variable: int) -> FloatArray:
        return np.clip(trials, self._low[variable], self._high[variable])

    def _costs(self, variable: int, trials: FloatArray) -> FloatArray:
        """Costs with ``variable`` at each of ``trials`` (K,)."""
        candidates = np.tile(self.values, (trials.size, 1))
        candidates[:, variable] = trials
        return self._objective(candidates)


def _vertex(x: FloatArray, costs: FloatArray, best: int) -> FloatArray:
    """exp of the lowest point of the parabola through the best value and its neighbours."""
    left, mid, right = costs[best - 1 : best + 2]
    bend = left - 2.0 * mid + right
    shift = 0.5 * (left - right) / bend if bend > 0.0 else 0.0
    return np.exp(x[best] + np.clip(shift, -1.0, 1.0) * (x[best + 1] - x[best]))
