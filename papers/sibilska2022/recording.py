"""What the joints and the tracked point did in every published simulation: Fig. 12, 13 and 15-18, and the joint limits.

Limits are watched at every step of the integration; trajectories and joint angles are kept every 0.3 s.
Signs: angles as in the model; the paper's figures plot -y.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from papers.sibilska2022.experiment import DT_S, Case
from snake_gym.robot.spec import FloatArray

LIMIT_RAD = math.radians(40.0)
"""Section 4.1: the range that the links are made for; no simulation enforces it."""

_STEPS_PER_SAMPLE = 12


@dataclass(frozen=True)
class Recording:
    """One run, from the first step to the last target."""

    time_s: FloatArray
    """(T,)."""
    joint_angle: FloatArray
    """(T, J) [rad]."""
    tracked_xy: FloatArray
    """(T, 2) [m] world frame."""
    duration_s: float
    outside_s: float
    """Time with at least one joint beyond the limit."""
    joint_outside_s: FloatArray
    """(J,) time that each joint was beyond it."""
    peak_rad: float
    """Largest angle of any joint, either sign."""

    @property
    def outside(self) -> float:
        """Share of the time with at least one joint beyond the limit."""
        return self.outside_s / self.duration_s


Recordings = Mapping[Case, Recording]


class Recorder:
    """Listens to ``simulate(cases, on_step=recorder)``."""

    def __init__(self, n_runs: int, n_joints: int, dt_s: float = DT_S) -> None:
        self._dt = dt_s
        self._step = 0
        self._samples: list[tuple[float, NDArray[np.int64], FloatArray, FloatArray]] = []
        self._steps, self._outside = np.zeros(n_runs), np.zeros(n_runs)
        self._joint_outside = np.zeros((n_runs, n_joints))
        self._peak = np.zeros(n_runs)

    def __call__(self, time_s: float, run: NDArray[np.int64], phi: FloatArray, tracked_xy: FloatArray) -> None:
        """See ``OnStep``."""
        size = np.abs(phi)
        beyond = size > LIMIT_RAD
        self._steps[run] += 1.0
        self._outside[run] += beyond.any(axis=1)
        self._joint_outside[run] += beyond
        self._peak[run] = np.maximum(self._peak[run], size.max(axis=1))
        if self._step % _STEPS_PER_SAMPLE == 0:
            self._samples.append((time_s, run.copy(), phi.copy(), tracked_xy.copy()))
        self._step += 1

    def recordings(self, cases: Sequence[Case]) -> dict[Case, Recording]:
        """What was recorded, by case."""
        return {case: self._recording(index) for index, case in enumerate(cases)}

    def _recording(self, index: int) -> Recording:
        times, angles, places = [], [], []
        for time_s, run, phi, tracked_xy in self._samples:
            (row,) = np.nonzero(run == index)
            if not row.size:
                break
            times.append(time_s)
            angles.append(phi[row[0]])
            places.append(tracked_xy[row[0]])
        return Recording(
            np.array(times), np.array(angles), np.array(places), self._steps[index] * self._dt,
            self._outside[index] * self._dt, self._joint_outside[index] * self._dt, float(self._peak[index]),
        )  # fmt: skip
