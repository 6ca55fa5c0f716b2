"""Gaits of spatial robots in MuJoCo: an arc rolls by its radius, waves move as the paper says, a spiral climbs."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import papers.liu2024_spatial as study
from papers.pole_statics import even_holding_friction, holding_friction
from snake_gym.spatial.gaits import EXPERIMENTS, GAITS, Mode
from snake_gym.spatial.spec import load_spatial_robot

III = load_spatial_robot(study.ROBOT)


def test_an_open_arc_rolls_by_its_links_radius() -> None:
    """Twelve stiff joints on a rough floor, bent to 4 m: 0.055 m/rad without slip."""
    actuator = replace(III.actuator, kp=200.0, kd=2.0, torque_limit_nm=math.inf)
    arc = replace(GAITS["ARL"], arc_radius_m=4.0)
    run = study.play(replace(III, n_joints=12, friction=0.5, actuator=actuator), arc, None, periods=10, settling=8)
    assert run.left_m_per_rad == pytest.approx(III.radius_m, rel=0.03)


def test_a_travelling_wave_of_negative_frequency_moves_forward() -> None:
    spec = replace(study.free_robot(III, "TWL"), sim_dt_s=0.004)
    assert study.play(spec, GAITS["TWL"], None, 1, 1).along_m_per_rad > 0.04


@pytest.mark.slow
@pytest.mark.parametrize("mode", EXPERIMENTS)
def test_measured_speeds_come_out_without_a_fitted_coefficient(mode: Mode) -> None:
    run = study.play(study.servo_robot(III, mode), EXPERIMENTS[mode], None, 1)
    assert run.speed_m_per_rad == pytest.approx(study.MEASURED[mode], rel=study.SPEED_TOLERANCE[mode])


def test_a_closing_arc_opens_when_it_rolls_back() -> None:
    spec, way = study.servo_robot(III, "ARL", 0.004), EXPERIMENTS["ARL"]
    back = replace(way, frequency_rad_s=-way.frequency_rad_s)
    closing, opened = (study.play(spec, gait, None, 1, 4, study.CLOSING_RAD) for gait in (way, back))
    assert closing.speed_m_per_rad < 0.7 * opened.speed_m_per_rad


def test_stiff_boxes_climb_a_pole_and_stronger_servos_hold_on_at_less_friction() -> None:
    assert study.climb(III, 2000.0, "box", periods=1).rise_m > study.CLIMBS_M
    spiral = replace(GAITS["SRL"], spiral_radius_m=0.255)
    strong = replace(III, actuator=replace(III.actuator, torque_limit_nm=33.36))
    assert 1.7 * holding_friction(strong, spiral) < holding_friction(III, spiral) < even_holding_friction(III, 0.2)
