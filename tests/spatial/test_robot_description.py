"""Robots as data: kinematics and masses against MuJoCo's own, model files, and wrong descriptions."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from snake_gym.config import ConfigError
from snake_gym.robot.catalogue import load_any_robot, load_robot
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.spatial.kinematics import joint_frames, place_frames, posture, rotation_of_quaternion
from snake_gym.spatial.mjcf import write_mjcf
from snake_gym.spatial.simulation import SpatialRobot
from snake_gym.spatial.spec import SpatialSpec, load_spatial_robot
from snake_gym.spatial.urdf import write_urdf

FILES = [f"configs/robot/spatial/snake_robot_{name}.yaml" for name in ("i", "ii", "iii")]
III = load_spatial_robot(FILES[2])
WHEELED = dataclasses.replace(III, wheels=dataclasses.replace(III.wheels, pairs=True))
OTHER_CHAIN = SpatialSpec(n_joints=7, head_joint="pitch", link_length_m=0.1, head_length_m=0.2, radius_m=0.03)


@pytest.mark.parametrize("spec", [*map(load_spatial_robot, FILES), WHEELED, OTHER_CHAIN], ids=lambda spec: spec.name)
def test_kinematics_and_masses_are_those_of_mujoco(spec: SpatialSpec) -> None:
    """Frames of the links (eq. 1-5) and of the sensors, and the centre of mass, at random poses and angles."""
    model = mujoco.MjModel.from_xml_string(write_mjcf(spec))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    for _ in range(5):
        angle = rng.uniform(-1.5, 1.5, spec.n_joints)
        quaternion = rng.normal(size=4)
        data.qpos[:3], data.qpos[3:7] = rng.normal(size=3), quaternion / np.linalg.norm(quaternion)
        for joint in range(spec.n_joints):
            data.joint(f"joint_{joint + 1}").qpos[0] = angle[joint]
        mujoco.mj_forward(model, data)
        rotation, origin = rotation_of_quaternion(data.qpos[3:7])[None], data.qpos[None, :3]
        frames = place_frames(joint_frames(spec, angle[None]), rotation, origin)
        for k in range(spec.n_joints):
            body = data.body(f"link_{spec.n_joints - k}")
            assert np.allclose(frames.origin[0, k], body.xpos, rtol=0.0, atol=1e-9)
            assert np.allclose(frames.rotation[0, k], body.xmat.reshape(3, 3), rtol=0.0, atol=1e-9)
        for name in ("camera_left", "camera_right", "imu"):
            frame = getattr(spec, name)
            turn = Rotation.from_euler("xyz", frame.rpy_rad).as_matrix()
            site = data.site(name)
            assert np.allclose(origin[0] + rotation[0] @ frame.xyz_m, site.xpos, rtol=0.0, atol=1e-9)
            assert np.allclose(rotation[0] @ turn, site.xmat.reshape(3, 3), rtol=0.0, atol=1e-9)
        if not spec.wheels.pairs:
            centre = posture(spec, rotation, origin, angle[None]).centre[0]
            assert np.allclose(centre, data.subtree_com[0], rtol=0.0, atol=1e-9)
    assert model.body_mass.sum() == pytest.approx(spec.mass_kg, rel=1e-12)


def test_the_published_robot_has_its_size_and_mass() -> None:
    assert III.length_m == pytest.approx(4.64)
    assert III.mass_kg == pytest.approx(38.2, abs=0.05)
    assert WHEELED.mass_kg == pytest.approx(41.0, abs=0.05)


def test_a_positive_yaw_bends_to_the_right_and_a_positive_pitch_turns_the_rear_down() -> None:
    rotation, origin = rotation_of_quaternion(np.array([[math.sqrt(0.5), 0.0, 0.0, math.sqrt(0.5)]])), np.zeros((1, 3))
    angle = np.zeros((2, 1, III.n_joints))
    angle[0, 0, -1] = angle[1, 0, -2] = 0.3  # the first yaw and pitch joint behind the head, which points along x
    yaw, pitch = (posture(III, rotation, origin, one).middle[0] for one in angle)
    assert yaw[-1, 0] > 0.0 and abs(yaw[-1, 1]) < 1e-12
    assert yaw[0, 1] < -1.0 and abs(yaw[0, 2]) < 1e-12
    assert pitch[0, 2] < -1.0 and abs(pitch[0, 1]) < 1e-12


def test_a_spatial_chain_with_still_pitch_joints_moves_as_the_planar_one() -> None:
    """Without gravity and ground, both engines bend the same chain of yaw joints; all that moves it is its servos."""
    length, mass, n = 0.16, 1.3, 6
    spatial = SpatialSpec(
        n_joints=2 * n, link_length_m=length, head_length_m=length, link_mass_kg=mass, head_mass_kg=mass,
        link_inertia_kgm2=(0.002, 0.0106, 0.0106), head_inertia_kgm2=(0.0106, 0.002, 0.0106),
        actuator={"kp": 5.0, "kd": 0.5}, joint_damping_nms_rad=0.0, joint_friction_nm=0.0,
        control_dt_s=0.1, sim_dt_s=0.001, profile="step",
    )  # fmt: skip
    pair = 2.0 * (0.0106 + mass * (0.5 * length) ** 2)
    planar = RobotSpec(
        n_links=n + 1, link_half_length_m=(length,) * n + (0.5 * length,), link_mass_kg=(2.0 * mass,) * n + (mass,),
        link_inertia_kgm2=(pair,) * n + (0.0106,), friction={"tangential_ns_m": 0.0, "normal_ns_m": 0.0},
        actuator={"kp": 5.0, "kd": 0.5}, control_dt_s=0.1, sim_dt_s=0.001,
    )  # fmt: skip
    one, other = SpatialRobot(spatial, 1, 1), SimulatedRobot(planar, 1, 1)
    one.model.opt.gravity[:] = 0.0
    start = np.zeros((1, 2 * n))
    one.set_shape(start, np.zeros(1), np.zeros((1, 2)), "centre")
    other.set_shape(np.zeros((1, n)), np.zeros(1), np.zeros((1, 2)), "centre")
    is_yaw = np.array([axis == "yaw" for axis in spatial.axes()])
    for step in range(15):
        aim = 0.5 * np.sin(1.5 * step * 0.1 + 0.7 * np.arange(n))[None]
        reference = np.zeros((1, 2 * n))
        reference[:, is_yaw] = aim
        one.step(reference)
        other.step(aim)
    assert np.abs(other.joint_angle()).max() > 0.2
    assert np.allclose(one.joint_angle()[:, is_yaw], other.joint_angle(), atol=2e-3)
    assert np.abs(one.joint_angle()[:, ~is_yaw]).max() < 1e-9
    assert np.allclose(one.state.link_angle[:, -1], other.state.link_angle[:, -1], atol=2e-3)
    assert np.allclose(one.state.head_xy, other.state.head_xy, atol=1e-3)


def test_the_model_file_of_a_planar_robot_moves_as_our_physics() -> None:
    """MuJoCo takes the file as it is, with the step that it names, and goes our way within 1 %."""
    limits = {"speed_limit_rad_s": math.inf, "torque_limit_nm": math.inf}
    spec = load_robot({"preset": "resilient_servo", "actuator": limits})
    model = mujoco.MjModel.from_xml_string(write_mjcf(spec))
    data = mujoco.MjData(model)
    ours = SimulatedRobot(spec, 1, 1)
    ours.set_shape(np.zeros((1, spec.n_joints)), np.full(1, -0.5 * math.pi), np.zeros((1, 2)))
    data.qpos[:2] = ours.state.head_xy[0] - [0.0, -spec.links("link_half_length_m")[-1]]
    start = ours.state.centre_xy[0].copy()
    for step in range(20):
        aim = 0.4 * np.sin(2.0 * step * spec.control_dt_s + 0.6 * np.arange(spec.n_joints))
        ours.step(aim[None])
        data.ctrl[: spec.n_joints] = aim
        mujoco.mj_step(model, data, round(spec.control_dt_s / model.opt.timestep))
    angle = [data.joint(f"joint_{j + 1}").qpos[0] for j in range(spec.n_joints)]
    assert np.allclose(angle, ours.joint_angle()[0], atol=3e-3)
    mujoco.mj_forward(model, data)
    way = float(np.hypot(*(ours.state.centre_xy[0] - start)))
    assert np.hypot(*(data.subtree_com[0, :2] - ours.state.centre_xy[0])) < 0.01 * way
    assert way > 0.3


def test_urdf_and_mjcf_agree() -> None:
    """MuJoCo reads the URDF too: the same masses and frames of links come out of both files."""
    fixed = ElementTree.fromstring(write_urdf(III))
    ElementTree.SubElement(ElementTree.SubElement(fixed, "mujoco"), "compiler", fusestatic="false")
    urdf = mujoco.MjModel.from_xml_string(ElementTree.tostring(fixed, encoding="unicode"))
    mjcf = mujoco.MjModel.from_xml_string(write_mjcf(III))
    two = [mujoco.MjData(urdf), mujoco.MjData(mjcf)]
    angle = np.random.default_rng(2).uniform(-1.0, 1.0, III.n_joints)
    for model, data in zip((urdf, mjcf), two, strict=True):
        data.qpos[:] = mujoco.MjData(model).qpos
        if model is mjcf:
            data.qpos[:3] = 0.0
        for joint in range(III.n_joints):
            data.joint(f"joint_{joint + 1}").qpos[0] = angle[joint]
        mujoco.mj_kinematics(model, data)
    for name in ("link_1", "link_14", "link_28"):
        assert np.allclose(two[0].body(name).xpos, two[1].body(name).xpos, atol=1e-9)
        assert np.allclose(two[0].body(name).xmat, two[1].body(name).xmat, atol=1e-9)
        assert urdf.body(name).mass == mjcf.body(name).mass


def test_export_writes_files_that_mujoco_reads(tmp_path: Path) -> None:
    for robot, name, n_actuators in ((FILES[0], "one.xml", 2 * 28), ("resilient", "two.urdf", 0)):
        out = tmp_path / name
        words = [sys.executable, "-m", "snake_gym", "export-robot", robot, "--out", str(out)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert mujoco.MjModel.from_xml_path(str(out)).nu == n_actuators
    words[-1] = str(tmp_path / "three.sdf")
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and ".xml" in done.stderr


def test_a_planar_robot_with_coulomb_friction_has_no_mjcf() -> None:
    with pytest.raises(ConfigError, match="Coulomb"):
        write_mjcf(load_any_robot("snakesys"))
    with pytest.raises(ConfigError, match="resilient has actuators of kind acceleration; expected position or torque"):
        write_mjcf(load_any_robot("resilient"))
