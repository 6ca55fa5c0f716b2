"""What a search maximises: the score by which the env's task compares policies, in a form that tells candidates apart.

Progress is its own measure. Success is yes or no, and many candidates have the same share of it; among those the one
that needs less time is better. The time of an episode is the time to the goal; a miss counts as the time limit, longer
by the share of the route that is left, so that where all miss the ones that get further are ahead. It weighs so little
that no time makes up for one episode more that succeeds, in any number of episodes that can be played.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.benchmark.statistics import mean_interval, share_interval
from snake_gym.robot.spec import FloatArray

TIME_WEIGHT = 1e-6
"""Weight of the time, given as a share of its largest value; less than one part in the number of episodes."""


def objective(infos: Mapping[str, NDArray[Any]], score: str, time_limit_s: float) -> FloatArray:
    """What each episode is worth (W,), from the infos at its end; ``score`` is the task's."""
    values = np.asarray(infos[score], dtype=np.float64)
    if infos[score].dtype != np.bool_:
        return values
    succeeded = infos[score]
    taken = infos.get("time_to_goal_s", infos["episode_time_s"])
    left = np.ones(succeeded.size)
    if "route_m" in infos:
        left -= np.clip(infos["progress_m"] / infos["route_m"], 0.0, 1.0)
    time = np.where(succeeded, np.minimum(taken, time_limit_s), time_limit_s * (1.0 + left))
    return values + TIME_WEIGHT * (1.0 - time / (2.0 * time_limit_s))


def score_of(worth: FloatArray, score: str) -> dict[str, Any]:
    """Mean of the task's score over episodes, from what they are worth, with its 95 % interval."""
    if score == "is_success":
        succeeded = worth >= 1.0
        mean, bounds = float(succeeded.mean()), share_interval(succeeded)
    else:
        mean, bounds = float(worth.mean()), mean_interval(worth)
    return {"mean": round(mean, 4), "ci95": [round(bound, 4) for bound in bounds], "episodes": int(worth.size)}


def describe_score(value: float, score: str) -> str:
    """A mean score for people."""
    if score == "is_success":
        return f"{100.0 * value:.1f} %"
    return f"{value:.2f} m" if score == "progress_m" else f"{value:.4g}"
