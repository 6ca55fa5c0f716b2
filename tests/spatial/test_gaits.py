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
    spec = replace(study.free_robot(III, "TWL"), sim_dt_s=0.004)
    run = study.play(spec, gait, None, periods=1, settling=1)
    assert -sign * run.along_m_per_rad > 0.04


@pytest.mark.slow
def test_measured_speeds_come_out_without_a_fitted_coefficient() -> None:
    speed = {
        mode: study.play(study.servo_robot(III, mode), gait, periods=1).speed_m_per_rad
        for mode, gait in EXPERIMENTS.items()
    }
    assert speed == {mode: pytest.approx(study.MEASURED[mode], rel=off) for mode, off in study.SPEED_TOLERANCE.items()}


def test_a_closing_arc_opens_when_it_rolls_back() -> None:
    """Rolling to its open side an arc closes; the other way it goes on as one that began with its middle ahead."""
    spec = study.servo_robot(III, "ARL", 0.004)
    back = replace(EXPERIMENTS["ARL"], frequency_rad_s=-0.5 * math.pi)
    closing, opened = (
        study.play(spec, gait, periods=1, settling=4, phase_rad=study.CLOSING_RAD)
        for gait in (EXPERIMENTS["ARL"], back)
    )
    assert closing.speed_m_per_rad < 0.015 < 0.03 < opened.speed_m_per_rad


def test_a_stiff_box_spiral_climbs_a_pole_as_published() -> None:
    run = study.climb(III, 2000.0, "box", periods=1)
    assert run.rise_m > study.CLIMBS_M
    assert run.largest_nm > 100.0
