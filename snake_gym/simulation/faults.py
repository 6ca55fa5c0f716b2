"""Which joints fail, how and when: drawn for each episode from a distribution, or given as a list.

What a fault does to a joint is physics (``physics.actuators``); nothing here is visible to a policy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from snake_gym.physics.faults import FAULT_CODES, HEALTHY
from snake_gym.physics.state import FaultState
from snake_gym.simulation.streams import RandomStreams

FaultKind = Literal["locked", "free", "weak"]


@dataclass(frozen=True)
class FaultConfig:
    """Joint faults of an episode. The number of failed joints is uniform in [n_min, n_max]."""

    n_min: int = 0
    n_max: int = 0
    joints: tuple[int, ...] | None = None
    """Exactly these joints fail, numbered from 1 at the tail as in the papers; n_min and n_max are then ignored."""
    kinds: tuple[FaultKind, ...] = ("locked",)
    """Each failed joint draws one of these: locked (held where it was), free (no power), weak (less torque)."""
    onset_min_s: float = 0.0
    onset_max_s: float = 0.0
    """Each fault begins at a time uniform in [onset_min_s, onset_max_s]."""
    duration_s: float = math.inf
    """How long a fault lasts."""
    weak_strength: float = 0.3
    """Share of its torque that a weak joint keeps."""
    reveal: bool = False
    """Show the policy which joints are failed (a real robot does not know)."""

    def __post_init__(self) -> None:
        if not 0 <= self.n_min <= self.n_max:
            raise ValueError(f"faults.n_min is {self.n_min}, n_max {self.n_max}; expected 0 <= n_min <= n_max")
        if not 0.0 <= self.onset_min_s <= self.onset_max_s:
            raise ValueError(
                f"faults.onset_min_s is {self.onset_min_s:g}, onset_max_s {self.onset_max_s:g}; "
                "expected 0 <= onset_min_s <= onset_max_s"
            )
        if not self.kinds:
            raise ValueError(f"faults.kinds is empty; expected some of {', '.join(FAULT_CODES)}")
        if not self.duration_s > 0.0:
            raise ValueError(f"faults.duration_s is {self.duration_s:g}; expected > 0")
        if not 0.0 < self.weak_strength <= 1.0:
            raise ValueError(f"faults.weak_strength is {self.weak_strength:g}; expected in (0, 1]")

    def check_joints(self, n_joints: int) -> None:
        """Raise ValueError unless the robot has the joints that shall fail."""
        for joint in self.joints or ():
            if not 1 <= joint <= n_joints:
                raise ValueError(f"faults.joints has joint {joint}; expected 1 to {n_joints} (the robot's joints)")
        if len(set(self.joints or ())) != len(self.joints or ()):
            raise ValueError(f"faults.joints is {list(self.joints or ())}; expected each joint once")
        if self.n_max > n_joints:
            raise ValueError(f"faults.n_max is {self.n_max}; expected at most {n_joints} (the robot's joints)")


def draw_faults(config: FaultConfig, streams: RandomStreams, faults: FaultState, rows: Any) -> None:
    """Draw the faults of a new episode for the worlds of ``rows`` (index array) into ``faults``.

    Always the same count of random numbers per world, so that one setting does not shift another.
    """
    n_joints = faults.kind.shape[1]
    u = streams.uniform(1 + 3 * n_joints, rows)
    order, which, when = u[:, 1 : 1 + n_joints], u[:, 1 + n_joints : 1 + 2 * n_joints], u[:, 1 + 2 * n_joints :]
    if config.joints is None:
        count = config.n_min + np.floor(u[:, :1] * (config.n_max - config.n_min + 1)).astype(np.int64)
        failed = np.argsort(np.argsort(order, axis=1), axis=1) < count
    else:
        failed = np.zeros(order.shape, dtype=bool)
        failed[:, np.array(config.joints, dtype=np.int64) - 1] = True
    codes = np.array([FAULT_CODES[kind] for kind in config.kinds])
    kind = codes[np.floor(which * codes.size).astype(np.int64)]
    onset = config.onset_min_s + when * (config.onset_max_s - config.onset_min_s)
    faults.kind[rows] = np.where(failed, kind, HEALTHY)
    faults.onset_s[rows] = onset
    faults.end_s[rows] = onset + config.duration_s
    faults.strength[rows] = config.weak_strength
