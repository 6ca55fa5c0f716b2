"""A share of benchmarks/stress.py with its bars, and that its checks find what they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import stress
from benchmarks.stress import LIMITS, MOST_ENERGY, WIDEST_GAP, Episode, keeps_bars, run_group, run_servos
from snake_gym.robot.spec import ContactModel
from snake_gym.simulation.simulated_robot import SimulatedRobot

MODELS = pytest.mark.parametrize("model", ["rigid", "stiff"])
DT_S = 0.005


def expect_bars(episodes: list[Episode], model: ContactModel) -> None:
    for episode in episodes:
        assert episode.finite
        assert episode.penetration <= LIMITS[model], episode
        assert episode.coasting <= MOST_ENERGY, episode
        assert episode.gap <= WIDEST_GAP, episode
        assert keeps_bars(episode, model)


@pytest.mark.slow
@MODELS
@pytest.mark.parametrize("seed", [3, 20, 31, 92, 103])
def test_thrashing_robots_break_nothing(model: ContactModel, seed: int) -> None:
    expect_bars(run_group(seed, model, DT_S), model)


@MODELS
def test_a_few_seconds_of_thrashing_break_nothing(model: ContactModel) -> None:
    episodes = run_group(11, model, DT_S, 4.0)
    expect_bars(episodes, model)
    assert max(episode.contacts for episode in episodes) > 0.1


@pytest.mark.parametrize("seed", [1, 7])
def test_stiff_servos_between_stops_gain_no_more_than_their_motors_can_give(seed: int) -> None:
    group = run_servos(seed, 4.0)
    assert group.finite
    assert group.surge <= MOST_ENERGY, group
    assert group.stood <= 1e-3 * group.solutions, group


class Lively(SimulatedRobot):
    """Contacts speed the robot up."""

    def step(self, *args: Any, **more: Any) -> None:
        super().step(*args, **more)
        faster = np.where(self.state.n_contacts > 0.0, 1.05, 1.0)[:, None]
        self.state.link_rate[:] *= faster
        self.state.centre_vel[:] *= faster


class Blind(SimulatedRobot):
    """Obstacles are seen too late."""

    def __init__(self, *args: Any, obstacles: Any, **more: Any) -> None:
        super().__init__(*args, obstacles=obstacles._replace(n_cells=np.zeros_like(obstacles.n_cells)), **more)


class Torn(SimulatedRobot):
    """The head is not where the links lead."""

    def step(self, *args: Any, **more: Any) -> None:
        super().step(*args, **more)
        self.state.head_xy[:] += 1e-6


class Undefined(SimulatedRobot):
    """A number is lost."""

    def step(self, *args: Any, **more: Any) -> None:
        super().step(*args, **more)
        self.state.link_rate[0, 0] = np.nan


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robot", "broken"),
    [(Lively, "coasting"), (Blind, "penetration"), (Torn, "gap"), (Undefined, "finite")],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_broken_is_found(monkeypatch: pytest.MonkeyPatch, robot: type[SimulatedRobot], broken: str) -> None:
    monkeypatch.setattr(stress, "SimulatedRobot", robot)
    # Group 6 has no ground friction, which would hide what contacts create.
    episodes = run_group(6, "rigid", DT_S, 6.0)
    worst = max(episodes, key=lambda episode: (not episode.finite, getattr(episode, broken)))
    assert not keeps_bars(worst, "rigid")
    found = {
        "finite": not worst.finite, "penetration": worst.penetration > LIMITS["rigid"],
        "coasting": worst.coasting > MOST_ENERGY, "gap": worst.gap > WIDEST_GAP,
    }  # fmt: skip
    assert found[broken]
