"""Geometry and force of the muscles: closed forms, the paper's equations and an independent model by virtual work."""

from __future__ import annotations

import math

import numpy as np
import pytest

from snake_gym.robot.muscle_pair import muscle_force, muscle_length, muscle_lever
from snake_gym.robot.spec import MuscleSpec
from tests.oracles.muscle_pair import MusclePair

MUSCLE = MuscleSpec(braid_angle_rad=math.radians(38.0))
PAIR = MusclePair(0.05, 0.025, 0.1, 0.005, math.radians(38.0))
ANGLES = np.radians([-44.0, -30.0, -7.0, 0.0, 12.0, 30.0, 43.0])


def test_the_oracle_itself_meets_closed_forms() -> None:
    assert PAIR.length(0.0, 1) == pytest.approx(0.1) and PAIR.length(0.0, -1) == pytest.approx(0.1)
    assert PAIR.lever(0.0, 1) == pytest.approx(-0.025) and PAIR.lever(0.0, -1) == pytest.approx(0.025)
    # At rest the braid encloses a cylinder of the rest radius and length; F = p pi r^2 (3 / tan^2 - 1 / sin^2).
    assert PAIR.volume(0.1) == pytest.approx(math.pi * 0.005**2 * 0.1)
    alpha = math.radians(38.0)
    expected = 1e5 * math.pi * 0.005**2 * (3.0 / math.tan(alpha) ** 2 - 1.0 / math.sin(alpha) ** 2)
    assert PAIR.force(0.1, 1e5) == pytest.approx(expected, rel=1e-6)
    # No force at the magic angle, 54.7 degrees: length = rest length * cos(magic) / cos(alpha).
    assert PAIR.force(0.1 / math.sqrt(3.0) / math.cos(alpha), 1e5) == pytest.approx(0.0, abs=1e-6)


def test_lengths_levers_forces_and_torques_are_those_of_the_vector_model() -> None:
    length, lever = muscle_length(MUSCLE, ANGLES), muscle_lever(MUSCLE, ANGLES)
    pressure = np.random.default_rng(1).uniform(0.0, 3e5, (ANGLES.size, 2))
    force = muscle_force(MUSCLE, length, pressure)
    torque = (force * lever).sum(axis=1)
    for k, phi in enumerate(ANGLES):
        for column, side in enumerate((1, -1)):
            assert length[k, column] == pytest.approx(PAIR.length(phi, side), rel=1e-13)
            assert lever[k, column] == pytest.approx(PAIR.lever(phi, side), rel=1e-12)
            assert force[k, column] == pytest.approx(PAIR.force(length[k, column], pressure[k, column]), rel=1e-6)
        assert torque[k] == pytest.approx(PAIR.torque(phi, *pressure[k]), rel=1e-6, abs=1e-7)


def test_a_muscle_pulls_less_the_more_it_is_contracted_and_never_pushes() -> None:
    length = np.linspace(0.05, MUSCLE.longest_m, 200)
    force = muscle_force(MUSCLE, length, np.full(200, 2e5))
    assert force.min() == 0.0 and (np.diff(force) >= 0.0).all()
    np.testing.assert_array_equal(force > 0.0, length > MUSCLE.shortest_m)


def test_a_joint_stop_must_leave_the_muscles_their_range() -> None:
    MUSCLE.check_range(math.radians(44.0))
    with pytest.raises(ValueError, match=r"a muscle is 0\.07281 m long there; expected 0.07327 to 0.1269 m"):
        MUSCLE.check_range(math.radians(45.6))
    with pytest.raises(ValueError, match=r"expected below 0.9273, where a muscle loses its lever"):
        MUSCLE.check_range(1.0)
