"""Impacts, friction at contacts and energy among obstacles against closed forms and balances of this file's own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.random_episodes import place_obstacles
from snake_gym.config import ConfigError
from snake_gym.physics.faults import LOCKED
from snake_gym.robot.spec import ActuatorSpec, ContactModel, ContactSpec, FloatArray, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.contact_scenes import discs, one_cell

MODELS = pytest.mark.parametrize("model", ["rigid", "stiff"])
WALL = np.array([[-50.0, 0.0, 1.0, 0.0, 100.0, 0.0]])
MU = 0.3
RADIUS_M = 0.02


def rod(model: ContactModel, dt_s: float, n_substeps: int, **more: float) -> RobotSpec:
    """Two links on ice, to be locked, with friction at contacts."""
    return RobotSpec(
        n_links=2, link_half_length_m=0.1, link_mass_kg=0.5, link_radius_m=RADIUS_M, friction=FrictionSpec(0.0, 0.0),
        contact=ContactSpec(model, friction_coulomb=MU), actuator=ActuatorSpec("torque", 0.0, 0.0),
        control_dt_s=n_substeps * dt_s, sim_dt_s=dt_s, **more,
    )  # fmt: skip


def lay_along_wall(spec: RobotSpec, height_m: FloatArray) -> SimulatedRobot:
    """Locked rods parallel to the wall y = 0, their surfaces ``height_m`` (W,) above it."""
    n = height_m.size
    robot = SimulatedRobot(spec, n, 1, obstacles=one_cell(WALL, n))
    robot.set_shape(np.zeros((n, 1)), np.zeros(n), np.stack([np.zeros(n), RADIUS_M + height_m], axis=1), "centre")
    robot.faults.kind[:] = LOCKED
    return robot


@MODELS
@pytest.mark.parametrize("dt_s", [0.01, 0.001])
def test_a_rod_that_hits_a_wall_loses_mu_times_the_normal_impulse_along_it(model: ContactModel, dt_s: float) -> None:
    """v = (2, -1), no restitution: v_x falls by mu times 1 m/s, at whatever moment of a step it arrives."""
    robot = lay_along_wall(rod(model, dt_s, 20), 5.0 * dt_s + np.linspace(0.0, dt_s, 25, endpoint=False))
    robot.state.centre_vel[:] = [2.0, -1.0]
    robot.step(np.zeros((25, 1)))
    np.testing.assert_allclose(robot.state.centre_vel[:, 1], 0.0, atol=1e-4)
    np.testing.assert_allclose(robot.state.centre_vel[:, 0], 2.0 - MU, rtol=1e-3)


TILT_RAD = (0.2, 0.6, 1.0, 1.2, 1.4, 1.5, -0.4, -1.2)
SLIP_M_S = (2.0, 0.3, -1.0, -3.0)
SPIN_INERTIA = 2.0 * (0.5 * 0.1**2 / 3.0 + 0.5 * 0.1**2)


def velocity_after(tilt: float, mu: float, restitution: float, vx: float) -> FloatArray:
    """Centre's velocity and rate (3,) of the locked rod, v = (vx, -1), after one impulse at its lower end.

    Newton's restitution and Coulomb's cone. Where both together would make energy, restitution is lowered until they
    do not (Kane and Levinson).
    """
    x, y = -math.copysign(0.2 * math.cos(tilt), math.sin(tilt)), -0.2 * abs(math.sin(tilt)) - RADIUS_M
    slip, rise = np.array([1.0, 0.0, -y]), np.array([0.0, 1.0, x])
    weight = np.array([1.0, 1.0, 1.0 / SPIN_INERTIA])
    tt, nn, nt = (slip * weight) @ slip, (rise * weight) @ rise, (slip * weight) @ rise

    def after(bounce: float) -> FloatArray:
        along, normal = np.linalg.solve([[tt, nt], [nt, nn]], [-vx, 1.0 + bounce])
        if not abs(along) <= mu * normal:
            for way in (1.0, -1.0):
                normal = (1.0 + bounce) / (nn - nt * mu * way)
                along = -way * mu * normal
                if normal > 0.0 and way * (vx + tt * along + nt * normal) > 0.0:
                    break
            else:
                raise AssertionError("neither sticks nor slides")
        return np.array([vx, -1.0, 0.0]) + weight * (along * slip + normal * rise)

    def energy_rises(velocity: FloatArray) -> bool:
        return bool((velocity**2 / weight).sum() > (vx**2 + 1.0) * (1.0 + 1e-9))

    if not energy_rises(after(restitution)):
        return after(restitution)
    least, most = 0.0, restitution
    for _ in range(40):
        middle = 0.5 * (least + most)
        least, most = (least, middle) if energy_rises(after(middle)) else (middle, most)
    return after(least)


@MODELS
@pytest.mark.parametrize("dt_s", [0.01, 0.001, 0.0001])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("mu", [0.0, 0.2, 0.6, 1.2])
def test_the_end_of_a_tilted_rod_meets_a_wall_in_one_impulse(
    model: ContactModel, dt_s: float, restitution: float, mu: float
) -> None:
    """Friction turns the rod and so changes the normal impulse, by up to its own size; at any moment of a step."""
    phase = np.linspace(0.06, 0.94, 4)
    tilt, vx, part = (grid.ravel() for grid in np.meshgrid(TILT_RAD, SLIP_M_S, phase, indexing="ij"))
    spec = replace(rod(model, dt_s, 10), contact=ContactSpec(model, friction_coulomb=mu, restitution=restitution))
    robot = SimulatedRobot(spec, tilt.size, 1, obstacles=one_cell(WALL, tilt.size))
    height = 0.2 * np.abs(np.sin(tilt)) + RADIUS_M + (3.0 + part) * dt_s
    robot.set_shape(np.zeros((tilt.size, 1)), tilt, np.stack([np.zeros(tilt.size), height], axis=1), "centre")
    robot.faults.kind[:] = LOCKED
    robot.state.centre_vel[:] = np.stack([vx, np.full(tilt.size, -1.0)], axis=1)
    met, found = np.full(tilt.size, 99), np.full((tilt.size, 3), np.nan)
    for step in range(8):
        robot.step(np.zeros((tilt.size, 1)), n_substeps=1)
        here = met == step - 1
        found[here] = np.column_stack([robot.state.centre_vel, robot.state.link_rate[:, 0]])[here]
        met = np.where((robot.state.n_contacts > 0.0) & (met == 99), step, met)
    expected = np.array([velocity_after(a, mu, restitution, v) for a, v in zip(tilt, vx, strict=True)])
    # The rate counts as the speed at the radius of gyration; the mass is 1 kg.
    speeds = [1.0, 1.0, math.sqrt(SPIN_INERTIA)]
    np.testing.assert_allclose(found * speeds, expected * speeds, atol=0.03, rtol=0.0)
    assert (((found * speeds) ** 2).sum(axis=1) <= (vx**2 + 1.0) * (1.0 + 1e-9)).all()


@MODELS
@pytest.mark.parametrize("dt_s", [0.01, 0.001])
@pytest.mark.parametrize("load", [0.9, 1.1])
def test_a_rod_on_a_wall_holds_within_the_cone_and_breaks_loose_beyond(
    model: ContactModel, dt_s: float, load: float
) -> None:
    """A pull with ``load`` times mu of its normal part along the wall: v = (load - 1) mu g_n t, or rest."""
    pull, turn = 3.0, math.atan(load * MU)
    spec = rod(model, dt_s, 10, incline_rad=math.asin(pull / 9.81), incline_direction_rad=turn - 0.5 * math.pi)
    robot = lay_along_wall(spec, np.zeros(1))
    for _ in range(round(1.0 / spec.control_dt_s)):
        robot.step(np.zeros((1, 1)))
    expected = max(load - 1.0, 0.0) * MU * pull * math.cos(turn)
    assert robot.state.centre_vel[0, 0] == pytest.approx(expected, rel=1e-3, abs=1e-5)


def thrown(model: ContactModel, restitution: float, dt_s: float, speed: float, n: int = 32) -> SimulatedRobot:
    """Unpowered chains of ten links among pegs in a yard with thin walls, thrown in all directions."""
    spec = RobotSpec(
        n_links=10, link_half_length_m=0.07, link_mass_kg=1.0, link_radius_m=0.03, friction=FrictionSpec(0.0, 0.0),
        contact=ContactSpec(model, restitution=restitution), actuator=ActuatorSpec("torque", 0.0, 0.0),
        control_dt_s=0.2, sim_dt_s=dt_s,
    )  # fmt: skip
    side = np.arange(-1.8, 2.0, 0.4)
    yard = np.array([
        [-2.4, -2.4, 1, 0, 4.8, 0.005], [2.4, -2.4, 0, 1, 4.8, 0.005],
        [2.4, 2.4, -1, 0, 4.8, 0.005], [-2.4, 2.4, 0, -1, 4.8, 0.005],
    ])  # fmt: skip
    rows = np.vstack([discs(*((x, y, 0.05) for x in side for y in side if abs(y) > 0.1)), yard])
    robot = SimulatedRobot(spec, n, 1, obstacles=place_obstacles(spec, [rows] * n))
    robot.set_shape(np.zeros((n, 9)), np.zeros(n), np.zeros((n, 2)), "centre")
    rng = np.random.default_rng(0)
    course = rng.uniform(-math.pi, math.pi, n)
    robot.state.link_rate[:] = speed * rng.normal(size=(n, 10))
    robot.state.centre_vel[:] = speed * np.stack([np.cos(course), np.sin(course)], axis=1)
    return robot


def energy(robot: SimulatedRobot) -> FloatArray:
    """Kinetic energy (W,) [J] from link angles, rates and the velocity of the centre of mass alone."""
    angle, lever = robot.state.link_angle, 0.07 * robot.state.link_rate
    turn = np.stack([-lever * np.sin(angle), lever * np.cos(angle)], axis=-1)
    velocity = np.cumsum(turn, axis=1) + np.concatenate(
        [np.zeros_like(turn[:, :1]), np.cumsum(turn, axis=1)[:, :-1]], 1
    )
    velocity += robot.state.centre_vel[:, None] - velocity.mean(axis=1, keepdims=True)
    return np.asarray(
        0.5 * (velocity**2).sum(axis=(1, 2)) + 0.5 * 0.07**2 / 3.0 * (robot.state.link_rate**2).sum(axis=1)
    )


@MODELS
@pytest.mark.parametrize("speed", [1.0, 5.0])
@pytest.mark.parametrize(("restitution", "dt_s"), [(0.0, 0.01), (0.8, 0.01), (1.0, 0.005), (1.0, 0.01)])
def test_no_impact_makes_energy_and_no_wall_is_passed(
    model: ContactModel, restitution: float, dt_s: float, speed: float
) -> None:
    robot = thrown(model, restitution, dt_s, speed)
    begun = energy(robot)
    touched = np.zeros(robot.n_worlds)
    for _ in range(15):
        robot.step(np.zeros((robot.n_worlds, 9)))
        touched += robot.state.n_contacts
        assert (energy(robot) <= 1.005 * begun).all()
        assert (np.abs(robot.state.centre_xy) < 2.4).all() and (np.abs(robot.state.head_xy) < 2.4).all()
        assert (robot.state.penetration_m < (0.01 if model == "rigid" else 0.03) * 0.14).all()
    assert (touched > 0.0).mean() > 0.9


@MODELS
def test_a_head_that_is_thicker_than_its_neck_keeps_its_distance_all_around(model: ContactModel) -> None:
    """Pressed by the slope against a peg and a wall, from the side and behind the neck."""
    radius = (0.02, 0.02, 0.06)
    spec = replace(rod(model, 0.005, 20), n_links=3, link_radius_m=radius, incline_rad=0.3)
    for rows in (discs((0.0, 0.0, 0.05)), WALL):
        robot = SimulatedRobot(replace(spec, incline_direction_rad=-0.5 * math.pi), 1, 1, obstacles=one_cell(rows))
        # The tail's end of the head, at x = 0, comes down on the obstacle.
        robot.set_shape(np.array([[0.0, -0.3]]), np.array([0.0]), np.array([[0.1, 0.2]]))
        robot.faults.kind[:] = LOCKED
        nearest = math.inf
        for _ in range(10):
            robot.step(np.zeros((1, 2)))
            angle, head = robot.state.link_angle[0, 2], robot.state.head_xy[0]
            along = 0.1 * np.array([math.cos(angle), math.sin(angle)])
            ends = np.linspace(head - along, head + along, 101)
            if rows is WALL:
                gap = ends[:, 1].min() - radius[2]
            else:
                gap = np.linalg.norm(ends, axis=1).min() - radius[2] - 0.05
            nearest = min(nearest, float(gap))
        assert -0.002 < nearest < 0.01


def test_what_would_go_through_obstacles_or_begins_within_one_is_refused() -> None:
    spec = rod("rigid", 0.01, 1)
    with pytest.raises(ConfigError, match=r"sim_dt_s is 0\.05; expected at most 0.01 among obstacles"):
        SimulatedRobot(replace(spec, sim_dt_s=0.05, control_dt_s=0.05), 1, obstacles=one_cell(WALL))
    with pytest.raises(ConfigError, match="world 1 begins with a link 5 mm within an obstacle"):
        lay_along_wall(spec, np.array([0.0, -0.005]))


@pytest.mark.parametrize("radius", [0.001, pytest.param(0.005, marks=pytest.mark.slow)])
def test_strong_motors_do_not_push_a_light_chain_through_a_thin_wall(radius: float) -> None:
    """20 N m on links of 50 g and 4 cm, within four walls of no thickness."""
    spec = RobotSpec(
        n_links=6, link_half_length_m=0.02, link_mass_kg=0.05, link_radius_m=radius, friction=FrictionSpec(0.1, 1.0),
        actuator=ActuatorSpec("position", 200.0, 0.5, 20.0), control_dt_s=0.1, sim_dt_s=0.01,
    )  # fmt: skip
    a, n = 0.2, 64
    walls = np.array(
        [[-a, -a, 1, 0, 2 * a, 0], [a, -a, 0, 1, 2 * a, 0], [a, a, -1, 0, 2 * a, 0], [-a, a, 0, -1, 2 * a, 0]]
    )
    robot = SimulatedRobot(spec, n, 1, obstacles=place_obstacles(spec, [walls] * n))
    robot.set_shape(np.zeros((n, 5)), np.linspace(0.0, 3.0, n), np.zeros((n, 2)), "centre")
    rng = np.random.default_rng(0)
    for _ in range(60):
        robot.step(rng.uniform(-2.0, 2.0, (n, 5)))
        assert (np.abs(robot.state.centre_xy) < a).all() and (np.abs(robot.state.head_xy) < a).all()


@MODELS
def test_the_penetration_told_is_no_less_than_the_overlap_at_the_end(model: ContactModel) -> None:
    """Ten links thrown among pegs; the distance of each peg from each link's axis."""
    robot = thrown(model, 1.0, 0.01, 5.0)
    side = np.arange(-1.8, 2.0, 0.4)
    peg = np.array([(x, y) for x in side for y in side if abs(y) > 0.1])
    deepest = 0.0
    for _ in range(100):
        robot.step(np.zeros((robot.n_worlds, 9)), n_substeps=1)
        angle = robot.state.link_angle
        along = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        middle = 0.07 * (2.0 * np.cumsum(along, axis=1) - along)
        middle += (robot.state.centre_xy - middle.mean(axis=1))[:, None]
        away = peg - middle[:, :, None]
        share = np.clip((away * along[:, :, None]).sum(axis=-1), -0.07, 0.07)
        gap = np.linalg.norm(away - share[..., None] * along[:, :, None], axis=-1) - 0.08
        overlap = np.maximum(-gap.min(axis=(1, 2)), 0.0)
        assert (robot.state.penetration_m >= overlap - 1e-9).all()
        deepest = max(deepest, float(overlap.max()))
    assert deepest > 0.0


@pytest.mark.parametrize("laws", [{}, {"joint_friction_nm": 0.0, "joint_stop_rad": 0.4}])
@pytest.mark.parametrize("dt_s", [0.01, 0.005])
def test_a_step_that_is_taken_again_in_parts_begins_with_the_laws_of_before(
    dt_s: float, laws: dict[str, float]
) -> None:
    """One joint jumps near a wall; 50 ms later, in the same control step, another follows its command as well."""

    def final(n: int) -> FloatArray:
        spec = RobotSpec(
            n_links=6, link_half_length_m=0.07, link_mass_kg=0.2, link_radius_m=0.02, friction=FrictionSpec(0.5, 2.0),
            contact=ContactSpec("rigid"), actuator=ActuatorSpec("position", 20.0, 0.2), sim_dt_s=dt_s,
            control_dt_s=0.2, **({"joint_friction_nm": 0.5} | laws),
        )  # fmt: skip
        robot = SimulatedRobot(spec, n, 1, obstacles=one_cell(WALL, n))
        delay = robot.delay_commands(0.3)
        robot.set_shape(np.zeros((n, 5)), np.zeros(n), np.tile([0.0, 0.22], (n, 1)), "centre")
        reference = np.zeros((n, 5))
        for joint, angle, delay_s in ((0, 1.0, 0.25), (4, 0.5, 0.1)):
            reference = reference.copy()
            reference[:, joint], delay.delay_s[:] = angle, delay_s
            robot.step(reference)
            robot.state.link_rate[1:] = 30.0  # the neighbour's steps are divided before they are solved
        return robot.joint_angle()

    alone = final(1)[0]
    assert alone[4] > 0.35
    np.testing.assert_array_equal(alone, final(2)[0])
