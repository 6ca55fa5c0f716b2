"""Friction at which Snake Robot III holds on to a pole with the torque of its servos: statics, beside the simulation.

A servo at its limit yields like a plastic hinge, so the theorem of limit analysis gives the least friction: that for
which some forces within the friction cones of the links' contacts bear the weight with no joint beyond its torque.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import linprog

from snake_gym.robot.spec import FloatArray
from snake_gym.spatial.gaits import GaitMode, Wave
from snake_gym.spatial.kinematics import joint_frames, link_frames, place_frames, rotation_of_quaternion, wind_pose
from snake_gym.spatial.spec import SpatialSpec

GRAVITY_M_S2 = 9.81
N_EDGES = 8
"""Edges of the pyramids that stand for friction cones, within them."""
PRECISION = 0.005


def even_holding_friction(spec: SpatialSpec, pole_radius_m: float) -> float:
    """Return the least friction of a robot that presses evenly on its turns.

    A pressure q per length, weight per length over friction, bends turns of radius r by up to 2 q r^2.
    """
    torque, weight = float(spec.joints("actuator.torque_limit_nm")[0]), spec.mass_kg * GRAVITY_M_S2 / spec.length_m
    return 2.0 * weight * (pole_radius_m + spec.rest_radius_m) ** 2 / torque


def holding_friction(spec: SpatialSpec, gait: GaitMode, phase_rad: float = 0.0) -> float:
    """Return the least friction at which a robot in the spiral of ``gait`` can stay on the pole inside of it.

    The links are cylinders that touch it in their middles.
    """
    wave = Wave(gait, spec)
    angle = wave.amplitude_rad * np.cos(wave.phase_rad + phase_rad)
    moments, force, radial = _loads(spec, angle)
    low, high = 0.0, 4.0
    while high - low > PRECISION:
        friction = 0.5 * (low + high)
        low, high = (low, friction) if _bears(spec, moments, force, radial, friction) else (friction, high)
    return high


def _loads(spec: SpatialSpec, angle: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what forces on the wound robot do, and the outward directions at the contacts (N, 3).

    The first (J + 6, N, 3): the moment about each joint, then force and moment on the whole, of a unit force at each
    contact; the second (J + 6,) those of the weight.
    """
    quaternion, origin = wind_pose(spec, angle)
    rotation = rotation_of_quaternion(quaternion[None])
    links = link_frames(spec, rotation, origin[None], angle[None])
    joints = place_frames(joint_frames(spec, angle[None]), rotation, origin[None])
    middle = links.origin[0]
    radial = middle * [1.0, 1.0, 0.0] / np.hypot(middle[:, 0], middle[:, 1])[:, None]
    touched = middle - spec.radius_m * radial
    mass = np.array([spec.link_mass_kg] * spec.n_joints + [spec.head_mass_kg])
    weight = -GRAVITY_M_S2 * mass[:, None] * [0.0, 0.0, 1.0]
    rows, loads = [], []
    for j in range(spec.n_joints):  # from the tail; joints' frames come from the head
        axis = joints.rotation[0, spec.n_joints - 1 - j, :, 2]
        behind = (np.arange(spec.n_links) <= j)[:, None]
        arm = joints.origin[0, spec.n_joints - 1 - j]
        rows.append(np.cross(axis, touched - arm) * behind)
        loads.append(float((np.cross(axis, middle - arm) * behind * weight).sum()))
    for turns in (False, True):
        for way in np.eye(3):
            rows.append(np.cross(way, touched) if turns else np.tile(way, (spec.n_links, 1)))
            loads.append(float((np.cross(way, middle) * weight if turns else weight @ way).sum()))
    return np.array(rows), np.array(loads), radial


def _bears(spec: SpatialSpec, moments: FloatArray, loads: FloatArray, radial: FloatArray, friction: float) -> bool:
    """Return whether forces within the friction cones bear the weight within the joints' torques."""
    up = np.array([0.0, 0.0, 1.0])
    around = np.cross(up, radial)
    bearing = 2.0 * math.pi * np.arange(N_EDGES) / N_EDGES
    tangent = np.cos(bearing)[:, None, None] * up + np.sin(bearing)[:, None, None] * around
    edges = radial + friction * tangent  # (E, N, 3)
    effect = np.einsum("rnk,enk->ren", moments, edges).reshape(len(loads), -1)
    j, torque = spec.n_joints, spec.joints("actuator.torque_limit_nm")
    found = linprog(
        np.zeros(effect.shape[1]),
        A_ub=np.concatenate([effect[:j], -effect[:j]]), b_ub=np.concatenate([torque - loads[:j], torque + loads[:j]]),
        A_eq=effect[j:], b_eq=-loads[j:],
    )  # fmt: skip
    return bool(found.status == 0)
