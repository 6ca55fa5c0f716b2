"""Kinematics of the seam, against positions laid out link by link, for links of unequal length and mass."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snake_gym.robot.measurement import Measurement, centre_offset, link_angles, mean_angle, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec

angle = st.floats(-7.0, 7.0)


@st.composite
def robots(draw: st.DrawFn) -> RobotSpec:
    n = draw(st.integers(2, 12))
    sizes = st.lists(st.floats(0.01, 2.0), min_size=n, max_size=n).map(tuple)
    return RobotSpec(n_links=n, link_half_length_m=draw(sizes), link_mass_kg=draw(sizes))


@st.composite
def poses(draw: st.DrawFn) -> tuple[RobotSpec, Measurement]:
    spec = draw(robots())
    n_worlds = draw(st.integers(1, 3))

    def array(*shape: int) -> FloatArray:
        count = math.prod(shape)
        return np.array(draw(st.lists(angle, min_size=count, max_size=count))).reshape(shape)

    measurement = Measurement(
        joint_angle=array(n_worlds, spec.n_joints),
        joint_rate=np.zeros((n_worlds, spec.n_joints)),
        head_xy_w=array(n_worlds, 2),
        head_angle=array(n_worlds),
        pose_valid=np.ones(n_worlds, bool),
    )
    return spec, measurement


def lay_out(spec: RobotSpec, measurement: Measurement, world: int) -> tuple[list[float], list[tuple[float, float]]]:
    """Angles and centres of the links of one world, tail first, walking from the head over one joint after another."""
    half_length = spec.links("link_half_length_m")
    theta = float(measurement.head_angle[world])
    x, y = (float(value) for value in measurement.head_xy_w[world])
    angles, centres = [theta], [(x, y)]
    for link in range(spec.n_links - 2, -1, -1):
        x, y = x - half_length[link + 1] * math.cos(theta), y - half_length[link + 1] * math.sin(theta)  # the joint
        theta = theta + float(measurement.joint_angle[world, link])  # phi_i = theta_i - theta_{i+1}
        x, y = x - half_length[link] * math.cos(theta), y - half_length[link] * math.sin(theta)
        angles.insert(0, theta)
        centres.insert(0, (x, y))
    return angles, centres


@given(poses())
def test_against_a_walk_along_the_chain(pose: tuple[RobotSpec, Measurement]) -> None:
    spec, measurement = pose
    theta = link_angles(measurement)
    mass = spec.links("link_mass_kg")
    for world in range(len(measurement.head_angle)):
        angles, centres = lay_out(spec, measurement, world)
        np.testing.assert_allclose(theta[world], angles, atol=1e-12)
        np.testing.assert_allclose(mean_angle(measurement)[world], np.mean(angles), atol=1e-12)
        centre = np.average(centres, axis=0, weights=mass)
        offset = centre - measurement.head_xy_w[world]
        np.testing.assert_allclose(centre_offset(spec, theta)[world], offset, atol=1e-11)
        np.testing.assert_allclose(tracked_point(spec, measurement, "centre")[world], centre, atol=1e-11)
        np.testing.assert_array_equal(tracked_point(spec, measurement, "head")[world], measurement.head_xy_w[world])
