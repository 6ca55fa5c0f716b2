"""References that act late: what host, bus and servo take between a command and the first torque that follows it.

A command acts from ``delay_s`` after the beginning of its control step on; until then the one before it does, or those
before that, where the delay is longer than a control step. In the physics step that the change falls into, both are
mixed by the time that each has of it, so that a delay need not be a whole number of steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from snake_gym.robot.spec import FloatArray

_WHOLE = 1e-9


class CommandDelay:
    """The commands of W robots on their way to J joints.

    Args:
        delay_s: [s] > 0.
        sim_dt_s: physics step [s].
        n_substeps: of every control step.
        n_worlds, n_joints: W, J.
    """

    def __init__(self, delay_s: float, sim_dt_s: float, n_substeps: int, n_worlds: int, n_joints: int) -> None:
        whole, rest = divmod(delay_s / sim_dt_s + _WHOLE, n_substeps)
        self.n_substeps = n_substeps
        self._n_old = int(rest)
        self._share_old = 0.0 if rest - self._n_old < 2.0 * _WHOLE else rest - self._n_old
        self.waiting: FloatArray = np.zeros((n_worlds, int(whole) + 1, n_joints))
        """(W, D, J) [rad] the last commands, newest first."""

    def begin(self, joint_angle: FloatArray, rows: Any) -> None:
        """Robots at rest at ``joint_angle`` (M, J), aiming there; ``rows`` picks them."""
        self.waiting[rows] = joint_angle[:, None, :]

    def pass_on(self, reference: FloatArray, rows: Any) -> list[tuple[FloatArray, int]]:
        """Take the commands of this control step (W, J): what the joints aim at (W, J), for how many physics steps."""
        queue = np.concatenate([reference[:, None, :], self.waiting], axis=1)
        self.waiting[rows] = queue[rows, :-1]
        new, old = queue[:, -2].copy(), queue[:, -1].copy()
        parts = [(old, self._n_old)]
        n_mixed = int(self._share_old > 0.0)
        if n_mixed:
            parts.append((self._share_old * old + (1.0 - self._share_old) * new, 1))
        parts.append((new, self.n_substeps - self._n_old - n_mixed))
        return [(aim, n) for aim, n in parts if n > 0]
