"""Gaits of spatial robots in MuJoCo: an arc rolls by its radius, waves move as the paper says, a spiral climbs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import papers.liu2024_spatial as study
from snake_gym.spatial.gaits import EXPERIMENTS, GAITS
from snake_gym.spatial.spec import load_spatial_robot

III = load_spatial_robot(study.ROBOT)


def test_an_open_arc_rolls_by_its_links_radius() -> None:
    """Twelve stiff joints on a rough floor, bent to 4 m: 0.055 m/rad without slip."""
    actuator = replace(III.actuator, kp=200.0, kd=2.0, torque_limit_nm=math.inf)
    spec = replace(III, n_joints=12, friction=0.5, actuator=actuator)
    run = study.play(spec, replace(GAITS["ARL"], arc_radius_m=4.0), None, periods=10, settling=8)
    assert run.speed_m_per_rad == pytest.approx(III.radius_m, rel=0.03)
    assert run.left_m_per_rad > 0.9 * run.speed_m_per_rad


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_travelling_wave_of_negative_frequency_moves_forward(sign: float) -> None:
    gait = replace(GAITS["TWL"], frequency_rad_s=sign * math.pi / 5.0)
    run = study.play(study.free_robot(III, "TWL"), gait, None, periods=2, settling=2)
    assert -sign * run.along_m_per_rad > 0.04


@pytest.mark.slow
def test_side_winding_keeps_its_ratio_to_creeping() -> None:
    """At the friction that is fitted to creeping alone."""
    creeping, winding = (
        study.play(study.servo_robot(III, mode, study.FLOOR, study.AXLE), EXPERIMENTS[mode], None).speed_m_per_rad
        for mode in ("CL", "SWL")
    )
    assert creeping == pytest.approx(0.2553, rel=0.03)
    assert winding / creeping == pytest.approx(0.554, rel=0.15)


def test_a_spiral_climbs_a_pole() -> None:
    run = study.climb(III, published=False, periods=1)
    assert run.rise_m > 0.2
    assert run.largest_nm > 20.0
