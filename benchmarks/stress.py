"""Random robots thrashing about in dense fields: does anything break?

    python benchmarks/stress.py [--worlds 10000] [--model stiff rigid] [--dt 0.01] [--seconds 60] [--jobs 2]
                                [--servos 200] [--seed 17]

A world is 60 s of a random robot in a small yard with four closed walls. Worlds come in groups of 32, each with a robot
(2 to 64 links that all differ, servos with or without imperfections, torque motors, rarely muscles or accelerations,
random friction or none, restitution 0 to 1), a contact law, a step up to 10 ms, a kind of field (discs, capsules,
polygons and thin walls at random, or one of the library's own), faults of random kinds as ``FaultConfig`` draws them
(two of a joint, in bursts, with ranges) and random wide ranges of a random half of what ``RandomisationConfig`` has; so
all worlds of a group differ. References or torques are random and change every 0.2 s; a quarter of the time all joints
are without power, so that nothing may gain energy then. What is refused before the start is drawn anew. Checked,
with code of its own for geometry and energy (plain numpy from link angles and centres of mass and each world's own
masses, their places, and lengths):

* ``finite``: all numbers of state and sensors are;
* ``penetration``: deepest overlap of a link and an obstacle, per length of the robot's shortest link, the larger of
  what the physics reports (every sub-step) and what is found here (every control step);
* ``outside``: a link's end has got beyond the middle of a closed wall;
* ``energy``: kinetic energy + potential on the slope, minus its value a control step before, minus the positive work
  of the actuators in between (none while they are off); the largest of these, per the largest kinetic energy of the
  world or 1 mJ if that is more; ``coasting`` the same of the steps without power alone, which is what the bar is for:
  with power, the sum of the work has an error of its own where a servo's rate jumps within one step. What the springs
  of stiff contacts held a control step before (those of the deepest overlap of each link) may come back. Steps in
  which a random push acts are left out. Without power means: gains and torques 0; muscles, vented at once, and joints
  driven by their acceleration are free;
* ``gap``: joints apart, per link length: head as the physics tracks it against head from the centre of mass;
* ``stood``: share of the solutions whose laws could not be settled, so that the world stood still (counted only).

``--seed`` runs one group alone.

``--servos`` runs episodes of 10 s besides, without obstacles: the same robots, all with stops and with servos far too
stiff for their torque limit, so that nearly all joints are at a limit, a stop or on the way from one to the other.
Checked in every sub-step: kinetic energy gained beyond the sum of torque limit times angle turned, per the largest.

Exit status 1: a bar missed.
"""

from __future__ import annotations

import argparse
import json
import math
import operator
import sys
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from tqdm import tqdm

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.random_episodes import (
    CONTROL_DT_S,
    FIELDS,
    FloatArray,
    Yard,
    deepest_overlap,
    draw_fault_settings,
    draw_randomisation,
    draw_robot,
    draw_shape,
    draw_yard,
    link_ends,
    make_fields,
    place_obstacles,
)
from snake_gym.config import Settings
from snake_gym.physics.faults import FREE
from snake_gym.physics.state import no_faults, no_obstacles
from snake_gym.robot.measurement import head_angle_for
from snake_gym.robot.spec import LONGEST_CONTACT_STEP_S, ActuatorSpec, ContactModel, RobotSpec
from snake_gym.simulation.faults import draw_faults
from snake_gym.simulation.randomisation import Randomisation
from snake_gym.simulation.sensors import ContactSensorConfig, SensorConfig, SensorSuite
from snake_gym.simulation.simulated_robot import SimulatedRobot
from snake_gym.simulation.streams import RandomStreams

WORLDS = 32
SERVO_WORLDS = 8
SERVO_DT_S = 0.002
"""Step of the robots with stiff servos."""
LIMITS = {"rigid": 0.01, "stiff": 0.03}
"""Deepest penetration allowed, per link length."""
MOST_ENERGY, WIDEST_GAP = 5e-3, 1e-9
"""Energy from nowhere and joints apart that are allowed for the sake of the integration's own error: an impact acts in
the geometry of its step's end, which a link of speed v and half length l has turned by dt v / l, 1 % at 5 ms."""
STEPS_S = (0.01, 0.008, 0.005, 0.004, 0.002, 0.02)
"""Steps, of which the last is refused among obstacles; drawn with these chances:"""
STEP_CHANCES = (0.6, 0.1, 0.1, 0.1, 0.07, 0.03)
DRAWS = 1000
"""Most settings of a group that may be refused."""


@dataclass(frozen=True)
class Episode:
    """What a world came to; see the module's text."""

    seed: int
    world: int
    model: ContactModel
    finite: bool
    penetration: float
    outside: bool
    energy: float
    coasting: float
    gap: float
    contacts: float
    """Mean number of touching contacts."""
    largest_energy_j: float
    stood: float = 0.0

    def broken(self) -> list[str]:
        """Names of the bars that it misses."""
        missed = {
            "finite": not self.finite, "penetration": self.penetration > LIMITS[self.model], "outside": self.outside,
            "coasting": self.coasting > MOST_ENERGY, "gap": self.gap > WIDEST_GAP,
        }  # fmt: skip
        return [name for name, is_missed in missed.items() if is_missed]


class Watch:
    """Energy, penetration and joint gaps of a robot, worked out from its state."""

    def __init__(self, robot: SimulatedRobot, yards: list[Yard]) -> None:
        self.robot, self.yards, w = robot, yards, robot.n_worlds
        params = robot.params
        self.shortest = 2.0 * params.half_length.min(axis=1)
        self.low, self.high = (np.array([getattr(yard, name) for yard in yards])[:, None] for name in ("low", "high"))
        self.pull = params.body_acc.copy()
        """Pull of the slope (W, 2) [m/s^2], without pushes."""
        self.finite, self.outside = np.ones(w, bool), np.zeros(w, bool)
        self.penetration, self.gap, self.excess, self.coasting, self.largest = (np.zeros(w) for _ in range(5))
        self.contacts = np.zeros(w)
        self._samples = 0
        self._work = robot.state.work_j.copy()
        self._energy, self._stored = self.energy(), np.zeros(w)

    def energy(self) -> FloatArray:
        """Mechanical energy (W,) [J]."""
        state, params = self.robot.state, self.robot.params
        angle, rate, mass = state.link_angle, state.link_rate, params.mass
        turn = (params.half_length * rate)[..., None] * np.stack([-np.sin(angle), np.cos(angle)], axis=-1)
        speed = np.concatenate([np.zeros_like(turn[:, :1]), np.cumsum(turn[:, :-1] + turn[:, 1:], axis=1)], axis=1)
        speed += params.ahead[..., None] * turn
        total = mass.sum(axis=1)
        speed += (state.centre_vel - (mass[..., None] * speed).sum(axis=1) / total[:, None])[:, None]
        kinetic = 0.5 * (mass * (speed**2).sum(axis=-1) + params.inertia * rate**2).sum(axis=1)
        potential = -total * (state.centre_xy * self.pull).sum(axis=1)
        self.largest = np.fmax(self.largest, kinetic)
        return np.asarray(kinetic + potential)

    def look(self, powered: bool) -> None:
        """After a control step with the joints powered or not."""
        state, contact = self.robot.state, self.robot.spec.contact
        for number in state:
            self.finite &= np.isfinite(number).reshape(len(number), -1).all(axis=1)
        energy, pushed = self.energy(), (self.robot.params.body_acc != self.pull).any(axis=1)
        excess = np.where(pushed, 0.0, energy - self._energy - self._stored - (state.work_j - self._work))
        self.excess = np.fmax(self.excess, excess)
        if not powered:
            self.coasting = np.fmax(self.coasting, excess)
        self._energy, self._work = energy, state.work_j.copy()
        tail, head = link_ends(self.robot.params, state)
        overlap = deepest_overlap(self.yards, tail, head, self.robot.params.radius)
        if contact.model == "stiff":
            self._stored = 0.5 * contact.stiffness_n_m * (overlap**2).sum(axis=1)
        self.penetration = np.fmax(self.penetration, np.fmax(overlap.max(axis=1), state.penetration_m) / self.shortest)
        inside = [((self.low < end) & (end < self.high)).all(axis=(1, 2)) for end in (tail, head)]
        self.outside |= ~(inside[0] & inside[1])
        apart = np.linalg.norm(0.5 * (tail[:, -1] + head[:, -1]) - state.head_xy, axis=1)
        self.gap = np.fmax(self.gap, apart / self.shortest)
        self.contacts += state.n_contacts
        self._samples += 1

    def result(self, world: int, seed: int) -> Episode:
        scale, spec = max(1e-3, float(self.largest[world])), self.robot.spec
        return Episode(
            seed, world, spec.contact.model, bool(self.finite[world]), float(self.penetration[world]),
            bool(self.outside[world]), float(self.excess[world]) / scale, float(self.coasting[world]) / scale,
            float(self.gap[world]), float(self.contacts[world]) / self._samples, float(self.largest[world]),
            float(self.robot.state.stood_still[world] / (self._samples * spec.n_substeps)),
        )  # fmt: skip


class Worlds:
    """A robot in ``WORLDS`` yards, made through the same doors as an env makes it, and all that varies.

    Raises ValueError for what is refused.
    """

    def __init__(self, rng: np.random.Generator, spec: RobotSpec, seed: int, seconds: float) -> None:
        ids = np.arange(WORLDS)
        field = str(rng.choice(FIELDS, p=[0.4] + [0.6 / (len(FIELDS) - 1)] * (len(FIELDS) - 1)))
        joint_angle, heading = draw_shape(rng, spec, field, WORLDS), rng.uniform(-math.pi, math.pi, WORLDS)
        faults = accepted(spec, lambda: draw_fault_settings(rng, spec.n_joints, seconds))
        ranges = accepted(spec, lambda: draw_randomisation(rng, spec))
        nothing = no_obstacles(WORLDS)
        nothing.feature[..., 0] = 1e6
        robot = SimulatedRobot(spec, WORLDS, 1, nothing)
        robot.allow_faults(faults.present_kinds)
        self.sensors = SensorSuite(SensorConfig(), WORLDS, spec.n_joints, ContactSensorConfig())
        self.randomisation = Randomisation(ranges, spec, robot)
        self.sensors.errors = self.randomisation.sensors
        seeds, episodes = seed * WORLDS + ids, np.zeros(WORLDS, np.int64)
        self.sensors.begin(seeds, episodes, ids)
        self.randomisation.begin(seeds, episodes, ids)
        shape = joint_angle, head_angle_for(joint_angle, heading), np.zeros((WORLDS, 2)), "centre"
        robot.set_shape(*shape)
        ends, radius = link_ends(robot.params, robot.state), robot.params.radius
        others = make_fields(rng, spec, field, heading)
        self.yards = [draw_yard(rng, *each) for each in zip(*ends, radius, others, strict=True)]
        robot.obstacles = place_obstacles(spec, [yard.rows for yard in self.yards], ranges.highest("link_length"))
        robot.set_shape(*shape)
        streams = RandomStreams("faults", WORLDS)
        streams.begin(seeds, episodes, ids)
        draw_faults(faults, streams, (robot.faults, robot.second_faults), ids)
        self.robot, self.own_faults, self.off = robot, robot.faults, no_faults(WORLDS, spec.n_joints)
        self.off.kind[:] = FREE
        self.gains = [(values, values.copy()) for values in (robot.params.kp, robot.params.kd)]

    def step(self, rng: np.random.Generator, powered: bool) -> bool:
        """Advance by a control step under random commands; return whether the sensors' readings are finite."""
        robot = self.robot
        spec, shape = robot.spec, (WORLDS, robot.spec.n_joints)
        aim, push = rng.uniform(-1.2, 1.2, shape), np.zeros(shape)
        if spec.actuator.kind == "torque" and powered:
            push = robot.params.torque_limit * rng.uniform(-1.0, 1.0, shape)
        if spec.actuator.kind in ("torque", "position"):
            for values, with_power in self.gains:
                values[:] = with_power * powered
        else:
            robot.faults = self.own_faults if powered else self.off
            robot.state.muscle_pressure[:] *= powered
        self.randomisation.before_step()
        robot.step(aim, push)
        read = [values for values in self.sensors.measure(robot) if values is not None]
        return all(bool(np.isfinite(values).all()) for values in read)


def accepted(spec: RobotSpec, draw: Callable[[], Settings]) -> Any:
    """Return the first of the drawn settings that this robot admits."""
    for _ in range(DRAWS):
        with suppress(ValueError):
            drawn: Any = draw()
            drawn.check_robot(spec)
            return drawn
    raise RuntimeError(f"{DRAWS} settings were refused")


def make_worlds(
    rng: np.random.Generator, seed: int, models: Collection[ContactModel], dt_s: float | None, seconds: float
) -> Worlds:
    """Return the worlds of the first drawn robot that is not refused."""
    model, step_s = sorted(models)[rng.integers(len(models))], float(rng.choice(STEPS_S, p=STEP_CHANCES))
    for _ in range(DRAWS):
        with suppress(ValueError):
            return Worlds(rng, draw_robot(rng, model, step_s if dt_s is None else dt_s), seed, seconds)
        step_s = min(step_s, LONGEST_CONTACT_STEP_S)
    raise RuntimeError(f"{DRAWS} robots of group {seed} were refused")


def run_group(
    seed: int, seconds: float = 60.0, models: Collection[ContactModel] = ("rigid", "stiff"), dt_s: float | None = None
) -> list[Episode]:
    """The worlds of one robot; ``dt_s``: its step, None: a random one."""
    rng = np.random.default_rng(seed)
    worlds = make_worlds(rng, seed, models, dt_s, seconds)
    watch = Watch(worlds.robot, worlds.yards)
    rng = np.random.default_rng([seed, 1])
    for _ in range(round(seconds / CONTROL_DT_S)):
        powered = rng.random() < 0.75
        read = worlds.step(rng, powered)
        watch.look(powered)
        if not read or not watch.finite.all():
            watch.finite &= read
            break
    return [watch.result(world, seed) for world in range(WORLDS)]


@dataclass(frozen=True)
class ServoGroup:
    """What the episodes of one robot with stiff servos and stops came to; see the module's text."""

    seed: int
    finite: bool
    surge: float
    """Kinetic energy gained beyond what the motors could give in a sub-step, of the largest."""
    stood: int
    """Solutions in which a world stood still."""
    solutions: int


def run_servos(seed: int, seconds: float = 10.0) -> ServoGroup:
    """``SERVO_WORLDS`` episodes of a robot whose servos are far too stiff for their torque limit, between stops."""
    rng = np.random.default_rng(seed)
    spec = draw_robot(rng, "rigid", SERVO_DT_S)
    weight = 9.81 * float(spec.links("link_mass_kg").mean() * spec.links("link_half_length_m").mean())
    torque, stop = weight * float(15.0 ** rng.uniform(0.0, 1.0)), float(rng.uniform(0.3, 1.0))
    kp = torque * float(10.0 ** rng.uniform(1.0, 2.7))
    actuator = ActuatorSpec("position", kp, kp * float(10.0 ** rng.uniform(-3.0, -1.0)), torque)
    spec = replace(spec, actuator=actuator, joint_stop_rad=stop, joint_friction_nm=0.0, incline_rad=0.0)
    robot, shape = SimulatedRobot(spec, SERVO_WORLDS, 1), (SERVO_WORLDS, spec.n_joints)
    robot.set_shape(rng.uniform(-stop, stop, shape), np.zeros(SERVO_WORLDS), np.zeros((SERVO_WORLDS, 2)), "centre")
    surge, largest, finite = 0.0, 1e-3, True
    for k in range(round(seconds / SERVO_DT_S)):
        if k % 50 == 0:
            aim = rng.uniform(-stop, stop, shape)
        energy, angle = robot.kinetic_energy(), robot.joint_angle().copy()
        robot.step(aim, n_substeps=1)
        given = torque * np.abs(robot.joint_angle() - angle).sum(axis=1)
        after = robot.kinetic_energy()
        finite = finite and bool(np.isfinite(after).all())
        surge, largest = max(surge, float((after - energy - given).max())), max(largest, float(after.max()))
    # Every call begins with two solutions.
    solutions = 2 * SERVO_WORLDS * round(seconds / SERVO_DT_S)
    return ServoGroup(seed, finite, surge / largest, int(robot.state.stood_still.sum()), solutions)


def row(episodes: list[Episode], model: str) -> dict[str, Any]:
    """What all worlds of one contact model came to."""
    mine = [episode for episode in episodes if episode.model == model]
    worst = {name: max(mine, key=operator.attrgetter(name)) for name in ("penetration", "energy", "coasting", "gap")}
    return {
        "model": model, "worlds": len(mine),
        "broken": dict(Counter(name for e in mine for name in e.broken())),
        **{name: getattr(episode, name) for name, episode in worst.items()},
        "stood": float(np.mean([e.stood for e in mine])), "stood_worst": max(e.stood for e in mine),
        "mean_contacts": float(np.mean([e.contacts for e in mine])),
        "worst_seeds": {name: [e.seed, e.world] for name, e in worst.items()},
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=10_000)
    parser.add_argument("--model", nargs="+", choices=sorted(LIMITS), default=sorted(LIMITS))
    parser.add_argument("--seconds", type=float, default=60.0, help="length of an episode")
    parser.add_argument("--dt", type=float, help="step [s], a divisor of 0.2, instead of random ones")
    parser.add_argument("--jobs", type=int, default=-1, help="processes (as many as cores)")
    parser.add_argument("--seed", type=int, help="run this group alone")
    parser.add_argument("--servos", type=int, default=0, help="episodes with stiff servos and stops")
    args = parser.parse_args()
    seeds = range(math.ceil(args.worlds / WORLDS)) if args.seed is None else [args.seed]
    run = delayed(run_group)
    groups = Parallel(n_jobs=args.jobs)(run(seed, args.seconds, args.model, args.dt) for seed in tqdm(seeds))
    episodes = [episode for group in groups for episode in group]
    broken = [episode for episode in episodes if episode.broken()]
    for episode in broken:
        print(f"{', '.join(episode.broken())}: {episode}", file=sys.stderr)
    servos = [run_servos(seed) for seed in range(math.ceil(args.servos / SERVO_WORLDS))]
    rows: list[Any] = [row(episodes, model) for model in sorted({episode.model for episode in episodes})]
    print(json.dumps([*rows, *map(vars, servos)], indent=1))
    surging = [group for group in servos if not group.finite or group.surge > MOST_ENERGY]
    return int(bool(surging or broken))


if __name__ == "__main__":
    sys.exit(main())
