"""The kernels step one world as ``physics.reference`` does, to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from snake_gym.physics.faults import HEALTHY
from snake_gym.physics.reference import Motion, fail, step
from snake_gym.physics.state import ChainParams
from snake_gym.robot.catalogue import load_robot
from snake_gym.simulation.fault_kinds import FAULT_KINDS
from snake_gym.simulation.robot_params import chain_params
from snake_gym.simulation.simulated_robot import SimulatedRobot

DRAWS = {"resilient_servo": {}, "three links": {"n_links": 3}, "weak motors": {"actuator": {"torque_limit_nm": 0.3}}}


@pytest.mark.parametrize("changes", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("kind", ["none", "locked", "free", "weak", "slow", "offset"])
def test_kernels_step_as_the_reference_does(changes: dict[str, object], kind: str) -> None:
    spec = load_robot({"preset": "resilient_servo", **changes})
    rng = np.random.default_rng(0)
    robot = SimulatedRobot(spec, 1, 1, None)
    j = spec.n_joints
    params = chain_params(spec, 1)
    params = params._replace(mass=params.mass * rng.uniform(0.5, 2.0, (1, j + 1)), body_acc=np.array([[0.02, -0.01]]))
    params = params._replace(ahead=rng.uniform(-0.3, 0.3, (1, j + 1)))
    robot.use_parameters(params)
    one = ChainParams(*(values[0] for values in params))
    robot.set_shape(rng.uniform(-0.4, 0.4, (1, j)), np.array([0.3]), np.zeros((1, 2)), "centre")
    code = HEALTHY if kind == "none" else FAULT_KINDS[kind].code
    codes = np.where(rng.random(j) < 0.5, code, HEALTHY)
    codes[0] = code
    faults = robot.faults
    faults.kind[0], faults.onset_s[0], faults.strength[0], faults.offset_rad[0] = codes, -1.0, 0.2, 0.3
    robot.allow_faults({kind} - {"none"})
    state = robot.state
    angle, rate, centre, centre_velocity = (values[0].copy() for values in robot.motion())
    motion = Motion(angle, rate, np.zeros((2, j + 1)), centre, centre_velocity)
    for _ in range(25):
        reference = rng.uniform(-1.2, 1.2, j)
        robot.step(reference[None])
        servos = fail(one, reference, codes, np.full(j, 0.2), np.full(j, 0.3))
        motion, torque = step(one, motion, servos, spec.step_s, spec.n_substeps)
        np.testing.assert_allclose(state.link_angle[0], motion.theta, atol=1e-9)
        np.testing.assert_allclose(state.link_rate[0], motion.omega, atol=1e-8)
        np.testing.assert_allclose(state.centre_xy[0], motion.centre, atol=1e-10)
        np.testing.assert_allclose(state.joint_torque[0], torque, atol=1e-7)
