"""Speeds around onsets and times of recovery: against plain loops over a fine grid of times, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from snake_gym.benchmark.recovery import SPEEDS, onset_curve, onset_speeds, recovery, recovery_times

TIMES = np.append(np.arange(0.0, 60.0, 0.4), 60.0)


def test_speeds_are_mean_slopes_within_their_windows() -> None:
    rng, n = np.random.default_rng(0), 30
    samples = np.cumsum(rng.normal(0.1, 0.05, (TIMES.size, n)), axis=0)
    first, ends = np.where(np.arange(n) % 5 == 0, np.nan, rng.uniform(0.0, 20.0, n)), np.where(np.arange(n) < 6, 44, 60)
    last = first + rng.uniform(0.0, 5.0, n)
    found = onset_speeds({"first_onset_s": first, "last_onset_s": last, "episode_time_s": ends}, TIMES, samples)
    grid = np.arange(0.0, 60.0, 0.005)
    for name, (begin, end, shortest) in SPEEDS.items():
        for i in range(n):
            onset = first[i] if name == "before_m_s" else last[i]
            within = grid[(grid >= max(onset + begin, 2.0 * (begin < 0.0))) & (grid <= min(onset + end, ends[i]))]
            long_enough = within.size > 1 and within[-1] - within[0] >= shortest - 0.02
            assert np.isfinite(found[name][i]) == long_enough
            if long_enough:
                way = np.interp(within, TIMES, samples[:, i])
                assert found[name][i] == pytest.approx((way[-1] - way[0]) / (within[-1] - within[0]), abs=2e-3)


def test_what_is_regained_by_hand() -> None:
    """0.4 m/s up to the first onset at 16 s, 0.1 until 6 s after the last one at 20 s, 0.3 then."""
    way = np.interp(TIMES, [0.0, 16.0, 26.0, 60.0], [0.0, 6.4, 7.4, 17.6])
    samples = np.stack([way, way, 0.5 * way, way], axis=1)
    columns = {name: np.full(4, value) for name, value in (("first_onset_s", 16.0), ("last_onset_s", 20.0))}
    columns["episode_time_s"] = np.full(4, 60.0)
    columns |= onset_speeds(columns, TIMES, samples)
    time = columns["recovery_s"] = recovery_times(columns, TIMES, samples, np.array([0.36, 0.5, 0.18, np.nan]))
    # from t on, 0.1 (6 - t) + 0.3 * 34 >= 0.8 * 0.36 (40 - t) if t >= 3.83; 4.0 s is the next time that is looked at
    assert time[:3].tolist() == [pytest.approx(4.0), math.inf, pytest.approx(4.0)] and math.isnan(time[3])
    found = recovery({name: values[None] for name, values in columns.items()}, 200)
    assert (found["speed_share"], found["dip"], found["time_s"]) == pytest.approx((0.75, 0.75, 4.0))
    lag, speed = onset_curve(columns, TIMES, samples)
    np.testing.assert_allclose(speed[:, 0], np.where(lag < 0.0, 0.4, np.where(lag < 6.0, 0.1, 0.3)), atol=1e-9)
