r"""All laws of the joints hold together in every step, found out from nothing but the states of three steps.

With base, length and geometry of a step known (which of the two methods it was, its angles tell), the torques m at the
joints follow from the change of momentum alone: with the links' velocities J x, x = (rates, velocity of the centre),

    J^T ((M + h C) J x' - M base) = R^T m,

in dense matrices; the rows of the centre, and the sum of all torques, are nought. Each m must lie in the whole law of
its joint: servo behind its backlash, within its limit, plus dry friction, plus what a stop pushes. The problem is
convex, so rates that fulfil these conditions are the only solution.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spec import FloatArray, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

WORLDS, STEPS = 6, 12
TOLERANCE = 1e-5
"""Torque, as a share of the torques that act."""


def chain(n_links: int, kp: float, kd: float, backlash_rad: float, friction_nm: float, stop: float) -> RobotSpec:
    servo = replace(RESILIENT_SERVO.actuator, kp=kp, kd=kd, speed_limit_rad_s=math.inf, backlash_rad=backlash_rad)
    return replace(
        RESILIENT_SERVO, n_links=n_links, actuator=servo, joint_friction_nm=friction_nm, joint_stop_rad=stop,
        control_dt_s=0.01,
    )  # fmt: skip


CHAINS = {
    "40 links, all": chain(40, 500.0, 1.0, 0.02, 0.3, 0.3),
    "40 links without stops": chain(40, 500.0, 1.0, 0.02, 0.3, math.inf),
    "40 links, friction alone": chain(40, 500.0, 1.0, 0.0, 0.3, math.inf),
    "40 links without friction": chain(40, 500.0, 1.0, 0.02, 0.0, 0.3),
    "20 links, all": chain(20, 200.0, 5.0, 0.02, 0.3, 0.3),
}


class Moment(NamedTuple):
    """State of all worlds after a step."""

    theta: FloatArray
    rate: FloatArray
    centre_vel: FloatArray
    lash: FloatArray


def run(spec: RobotSpec, n_steps: int) -> tuple[SimulatedRobot, FloatArray]:
    """The robot after one call of ``n_steps`` steps from a random state, and its references (W, J)."""
    rng = np.random.default_rng(5)
    robot = SimulatedRobot(spec, WORLDS, 1)
    shape = rng.uniform(-0.25, 0.25, (WORLDS, spec.n_joints))
    robot.set_shape(shape, np.zeros(WORLDS), np.zeros((WORLDS, 2)))
    robot.state.link_rate[:] = rng.normal(size=(WORLDS, spec.n_links))
    references = rng.uniform(-0.6, 0.6, (WORLDS, spec.n_joints))
    robot.step(references, None, n_steps)
    return robot, references


def velocities(spec: RobotSpec, theta: FloatArray) -> FloatArray:
    """J (2 N, N + 2): velocities of the links along x and y from rates and velocity of the centre."""
    half, mass = spec.links("link_half_length_m"), spec.links("link_mass_kg")
    place = np.tril(np.tile(2.0 * half, (spec.n_links, 1)), -1) + np.diag(half)
    place -= mass @ place / mass.sum()
    one, none = np.ones((spec.n_links, 1)), np.zeros((spec.n_links, 1))
    return np.block([[-place * np.sin(theta), one, none], [place * np.cos(theta), none, one]])


def momenta(spec: RobotSpec, theta: FloatArray, h: float) -> FloatArray:
    """M + h C (2 N, 2 N) of the links' velocities."""
    sin, cos = np.sin(theta), np.cos(theta)
    c_t, c_n = spec.links("friction.tangential_ns_m"), spec.links("friction.normal_ns_m")
    xx, yy, xy = c_t * cos**2 + c_n * sin**2, c_t * sin**2 + c_n * cos**2, (c_t - c_n) * sin * cos
    mass = np.diag(np.tile(spec.links("link_mass_kg"), 2))
    drag = np.block([[np.diag(xx), np.diag(xy)], [np.diag(xy), np.diag(yy)]])
    return mass + h * drag


def servo_torque(spec: RobotSpec, error: FloatArray, rate: FloatArray, lash: FloatArray, h: float) -> FloatArray:
    """Torque of servos with the error after the step [rad], the rate, and the base of their lead in the gears."""
    kp, kd = spec.joints("actuator.kp"), spec.joints("actuator.kd")
    play, most = 0.5 * spec.joints("actuator.backlash_rad"), spec.joints("actuator.torque_limit_nm")
    idle = (kp * error - kd * (rate - lash / h)) / (kp + kd / h)
    lead = np.clip(idle, -play, play)
    return np.clip(kp * (error - lead) - kd * (rate + (lead - lash) / h), -most, most)


@pytest.mark.parametrize("name", CHAINS)
def test_the_joints_of_long_stiff_chains_obey_all_their_laws_in_every_step(name: str) -> None:
    spec = CHAINS[name]
    dt = spec.control_dt_s
    stop, dry = spec.joints("joint_stop_rad"), spec.joints("joint_friction_nm")
    mass, inertia = np.tile(spec.links("link_mass_kg"), 2), spec.inertia()
    c_r = spec.links("friction.rotational_nms_rad")
    moments = []
    for n_steps in range(1, STEPS + 1):
        robot, references = run(spec, n_steps)
        state = robot.state
        assert state.stood_still.sum() == 0
        lash = state.lash_rad if spec.actuator.imperfections else np.zeros_like(references)
        moments.append(Moment(state.link_angle, state.link_rate, state.centre_vel, lash))
    n_stuck = n_slides = n_stopped = n_limited = n_loose = 0
    for w in range(WORLDS):
        links: list[FloatArray] = []
        for k in range(2, STEPS):
            now, last, before = (Moment(*(values[w] for values in moments[i])) for i in (k, k - 1, k - 2))
            smooth = np.allclose(now.theta, (4 * last.theta - before.theta + 2 * dt * now.rate) / 3, atol=1e-12, rtol=0)
            euler = np.allclose(now.theta, last.theta + dt * now.rate, atol=1e-12, rtol=0)
            assert smooth != euler
            alpha, beta, h = (4 / 3, 1 / 3, 2 / 3 * dt) if smooth else (1.0, 0.0, dt)
            foreseen = last.rate + (last.rate - before.rate if smooth else 0.0)
            base = alpha * last.theta - beta * before.theta
            theta = base + h * foreseen
            jacobian = velocities(spec, theta)
            links.append(jacobian @ np.r_[now.rate, now.centre_vel])
            if len(links) < 3:
                continue
            gain = momenta(spec, theta, h) @ links[-1] - mass * (alpha * links[-2] - beta * links[-3])
            force = jacobian.T @ gain
            force[:-2] += inertia * (now.rate - alpha * last.rate + beta * before.rate) + h * c_r * now.rate
            torque = np.cumsum(force[:-2])[:-1] / h
            scale = 8.0 + np.abs(torque).max()
            assert np.abs(force[-2:]).max() < 1e-9 * scale and abs(force[:-2].sum()) < 1e-9 * scale
            angle, rate = -np.diff(now.theta), -np.diff(now.rate)
            lead = alpha * last.lash - beta * before.lash
            servo = servo_torque(spec, references[w] - angle, rate, lead, h)
            rests, stopped = np.abs(rate) < 1e-6, np.abs(angle) > stop - 1e-7
            least = servo - np.where(rests, dry, dry * np.sign(rate))
            most = servo + np.where(rests, dry, -dry * np.sign(rate))
            least[stopped & (angle > 0.0)] = -math.inf
            most[stopped & (angle < 0.0)] = math.inf
            assert (torque > least - TOLERANCE * scale).all(), (w, k, (least - torque).max())
            assert (torque < most + TOLERANCE * scale).all(), (w, k, (torque - most).max())
            assert (np.abs(angle) <= stop + 1e-7).all()
            n_stuck += int((rests & ~stopped).sum())
            n_slides += int((~rests).sum())
            n_stopped += int(stopped.sum())
            n_limited += int((np.abs(servo) == 8.0).sum())
            n_loose += int((servo == 0.0).sum())
    assert n_slides > 100 and n_limited > 50
    assert (n_stuck > 10) == (dry.max() > 0.0)
    assert (n_loose > 5) == bool(spec.actuator.imperfections)
    assert (n_stopped > 50) == bool(np.isfinite(stop).all())


@pytest.mark.parametrize("friction_nm", [0.1, 0.3])
def test_a_long_limp_chain_with_dry_joints_moves_on_dry_ground(friction_nm: float) -> None:
    """Links that rest on the ground hold the joints between them by far more than their own inertia."""
    ground = FrictionSpec(tangential_ns_m=0.1, normal_ns_m=1.0, tangential_coulomb=0.1, normal_coulomb=0.4)
    spec = replace(chain(50, 1.0, 0.0, 0.0, friction_nm, math.inf), friction=ground)
    rng = np.random.default_rng(0)
    robot = SimulatedRobot(spec, 8)
    shape = rng.uniform(-0.5, 0.5, (8, spec.n_joints)), rng.uniform(-1.0, 1.0, 8)
    robot.set_shape(*shape, np.zeros((8, 2)), "centre")
    robot.params.kp[:] = robot.params.kd[:] = 0.0
    robot.params.body_acc[:] = 1.5, 0.5
    robot.step(np.zeros((8, spec.n_joints)), n_substeps=100)
    assert not robot.state.stood_still.any()
