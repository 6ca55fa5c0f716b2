"""Alternating variable search (AVS): one variable at a time is moved to the best of some values, in turn, until moves
of a given size gain nothing.

irani2015, section 4 and Table 1 (after Antia, Numerical Methods for Scientists and Engineers): starting from hand-tuned
coefficients, one coefficient in each iteration, ten iterations for five. The paper gives neither its grid nor its rule
to stop. Here an iteration tries values around the present one, evenly spaced on a logarithmic scale, and the lowest
point of the parabola through the best three; the grids follow the moves in width.

Coefficients that make up for one another lie in a narrow valley, across which the search only crawls. So after each
round it also tries to go on in the direction of the round's total move (Hooke and Jeeves, Direct search solution of
numerical and statistical problems, JACM 1961).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from snake_gym.robot.spec import FloatArray

_EXPONENTS = np.linspace(-1.0, 1.0, 5)
"""Grid of an iteration, in logarithms and in reaches of the variable; the middle is where it is."""
_REACH, _FINAL_REACH = np.log(1.2), np.log(1.0005)
"""Widest reach of a grid, which is the first one, and the one at which the search ends."""
_PATTERN = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
"""Multiples of a round's move that are tried."""
_MOVES = 2.0
"""Reach of the next grid of a variable, in moves that the variable has just made."""
_NARROWER = 0.6
"""Least reach of the next grid, as a share of the grid before (in logarithms); the inverse is the largest."""


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


def alternating_variable_search(
    objective: Callable[[FloatArray], FloatArray],
    start: FloatArray,
    low: FloatArray,
    high: FloatArray,
    max_iterations: int = 600,
) -> list[SearchStep]:
    """Minimise ``objective``, from candidates (K, n) to their costs (K,), over positive variables within ``low`` and
    ``high`` (n,); returns every iteration."""
    values = np.array(start, dtype=np.float64)
    cost = float(objective(values[None])[0])

    def costs_of(variable: int, trials: FloatArray) -> FloatArray:
        candidates = np.tile(values, (trials.size, 1))
        candidates[:, variable] = trials
        return objective(candidates)

    widths = np.full(values.size, _REACH)
    steps: list[SearchStep] = []
    while len(steps) < max_iterations and (widths > _FINAL_REACH).any():
        begin = values.copy()
        for variable in range(values.size):
            before, ends = values[variable], (low[variable], high[variable])
            grid = np.clip(before * np.exp(widths[variable] * _EXPONENTS), *ends)
            costs = np.full(grid.size, cost)
            costs[_EXPONENTS != 0.0] = costs_of(variable, grid[_EXPONENTS != 0.0])
            best = int(np.argmin(costs))
            if 0 < best < grid.size - 1:
                vertex = np.clip(_vertex(np.log(grid), costs, best)[None], *ends)
                grid, costs = np.append(grid, vertex), np.append(costs, costs_of(variable, vertex))
                best = int(np.argmin(costs))
            values[variable], cost = grid[best], float(costs[best])
            steps.append(SearchStep(variable, grid, costs, values.copy(), cost))
            moved = _MOVES * abs(float(np.log(values[variable] / before)))
            wanted = np.clip(moved, _NARROWER * widths[variable], widths[variable] / _NARROWER)
            widths[variable] = min(float(wanted), _REACH)
        move = np.log(values / begin)
        if move.any():
            candidates = np.clip(values * np.exp(_PATTERN[:, None] * move), low, high)
            costs = objective(candidates)
            best = int(np.argmin(costs))
            if costs[best] < cost:
                values[:], cost = candidates[best], float(costs[best])
            steps.append(SearchStep(-1, _PATTERN, costs, values.copy(), cost))
    return steps[:max_iterations]


def _vertex(x: FloatArray, costs: FloatArray, best: int) -> FloatArray:
    """exp of the lowest point of the parabola through the best value and its neighbours."""
    left, mid, right = costs[best - 1 : best + 2]
    bend = left - 2.0 * mid + right
    shift = 0.5 * (left - right) / bend if bend > 0.0 else 0.0
    return np.exp(x[best] + np.clip(shift, -1.0, 1.0) * (x[best + 1] - x[best]))
