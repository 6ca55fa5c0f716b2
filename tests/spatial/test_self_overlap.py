"""Overlap of spatial chains with themselves against distances of MuJoCo's geoms by bounded least squares."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np
from scipy.optimize import lsq_linear

from snake_gym.robot.spec import FloatArray
from snake_gym.spatial.simulation import SpatialRobot
from snake_gym.spatial.spec import load_spatial_robot

SPEC = load_spatial_robot({"n_joints": 9, "actuator": {"kp": 20.0, "kd": 0.1}})


def deepest_of_geoms(robot: SpatialRobot, world: int) -> float:
    """Return the deepest overlap [m] of the capsules of two links that are no neighbours."""
    data = mujoco.MjData(robot.model)
    mujoco.mj_setState(robot.model, data, robot.state.physics[world], mujoco.mjtState.mjSTATE_FULLPHYSICS.value)
    mujoco.mj_kinematics(robot.model, data)
    names = [f"link_{i + 1}" for i in range(SPEC.n_joints)] + ["head"]
    geoms = [int(robot.model.body(name).geomadr[0]) for name in names]
    assert (robot.model.geom_type[geoms] == mujoco.mjtGeom.mjGEOM_CAPSULE).all()
    ways: list[FloatArray] = [data.geom_xmat[g].reshape(3, 3)[:, 2] * robot.model.geom_size[g, 1] for g in geoms]
    deepest = 0.0
    for i, j in itertools.combinations(range(SPEC.n_links), 2):
        if j - i > 1:
            between = data.geom_xpos[geoms[j]] - data.geom_xpos[geoms[i]]
            found = lsq_linear(np.stack([ways[i], -ways[j]], axis=1), between, (-1.0, 1.0), tol=1e-14)
            gap = float(np.linalg.norm(found.fun))
            deepest = max(deepest, float(robot.model.geom_size[[geoms[i], geoms[j]], 0].sum()) - gap)
    return deepest


def test_the_deepest_overlap_is_that_of_mujocos_geoms_and_is_kept_until_a_reset() -> None:
    rng = np.random.default_rng(0)
    n = 10
    robot = SpatialRobot(SPEC, n, 1)
    shapes = rng.uniform(-1.5, 1.5, (n, SPEC.n_joints))
    curled = np.where(np.array(SPEC.axes()) == "yaw", 1.4, 0.1)
    shapes[0], shapes[5:] = 0.0, curled + rng.uniform(-0.15, 0.15, (5, SPEC.n_joints))
    robot.set_shape(shapes, np.zeros(n), np.zeros((n, 2)))
    deepest = np.zeros(n)
    for _ in range(2):
        robot.step(shapes)
        now = np.array([deepest_of_geoms(robot, world) for world in range(n)])
        np.testing.assert_allclose(robot.state.overlap_now_m, now, atol=1e-9)
        deepest = np.maximum(deepest, now)
        np.testing.assert_allclose(robot.state.self_overlap_m, deepest, atol=1e-9)
    assert now[0] == 0.0
    assert 2 < (now > 0.01).sum() < n
    first = np.arange(n) == now.argmax()
    robot.set_shape(np.zeros((1, SPEC.n_joints)), np.zeros(1), np.zeros((1, 2)), mask=first)
    robot.step(np.where(first[:, None], 0.0, shapes), mask=first)
    assert robot.state.self_overlap_m[first] == 0.0
