"""Random robots at the step that is chosen for them, against Lagrange's equations in tight tolerances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.oracles.dense_chain import DenseChain, DenseState
from tests.oracles.dry_chain import chain_of, run_gait, slope
from tests.oracles.random_crawlers import CONVERGED_S, GROUNDS, Ground, draw_crawler


@pytest.mark.parametrize("n_links", [2, 5, 12])
def test_the_oracle_has_the_accelerations_of_the_dense_equations(n_links: int) -> None:
    """Two derivations that share nothing but the robot: Lagrange's equations, and sibilska2022's matrices."""
    spec = draw_crawler(3, "viscous").spec
    spec = replace(spec, n_links=n_links, link_half_length_m=0.07, link_mass_kg=tuple(range(1, n_links + 1)))
    rng, chain = np.random.default_rng(n_links), chain_of(spec, 1e-5)
    y, reference = rng.normal(size=2 * n_links + 5), rng.normal(size=n_links - 1)
    state = DenseState(*(part[None] for part in np.split(y[:-1], [n_links, 2 * n_links, 2 * n_links + 2])))
    loop = chain.kp * (reference + np.diff(state.theta[0]))
    loop = np.clip(loop, -chain.kd * chain.fastest, chain.kd * chain.fastest)
    torque = np.clip(loop + chain.kd * np.diff(state.theta_dot[0]), -chain.most, chain.most)
    dense = DenseChain.of(spec).accelerate(state, torque[None], np.zeros((1, n_links - 1), dtype=bool))
    got = slope(y, 0.0, chain, reference)
    np.testing.assert_allclose(got[n_links : 2 * n_links], dense[0][0], rtol=1e-9, atol=1e-9 * np.abs(dense[0]).max())
    np.testing.assert_allclose(got[2 * n_links + 2 : -1], dense[1][0], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("ground", "seed"), [(ground, seed) for ground in GROUNDS for seed in range(4)])
def test_random_robots_come_within_two_percent_at_the_chosen_step(ground: Ground, seed: int) -> None:
    crawler = draw_crawler(seed, ground)
    oracle, finer = (run_gait(crawler.spec, crawler.references(), rest) for rest in (1e-5, 5e-6))
    assert crawler.error(oracle, finer) < 5e-4
    assert crawler.error(crawler.run(CONVERGED_S), finer) < 2e-3
    assert crawler.error(crawler.run(), finer) < 0.02
