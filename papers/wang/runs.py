"""Runs of wang: random pegboards crossed, targets visited, a trajectory followed, and its equations checked in states.

Pegboards (``SnakeGym/ObstacleField-v0``) are seeded. Crossed: the head comes within 0.15 m of the goal, three robot
lengths from the start and behind all pegs, in time. Where a way for the robot's wave is guaranteed, the controller is
guided by a point of it a third of a robot length ahead (see ``tasks.obstacle_field``); elsewhere nothing but room for a
stretched robot is, and the controller knows the goal alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from papers.drives import Drive, Follower, PathGuide, TargetSequence, drive, place
from snake_gym.config import build
from snake_gym.controllers import make_controller
from snake_gym.controllers.line_of_sight import LineOfSight, LineOfSightConfig
from snake_gym.controllers.nominal_chain import Motion, NominalChain
from snake_gym.envs import ObstacleFieldConfig
from snake_gym.envs.core import SnakeCore
from snake_gym.obstacles.fields import FieldConfig, FieldMaker
from snake_gym.obstacles.grid import empty_arrays, with_ends, write_world
from snake_gym.obstacles.polyline import Path
from snake_gym.robot.presets import PEGBOARD
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.tasks.obstacle_field import robot_extent

CONTROLLER: dict[str, Any] = {
    "kind": "pfl",
    "amplitude_rad": math.radians(30.0),
    "frequency_rad_s": 1.5,
    "phase_shift_rad": math.radians(40.0),
    "position_gain_per_s2": 25.0,
    "rate_gain_per_s": 10.0,
    "heading_gain": 0.6,
    "offset_bandwidth_rad_s": 1.5,
}
"""Our parameters, as the paper gives none: about one wave on the robot, joint errors gone in half a second."""
EQ32 = {**CONTROLLER, "feedforward": False}
STRONG = replace(
    PEGBOARD,
    name="pegboard_strong",
    actuator=replace(PEGBOARD.actuator, torque_limit_nm=math.inf),
    control_dt_s=0.02,
)
"""Robot of unlimited torques and short samples: eq. 32 acts alone (``controllers.feedback_linearization``)."""

LINK_M = float(2.0 * PEGBOARD.links("link_half_length_m").min())
LANE_M = 2.0 * robot_extent(PEGBOARD, math.radians(20.0), math.radians(30.0), "head").clearance_m
"""Width that a small wave of the robot takes."""
SETTLED_S = 10.0
"""Duration of the start that following errors leave out [s]."""
TIME_LIMIT_S = 120.0


class Crossings(NamedTuple):
    """Results on B boards of one kind."""

    gap_lanes: float
    """Gap between pegs, before they are moved at random, over ``LANE_M``."""
    guaranteed: bool
    """True if a way for the robot's wave is, and is shown to the controller."""
    crossed: NDArray[np.bool_]
    """(B,) True for crossed boards."""
    time_s: FloatArray
    """(B,) [s] time to cross, inf if not crossed."""
    penetration_m: FloatArray
    """(B,) [m] deepest penetration, at any sub-step."""
    energy_gain_j: FloatArray
    """(B,) [J] largest gain of kinetic energy in a control step beyond the positive work of the joints."""
    contact_share: FloatArray
    """(B,) share of the time with at least one contact."""
    most_contacts: FloatArray
    """(B,) largest number of contacts, mean over a control step."""
    peak_force_n: FloatArray
    """(B,) [N] largest force on one link, mean over a control step."""


def cross_boards(
    n_boards: int, gap_lanes: float, guaranteed: bool, seed: int, advance: Callable[[float], None]
) -> Crossings:
    """Run the controller over boards ``seed .. seed + n_boards - 1`` with such gaps, all side by side."""
    room = None if guaranteed else float(PEGBOARD.links("link_radius_m").max())
    settings = {
        "robot": PEGBOARD.name,
        "time_limit_s": TIME_LIMIT_S,
        "action": {"kind": "residual", "controller": CONTROLLER},
        "field": {"kind": "pegboard", "gap_m": gap_lanes * LANE_M, "clearance_m": room},
        "goal": {"guidance": "route" if guaranteed else "goal"},
        "faults": {"n_max": 0},
        "n_threads": 1,
    }
    core = SnakeCore(build(ObstacleFieldConfig, settings, "env"), n_boards)
    core.reset(seed + np.arange(n_boards))
    robot, still = cast(SimulatedRobot, core.robot), np.zeros(core.action.shape)
    gain = np.full(n_boards, -np.inf)
    most, peak, age = np.zeros(n_boards), np.zeros(n_boards), np.zeros(n_boards)
    energy, work = robot.kinetic_energy(), core.robot.state.work_j.copy()
    while core.live.any():
        live = core.live.copy()
        core.step(still)
        state = core.robot.state
        now = robot.kinetic_energy()
        gain = np.where(live, np.maximum(gain, now - energy - (state.work_j - work)), gain)
        energy, work = now, state.work_j.copy()
        force = np.hypot(state.contact_force[..., 0], state.contact_force[..., 1])
        most = np.where(live, np.maximum(most, state.n_contacts), most)
        peak = np.where(live, np.maximum(peak, force.max(axis=1)), peak)
        age = np.where(live, state.time_s, age)
        advance(float(age.max()) / TIME_LIMIT_S)
    infos = core.infos()
    return Crossings(
        gap_lanes, guaranteed, infos["is_success"], infos["time_to_goal_s"], infos["penetration_m"], gain,
        infos["contact_time_s"] / age, most, peak,
    )  # fmt: skip


TARGETS = ((2.0, 1.0), (4.0, 0.6), (5.2, -1.0), (3.8, -2.4), (1.6, -2.0))
"""Targets [m] on free ground; the paper does not give its own."""
RADIUS_M = 0.15
"""Distance of the centre of mass at which a target is reached."""
SPACING_M = 0.8
"""Distance between targets on the way through a pegboard."""
LOOKAHEAD_M = 0.7
"""Look-ahead on the trajectory: half a robot."""
_SECONDS_PER_M = 20.0
"""Time allowed for a course, per metre."""


class Course(NamedTuple):
    """Targets and the robots' motion through them."""

    targets_xy: FloatArray
    """(W, K, 2) [m] targets."""
    features: tuple[FloatArray, ...]
    """Obstacles of each of W worlds, (k, 6) each."""
    run: Drive

    @property
    def complete(self) -> float:
        """Share of the W robots that reached every target."""
        return float((self.run.reached[-1] == self.targets_xy.shape[1]).mean())


def free_course(advance: Callable[[float], None], n_targets: int = 5) -> Course:
    """Drive the sequence of ``TARGETS`` on free ground."""
    targets = np.array(TARGETS[:n_targets])[None]
    return _visit(SimulatedRobot(PEGBOARD, 1, 1), targets, (np.zeros((0, 6)),), advance)


def without_pegs(course: Course, advance: Callable[[float], None]) -> Course:
    """Drive the same courses on free ground."""
    n = len(course.targets_xy)
    return _visit(SimulatedRobot(PEGBOARD, n, 1), course.targets_xy, (np.zeros((0, 6)),) * n, advance)


def pegboard_courses(n_boards: int, difficulty: float, seed: int, advance: Callable[[float], None]) -> Course:
    """Drive to targets every ``SPACING_M`` on the way through random pegboards; the robot sees the next target only."""
    spec = PEGBOARD
    extent = robot_extent(spec, math.radians(20.0), math.radians(30.0), "centre")
    maker = FieldMaker(FieldConfig(kind="pegboard", difficulty=difficulty), extent)
    half, radius = float(spec.links("link_half_length_m").max()), float(spec.links("link_radius_m").max())
    skin = 0.5 * half
    reach = half + radius + skin
    arrays = empty_arrays(n_boards, maker.bounds.with_ends(), reach, skin)
    targets, shown = [], []
    for board in range(n_boards):
        field = maker.make(np.random.default_rng(seed + board))
        write_world(arrays, board, with_ends(field.features), reach)
        path = Path(field.route[np.r_[True, np.any(np.diff(field.route, axis=0) != 0.0, axis=1)]])
        count = math.ceil(3.0 * spec.length_m / SPACING_M)
        targets.append(path.place(path.length_m * np.arange(1, count + 1) / count))
        shown.append(field.features)
    robot = SimulatedRobot(spec, n_boards, 1, arrays)
    return _visit(robot, np.stack(targets), tuple(shown), advance)


def _visit(
    robot: SimulatedRobot, targets: FloatArray, features: tuple[FloatArray, ...], advance: Callable[[float], None]
) -> Course:
    n = robot.n_worlds
    place(robot, np.zeros((n, robot.spec.n_joints)), np.zeros(n), np.zeros((n, 2)))
    guide = TargetSequence(targets, RADIUS_M)
    way = np.linalg.norm(np.diff(targets, axis=1, prepend=0.0), axis=2).sum(axis=1).max()
    follower = Follower(make_controller(CONTROLLER, robot.spec), guide)
    seconds = float(_SECONDS_PER_M * way)
    run = drive(robot, follower, seconds, advance, lambda: bool((guide.index == targets.shape[1]).all()))
    return Course(targets, features, run)


def figure_eight() -> Path:
    """Return a figure eight, ``x = 3 sin s, y = 3 sin s cos s`` [m]; it starts at its crossing and turns both ways."""
    s = np.linspace(0.0, 2.0 * math.pi, 720, endpoint=False)
    return Path(3.0 * np.stack([np.sin(s), np.sin(s) * np.cos(s)], axis=1), closed=True)


def follow_trajectory(
    controller: Mapping[str, Any], duration_s: float, advance: Callable[[float], None], spec: RobotSpec = PEGBOARD
) -> Drive:
    """Drive the centre of mass along the figure of eight without a break, guided by line of sight."""
    robot, path = SimulatedRobot(spec, 1, 1), figure_eight()
    direction = path.tangent(np.zeros(1))[0]
    heading = np.array([math.atan2(direction[1], direction[0])])
    place(robot, np.zeros((1, robot.spec.n_joints)), heading, path.place(np.zeros(1)))
    sight = LineOfSight(path, LineOfSightConfig(LOOKAHEAD_M, "path"))
    return drive(robot, Follower(make_controller(controller, spec), PathGuide(sight, 1)), duration_s, advance)


def linearization_error(n_states: int, seed: int) -> float:
    """Return the worst joint acceleration error [rad/s^2] of eq. 29's torques in random states (eq. 30; no contact)."""
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


def free_link_impulse(n_states: int, seed: int) -> FloatArray:
    """Return the approach velocity (S,) [m/s] left after eq. 12's impulse of a free link acts on the chain.

    Random impacts of a chain that comes with 1 m/s, without restitution (eq. 12-15); 0 would be right.
    """
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
    return np.asarray(1.0 - impulse * mobility)


class Results(NamedTuple):
    """Results of all runs of the study."""

    crossings: Sequence[Crossings]
    free: Course
    pegs: Course
    bare: Course
    """Courses of ``pegs`` without the pegs."""
    followed: Drive
    """Drive along the trajectory with feed-forward."""
    lagging: Drive
    """Drive along the trajectory by eq. 32 alone."""
    linearization_rad_s2: float
    impulse_left_m_s: FloatArray
    """(S,) see ``free_link_impulse``."""


def joint_error_deg(run: Drive) -> float:
    """Return the root mean square of the joints' errors from their gait [deg]."""
    error = (run.wanted - run.joint_angle)[run.time_s > SETTLED_S]
    return float(np.degrees(np.sqrt((error**2).mean())))


def peak_acceleration(run: Drive, step_s: float) -> float:
    """Return the largest change of the centre of mass's velocity from one control step to the next [m/s^2]."""
    change = np.diff(run.centre_vel, axis=0)[5:]
    return float(np.hypot(change[..., 0], change[..., 1]).max() / step_s)
