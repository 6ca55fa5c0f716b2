from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.sibilska2022 import Case, simulate
from papers.waypoint_runs import ControlLaw
from snake_gym.controllers import make_controller
from snake_gym.controllers.guidance import SteeringConfig
from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.robot.measurement import Goal, Measurement, centre_offset
from snake_gym.robot.presets import RESILIENT


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


def test_a_run_in_a_batch_is_that_run_alone() -> None:
    """Whatever its neighbours are: other points, models, faults, arrivals."""
    cases = [
        Case("head", "published", "cc", ()),
        Case("centre", "published", "cc", ()),
    ]
    together = simulate(cases, n_targets=1, time_limit_s=50.0)
    assert np.isfinite(together).all() and together[0, 0] != together[1, 0]
    for row, case in enumerate(cases):
        np.testing.assert_allclose(simulate([case], n_targets=1, time_limit_s=50.0)[0], together[row], atol=0.026)


def test_a_robot_without_working_joints_arrives_nowhere() -> None:
    case = Case("centre", "consistent", "sjc", tuple(range(1, 10)))
    assert np.isnan(simulate([case], time_limit_s=5.0)).all()


def test_progress_is_told() -> None:
    heard: list[tuple[int, float]] = []
    simulate(
        [Case("centre", "published", "cc", ())],
        n_targets=1,
        time_limit_s=60.0,
        on_progress=lambda reached, time_s: heard.append((reached, time_s)),
    )
    times = [time_s for _, time_s in heard]
    assert len(heard) > 3 and times == sorted(times) and sum(reached for reached, _ in heard) == 1
