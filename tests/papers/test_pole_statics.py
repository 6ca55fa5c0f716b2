"""Statics of a robot that holds on to a pole."""

from __future__ import annotations

from dataclasses import replace

import pytest

from papers.liu2024_spatial import ROBOT
from papers.pole_statics import even_holding_friction, holding_friction
from snake_gym.spatial.gaits import GAITS
from snake_gym.spatial.spec import load_spatial_robot

III = load_spatial_robot(ROBOT)
SPIRAL = replace(GAITS["SRL"], spiral_radius_m=0.2 + III.radius_m)


def test_no_friction_holds_less_than_the_best_pressure_and_even_pressure_needs_more() -> None:
    """A ring that is pulled open evenly bends by q r^2 (1 - cos); 2 q r^2 at most."""
    even = even_holding_friction(III, 0.2)
    assert even == pytest.approx(2.0 * III.mass_kg * 9.81 / 4.64 * 0.255**2 / 8.34)
    assert 0.2 < holding_friction(III, SPIRAL) < even


def test_stronger_servos_hold_at_less_friction() -> None:
    strong = replace(III, actuator=replace(III.actuator, torque_limit_nm=4.0 * 8.34))
    assert holding_friction(strong, SPIRAL) < 0.6 * holding_friction(III, SPIRAL)
