"""How often the 95 % intervals of ``iqm`` and ``worst_tenth`` hold the truth, for scores from a normal distribution.

python benchmarks/interval_coverage.py
"""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from snake_gym.benchmark.distribution import iqm, worst_tenth
from snake_gym.benchmark.statistics import value_interval

SAMPLES, RESAMPLES = 400, 1000
TRUTHS = ((iqm, 0.0), (worst_tenth, -float(norm.pdf(norm.ppf(0.1))) / 0.1))


def main() -> None:
    """Print, for each number of scenarios, the share of intervals that hold the truth, and of those above it."""
    for n in (64, 512):
        for statistic, truth in TRUTHS:
            drawn = (np.random.default_rng(trial).normal(size=(1, n)) for trial in range(SAMPLES))
            ends = np.array([value_interval(scores, statistic, RESAMPLES) for scores in drawn])
            above, below = (ends[:, 0] > truth).mean(), (ends[:, 1] < truth).mean()
            print(f"{n} scenarios, {statistic.__name__}: {1 - above - below:.1%} hold it, {above:.1%} lie above it")


if __name__ == "__main__":
    main()
