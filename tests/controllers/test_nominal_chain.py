"""The dynamics that controllers know, against the dense equations, balances and the shipped physics."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from snake_gym.controllers.nominal_chain import Motion, NominalChain
from snake_gym.robot.presets import MUSCLE, PEGBOARD, RESILIENT
from snake_gym.robot.spec import FrictionSpec, RobotSpec
from tests.oracles.dense_chain import DenseChain, DenseState

UNEQUAL = replace(
    PEGBOARD, n_links=4, link_half_length_m=(0.05, 0.07, 0.1, 0.04), link_mass_kg=(0.3, 1.0, 0.6, 0.2),
    friction=FrictionSpec(tangential_ns_m=(0.5, 1.0, 2.0, 0.0), normal_ns_m=10.0, rotational_nms_rad=0.02),
)  # fmt: skip


def random_motion(spec: RobotSpec, n_worlds: int = 6, seed: int = 0) -> tuple[Motion, np.ndarray]:
    rng = np.random.default_rng(seed)
    shape = (n_worlds, spec.n_links)
    motion = Motion(rng.normal(0, 0.8, shape), rng.normal(0, 1.0, shape), rng.normal(0, 0.4, (n_worlds, 2)))
    return motion, rng.normal(0, 3.0, (n_worlds, spec.n_joints))


def dense_state(motion: Motion) -> DenseState:
    return DenseState(motion.theta, motion.omega, np.zeros_like(motion.velocity), motion.velocity)


@pytest.mark.parametrize("spec", [PEGBOARD, RESILIENT, UNEQUAL], ids=["pegboard", "resilient", "unequal"])
def test_torques_give_the_accelerations_asked_for(spec: RobotSpec) -> None:
    motion, wanted = random_motion(spec)
    torque = NominalChain(spec).joint_torque(motion, wanted)
    theta_ddot, _ = DenseChain.of(spec).accelerate(dense_state(motion), torque, np.zeros(torque.shape, bool))
    np.testing.assert_allclose(theta_ddot[:, :-1] - theta_ddot[:, 1:], wanted, atol=1e-9)


@pytest.mark.parametrize("spec", [PEGBOARD, UNEQUAL], ids=["pegboard", "unequal"])
def test_head_and_centre_are_foreseen(spec: RobotSpec) -> None:
    motion, acceleration = random_motion(spec)
    dt = 1e-6
    joint_rate = motion.omega[:, :-1] - motion.omega[:, 1:]
    head, velocity = NominalChain(spec).predict_base(motion, joint_rate + dt * acceleration, np.full(6, dt))
    theta_ddot, centre_ddot = DenseChain.of(spec).accelerate(
        dense_state(motion), acceleration, np.ones(acceleration.shape, bool)
    )
    np.testing.assert_allclose((head - motion.omega[:, -1]) / dt, theta_ddot[:, -1], rtol=1e-3, atol=1e-2)
    np.testing.assert_allclose((velocity - motion.velocity) / dt, centre_ddot, rtol=1e-3, atol=1e-2)


def test_a_long_step_leads_to_rest_by_friction() -> None:
    motion, _ = random_motion(PEGBOARD)
    slow = Motion(motion.theta, 1e-3 * motion.omega, motion.velocity)
    head, velocity = NominalChain(PEGBOARD).predict_base(slow, np.zeros((6, 9)), np.full(6, 1e4))
    assert np.abs(head).max() < 1e-3 and np.abs(velocity).max() < 1e-3


def test_coulomb_friction_holds_a_sliding_robot_back_with_its_weight() -> None:
    straight = Motion(np.zeros((1, 6)), np.zeros((1, 6)), np.array([[0.3, 0.0]]))
    _, velocity = NominalChain(MUSCLE).predict_base(straight, np.zeros((1, 5)), np.array([0.1]))
    np.testing.assert_allclose(velocity, [[0.3 - 0.05 * 9.81 * 0.1, 0.0]], rtol=2e-3)
    _, velocity = NominalChain(MUSCLE).predict_base(straight, np.zeros((1, 5)), np.array([10.0]))
    assert 0.0 <= velocity[0, 0] < 1e-3, "friction stops it and no more"
