"""How far a fit by least squares may be off, judged by what single stretches of the runs do to it.

The usual formula takes every residual for a draw of its own. Those of a replayed path are not: what the model lacks, or
where a joint slipped a moment later, shifts all that follows, and the formula promises ten times too much. Here the
fit is made again without one stretch of time, for each stretch in turn (the delete-a-group jackknife; Efron, The
jackknife, the bootstrap and other resampling plans, SIAM 1982; each new fit is one Gauss-Newton step). Residuals that
belong together lie within one stretch only if it is long, and long ones are few: of several lengths, the one that
gives the largest value counts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from snake_gym.robot.spec import FloatArray

STRETCHES = (3, 5, 8, 16, 40)
"""Into so many each run is cut."""


def jackknife_std(
    slope: FloatArray, residuals: FloatArray, stretches: Callable[[int], NDArray[np.int64]]
) -> FloatArray:
    """Standard deviations (n,) of the variables at a minimum.

    Args:
        slope: (R, n) derivatives of the residuals.
        residuals: (R,).
        stretches: for a number of stretches a run, to which each residual belongs (R,), from 0.
    """
    return np.max([_deleted(slope, residuals, stretches(number)) for number in STRETCHES], axis=0)


def _deleted(slope: FloatArray, residuals: FloatArray, label: NDArray[np.int64]) -> FloatArray:
    n_groups = int(label.max()) + 1
    members = [label == group for group in range(n_groups)]
    normal = np.stack([slope[one].T @ slope[one] for one in members])
    pull = np.stack([slope[one].T @ residuals[one] for one in members])
    whole, total = normal.sum(axis=0), pull.sum(axis=0)
    moved = np.stack([np.linalg.pinv(whole - normal[k]) @ (total - pull[k]) for k in range(n_groups)])
    return np.sqrt((n_groups - 1) / n_groups * ((moved - moved.mean(axis=0)) ** 2).sum(axis=0))
