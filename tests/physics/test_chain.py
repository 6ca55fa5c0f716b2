"""What the physics must do whatever the numbers: accurate sines, and dissipation at any step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from snake_gym.physics.faults import FREE, LOCKED
from snake_gym.physics.lanes import sin_cos
from snake_gym.physics.simd import load, store
from snake_gym.robot.spec import ActuatorSpec, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot


def make_spec(dt: float, friction: FrictionSpec, actuator: ActuatorSpec, free_damping: float) -> RobotSpec:
    return RobotSpec(
        n_links=7, link_half_length_m=tuple(np.linspace(0.05, 0.09, 7)), link_mass_kg=tuple(np.linspace(0.5, 1.5, 7)),
        friction=friction, actuator=actuator, free_joint_damping_nms_rad=free_damping, control_dt_s=dt, sim_dt_s=dt,
    )  # fmt: skip


def make_robot(spec: RobotSpec, seed: int = 1) -> SimulatedRobot:
    """Three robots in motion."""
    robot = SimulatedRobot(spec, 3, 1)
    rng = np.random.default_rng(seed)
    robot.set_shape(rng.normal(0, 0.5, (3, 6)), rng.normal(size=3), rng.normal(size=(3, 2)))
    robot.state.link_rate[:] = rng.normal(size=(3, 7))
    robot.state.centre_vel[:] = rng.normal(size=(3, 2))
    return robot


@pytest.mark.parametrize(("number", "largest", "error"), [(np.float64, 1e5, 4e-16), (np.float32, 1e3, 1.5e-7)])
def test_sin_cos_are_accurate_to_the_last_bits(number: type, largest: float, error: float) -> None:
    @njit
    def evaluate(x, sin, cos):  # type: ignore[no-untyped-def]
        for i in range(x.shape[0]):
            s, c = sin_cos(load(x, i))
            store(sin, i, s)
            store(cos, i, c)

    rng = np.random.default_rng(0)
    for scale in (1.0, 30.0, largest):
        x = np.concatenate([rng.uniform(-scale, scale, 80_000), np.arange(-40, 40) * np.pi / 4])
        x = x.astype(number).reshape(-1, 64 // np.dtype(number).itemsize)
        sin, cos = np.empty_like(x), np.empty_like(x)
        evaluate(x, sin, cos)
        np.testing.assert_allclose(sin, np.sin(x.astype(np.float64)), rtol=0, atol=error)
        np.testing.assert_allclose(cos, np.cos(x.astype(np.float64)), rtol=0, atol=error)


@given(seed=st.integers(0, 10_000), dt=st.sampled_from([0.001, 0.01, 0.1, 1.0]), stiff=st.floats(0.0, 1e6))
@settings(max_examples=25)
def test_friction_only_takes_energy_at_any_step_and_stiffness(seed: int, dt: float, stiff: float) -> None:
    ground = FrictionSpec(1.0 + stiff, 10.0 + stiff, 0.01)
    spec = make_spec(dt, ground, ActuatorSpec("torque", 0.0, 0.0), stiff)
    robot = make_robot(spec, seed=seed)
    robot.faults.kind[:] = np.random.default_rng(seed).choice([FREE, LOCKED], (3, 6))
    # With dt of the order of the motion's own time the centripetal part dominates a single step; start slowly there.
    robot.state.link_rate[:] *= min(1.0, 0.01 / dt)
    robot.state.centre_vel[:] *= min(1.0, 0.01 / dt)
    energy = robot.kinetic_energy()
    for _ in range(10):
        robot.step(np.zeros((3, 6)), None, 1)
        now = robot.kinetic_energy()
        assert np.isfinite(now).all()
        assert (now <= energy * (1 + 1e-3) + 1e-12).all()
        energy = now
    assert (robot.state.work_j < 1e-12).all()
