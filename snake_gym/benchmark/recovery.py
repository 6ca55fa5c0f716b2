"""Recovery from faults: mean speeds around their onsets, and the time until a policy is as fast as it can be again.

Speeds are those of the progress [m/s]. They are measured up to the first onset of an episode, and from the last one on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.benchmark.statistics import interval, number
from snake_gym.robot.spec import FloatArray

FIRST, LAST = "first_onset_s", "last_onset_s"
"""Columns with the time of an episode's first and last onset [s]; nan without faults."""
SPEEDS = {"before_m_s": (-10.0, 0.0, 2.0), "dip_m_s": (0.0, 5.0, 5.0), "after_m_s": (10.0, 40.0, 10.0)}
"""Columns of mean speeds: begin and end after the onset, and how much of it an episode must have [s]."""
START_S = 2.0
"""Time from the start in which robots get going, which is no part of the speed before [s]."""
RECOVERY = "recovery_s"
"""Column with the time from the last onset to ``SHARE`` of the bound's speed [s]; inf: not in this episode."""
SHARE = 0.8
_SHORTEST_S, _STEP_S = 10.0, 0.4
"""Shortest time over which a speed counts as reached, and from one time to the next [s]."""
_ROUNDING_S = 1e-6
"""Rounding of times that counts as none [s]."""
_CURVE_S = np.arange(-10.0, 42.0, 2.0)
"""Ends of the parts of the curve of speed around the onset [s]."""


def progress_at(time_s: FloatArray, sample_s: FloatArray, samples: NDArray[Any], end_s: FloatArray) -> FloatArray:
    """Return the progress (K, W) at the times ``time_s`` (K, W), from samples (T, W); nan outside of [0, ``end_s``]."""
    each = zip(time_s.T, samples.T, end_s, strict=True)
    found = [
        np.where(at <= end + _ROUNDING_S, np.interp(at, sample_s, own, np.nan, np.nan), np.nan) for at, own, end in each
    ]
    return np.array(found).T


def onset_speeds(columns: Mapping[str, NDArray[Any]], sample_s: FloatArray, samples: NDArray[Any]) -> dict[str, Any]:
    """Return the columns ``SPEEDS`` (W,) [m/s] of episodes with their samples of progress (T, W); nan if unknown."""
    end_s, found = np.asarray(columns["episode_time_s"], float), {}
    for name, (begin, end, shortest) in SPEEDS.items():
        onset = columns[FIRST if end <= 0.0 else LAST]
        start = np.maximum(onset + begin, START_S if begin < 0.0 else 0.0)
        window = np.stack([start, np.minimum(onset + end, end_s)])
        length = window[1] - window[0]
        length = np.where(length >= shortest - _ROUNDING_S, length, np.nan)
        found[name] = np.diff(progress_at(window, sample_s, samples, end_s), axis=0)[0] / length
    return found


def onset_curve(
    columns: Mapping[str, NDArray[Any]], sample_s: FloatArray, samples: NDArray[Any]
) -> tuple[FloatArray, FloatArray]:
    """Return times from the onset (K,) [s] and mean speeds (K, W) [m/s] around them; nan outside of an episode."""
    middle = 0.5 * (_CURVE_S[1:] + _CURVE_S[:-1])
    ends = [columns[FIRST] + _CURVE_S[_CURVE_S <= 0.0, None], columns[LAST] + _CURVE_S[_CURVE_S >= 0.0, None]]
    parts = [np.diff(progress_at(each, sample_s, samples, columns["episode_time_s"]), axis=0) for each in ends]
    return middle, np.concatenate(parts) / np.diff(_CURVE_S)[:, None]


def recovery_times(
    columns: Mapping[str, NDArray[Any]], sample_s: FloatArray, samples: NDArray[Any], bound_m_s: FloatArray
) -> FloatArray:
    """Return the column ``RECOVERY`` (W,): the first time from which on the mean speed is ``SHARE`` of the bound's.

    The mean is over the rest of the forty seconds after the last onset, ten at least. ``bound_m_s`` (W,) is the bound's
    ``after_m_s``. nan where it is unknown.
    """
    end_s = np.asarray(columns["episode_time_s"], float)
    until = np.minimum(columns[LAST] + SPEEDS["after_m_s"][1], end_s)
    lags = np.arange(0.0, SPEEDS["after_m_s"][1], _STEP_S)[:, None]
    begin = columns[LAST] + lags
    way_m = progress_at(until[None], sample_s, samples, end_s) - progress_at(begin, sample_s, samples, end_s)
    rest_s = np.where(until - begin >= _SHORTEST_S - _ROUNDING_S, until - begin, np.nan)
    with np.errstate(invalid="ignore"):
        reached = way_m / rest_s >= SHARE * bound_m_s
    first = np.where(reached.any(axis=0), lags[reached.argmax(axis=0), 0], math.inf)
    return np.where(np.isfinite(bound_m_s) & np.isfinite(rest_s[0]), first, np.nan)


def recovery(plays: Mapping[str, FloatArray], resamples: int) -> dict[str, Any]:
    """Return what a policy regains of its speed, from columns (T, n) of T trainings in n scenarios, with intervals.

    ``speed_share`` is the mean of ``after_m_s`` over that of ``before_m_s``, ``dip`` what is lost of it in the first
    five seconds. ``time_s`` is the median of the times of recovery; those that never come count as longer than all, and
    ``recovered`` is the share of the others.
    """
    speeds = np.stack([plays[name] for name in SPEEDS])
    speeds = speeds[..., np.isfinite(speeds).all(axis=(0, 1))]
    if speeds.size == 0 or speeds[0].mean() <= 0.0:
        return {}
    before, dip, after = speeds.mean(axis=(1, 2))
    found: dict[str, Any] = {"episodes": speeds.shape[-1]}
    found |= {"speed_share": number(after / before), "dip": number(1.0 - dip / before)}
    found["speed_share_ci95"] = interval(speeds, lambda means: means[2] / means[0], resamples)
    found["dip_ci95"] = interval(speeds, lambda means: 1.0 - means[1] / means[0], resamples)
    times = plays.get(RECOVERY, np.full_like(plays["after_m_s"], np.nan))
    times = times[:, ~np.isnan(times).any(axis=0)].ravel()
    if not times.size:
        return {**found, "time_s": None, "recovered": None}
    return {**found, "time_s": number(np.median(times)), "recovered": number(np.isfinite(times).mean())}
