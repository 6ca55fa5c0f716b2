from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from papers.dynamics import ShippedPhysics
from papers.published_head_model import HeadBlock, PublishedHeadModel
from snake_gym.robot.measurement import centre_offset
from snake_gym.robot.presets import RESILIENT
from tests.oracles.dense_head_chain import accelerate_head_chain

N, J = RESILIENT.n_links, RESILIENT.n_joints


def random_motion(n_runs: int = 4) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(0)
    return (
        rng.normal(0.0, 0.7, (n_runs, N)),
        rng.normal(size=(n_runs, N)),
        rng.normal(size=(n_runs, 2)),
        rng.normal(size=(n_runs, 2)),
        rng.normal(size=(n_runs, J)),
    )


@pytest.mark.parametrize(("block", "head_mass"), [("N m", 10.0), ("m", 1.0)])
def test_accelerations_equal_the_equations_written_out(block: HeadBlock, head_mass: float) -> None:
    theta, theta_dot, head, head_vel, u = random_motion()
    broken = np.zeros((4, J), dtype=bool)
    broken[1:, [2, 4]] = True
    model = PublishedHeadModel(RESILIENT, broken, block)
    got_theta, got_head = model.accelerate(theta, theta_dot, head, head_vel, u)
    for row in range(4):
        phi_ddot = np.where(broken[row], 0.0, u[row])
        expected_theta, expected_head = accelerate_head_chain(
            theta[row], theta_dot[row], head_vel[row], phi_ddot, 1.0, 0.07, 1.0, 10.0, head_mass
        )
        np.testing.assert_allclose(got_theta[row], expected_theta, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(got_head[row], expected_head, rtol=1e-9, atol=1e-9)


def test_as_printed_it_is_the_shipped_physics() -> None:
    """With ``m I_2`` the link accelerations in head coordinates are those of the shipped physics."""
    theta, theta_dot, head, head_vel, u = random_motion()
    broken = np.zeros((4, J), dtype=bool)
    broken[2, 5] = True
    # velocity of the centre: head velocity + d/dt centre_offset
    step = 1e-7
    shift = (
        centre_offset(RESILIENT, theta + step * theta_dot) - centre_offset(RESILIENT, theta - step * theta_dot)
    ) / (2 * step)
    in_head, _ = PublishedHeadModel(RESILIENT, broken, "m").accelerate(theta, theta_dot, head, head_vel, u)
    shipped, _ = ShippedPhysics(RESILIENT, broken).accelerate(
        theta, theta_dot, head + centre_offset(RESILIENT, theta), head_vel + shift, u
    )
    np.testing.assert_allclose(in_head, shipped, rtol=1e-6, atol=1e-6)


def test_selected_runs_keep_their_faults() -> None:
    theta, theta_dot, head, head_vel, u = random_motion()
    broken = np.random.default_rng(3).random((4, J)) < 0.4
    keep = np.array([False, True, False, True])
    model = PublishedHeadModel(RESILIENT, broken)
    everything = model.accelerate(theta, theta_dot, head, head_vel, u)
    some = model.select(keep).accelerate(theta[keep], theta_dot[keep], head[keep], head_vel[keep], u[keep])
    for all_runs, kept in zip(everything, some, strict=True):
        np.testing.assert_allclose(kept, all_runs[keep], rtol=1e-12, atol=1e-12)


def test_it_refuses_robots_it_does_not_describe() -> None:
    uneven = replace(RESILIENT, link_mass_kg=(2.0, *[1.0] * 9))
    with pytest.raises(ValueError, match="link_mass_kg differs between links"):
        PublishedHeadModel(uneven, np.zeros((1, J), dtype=bool))
    turning = replace(RESILIENT, friction=replace(RESILIENT.friction, rotational_nms_rad=0.01))
    with pytest.raises(ValueError, match="rotational"):
        PublishedHeadModel(turning, np.zeros((1, J), dtype=bool))
