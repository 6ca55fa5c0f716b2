"""Thickets: pegs around the robot and close to it, none on it, and a way out that a disc gets along."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from snake_gym.obstacles.fields import Field, RobotExtent
from snake_gym.obstacles.thicket import ThicketConfig, ThicketMaker

RADIUS, LENGTH, N_LINKS = 0.03, 1.46, 10
ROBOT = RobotExtent(front_m=0.1, rear_m=LENGTH - 0.1, half_width_m=0.2, radius_m=RADIUS, clearance_m=0.2)
END_M = 3.0
FIELDS = 24


def wave(phase: float, heading: float) -> NDArray[np.float64]:
    """Ends of ten links of 0.14 m, bent as a wave, the mean of their middles at the origin."""
    angle = heading + 0.5 * np.sin(phase + 0.6 * np.arange(N_LINKS))
    ends = np.concatenate([[[0.0, 0.0]], np.cumsum(0.14 * np.stack([np.cos(angle), np.sin(angle)], axis=1), axis=0)])
    return ends - 0.5 * (ends[1:] + ends[:-1]).mean(axis=0)


def make(difficulty: float, seed: int, **settings: Any) -> tuple[ThicketMaker, Field, NDArray[np.float64]]:
    maker = ThicketMaker(ThicketConfig(difficulty=difficulty, **settings), ROBOT, N_LINKS, END_M)
    body, heading = wave(0.7 * seed, 0.9 * seed), 0.9 * seed
    return maker, maker.make(np.random.default_rng(seed), body, heading, maker.route_points), body


def cross(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def dense(line: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points at most 1 mm apart on a polyline."""
    pieces = []
    for a, b in itertools.pairwise(line):
        n = max(int(np.ceil(np.hypot(*(b - a)) / 1e-3)), 1)
        pieces.append(a + np.linspace(0.0, 1.0, n + 1)[:, None] * (b - a))
    return np.concatenate(pieces)


def to_pegs(points: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Distances (p, k) of points from the surfaces of pegs."""
    return np.hypot(*(points[:, None] - rows[None, :, :2]).transpose(2, 0, 1)) - rows[:, 5]


@pytest.mark.parametrize("difficulty", [0.0, 0.5, 0.9, 1.0])
def test_a_disc_wider_than_the_robot_gets_out_along_the_route(difficulty: float) -> None:
    for seed in range(FIELDS):
        maker, field, body = make(difficulty, seed)
        assert (field.n_draws, field.n_removed) == (1, 0)
        assert maker.clearance_m > RADIUS
        np.testing.assert_allclose(field.route[0], 0.5 * (body[-2] + body[-1]), atol=1e-12)
        assert np.hypot(*field.route[-1]) == pytest.approx(END_M)
        assert to_pegs(dense(field.route), field.features).min() > maker.clearance_m - 1e-6
        assert (np.hypot(*field.features[:, :2].T) + field.features[:, 5] <= maker.radius_m + 1e-9).all()
        out = dense(field.route)[-1] / END_M
        beyond = np.hypot(*dense(field.route).T) > maker.radius_m + 2.0 * maker.clearance_m
        assert beyond.any() and np.abs(cross(dense(field.route)[beyond], out)).max() < 1e-6  # straight on


@pytest.mark.parametrize(
    ("difficulty", "jam_m", "gap_m", "least"),
    [(0.0, 0.03, 0.3, 2), (0.5, 0.0165, 0.195, 3), (0.9, 0.0057, 0.111, 5), (1.0, 0.003, 0.09, 6)],
)
def test_pegs_stand_around_the_robot_and_next_to_it_but_none_on_it(
    difficulty: float, jam_m: float, gap_m: float, least: int
) -> None:
    on_both_sides = 0
    for seed in range(FIELDS):
        _, field, body = make(difficulty, seed)
        rows = field.features
        off = to_pegs(dense(body), rows).min(axis=0) - RADIUS  # of each peg from the robot's side
        assert off.min() > jam_m - 1e-6
        near = rows[off < jam_m + 1e-3]
        assert len(near) >= least
        nearest = np.argmin(to_pegs(dense(body), near), axis=0)
        along = np.gradient(dense(body), axis=0)[nearest]
        sides = np.sign(cross(along, near[:, :2] - dense(body)[nearest]))
        on_both_sides += len(set(sides.tolist())) == 2
        apart = np.hypot(*(rows[:, None, :2] - rows[None, :, :2]).transpose(2, 0, 1)) - rows[:, 5] - rows[:, None, 5]
        assert apart[~np.eye(len(rows), dtype=bool)].min() > gap_m - 1e-9
        sector = np.floor(np.arctan2(*rows[:, 1::-1].T) / (np.pi / 3.0))
        assert len(set(sector.tolist())) == 6
    assert on_both_sides >= (FIELDS if difficulty >= 0.9 else 0.8 * FIELDS)


@pytest.mark.parametrize("radius_m", [None, 1.0])
def test_pegs_stand_next_to_the_robot_at_the_largest_distance_too(radius_m: float | None) -> None:
    most = 1.06 if radius_m is None else 0.45
    for seed in range(FIELDS):
        _, field, body = make(0.9, seed, jam_m=most, radius_m=radius_m)
        off = to_pegs(dense(body), field.features).min(axis=0) - RADIUS
        assert off.min() == pytest.approx(most, abs=1e-3)


def test_harder_thickets_are_denser_and_lead_further_aside() -> None:
    counts, turns = [], []
    for difficulty in (0.0, 0.5, 1.0):
        made = [(make(difficulty, seed)[1], 0.9 * seed) for seed in range(FIELDS)]
        counts.append(np.mean([len(field.features) for field, _ in made]))
        angle = [np.arctan2(field.route[-1, 1], field.route[-1, 0]) - heading for field, heading in made]
        turns.append(np.abs(np.angle(np.exp(1j * np.array(angle)))).max())
    assert counts[0] < 0.6 * counts[1] < 0.6 * 0.6 * counts[2] < 0.36 * 120
    assert turns[0] < np.radians(30.0) < turns[1] < np.radians(75.0) < turns[2] < np.radians(120.0)


def test_a_thicket_without_a_way_loses_the_pegs_on_the_straight_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaps are passable by far, so the search is made to fail."""
    maker, _, body = make(1.0, 3)
    find, calls = maker._ways.find, []

    def fail_at_first(rows: Any, *place: Any) -> Any:
        calls.append(len(rows))
        return None if len(calls) <= 8 else find(rows, *place)

    monkeypatch.setattr(maker._ways, "find", fail_at_first)
    field = maker.make(np.random.default_rng(3), body, 2.7, maker.route_points)
    assert (field.n_draws, len(calls)) == (8, 9) and field.n_removed > 0
    assert to_pegs(dense(field.route), field.features).min() > maker.clearance_m - 1e-6
