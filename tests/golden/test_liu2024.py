"""Published and textbook numbers of liu2024, by the code that users run; the published rates are slow."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from papers.liu2024 import STUDY
from papers.liu2024.creeping import creep, creeping_wave, no_slip_speed
from papers.liu2024.derivative import FIRST, differentiate, differentiation_matrix
from papers.liu2024.generator import change_gait, derivative_error
from papers.liu2024.network import MODES, lock
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


@pytest.mark.parametrize("mode", MODES)
def test_the_published_network_locks(mode: str) -> None:
    locking = lock(MODES[mode])
    assert locking.periods == golden(f"locking_{mode}")
    assert 1.0 + locking.radius_error == golden("limit_cycle_radius")
    assert locking.phase_error_rad[-1] <= float(GOLDEN["phase_difference"]["tolerance"])
    assert MODES["CL"].shift_rad == golden("phase_difference")


def test_the_published_equations_jump_in_speed_and_the_formula_in_position() -> None:
    change = change_gait("three waves in place of two", watched_s=12.0)
    assert change.equations.acceleration > 2.0 and change.formula.speed > 10.0


def test_the_derivative() -> None:
    coarse, fine = derivative_error(0.1), derivative_error(0.05)
    assert math.log2(coarse[0] / fine[0]) == golden("order_of_rate")
    assert differentiation_matrix(np.arange(5.0)[None])[0, 2, 3] == golden("stencil_centre")
    assert coarse[0] < coarse[1] < 1e-3


@pytest.mark.parametrize("n_joints", [1, 3])
def test_a_quartic_is_exact(n_joints: int) -> None:
    time = 0.1 * np.arange(20.0)
    polynomial = np.polynomial.Polynomial([0.3, -1.0, 0.5, 0.2, -0.1])
    given = differentiate(np.tile(polynomial(time)[:, None], n_joints), 0.1)
    first, second = polynomial.deriv(), polynomial.deriv(2)
    for values, exact, delay in (
        (given.rate, first, 0), (given.settled_rate, first, 2), (given.acceleration, second, 0),
        (given.settled_acceleration, second, 4),
    ):  # fmt: skip
        wanted = exact(time[FIRST - delay : len(time) - delay])
        np.testing.assert_allclose(values, np.tile(wanted[:, None], n_joints), atol=1e-8)


@pytest.mark.slow
def test_the_study_holds_what_it_claims() -> None:
    outcome = STUDY.run(True, lambda share, doing: None)
    assert sorted(claim.verdict for claim in outcome.claims) == [
        "by construction", "partly", "partly", *["reproduced"] * 7,
    ]  # fmt: skip
    assert {claim.source for claim in outcome.claims if claim.verdict == "partly"} == {
        "Sections 1 and 3.1",
        "Sections 1 and 3.2",
    }
    assert all(len(row) == len(table.columns) for table in outcome.tables for row in table.rows)
