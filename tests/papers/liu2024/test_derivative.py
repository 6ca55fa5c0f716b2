"""The sliding-window derivative of liu2024: stencils, exactness, order."""

from __future__ import annotations

import numpy as np
import pytest

from papers.liu2024.derivative import FIRST, differentiate


@pytest.mark.parametrize("n_joints", [1, 3])
def test_a_quartic_is_exact(n_joints: int) -> None:
    time = 0.1 * np.arange(20.0)
    polynomial = np.polynomial.Polynomial([0.3, -1.0, 0.5, 0.2, -0.1])
    given = differentiate(np.tile(polynomial(time)[:, None], n_joints), 0.1)
    first, second = polynomial.deriv(), polynomial.deriv(2)
    for values, exact, delay in (
        (given.rate, first, 0), (given.settled_rate, first, 2), (given.acceleration, second, 0),
        (given.settled_acceleration, second, 4),
    ):  # fmt: skip
        wanted = exact(time[FIRST - delay : len(time) - delay])
        np.testing.assert_allclose(values, np.tile(wanted[:, None], n_joints), atol=1e-8)
