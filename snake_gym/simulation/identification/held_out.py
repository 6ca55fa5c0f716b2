"""What a model makes of a part of its logs, before and after a fit: the proof of an identification.

The fit sees the first three quarters of each run; the last quarter, replayed from the run's start, tells how well the
robot found does on what it has not seen. A robot that explains its logs worse than the one that the fit began with is
none: the model lacks something, or the logs are not of this robot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.identification.fit import Residuals, SensorNoise
from snake_gym.simulation.identification.replay import Replay
from snake_gym.simulation.identification.robot_replay import fine, unchanged
from snake_gym.simulation.identification.run_log import RunLog

SEEN_SHARE = 0.75
"""Share of each run, from its start, that the fit sees."""
_WORSE = 1.1
"""A miss that grows by less than this factor has not grown."""


@dataclass(frozen=True)
class Miss:
    """How far a robot is from what was measured, root mean square over all runs."""

    head_m: float
    """Miss of the head's position, after the best move and turn of each path; NaN: no pose."""
    joint_rad: float


@dataclass(frozen=True)
class Proof:
    """Misses of the robot that the fit began with, and of the one found."""

    held_out: tuple[Miss, Miss]
    """On the last quarter, before and after a fit to the rest."""
    whole: tuple[Miss, Miss]
    """On whole runs, before and after the fit to them."""
    noise: SensorNoise
    runs: tuple[tuple[Miss, Miss], ...] = ()
    """On each whole run by itself, before and after the fit to all of them."""

    def objection(self, names: Sequence[str] = ()) -> str | None:
        """Why the robot found must not be used; None: it may be.

        Args:
            names: of the runs; default: their numbers.
        """
        for where, (before, after) in (("the last quarter of the runs", self.held_out), ("the runs", self.whole)):
            if after.head_m > _WORSE * before.head_m + self.noise.position_m:
                return (
                    f"it misses the head on {where} by {100.0 * after.head_m:.1f} cm, "
                    f"the robot given by {100.0 * before.head_m:.1f} cm"
                )
            if after.joint_rad > _WORSE * before.joint_rad + self.noise.joint_rad:
                return (
                    f"it misses the joints on {where} by {math.degrees(after.joint_rad):.2f} deg, "
                    f"the robot given by {math.degrees(before.joint_rad):.2f} deg"
                )
        for number, (before, after) in enumerate(self.runs):
            name = names[number] if names else f"run {number + 1}"
            if after.head_m > math.hypot(_WORSE * before.head_m, self.noise.position_m):
                return f"{name} gets worse by it: head {100.0 * before.head_m:.1f} -> {100.0 * after.head_m:.1f} cm rms"
            if after.joint_rad > math.hypot(_WORSE * before.joint_rad, self.noise.joint_rad):
                old, new = math.degrees(before.joint_rad), math.degrees(after.joint_rad)
                return f"{name} gets worse by it: joints {old:.2f} -> {new:.2f} deg rms"
        return None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        parts = {"held_out": self.held_out, "whole": self.whole}
        told: dict[str, Any] = {name: _both(pair) for name, pair in parts.items()}
        return told | {"runs": [_both(pair) for pair in self.runs]}


def _both(pair: tuple[Miss, Miss]) -> dict[str, Any]:
    return {"before": asdict(pair[0]), "after": asdict(pair[1])}


def seen_part(log: RunLog) -> RunLog:
    """What the fit sees of a run."""
    return log.first(max(1, round(SEEN_SHARE * log.n_periods)))


def miss(logs: Sequence[RunLog], spec: RobotSpec, noise: SensorNoise, from_share: float = 0.0) -> Miss:
    """How far ``spec``, replayed from the start, is from what was measured after ``from_share`` of each run."""
    same = unchanged(spec)
    seen = Replay(logs, fine(spec, logs[0].period_s), [same], 1).predict(np.array([[same.start]]))
    position, _, joint = Residuals(logs, noise, from_share).misses(seen)
    return Miss(math.sqrt(2.0 * np.nanmean(position**2)), math.sqrt(np.nanmean(joint**2)))
