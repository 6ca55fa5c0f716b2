"""The counter-based random streams: statistics, independence, and what a scenario may depend on."""

import numpy as np
from scipy import stats

from snake_gym.simulation.streams import RandomStreams


def begin(purpose: str, seeds: np.ndarray, episode: int = 0) -> RandomStreams:
    streams = RandomStreams(purpose, seeds.size)
    streams.begin(seeds, np.full(seeds.size, episode))
    return streams


def test_uniform_and_normal_have_their_distributions_along_and_across_worlds() -> None:
    streams = begin("start", np.arange(200))
    u = streams.uniform(500)
    assert u.min() >= 0.0 and u.max() < 1.0
    for sample in (u[3], u[:, 7], u.ravel()):
        assert stats.kstest(sample, "uniform").pvalue > 1e-3
    z = streams.normal(501)
    assert z.shape == (200, 501)
    assert stats.kstest(z.ravel(), "norm").pvalue > 1e-3


def test_worlds_purposes_and_episodes_are_uncorrelated() -> None:
    seeds = np.arange(4)
    draws = np.concatenate(
        [begin(purpose, seeds, episode).uniform(4000) for purpose in ("start", "faults") for episode in (0, 1)]
    )
    correlation = np.corrcoef(draws) - np.eye(16)
    assert np.abs(correlation).max() < 0.07


def test_a_stream_depends_on_its_own_seed_and_draws_only() -> None:
    many, one = begin("faults", np.array([5, 9, 12])), begin("faults", np.array([9]))
    np.testing.assert_array_equal(many.uniform(6)[1], one.uniform(6)[0])
    many.uniform(3, np.array([0, 2]))
    np.testing.assert_array_equal(many.uniform(6)[1], one.uniform(6)[0])
    pieces = begin("faults", np.array([9]))
    np.testing.assert_array_equal(
        np.concatenate([pieces.uniform(2), pieces.uniform(10)], axis=1), begin("faults", np.array([9])).uniform(12)
    )
