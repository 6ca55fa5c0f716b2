"""A share of benchmarks/stress.py with its bars, and that its checks find what they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks import stress
from benchmarks.stress import MOST_ENERGY, Episode, run_group, run_servos
from snake_gym.robot.spec import ContactModel
from snake_gym.simulation.simulated_robot import SimulatedRobot

SLIPPERY = 9
"""Group without ground friction, which would hide what contacts create."""
MODELS = pytest.mark.parametrize("model", ["rigid", "stiff"])


def expect_bars(episodes: list[Episode]) -> None:
    for episode in episodes:
        assert not episode.broken(), episode


@pytest.mark.slow
@MODELS
@pytest.mark.parametrize("seed", [0, 3, 5, 13])
def test_thrashing_robots_break_nothing(model: ContactModel, seed: int) -> None:
    expect_bars(run_group(seed, 20.0, [model]))


@MODELS
def test_a_few_seconds_of_thrashing_break_nothing(model: ContactModel) -> None:
    episodes = run_group(0, 4.0, [model])
    expect_bars(episodes)
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
    """No obstacle is seen."""

    def step(self, *args: Any, **more: Any) -> None:
        self.obstacles.n_cells[:] = 0
        super().step(*args, **more)


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
    [
        (Lively, "coasting"), (Blind, "penetration"), (Blind, "outside"), (Torn, "gap"), (Undefined, "finite"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_broken_is_found(monkeypatch: pytest.MonkeyPatch, robot: type[SimulatedRobot], broken: str) -> None:
    monkeypatch.setattr(stress, "SimulatedRobot", robot)
    assert any(broken in episode.broken() for episode in run_group(SLIPPERY, 20.0, ["rigid"]))
