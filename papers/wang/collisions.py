"""What of eq. 1-30 holds for an articulated robot, checked state by state against the shipped physics."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from snake_gym.controllers.nominal_chain import Motion, NominalChain
from snake_gym.obstacles.grid import FieldBounds, empty_arrays, write_world
from snake_gym.obstacles.shapes import Circle, features
from snake_gym.robot.presets import PEGBOARD
from snake_gym.robot.spec import FloatArray, FrictionSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot


def linearization_error(n_states: int, seed: int) -> float:
    """Largest joint acceleration [rad/s^2] that eq. 29's torques miss in random states without contact (eq. 30)."""
    rng = np.random.default_rng(seed)
    robot = SimulatedRobot(PEGBOARD, n_states, 1)
    state = robot.state
    state.link_angle[:] = rng.normal(0.0, 0.7, state.link_angle.shape)
    state.link_rate[:] = rng.normal(0.0, 1.0, state.link_rate.shape)
    state.centre_vel[:] = rng.normal(0.0, 0.3, state.centre_vel.shape)
    wanted = rng.normal(0.0, 3.0, (n_states, PEGBOARD.n_joints))
    motion = Motion(state.link_angle.copy(), state.link_rate.copy(), state.centre_vel.copy())
    acceleration, _ = robot.derivative(NominalChain(PEGBOARD).joint_torque(motion, wanted))
    return float(np.abs(acceleration[:, :-1] - acceleration[:, 1:] - wanted).max())


@dataclass(frozen=True)
class FreeLinkImpulse:
    """Eq. 12-15 in S random impacts of a chain that comes with 1 m/s, without restitution."""

    left_m_s: FloatArray
    """(S,) approach velocity left if eq. 12's impulse acts on the chain; 0 would be right."""
    torn_m_s: FloatArray
    """(S,) largest velocity at which two neighbours part at their joint if the link alone changes its velocity."""


def free_link_impulse(n_states: int, seed: int) -> FreeLinkImpulse:
    """Impulses for a link that is taken to be free, against the effective mass of the chain at the contact."""
    spec, rng = PEGBOARD, np.random.default_rng(seed)
    chain = NominalChain(spec)
    theta = np.cumsum(rng.normal(0.0, 0.5, (n_states, spec.n_links)), axis=1)
    half, mass = spec.links("link_half_length_m")[0], spec.links("link_mass_kg")[0]
    inertia, total = spec.inertia()[0], float(spec.links("link_mass_kg").sum())
    row = np.arange(n_states)
    link = rng.integers(0, spec.n_links, n_states)
    along = rng.uniform(-half, half, n_states)  # where the peg touches, from the link's centre
    normal = np.stack([-np.sin(theta), np.cos(theta)], axis=-1)[row, link]
    push = (chain.levers(theta)[row, link] * normal[:, None, :]).sum(axis=-1)
    push[row, link] += along
    mobility = (push * np.linalg.solve(chain.mass_matrix(theta), push[..., None])[..., 0]).sum(axis=1) + 1.0 / total
    impulse = 1.0 / (1.0 / mass + along**2 / inertia)
    # Of the link's own ends, where its neighbours did not move; the outer ends of tail and head have none.
    ends = np.stack(
        [impulse / mass - half * impulse * along / inertia, impulse / mass + half * impulse * along / inertia]
    )
    ends[0, link == 0] = 0.0
    ends[1, link == spec.n_links - 1] = 0.0
    return FreeLinkImpulse(1.0 - impulse * mobility, np.abs(ends).max(axis=0))


@dataclass(frozen=True)
class Throws:
    """Robots with limp joints thrown over smooth ground among pegs: any energy gained is the method's."""

    gain: float
    """Largest gain of kinetic energy in 10 ms, as a share of the throw's."""
    above: float
    """Largest energy ever, as a share of the throw's, minus 1."""
    left: float
    """Energy left at the end, as a share of the throw's, on average."""
    penetration: float
    """Deepest, as a share of the link length."""


def throw_robots(n_throws: int, seed: int, sim_dt_s: float = PEGBOARD.sim_dt_s, duration_s: float = 2.0) -> Throws:
    """``n_throws`` robots for ``duration_s`` [s], at a step of ``sim_dt_s`` [s]."""
    limp = replace(
        PEGBOARD,
        friction=FrictionSpec(tangential_ns_m=0.0, normal_ns_m=0.0),
        actuator=replace(PEGBOARD.actuator, kp=0.0, kd=0.0),
        contact=replace(PEGBOARD.contact, friction_ns_m=0.0),
        control_dt_s=0.01,
        sim_dt_s=sim_dt_s,
    )
    half, radius = float(limp.links("link_half_length_m")[0]), float(limp.links("link_radius_m")[0])
    pegs = [Circle(0.35 * i, 0.35 * j, 0.06) for i in range(-8, 9) for j in range(-8, 9) if abs(j) > 1 or abs(i) > 3]
    rows = features(pegs)
    reach = 1.5 * half + radius
    arrays = empty_arrays(n_throws, FieldBounds(len(rows), 6.0, 0.0, 0.06), reach, 0.5 * half)
    for world in range(n_throws):
        write_world(arrays, world, rows, reach)
    robot, rng = SimulatedRobot(limp, n_throws, 1, arrays), np.random.default_rng(seed)
    straight = np.zeros((n_throws, limp.n_joints))
    robot.set_shape(straight, np.zeros(n_throws), np.zeros((n_throws, 2)), "centre")
    robot.state.centre_vel[:] = rng.normal(0.0, 0.7, (n_throws, 2))
    robot.state.link_rate[:] = rng.normal(0.0, 2.0, robot.state.link_rate.shape)
    first = energy = robot.kinetic_energy()
    gain, above, depth = 0.0, 0.0, 0.0
    for _ in range(round(duration_s / limp.control_dt_s)):
        robot.step(straight)
        now = robot.kinetic_energy()
        gain = max(gain, float(((now - energy) / first).max()))
        above = max(above, float((now / first - 1.0).max()))
        depth = max(depth, float(robot.state.penetration_m.max()))
        energy = now
    return Throws(gain, above, float((energy / first).mean()), depth / (2.0 * half))
