"""Delays between a command and the torque that follows it: constant, or of each command."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.physics.state import LateCommands, no_late_commands
from snake_gym.robot.spec import FloatArray

_WHOLE = 1e-9
Part = tuple[FloatArray, int, LateCommands]
"""Aims (W, J), number of physics steps under them, and later aims within these."""


class CommandDelay:
    """Delay of the commands of W robots to J joints: the time of host, bus and servo between command and torque.

    A command acts from ``delay_s`` after the beginning of its control step; until then earlier commands act. In the
    physics step in which the command changes, both are mixed by their shares of its time, so that a delay need not be
    a whole number of steps.
    """

    def __init__(self, delay_s: float, sim_dt_s: float, n_substeps: int, n_worlds: int, n_joints: int) -> None:
        whole, rest = divmod(delay_s / sim_dt_s + _WHOLE, n_substeps)
        self.n_substeps = n_substeps
        self._n_old = int(rest)
        self._none_late = no_late_commands(n_joints)
        self._share_old = 0.0 if rest - self._n_old < 2.0 * _WHOLE else rest - self._n_old
        self.waiting: FloatArray = np.zeros((n_worlds, int(whole) + 1, n_joints))
        """Last commands (W, D, J) [rad], newest first."""

    def begin(self, joint_angle: FloatArray, rows: Any) -> None:
        """Set all commands of the robots ``rows`` to ``joint_angle`` (M, J) [rad], where they rest."""
        self.waiting[rows] = joint_angle[:, None, :]

    def pass_on(self, reference: FloatArray, ids: NDArray[np.int64]) -> list[Part]:
        """Take the commands of this control step (W, J) to the robots ``ids``; return its parts."""
        queue = np.concatenate([reference[:, None, :], self.waiting], axis=1)
        self.waiting[ids] = queue[ids, :-1]
        new, old = queue[:, -2].copy(), queue[:, -1].copy()
        parts = [(old, self._n_old)]
        n_mixed = int(self._share_old > 0.0)
        if n_mixed:
            parts.append((self._share_old * old + (1.0 - self._share_old) * new, 1))
        parts.append((new, self.n_substeps - self._n_old - n_mixed))
        return [(aim, n, self._none_late) for aim, n in parts if n > 0]


class VaryingDelay:
    """Delay of the commands of W robots to J joints that differs from robot to robot and from command to command.

    It is rounded to whole physics steps. No command overtakes an earlier one: it acts when that does, or later.
    """

    def __init__(self, longest_s: float, sim_dt_s: float, n_substeps: int, n_worlds: int, n_joints: int) -> None:
        self.n_substeps = n_substeps
        self._sim_dt_s = sim_dt_s
        depth = math.ceil(longest_s / (sim_dt_s * n_substeps) - _WHOLE) + 2
        self.delay_s: FloatArray = np.zeros(n_worlds)
        """Delay of the next command (W,) [s], at most ``longest_s``."""
        self.waiting: FloatArray = np.zeros((n_worlds, depth, n_joints))
        """Last commands (W, D, J) [rad], oldest first."""
        self.due: NDArray[np.int64] = np.zeros((n_worlds, depth), np.int64)
        """Physics steps until they begin to act (W, D); 0: they act, or later ones do."""

    def begin(self, joint_angle: FloatArray, rows: Any) -> None:
        """Set all commands of the robots ``rows`` to ``joint_angle`` (M, J) [rad], where they rest."""
        self.waiting[rows] = joint_angle[:, None, :]
        self.due[rows] = 0

    def pass_on(self, reference: FloatArray, ids: NDArray[np.int64]) -> list[Part]:
        """Take the commands of this control step (W, J) to the robots ``ids``; return its one part."""
        steps = np.rint(self.delay_s[ids] / self._sim_dt_s).astype(np.int64)
        self.waiting[ids] = np.concatenate([self.waiting[ids, 1:], reference[ids, None]], axis=1)
        self.due[ids] = np.column_stack([self.due[ids, 1:], np.maximum(self.due[ids, -1], steps)])
        aim = np.zeros_like(reference)
        aim[ids] = self.waiting[ids, (self.due[ids] == 0).sum(axis=1) - 1]  # they act in their order
        later = LateCommands(self.waiting, self.due.copy())
        self.due[ids] = np.maximum(self.due[ids] - self.n_substeps, 0)  # as the control step ends
        return [(aim, self.n_substeps, later)]
