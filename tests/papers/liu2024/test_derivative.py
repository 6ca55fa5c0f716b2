"""Sliding-window derivative of liu2024: stencils, exactness on polynomials, order of its errors, batches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from papers.liu2024.derivative import Derivatives, SlidingDerivative, differentiation_matrix
from snake_gym.robot.spec import FloatArray


def feed(samples: FloatArray, steps_s: FloatArray) -> list[Derivatives]:
    """What a filter gives for the samples (T, W, J), the k-th ``steps_s[k]`` after the one before."""
    sliding = SlidingDerivative(samples.shape[2])
    state = sliding.initial_state(samples.shape[1])
    return [sliding.update(state, sample, dt) for sample, dt in zip(samples, steps_s, strict=True)]


def errors(h: float) -> dict[str, float]:
    """Largest errors on a sine of 1 rad/s, sampled every ``h`` [s], after the window has filled."""
    time = np.arange(0.0, 8.0, h)
    given = feed(np.sin(time)[:, None, None], np.full(time.size, h))
    delays = {"rate": 0, "acceleration": 0, "settled_rate": 2, "settled_acceleration": 4}
    worst = {}
    for name, delay in delays.items():
        values = np.array([getattr(d, name)[0, 0] for d in given])[12:]
        at = time[12:] - delay * h
        worst[name] = float(np.abs(values - (np.cos(at) if name.endswith("rate") else -np.sin(at))).max())
    return worst


def test_the_five_point_stencils() -> None:
    expected = np.array([[-25, 48, -36, 16, -3], [-3, -10, 18, -6, 1], [1, -8, 0, 8, -1]]) / 12.0
    matrix = differentiation_matrix(0.1 * np.arange(5.0)[None])[0]
    np.testing.assert_allclose(matrix[:3], expected / 0.1, atol=1e-12)
    np.testing.assert_allclose(matrix[3:], -matrix[1::-1, ::-1], atol=1e-12)


def test_a_quartic_is_exact_with_uneven_steps() -> None:
    steps = np.random.default_rng(0).uniform(0.05, 0.2, 20)
    time = np.cumsum(steps)
    polynomial = np.polynomial.Polynomial([0.3, -1.0, 0.5, 0.2, -0.1])
    given = feed(polynomial(time)[:, None, None], steps)[-1]
    first, second = polynomial.deriv(), polynomial.deriv(2)
    assert given.rate[0, 0] == pytest.approx(first(time[-1]), abs=1e-8)
    assert given.settled_rate[0, 0] == pytest.approx(first(time[-3]), abs=1e-8)
    assert given.acceleration[0, 0] == pytest.approx(second(time[-1]), abs=1e-7)
    assert given.settled_acceleration[0, 0] == pytest.approx(second(time[-5]), abs=1e-7)


@pytest.mark.parametrize(
    ("name", "order"),
    [("rate", 4), ("settled_rate", 4), ("acceleration", 3), ("settled_acceleration", 4)],
)
def test_errors_fall_with_the_step(name: str, order: int) -> None:
    coarse, fine = errors(0.1)[name], errors(0.05)[name]
    assert math.log2(coarse / fine) == pytest.approx(order, abs=0.25)


def test_a_command_that_begins_does_not_kick() -> None:
    given = feed(np.full((3, 2, 4), 0.7), np.full(3, 0.1))
    assert all((np.abs(values) < 1e-12).all() for derivatives in given for values in derivatives)


def test_a_world_in_a_batch_equals_that_world_alone_and_starts_when_it_likes() -> None:
    rng = np.random.default_rng(1)
    samples = rng.normal(size=(12, 3, 5))
    sliding = SlidingDerivative(5)
    state = sliding.initial_state(3)
    for k in range(12):
        if k == 4:  # world 1 begins anew
            for name, values in sliding.initial_state(3).items():
                state[name][1] = values[1]
        batch = sliding.update(state, samples[k], 0.1)
    for world, begin in enumerate((0, 4, 0)):
        alone = feed(samples[begin:, world : world + 1], np.full(12 - begin, 0.1))[-1]
        for of_batch, single in zip(batch, alone, strict=True):
            np.testing.assert_array_equal(of_batch[world], single[0])


def test_time_must_go_on() -> None:
    sliding = SlidingDerivative(1)
    with pytest.raises(ValueError, match="dt_s is 0; expected > 0"):
        sliding.update(sliding.initial_state(1), np.zeros((1, 1)), 0.0)
