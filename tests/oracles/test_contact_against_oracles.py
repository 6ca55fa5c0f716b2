"""Contacts and joint stops of the shipped physics against dense algebra and MuJoCo."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from snake_gym.physics.faults import LOCKED
from snake_gym.robot.spec import ContactModel, ContactSpec, FloatArray, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.contact_scenes import (
    SLIDING_SCENES,
    SlidingScene,
    discs,
    generalised_velocity,
    one_cell,
    without_ground,
)
from tests.oracles.dense_chain import DenseChain
from tests.oracles.mujoco_chain import MujocoChain, MujocoRobot
from tests.oracles.rigid_impact import (
    Impact,
    contact_rows,
    find_contacts,
    generalised_inertia,
    held_rows,
    solve_impact,
)

N_LINKS = 5
PEG_RADIUS_M = 0.03


class Collision:
    """A chain in free flight, its links ``hit`` a hair's breadth above a peg each.

    With ``depth_m`` > 0 not from a peg but from the end of a wall that goes down from there as far as that.
    """

    def __init__(self, hit: tuple[int, ...], held: tuple[int, ...] = (), depth_m: float = 0.0) -> None:
        gap_m = 1e-9
        self.spec = without_ground(N_LINKS, "rigid")
        rng = np.random.default_rng(0)
        self.theta = rng.normal(0.0, 0.4, N_LINKS)
        rate = rng.normal(0.0, 1.0, N_LINKS)
        for joint in held:
            rate[joint + 1] = rate[joint]
        self.velocity = np.concatenate([rate, [0.3, -1.5]])
        self.held = held
        chain, radius = DenseChain.of(self.spec), self.spec.links("link_radius_m")
        middle = chain.link_centres(self.theta, np.zeros(2))
        rows = []
        for link in hit:
            along = np.array([np.cos(self.theta[link]), np.sin(self.theta[link])])
            below = np.array([along[1], -along[0]])
            place = middle[link] + rng.uniform(-0.8, 0.8) * chain.half_length[link] * along
            rows.append((*(place + (radius[link] + PEG_RADIUS_M + gap_m) * below), PEG_RADIUS_M))
        self.features = discs(*rows)
        if depth_m > 0.0:
            self.features[:, 2:5] = 0.0, -1.0, depth_m
        self.contacts = find_contacts(chain, radius, self.theta, np.zeros(2), self.features, gap_m + 1e-6)
        self.rows = contact_rows(chain, self.theta, np.zeros(2), self.contacts)
        self.inertia = generalised_inertia(chain, self.theta)
        assert [contact.link for contact in self.contacts] == sorted(hit)

    def expect(self, restitution: float) -> Impact:
        return solve_impact(self.inertia, self.velocity, self.rows, restitution, held_rows(N_LINKS, list(self.held)))

    def error(self, velocity: FloatArray, expected: Impact) -> float:
        """Largest deviation of the post-impact velocities, relative to the largest change of a velocity of its kind."""
        off, change = np.abs(velocity - expected.velocity), np.abs(expected.velocity - self.velocity)
        rates, centre = slice(None, N_LINKS), slice(N_LINKS, None)
        return float(max(off[rates].max() / change[rates].max(), off[centre].max() / change[centre].max()))


COLLISIONS = [(2,), (0,), (4,), (0, 3), (1, 4), (0, 2, 4)]


# --- the oracles themselves -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hit", COLLISIONS)
def test_mujoco_impact_converges_to_the_algebra(hit: tuple[int, ...]) -> None:
    crash = Collision(hit)
    expected = crash.expect(0.0)
    errors = []
    for softness in (4e-5, 1e-5):
        chain = MujocoChain(MujocoRobot.of(crash.spec), crash.features, softness / 8, softness)
        chain.set_state(crash.theta, crash.velocity[:N_LINKS], np.zeros(2), crash.velocity[N_LINKS:])
        chain.run(6 * softness)
        errors.append(crash.error(chain.generalised_velocity(), expected))
    assert errors[1] < 0.01 and errors[1] < 0.7 * errors[0], errors


@pytest.mark.slow
@pytest.mark.parametrize("name", SLIDING_SCENES)
def test_mujoco_has_converged(name: str) -> None:
    scene = SLIDING_SCENES[name]
    fine, pressed = scene.run_mujoco(4e-5, 1e-5)
    coarse, _ = scene.run_mujoco(8e-5, 2e-5)
    assert np.abs(fine - coarse).max() < 0.001 * scene.spec.length_m
    assert pressed > 0.5, "a scene of contact"


# --- the shipped physics ----------------------------------------------------------------------------------------------


def collide(crash: Collision, contact: ContactSpec, dt_s: float, seconds: float) -> FloatArray:
    """Velocities after ``seconds`` of the shipped physics from the start of the collision."""
    spec = replace(crash.spec, contact=contact, sim_dt_s=dt_s, control_dt_s=dt_s)
    robot = SimulatedRobot(spec, 1, 1, obstacles=one_cell(crash.features))
    state = robot.state
    state.link_angle[0], state.link_rate[0], state.centre_vel[0] = (
        crash.theta, crash.velocity[:N_LINKS], crash.velocity[N_LINKS:],
    )  # fmt: skip
    robot.faults.kind[0, list(crash.held)] = LOCKED
    robot.step(np.zeros((1, N_LINKS - 1)), None, round(seconds / dt_s))
    return generalised_velocity(robot)


@pytest.mark.parametrize("hit", COLLISIONS)
@pytest.mark.parametrize("held", [(), (1,), (0, 3)])
@pytest.mark.parametrize("restitution", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("model", ["rigid", "stiff"])
def test_impact_equals_the_algebra(
    model: ContactModel, hit: tuple[int, ...], held: tuple[int, ...], restitution: float
) -> None:
    """In so short a step that nothing else happens; the stiff contact gives way a little."""
    crash = Collision(hit, held=held)
    got = collide(crash, ContactSpec(model, restitution=restitution), 1e-6, 1e-6)
    assert crash.error(got, crash.expect(restitution)) < (1e-3 if model == "rigid" else 5e-3)


@pytest.mark.parametrize("hit", COLLISIONS)
@pytest.mark.parametrize("model", ["rigid", "stiff"])
def test_links_feel_the_ends_of_walls(model: ContactModel, hit: tuple[int, ...]) -> None:
    crash = Collision(hit, depth_m=0.5)
    got = collide(crash, ContactSpec(model), 1e-6, 1e-6)
    assert crash.error(got, crash.expect(0.0)) < (1e-3 if model == "rigid" else 5e-3)


@pytest.mark.parametrize("model", ["rigid", "stiff"])
def test_a_corner_shared_by_two_edges_is_one_contact(model: ContactModel) -> None:
    """A polygon's corner below the middle of a link: two edges end there."""
    spec = without_ground(3, model)
    below = -(0.02 + 1e-9)
    corner = np.array([0.0, below])
    edges = [[*corner, math.cos(a), math.sin(a), 0.3, 0.0] for a in (-0.7, -2.5)]
    one_by_one = []
    for features in (np.array(edges), np.array(edges[:1])):
        robot = SimulatedRobot(replace(spec, sim_dt_s=1e-6, control_dt_s=1e-6), 1, 1, obstacles=one_cell(features))
        robot.state.centre_vel[0] = 0.0, -1.0
        middle = DenseChain.of(spec).link_centres(np.zeros(3), np.zeros(2))[1]
        robot.state.centre_xy[0] = -middle
        robot.step(np.zeros((1, 2)))
        assert 0.0 < robot.state.n_contacts[0] <= 1.0
        one_by_one.append(generalised_velocity(robot))
    np.testing.assert_allclose(one_by_one[0], one_by_one[1], rtol=1e-12, atol=1e-12)
    assert one_by_one[0][-1] > -0.9


@pytest.mark.parametrize("name", SLIDING_SCENES)
def test_a_second_of_sliding_equals_mujoco(name: str) -> None:
    scene: SlidingScene = SLIDING_SCENES[name]
    expected, _ = scene.run_mujoco(4e-5, 1e-5)
    models: tuple[ContactModel, ...] = ("rigid", "stiff")
    for model in models:
        got, pressed = scene.run_ours(model, 0.001)
        assert np.abs(got - expected).max() < 0.01 * scene.spec.length_m, model
        assert pressed > 0.3 or not len(scene.features), "a scene of contact"


def stopping_robot(theta: FloatArray, rate: FloatArray, stop: float, dt_s: float) -> tuple[RobotSpec, SimulatedRobot]:
    spec = without_ground(N_LINKS, "rigid", joint_stop_rad=stop, sim_dt_s=dt_s, control_dt_s=dt_s)
    robot = SimulatedRobot(spec, 1, 1)
    robot.state.link_angle[0], robot.state.link_rate[0] = theta, rate
    return spec, robot


@pytest.mark.parametrize("joints", [(1,), (0, 2)])
def test_impact_on_joint_stops_equals_the_algebra(joints: tuple[int, ...]) -> None:
    """Joints that reach their stop together; one that would swing back from it is left alone."""
    stop, gap = 0.4, 1e-9
    phi = np.full(N_LINKS - 1, 0.1)
    phi[list(joints)] = stop - gap
    theta = -np.concatenate([[0.0], np.cumsum(phi)])
    opening = np.where(np.isin(np.arange(N_LINKS - 1), joints), 1.0, -0.5)
    rate = -np.concatenate([[0.0], np.cumsum(opening)])
    spec, robot = stopping_robot(theta, rate, stop, 1e-5)
    chain = DenseChain.of(spec)
    before = np.concatenate([rate, [0.0, 0.0]])
    rows = -held_rows(N_LINKS, list(joints))
    assert (rows @ before < 0).all()
    expected = solve_impact(generalised_inertia(chain, theta), before, rows).velocity
    robot.step(np.zeros((1, N_LINKS - 1)), None, 10)
    change = np.abs(expected - before).max()
    assert np.abs(generalised_velocity(robot) - expected).max() < 0.01 * change
    assert (np.abs(robot.joint_angle()) < stop + 1e-3).all()
