"""Scenes that the shipped physics and the contact oracles are both put into: one description, two models."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from snake_gym.obstacles.grid import with_ends
from snake_gym.physics.state import Obstacles
from snake_gym.robot.spec import ActuatorSpec, ContactModel, ContactSpec, FloatArray, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from tests.oracles.dense_chain import DenseChain
from tests.oracles.mujoco_chain import MujocoChain, MujocoRobot

CONTROL_DT_S = 0.05


def one_cell(features: FloatArray, n_worlds: int = 1) -> Obstacles:
    """The obstacles of all worlds in a grid of one huge cell: every link looks at every feature (F, 6)."""
    features = with_ends(features)
    n = len(features)
    return Obstacles(
        np.tile(features, (n_worlds, 1, 1)), np.tile(np.array([0, n]), (n_worlds, 1)),
        np.tile(np.arange(n), (n_worlds, 1)), np.full((n_worlds, 2), -50.0), np.ones((n_worlds, 2), np.int64),
        100.0, 50.0,
    )  # fmt: skip


def discs(*rows: tuple[float, float, float]) -> FloatArray:
    """Pegs (x, y, radius) [m] as features (F, 6)."""
    return np.array([[x, y, 1.0, 0.0, 0.0, radius] for x, y, radius in rows])


def without_ground(n_links: int, model: ContactModel, **settings: object) -> RobotSpec:
    """A robot that nothing drives and nothing brakes, on links that all differ; settings replace fields of the spec."""
    rng = np.random.default_rng(n_links)
    spec = RobotSpec(
        n_links=n_links,
        link_half_length_m=tuple(rng.uniform(0.05, 0.1, n_links).tolist()),
        link_mass_kg=tuple(rng.uniform(0.3, 1.5, n_links).tolist()),
        link_radius_m=0.02,
        friction=FrictionSpec(0.0, 0.0),
        contact=ContactSpec(model),
        actuator=ActuatorSpec("torque", 0.0, 0.0),
        control_dt_s=0.001,
        sim_dt_s=0.001,
    )
    return replace(spec, **settings)  # type: ignore[arg-type]


def generalised_velocity(robot: SimulatedRobot, world: int = 0) -> FloatArray:
    """(N + 2,): link rates, velocity of the centre of mass."""
    return np.concatenate([robot.state.link_rate[world], robot.state.centre_vel[world]])


@dataclass(frozen=True)
class SlidingScene:
    """A bent robot among obstacles, its joints following a wave for a second."""

    spec: RobotSpec
    features: FloatArray
    velocity: tuple[float, float]
    amplitude_rad: float
    frequency_rad_s: float
    swing_rad_s: float = 0.0
    """Joint rates at the start."""

    def start(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Link angles and rates, place and velocity of the centre of mass."""
        theta = np.concatenate([[0.0], -np.cumsum(0.35 * np.sin(0.9 * np.arange(self.spec.n_joints)))])
        rate = -self.swing_rad_s * np.concatenate([[0.0], np.cumsum(np.cos(1.3 * np.arange(self.spec.n_joints)))])
        return theta - theta.mean(), rate - rate.mean(), np.zeros(2), np.array(self.velocity)

    def references(self) -> FloatArray:
        """(20, J) [rad], one row for each control period of a second."""
        time = CONTROL_DT_S * np.arange(20)
        return self.amplitude_rad * np.sin(0.9 * np.arange(self.spec.n_joints) + self.frequency_rad_s * time[:, None])

    def run_mujoco(self, softness_s: float, dt_s: float) -> tuple[FloatArray, float]:
        """Link centres (20, N, 2) [m] after each control period; mean number of contacts and stops that press."""
        chain = MujocoChain(MujocoRobot.of(self.spec), self.features, dt_s, softness_s)
        chain.set_state(*self.start())
        places, pressed = [], []
        for reference in self.references():
            for _ in range(5):
                chain.run(CONTROL_DT_S / 5, reference)
                pressed.append(chain.n_contacts + chain.n_stops)
            places.append(chain.link_centres())
        return np.array(places), float(np.mean(pressed))

    def run_ours(self, model: ContactModel, sim_dt_s: float) -> tuple[FloatArray, float]:
        """The same of the shipped physics."""
        contact = replace(self.spec.contact, model=model)
        spec = replace(self.spec, control_dt_s=CONTROL_DT_S, sim_dt_s=sim_dt_s, contact=contact)
        robot = SimulatedRobot(spec, 1, 1, obstacles=one_cell(self.features))
        state = robot.state
        state.link_angle[0], state.link_rate[0], state.centre_xy[0], state.centre_vel[0] = self.start()
        places, pressed = [], []
        for reference in self.references():
            robot.step(reference[None])
            pressed.append(state.n_contacts[0])
            places.append(DenseChain.of(spec).link_centres(state.link_angle[0], state.centre_xy[0]))
        return np.array(places), float(np.mean(pressed))


def sliding_robot(pull: tuple[float, float], kp: float, kd: float, **settings: object) -> RobotSpec:
    """Six links of the published resilient robot, with servos of these gains, on ground that slopes by ``pull``."""
    steepness = float(np.hypot(*pull)) / 9.81
    spec = RobotSpec(
        n_links=6, link_radius_m=0.02, actuator=ActuatorSpec("position", kp, kd),
        incline_rad=float(np.arcsin(steepness)), incline_direction_rad=float(np.arctan2(pull[1], pull[0])),
    )  # fmt: skip
    return replace(spec, **settings)  # type: ignore[arg-type]


SLIDING_SCENES = {
    "squeezed between pegs": SlidingScene(
        sliding_robot((0.0, 0.0), 60.0, 10.0),
        np.vstack(
            [discs((0.0, 0.13, 0.04), (-0.25, -0.071, 0.04), (0.25, -0.09, 0.03)), [[0.45, -0.2, 0, 1, 0.6, 0.02]]]
        ),
        (0.5, 0.0), 0.6, 4.0,
    ),
    "down a wall onto a peg": SlidingScene(
        sliding_robot((1.5, -2.0), 10.0, 1.0),
        np.vstack([[[-0.5, -0.09, np.cos(0.15), -np.sin(0.15), 2.0, 0.02]], discs((0.75, 0.02, 0.05))]),
        (0.0, 0.0), 0.4, 3.0,
    ),
    "limp over two pegs": SlidingScene(
        sliding_robot((0.5, -2.0), 0.0, 0.05), discs((-0.2, -0.09, 0.05), (0.2, -0.13, 0.04)), (0.0, 0.0), 0.0, 0.0
    ),
    "pressed against its joint stops": SlidingScene(
        sliding_robot((0.0, 0.0), 10.0, 0.5, joint_stop_rad=0.45), np.zeros((0, 6)), (0.0, 0.0), 0.9, 5.0, 1.0
    ),
}  # fmt: skip
