"""Which oscillators of a pattern generator are coupled, and how that pulls their phases together.

Model: the diffusive coupling of liu2024, section 3.1, ``- alpha sum_j L_ij y_j`` with L the graph Laplacian of the
weights w, written in the frame in which the locked gait has all y_i equal (see ``cpg``).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from snake_gym.robot.spec import FloatArray

SingleArray = NDArray[np.float32]
Topology = Literal["full", "nearest", "next_nearest", "chain", "double_chain", "ladder", "bipartite", "dorsal"]
Weights = Literal["equal", "gaussian"]


def coupling_weights(n_joints: int, topology: Topology, weights: Weights, width_joints: float) -> FloatArray:
    """Coupling weights w_ij (J, J), from oscillator j to oscillator i.

    full: all with all. nearest: neighbours, one chain through all joints. next_nearest: up to the second neighbour.
    chain: one-way, each oscillator follows its neighbour on the head's side. The others treat odd and even joints as
    the yaw and the pitch row of the paper's robots. double_chain: each row a chain, tied together at the tail. ladder:
    the same, with a rung between each odd joint and the even one before it. dorsal: the odd row a chain, the even
    joints on its rungs. bipartite: every odd joint with every even one.

    The paper names its networks without matrices. These are those of its published software, where nearest is called a
    single chain and ladder nearest neighbours; chain is our addition, and the Gaussian takes the distance along the
    body, not along the rows.
    """
    i, j = np.indices((n_joints, n_joints))
    distance = np.abs(i - j)
    in_row = distance == 2
    rung = (distance == 1) & (np.minimum(i, j) % 2 == 0)
    linked = {
        "full": distance > 0,
        "nearest": distance == 1,
        "next_nearest": (distance > 0) & (distance <= 2),
        "chain": j == i + 1,
        "double_chain": in_row | ((distance == 1) & (np.minimum(i, j) == 0)),
        "ladder": in_row | rung,
        "bipartite": distance % 2 == 1,
        "dorsal": (in_row & (i % 2 == 0)) | rung,
    }[topology]
    weight = np.exp(-0.5 * (distance / width_joints) ** 2) if weights == "gaussian" else np.ones_like(distance)
    return np.where(linked, weight, 0.0)


class Coupling:
    """The coupling term for y (2, J, W), split as ``-decay y_i + pull from the others``.

    The sums are not left to BLAS, which rounds a world alone and in a batch differently. They run diagonal by diagonal
    or, where all couplings are equal, over the sum of all oscillators.

    Args:
        weight: w (J, J), no self-coupling.
        rate_per_s: alpha, one number or (W,) [1/s].
    """

    decay: SingleArray
    """(J, 1) or (J, W) [1/s]."""
    fastest_per_s: float
    """Fastest rate at which phases lock [1/s]."""

    def __init__(self, weight: FloatArray, rate_per_s: FloatArray) -> None:
        n = weight.shape[0]
        alpha = np.atleast_1d(rate_per_s)
        total = weight.sum(axis=1)
        self.fastest_per_s = float(np.abs(np.linalg.eigvals(np.diag(total) - weight)).max() * alpha.max())
        self._bands: list[tuple[int, SingleArray]] = []
        self._common: SingleArray | None = None
        others = weight[~np.eye(n, dtype=bool)]
        if n > 3 and np.ptp(others) == 0.0:
            self._common = (alpha * others[0]).astype(np.float32)
            total = total + others[0]  # the sum of all oscillators holds the oscillator itself
        else:
            bands = [(shift, np.diagonal(weight, shift)[:, None] * alpha) for shift in range(1 - n, n)]
            self._bands = [(shift, band.astype(np.float32)) for shift, band in bands if band.any()]
        self.decay = (total[:, None] * alpha).astype(np.float32)

    def add_pull(self, rate: SingleArray, y: SingleArray) -> None:
        """Add ``alpha sum_j w_ij y_j`` (or what ``decay`` leaves of it) to ``rate`` (2, J, W), in place."""
        if self._common is not None:
            # With one number in each row np.add.reduce would take another order.
            total = np.add.accumulate(y, axis=1)[:, -1] if y.shape[2] == 1 else np.add.reduce(y, axis=1)
            total *= self._common
            rate += total[:, None]
        for shift, band in self._bands:
            if shift > 0:
                rate[:, :-shift] += band * y[:, shift:]
            else:
                rate[:, -shift:] += band * y[:, :shift]
