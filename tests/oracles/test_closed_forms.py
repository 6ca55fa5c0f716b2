"""The shipped physics against closed forms: a sliding link, a link on an incline, a bouncing link, a robot at rest.

A robot has two links at least: "one link" is two equal ones in line, their joint locked, i.e. one rod of mass 2 m,
half length 2 l and moment of inertia 2 (m l^2 / 3 + m l^2) = (2 m) (2 l)^2 / 3, in touch with the ground at the links'
centres.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import linprog

from snake_gym.physics.faults import LOCKED
from snake_gym.physics.friction import REST
from snake_gym.robot.spec import (
    GRAVITY_M_S2,
    ActuatorSpec,
    ContactModel,
    ContactSpec,
    CoulombAxes,
    FloatArray,
    FrictionSpec,
    RobotSpec,
)  # fmt: skip
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.contact_scenes import discs, one_cell
from tests.oracles.dense_chain import DenseChain
from tests.oracles.rigid_impact import held_rows, velocity_rows

MU_T, MU_N = 0.1, 0.4
HALF_M, MASS_KG = 0.07, 1.3
DT_S = 0.002

ROD = RobotSpec(
    n_links=2,
    link_half_length_m=HALF_M,
    link_mass_kg=MASS_KG,
    link_radius_m=0.02,
    friction=FrictionSpec(0.0, 0.0, 0.0, MU_T, MU_N),
    actuator=ActuatorSpec("torque", 0.0, 0.0),
    control_dt_s=DT_S,
    sim_dt_s=DT_S,
)


def rods(spec: RobotSpec, angle: FloatArray, velocity: FloatArray, spin: float = 0.0, **more: object) -> SimulatedRobot:
    """One rod for each angle (W,) [rad], centre at the origin, moving with velocity (W, 2)."""
    robot = SimulatedRobot(spec, len(angle), 1, **more)  # type: ignore[arg-type]
    robot.state.link_angle[:] = angle[:, None]
    robot.state.link_rate[:] = spin
    robot.state.centre_vel[:] = velocity
    robot.faults.kind[:] = LOCKED
    return robot


def advance(robot: SimulatedRobot, seconds: float) -> None:
    n = round(seconds / robot.spec.sim_dt_s)
    robot.step(np.zeros((robot.n_worlds, robot.spec.n_joints)), None, n)


def heading(angle: FloatArray) -> FloatArray:
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


# --- sliding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axes", ["independent", "coupled"])
@pytest.mark.parametrize(("course", "mu"), [(0.0, MU_T), (math.pi / 2, MU_N)])
def test_stopping_distance(axes: CoulombAxes, course: float, mu: float) -> None:
    """Along or across itself, a rod of speed v slides v^2 / (2 mu g) and takes v / (mu g)."""
    angle, speed = np.array([0.3, 2.0, -1.0]), 0.8
    direction = heading(angle + course)
    robot = rods(replace(ROD, friction=replace(ROD.friction, coulomb_axes=axes)), angle, speed * direction)
    half_time = 0.5 * speed / (mu * GRAVITY_M_S2)
    n = round(half_time / DT_S)
    advance(robot, n * DT_S)
    expected = (speed - mu * GRAVITY_M_S2 * n * DT_S) * direction
    np.testing.assert_allclose(robot.state.centre_vel, expected, rtol=0, atol=1e-3 * speed)
    advance(robot, 2.0 * half_time)
    distance = speed**2 / (2 * mu * GRAVITY_M_S2)
    np.testing.assert_allclose(robot.state.centre_xy, distance * direction, rtol=0, atol=0.003 * distance)
    stopped = robot.state.centre_xy.copy()
    advance(robot, 5.0)
    np.testing.assert_allclose(robot.state.centre_xy, stopped, rtol=0, atol=1e-6 * distance)
    np.testing.assert_allclose(robot.state.link_angle, np.tile(angle[:, None], 2), atol=1e-9)


def test_oblique_sliding_with_independent_axes() -> None:
    """Each axis brakes as if the other were not there."""
    angle, speed = np.array([0.4]), np.array([0.5, 0.9])
    along, across = heading(angle)[0], heading(angle + math.pi / 2)[0]
    robot = rods(ROD, angle, (speed[0] * along + speed[1] * across)[None])
    advance(robot, 2.0)
    expected = speed**2 / (2 * np.array([MU_T, MU_N]) * GRAVITY_M_S2)
    got = np.array([along @ robot.state.centre_xy[0], across @ robot.state.centre_xy[0]])
    np.testing.assert_allclose(got, expected, rtol=0.003)


def test_oblique_sliding_with_coupled_axes() -> None:
    """v_t' / v_n' = (mu_t v_t) / (mu_n v_n), so v_t = v_t0 (v_n / v_n0)^(mu_t / mu_n); distances by quadrature."""
    angle, start_t, start_n = np.array([0.4]), 0.5, 0.9
    along, across = heading(angle)[0], heading(angle + math.pi / 2)[0]
    spec = replace(ROD, friction=replace(ROD.friction, coulomb_axes="coupled"))
    robot = rods(spec, angle, (start_t * along + start_n * across)[None])

    def over(v_n: float, component: int) -> float:
        v_t = start_t * (v_n / start_n) ** (MU_T / MU_N)
        return float((v_t, v_n)[component] * math.hypot(v_t, v_n) / (MU_N * GRAVITY_M_S2 * v_n))

    expected = [quad(over, 0.0, start_n, args=(component,))[0] for component in (0, 1)]
    advance(robot, 3.0)
    got = [along @ robot.state.centre_xy[0], across @ robot.state.centre_xy[0]]
    np.testing.assert_allclose(got, expected, rtol=0.005)


def test_spinning_rod_comes_to_rest() -> None:
    """Both links' centres move across themselves at l omega: torque 2 mu_n m g l, inertia 8/3 m l^2."""
    spin = 6.0
    robot = rods(ROD, np.array([0.2]), np.zeros((1, 2)), spin)
    brake = 2 * MU_N * GRAVITY_M_S2 / (8 / 3 * HALF_M)
    advance(robot, 2.0 * spin / brake + 0.2)
    assert robot.state.link_angle[0, 0] - 0.2 == pytest.approx(spin**2 / (2 * brake), rel=0.01)
    np.testing.assert_allclose(robot.state.centre_xy, 0.0, atol=1e-9)
    assert np.abs(robot.state.link_rate).max() < 1e-6


@pytest.mark.parametrize("viscous", [0.7, 5.0])
def test_coulomb_and_viscous_together(viscous: float) -> None:
    """m v' = -c v - mu m g: stops after (m/c) ln(1 + c v0 / (mu m g)), at (m/c) (v0 - mu g t_stop)."""
    speed = 0.8
    spec = replace(ROD, friction=replace(ROD.friction, tangential_ns_m=viscous))
    robot = rods(spec, np.array([0.0]), np.array([[speed, 0.0]]))
    rate, dry = viscous / MASS_KG, MU_T * GRAVITY_M_S2
    duration = math.log(1 + rate * speed / dry) / rate
    advance(robot, 1.5 * duration)
    assert robot.state.centre_xy[0, 0] == pytest.approx((speed - dry * duration) / rate, rel=0.005)


# --- incline ----------------------------------------------------------------------------------------------------------


# --- bouncing ---------------------------------------------------------------------------------------------------------

PULL_M_S2 = 2.0


def falling(model: ContactModel, restitution: float, dt_s: float = 0.001) -> RobotSpec:
    """A rod that falls in the direction -y with PULL_M_S2 and feels no ground."""
    return replace(
        ROD, friction=FrictionSpec(0.0, 0.0), contact=ContactSpec(model, restitution=restitution),
        incline_rad=math.asin(PULL_M_S2 / GRAVITY_M_S2), incline_direction_rad=-math.pi / 2,
        sim_dt_s=dt_s, control_dt_s=dt_s,
    )  # fmt: skip


@pytest.mark.parametrize("model", ["rigid", "stiff"])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.8, 1.0])
def test_end_on_bounces(model: ContactModel, restitution: float) -> None:
    """An upright rod dropped on a peg: the k-th bounce rises to e^(2 k) of the height of the fall."""
    height, dt_s = 0.2, 0.0005
    peg = discs((0.0, -(2 * HALF_M + ROD.link_radius_m + 0.05 + height), 0.05))
    robot = rods(falling(model, restitution, dt_s), np.array([math.pi / 2]), np.zeros((1, 2)), obstacles=one_cell(peg))
    fall = math.sqrt(2 * height / PULL_M_S2)
    above = np.array(
        [robot.state.centre_xy[0, 1] for _ in range(round(3.5 * fall / dt_s)) if advance(robot, dt_s) is None]
    )
    time = dt_s * np.arange(1, len(above) + 1)
    first = above[(time > fall) & (time < fall * (1 + 2 * restitution))] + height
    peak = first.max() if len(first) else 0.0
    assert peak == pytest.approx(restitution**2 * height, rel=0.02, abs=1e-3 * height)
    if restitution == 0.5:  # the second bounce lies within the run too
        second = above[(time > 2 * fall * 1.01) & (time < 2.5 * fall)] + height
        assert second.max() == pytest.approx(restitution**4 * height, rel=0.05)
    deepest = -(above + height).min()
    assert deepest < (0.005 if model == "rigid" else 0.03) * 2 * HALF_M
    np.testing.assert_allclose(robot.state.centre_xy[:, 0], 0.0, atol=1e-9)


# --- at rest ----------------------------------------------------------------------------------------------------------


def resting_robot(dt_s: float, seed: int, rotational_nm: float, axes: CoulombAxes = "independent") -> SimulatedRobot:
    friction = FrictionSpec(0.0, 0.0, 0.0, MU_T, MU_N, rotational_nm, axes)
    spec = RobotSpec(
        n_links=6, friction=friction, actuator=ActuatorSpec("torque", 0.0, 0.0), sim_dt_s=dt_s, control_dt_s=0.1
    )
    robot = SimulatedRobot(spec, 1, 1)
    robot.set_shape(np.random.default_rng(seed).normal(0.0, 0.6, (1, 5)), np.array([0.7]), np.zeros((1, 2)))
    return robot


def largest_load(robot: SimulatedRobot, torque: FloatArray) -> float:
    """Largest multiple of ``torque`` (J,) that ground friction can hold: limit analysis as a linear programme.

    Unknowns: the multiple, and for each link the friction force along and across and the friction torque within their
    Coulomb limits; constraints: equilibrium of all N + 2 generalised forces. No equilibrium, no rest.
    """
    spec, theta = robot.spec, robot.state.link_angle[0]
    n = spec.n_links
    velocity = velocity_rows(DenseChain.of(spec), theta)
    along, across = heading(theta), heading(theta + math.pi / 2)
    rows = [np.einsum("id,idk->ik", axis, velocity) for axis in (along, across)]
    balance = np.hstack(
        [*(r.T for r in rows), np.eye(n + 2, n), (held_rows(n, list(range(n - 1))).T @ torque)[:, None]]
    )
    limits = [
        spec.coulomb_force("tangential"),
        spec.coulomb_force("normal"),
        spec.links("friction.rotational_coulomb_nm"),
    ]
    bounds = [(-b, b) for limit in limits for b in limit] + [(0.0, None)]
    cost = np.zeros(3 * n + 1)
    cost[-1] = -1.0
    return float(linprog(cost, A_eq=balance, b_eq=np.zeros(n + 2), bounds=bounds).x[-1])


@pytest.mark.parametrize("axes", ["independent", "coupled"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("dt_s", "rotational_nm"), [(0.002, 0.0), (0.01, 0.0), (0.01, 0.05)])
def test_robot_at_rest_stays_at_rest_under_small_torque(
    dt_s: float, rotational_nm: float, seed: int, axes: CoulombAxes
) -> None:
    """Nine tenths of what friction can hold, for 10 s: the robot creeps at a few REST."""
    robot = resting_robot(dt_s, seed, rotational_nm, axes)
    torque = np.random.default_rng(seed + 100).normal(size=5)
    # Coupled axes: an ellipse of forces, which holds the rectangle of independent ones shrunk by sqrt(2).
    share = 0.9 if axes == "independent" else 0.9 / math.sqrt(2.0)
    load = share * largest_load(robot, torque) * torque
    angle, centre = robot.state.link_angle.copy(), robot.state.centre_xy.copy()
    for _ in range(100):
        robot.step(np.zeros((1, 5)), load[None])
    assert np.abs(load).max() > 0.01
    creep = 5.0 * REST * 10.0
    np.testing.assert_allclose(robot.state.link_angle, angle, rtol=0, atol=creep / HALF_M)
    np.testing.assert_allclose(robot.state.centre_xy, centre, rtol=0, atol=creep)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("rotational_nm", [0.0, 0.05])
def test_robot_moves_when_friction_cannot_hold(rotational_nm: float, seed: int) -> None:
    robot = resting_robot(0.002, seed, rotational_nm)
    torque = np.random.default_rng(seed + 100).normal(size=5)
    angle = robot.state.link_angle.copy()
    load = 1.1 * largest_load(robot, torque) * torque
    for _ in range(10):
        robot.step(np.zeros((1, 5)), load[None])
    assert np.abs(robot.state.link_angle - angle).max() > 0.01
