"""sibilska2022: its models against the equations written out, runs, and verdicts from made-up numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.sibilska2022 import STUDY, experiment
from papers.sibilska2022.experiment import (
    LIMIT_RAD,
    Case,
    ControlLaw,
    Point,
    Recorder,
    simulate,
    simulate_as_published,
)
from papers.sibilska2022.models import CentreModel, PublishedHeadModel
from papers.study import Claim
from snake_gym.controllers import make_controller
from snake_gym.controllers.guidance import SteeringConfig
from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.robot.measurement import Goal, Measurement, centre_offset
from snake_gym.robot.presets import RESILIENT

N, J = RESILIENT.n_links, RESILIENT.n_joints

# --- models ----------------------------------------------------------------------------------------------------------


def random_motion(n_runs: int = 4) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return (rng.normal(0.0, 0.7, (n_runs, N)), *(rng.normal(size=(n_runs, n)) for n in (N, 2, 2, J)))


def test_as_printed_it_is_the_model_of_the_centre_and_the_published_block_slows_the_head() -> None:
    """With ``m I_2`` in the last block of eq. 26 all accelerations are those of the other model; ``N m I_2``, which
    the paper's numbers have, divides the head's by N."""
    theta, theta_dot, head, head_vel, u = random_motion()
    broken = np.zeros((4, J), dtype=bool)
    broken[1:, [2, 4]] = broken[2, 5] = True

    def offset(time_s: float, theta_ddot: np.ndarray | float = 0.0) -> np.ndarray:
        """From the head to the centre of mass, a little later."""
        return centre_offset(RESILIENT, theta + time_s * theta_dot + 0.5 * time_s**2 * theta_ddot)

    centre_vel = head_vel + (offset(1e-7) - offset(-1e-7)) / 2e-7
    by_centre, centre_acc = CentreModel(RESILIENT, broken).accelerate(
        theta, theta_dot, head + offset(0.0), centre_vel, u
    )
    in_head, head_acc = PublishedHeadModel(RESILIENT, broken, "m").accelerate(theta, theta_dot, head, head_vel, u)
    np.testing.assert_allclose(in_head, by_centre, rtol=1e-6, atol=1e-6)
    turned = (offset(1e-4, by_centre) - 2.0 * offset(0.0) + offset(-1e-4, by_centre)) / 1e-8
    np.testing.assert_allclose(head_acc, centre_acc - turned, rtol=1e-4, atol=1e-4)
    published, slowed = PublishedHeadModel(RESILIENT, broken, "N m").accelerate(theta, theta_dot, head, head_vel, u)
    np.testing.assert_allclose(published, in_head, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(slowed, head_acc / N, rtol=1e-9, atol=1e-9)


# --- the published simulations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "coupling"), [("sjc", 0.0), ("cc", 0.5)])
def test_control_law_is_the_shipped_controller_with_the_robots_joint_loop(kind: str, coupling: float) -> None:
    rng = np.random.default_rng(0)
    n_runs, time_s = 3, 1.7
    theta = rng.normal(0.0, 0.2, (n_runs, RESILIENT.n_links))
    theta_dot = rng.normal(0.0, 0.2, theta.shape)
    target, centre = rng.normal(size=(n_runs, 2)), rng.normal(size=(n_runs, 2))
    law = ControlLaw(RESILIENT, GaitConfig(), SteeringConfig(), np.full(n_runs, coupling))
    u = law.command(time_s, theta, theta_dot, target - centre)

    phi, phi_dot = theta[:, :-1] - theta[:, 1:], theta_dot[:, :-1] - theta_dot[:, 1:]
    head = centre - centre_offset(RESILIENT, theta)
    seen = Measurement(phi, phi_dot, head, theta[:, -1], np.ones(n_runs, dtype=bool))
    roomy = replace(RESILIENT, joint_limit_rad=np.pi)
    controller = make_controller({"kind": kind}, roomy)
    state = controller.initial_state(n_runs)
    state["phase"][:] = np.radians(50.0) * time_s
    reference = controller.command(seen, Goal(target, np.ones(n_runs, dtype=bool)), state, 0.05)
    assert np.abs(reference).max() < roomy.joint_limit_rad  # nothing was clamped
    np.testing.assert_allclose(u, 1.0 * (reference - phi) - 2.0 * phi_dot, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("point", [pytest.param("centre", marks=pytest.mark.slow), "head"])
def test_the_published_solver_is_the_exact_one_but_for_its_tolerances(
    point: Point, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(point, "published", "cc", (3,))
    exact = simulate([case], n_targets=1, time_limit_s=60.0)[0]
    loose = simulate_as_published(case, n_targets=1, time_limit_s=60.0)
    monkeypatch.setattr(experiment, "RELATIVE_TOLERANCE", 1e-7)
    monkeypatch.setattr(experiment, "ABSOLUTE_TOLERANCE", 1e-9)
    tight = simulate_as_published(case, n_targets=1, time_limit_s=60.0)
    assert abs(tight[0] - exact[0]) < 0.06
    assert 0.02 < abs(loose[0] - tight[0]) < 1.0, "the last digits of the error depend on the processor"
    assert np.isnan(simulate_as_published(case, n_targets=1, time_limit_s=20.0)).all()


def find(claims: list[Claim], part: str) -> Claim:
    (claim,) = [claim for claim in claims if part in claim.text]
    return claim


def test_limits_are_counted_step_by_step() -> None:
    recorder = Recorder(2, dt_s=0.5)
    angles = np.zeros((2, 9))
    for step in range(30):
        angles[0, 3] = LIMIT_RAD + (0.01 if step % 3 == 0 else -0.01)
        under_way = np.array([0, 1]) if step < 10 else np.array([0])
        place = np.full((under_way.size, 2), float(step))
        recorder.listen(step + 1, under_way, angles[under_way], place, np.zeros(under_way.size))
    cases = [Case("centre", "published", "sjc", ()), Case("centre", "published", "cc", ())]
    first, second = recorder.recordings(cases).values()
    assert first.duration_s == 15.0 and first.outside_s == 5.0 and first.outside == pytest.approx(1 / 3)
    assert first.peak_rad == pytest.approx(LIMIT_RAD + 0.01)
    assert second.duration_s == 5.0 and second.outside_s == 0.0 and len(second.time_s) == 1
    assert first.time_s.tolist() == [0.5, 6.5, 12.5] and first.tracked_xy[:, 0].tolist() == [0.0, 12.0, 24.0]


@pytest.mark.slow
def test_a_quick_run() -> None:
    shares: list[float] = []
    outcome = STUDY.run(True, lambda share, doing: shares.append(share))
    assert shares == sorted(shares) and 0.8 < shares[-1] <= 1.0
    assert find(list(outcome.claims), "SJC guided by the centre, joint 3").verdict == "reproduced"
    assert {table.name for table in outcome.tables} == {"arrivals", "solver", "joint-limits"}
    assert len(outcome.figures) >= 4
