"""Published and textbook numbers of liu2024, by the code that users run; the published rates are slow."""

from __future__ import annotations

import argparse
import csv
import math
from pathlib import Path

import numpy as np
import pytest

from papers.liu2024 import STUDY
from papers.liu2024.creeping import creep, creeping_wave, fitting_ratio, no_slip_speed
from papers.liu2024.derivative import differentiation_matrix
from papers.liu2024.generator import (
    CHANGES,
    TOPOLOGIES,
    WEIGHTS,
    change_gait,
    derivative_errors,
    derivative_errors_at,
    orders,
    settle,
)
from papers.liu2024.network import MODES, lock
from snake_gym.controllers.cpg import Topology, Weights
from snake_gym.robot.presets import SNAKESYS

with (Path(__file__).parent / "liu2024.csv").open(newline="") as file:
    GOLDEN = {row["quantity"]: row for row in csv.DictReader(file)}


def golden(quantity: str) -> object:
    row = GOLDEN[quantity]
    assert row["unit"] and row["source"].startswith("liu2024")
    return pytest.approx(float(row["value"]), rel=float(row["tolerance"]))


def test_the_creeping_wave() -> None:
    wave = creeping_wave(SNAKESYS.n_joints)
    assert math.degrees(wave.amplitude_rad) == golden("creeping_amplitude")
    assert math.degrees(wave.phase_shift_rad) == golden("creeping_phase_shift")


def test_the_creeping_speed_of_the_preset() -> None:
    run = creep(SNAKESYS.friction.tangential_coulomb, SNAKESYS.friction.normal_coulomb)  # type: ignore[arg-type]
    assert run.speed_m_per_rad == golden("creeping_speed")
    assert run.forwards_m > 0.0
    assert run.speed_m_per_rad < no_slip_speed()


def test_without_anisotropy_it_does_not_creep() -> None:
    assert creep(0.8, 0.8).speed_m_per_rad < 0.05 * no_slip_speed()


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_every_network_locks_on_the_limit_cycle(topology: Topology, weights: Weights) -> None:
    settled = settle(topology, weights)
    assert 1.0 + settled.radius_error == golden("limit_cycle_radius")
    wanted = creeping_wave(SNAKESYS.n_joints).phase_shift_rad
    assert wanted == golden("phase_difference")
    assert settled.phase_error_rad <= float(GOLDEN["phase_difference"]["tolerance"])
    assert settled.radius_errors[0] > 0.5  # (0.1, 0.1) is far from the limit cycle
    assert settled.radius_s > 0.0


@pytest.mark.parametrize("mode", MODES)
def test_the_published_network_locks(mode: str) -> None:
    locking = lock(MODES[mode])
    assert locking.periods == golden(f"locking_{mode}")
    assert 1.0 + locking.radius_error == golden("limit_cycle_radius")


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_gait_is_smooth(name: str) -> None:
    change = change_gait(name, "default", watched_s=20.0)
    assert change.smooth.speed <= 1.001 and change.smooth.acceleration < 1.3 and change.smooth.still_periods < 0.5
    assert change.smallest_radius > 0.99
    if "amplitude" in name or "wave" in name:
        assert change.formula.speed > 10.0


def test_the_published_equations_alone_jump_in_speed_and_fall_silent() -> None:
    published = change_gait("three waves in place of two", "published", watched_s=12.0)
    assert published.alone.acceleration > 2.0 * published.smooth.acceleration
    assert change_gait("three waves in place of two", "default", watched_s=5.0).radius_alone < 1e-3


def test_the_derivative() -> None:
    order = orders(derivative_errors())
    assert order["settled_rate"] == golden("order_of_rate")
    assert order["settled_acceleration"] == golden("order_of_rate")
    assert differentiation_matrix(np.arange(5.0)[None])[0, 2, 3] == golden("stencil_centre")
    at_10_hz = derivative_errors_at(0.1)
    assert at_10_hz["rate"] < at_10_hz["acceleration"] < 1e-3


def test_the_fitting_ratio_is_where_the_speed_passes() -> None:
    ratio = np.array([0.01, 0.1, 1.0])
    assert fitting_ratio(ratio, np.array([3.0, 2.0, 1.0]), 1.5) == pytest.approx(math.sqrt(0.1))
    assert math.isnan(fitting_ratio(ratio, np.array([3.0, 2.0, 1.0]), 0.5))
    assert math.isnan(fitting_ratio(ratio, np.array([3.0, 2.0, 1.0]), 4.0))


@pytest.mark.slow
def test_the_study_holds_what_it_claims() -> None:
    outcome = STUDY.run(argparse.Namespace(quick=True), lambda share, doing: None)
    verdicts = {claim.text: claim.verdict for claim in outcome.claims}
    assert sorted(verdicts.values()).count("reproduced") == len(verdicts) - 2
    assert {claim.source for claim in outcome.claims if claim.verdict == "partly"} == {
        "Sections 1 and 3.1",
        "Sections 1 and 3.2",
    }
    assert all(len(row) == len(table.columns) for table in outcome.tables for row in table.rows)
