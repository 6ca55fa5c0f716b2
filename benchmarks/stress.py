"""Random robots thrashing about in dense fields: does anything break?

    python benchmarks/stress.py [--worlds 10000] [--model stiff rigid] [--dt 0.01] [--seconds 60] [--jobs 2] [--out DIR]
                                [--json -] [--plot PNG] [--servos 200] [--seed 17 [--without push_m_s locked ...]]

A world is 60 s of a random robot in a small yard with four closed walls. Worlds come in groups of 32, each with a robot
(2 to 64 links that all differ, servos with or without imperfections, torque motors, rarely muscles or accelerations,
random friction or none, restitution 0 to 1), a contact law, a step up to 10 ms, a kind of field (discs, capsules,
polygons and thin walls at random, or one of the library's own), faults of random kinds as ``FaultConfig`` draws them
(two of a joint, in bursts, with ranges) and random wide ranges of a random half of what ``RandomisationConfig`` has; so
all worlds of a group differ. References or torques are random and change every 0.2 s; a quarter of the time all joints
are without power, so that nothing may gain energy then. What is refused before the start is counted with its message,
and drawn anew. Checked, with code of its own for geometry and energy (plain numpy from link angles and centres of mass
and each world's own masses, their places, and lengths):

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

``--seed`` runs one group alone and tells its settings and each world that breaks a bar; ``--without`` leaves quantities
of the randomisation or kinds of faults out by name (also: faults, second, bursts, randomisation, field), which moves
no other draw.

``--servos`` runs episodes of 10 s besides, without obstacles: the same robots, all with stops and with servos far too
stiff for their torque limit, so that nearly all joints are at a limit, a stop or on the way from one to the other.
Checked in every sub-step: kinetic energy gained beyond the sum of torque limit times angle turned, per the largest.

``--out`` keeps every finished group as a line of JSON, and a run goes on where it stopped. Exit status 1: a bar missed.
"""

from __future__ import annotations

import argparse
import json
import math
import operator
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.random_episodes import (
    CONTROL_DT_S,
    FIELDS,
    FloatArray,
    NearFeatures,
    Yard,
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
    wall_s: float
    stood: float = 0.0

    def broken(self) -> list[str]:
        """Names of the bars that it misses."""
        missed = {
            "finite": not self.finite, "penetration": self.penetration > LIMITS[self.model], "outside": self.outside,
            "coasting": self.coasting > MOST_ENERGY, "gap": self.gap > WIDEST_GAP,
        }  # fmt: skip
        return [name for name, is_missed in missed.items() if is_missed]


@dataclass(frozen=True)
class Group:
    """The worlds of one robot, what it was, and what was refused before."""

    seed: int
    setting: dict[str, Any]
    refused: list[str]
    episodes: list[Episode]


class Watch:
    """Energy, penetration and joint gaps of a robot, worked out from its state."""

    def __init__(self, robot: SimulatedRobot, yards: list[Yard]) -> None:
        self.robot, w = robot, robot.n_worlds
        params = robot.params
        self.shortest = 2.0 * params.half_length.min(axis=1)
        self.near = NearFeatures(yards, float((params.half_length + params.radius).max()))
        self.low, self.high = (np.array([getattr(yard, name) for yard in yards])[:, None] for name in ("low", "high"))
        self.pull = params.body_acc.copy()
        """Pull of the slope (W, 2) [m/s^2], without pushes."""
        self.finite, self.outside = np.ones(w, bool), np.zeros(w, bool)
        self.penetration, self.gap, self.excess, self.coasting, self.largest = (np.zeros(w) for _ in range(5))
        self.contacts = np.zeros(w)
        self._samples = 0
        self._work = robot.state.work_j.copy()
        self._energy, self._stored = self.energy(), np.zeros(w)

    def overlap(self, tail: FloatArray, head: FloatArray) -> FloatArray:
        """Deepest overlap of each link with a feature (W, N) [m]."""
        w, i, gap = self.near.gaps(tail, head, self.robot.params.radius)
        deepest = np.zeros(tail.shape[:2])
        np.maximum.at(deepest, (w, i), -gap)
        return deepest

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
        overlap = self.overlap(tail, head)
        if contact.model == "stiff":
            self._stored = 0.5 * contact.stiffness_n_m * (overlap**2).sum(axis=1)
        self.penetration = np.fmax(self.penetration, np.fmax(overlap.max(axis=1), state.penetration_m) / self.shortest)
        inside = [((self.low < end) & (end < self.high)).all(axis=(1, 2)) for end in (tail, head)]
        self.outside |= ~(inside[0] & inside[1])
        apart = np.linalg.norm(0.5 * (tail[:, -1] + head[:, -1]) - state.head_xy, axis=1)
        self.gap = np.fmax(self.gap, apart / self.shortest)
        self.contacts += state.n_contacts
        self._samples += 1

    def result(self, world: int, seed: int, wall_s: float) -> Episode:
        scale, spec = max(1e-3, float(self.largest[world])), self.robot.spec
        return Episode(
            seed, world, spec.contact.model, bool(self.finite[world]), float(self.penetration[world]),
            bool(self.outside[world]), float(self.excess[world]) / scale, float(self.coasting[world]) / scale,
            float(self.gap[world]), float(self.contacts[world]) / self._samples, float(self.largest[world]), wall_s,
            float(self.robot.state.stood_still[world] / (self._samples * spec.n_substeps)),
        )  # fmt: skip


class Worlds:
    """A robot in ``WORLDS`` yards, made through the same doors as an env makes it, and all that varies.

    Raises ValueError for what is refused.
    """

    def __init__(
        self, rng: np.random.Generator, spec: RobotSpec, seed: int, seconds: float, without: Collection[str]
    ) -> None:
        ids = np.arange(WORLDS)
        self.field = str(rng.choice(FIELDS, p=[0.4] + [0.6 / (len(FIELDS) - 1)] * (len(FIELDS) - 1)))
        joint_angle, heading = draw_shape(rng, spec, self.field, WORLDS), rng.uniform(-math.pi, math.pi, WORLDS)
        self.refused: list[str] = []
        """Messages of what was drawn and refused."""
        self.faults = self.accepted(spec, lambda: draw_fault_settings(rng, spec.n_joints, seconds, without))
        self.ranges = self.accepted(spec, lambda: draw_randomisation(rng, spec, without))
        nothing = no_obstacles(WORLDS)
        nothing.feature[..., 0] = 1e6
        robot = SimulatedRobot(spec, WORLDS, 1, nothing, self.ranges.check_robot(spec))
        robot.allow_faults(self.faults.present_kinds)
        self.sensors = SensorSuite(SensorConfig(), WORLDS, spec.n_joints, ContactSensorConfig())
        self.randomisation = Randomisation(self.ranges, spec, robot)
        self.sensors.errors = self.randomisation.sensors
        seeds, episodes = seed * WORLDS + ids, np.zeros(WORLDS, np.int64)
        self.sensors.begin(seeds, episodes, ids)
        self.randomisation.begin(seeds, episodes, ids)
        shape = joint_angle, head_angle_for(joint_angle, heading), np.zeros((WORLDS, 2)), "centre"
        robot.set_shape(*shape)
        ends, radius = link_ends(robot.params, robot.state), robot.params.radius
        others = [np.zeros((0, 6))] * WORLDS if "field" in without else make_fields(rng, spec, self.field, heading)
        self.yards = [draw_yard(rng, *each) for each in zip(*ends, radius, others, strict=True)]
        robot.obstacles = place_obstacles(spec, [yard.rows for yard in self.yards], self.ranges.longest_link())
        robot.set_shape(*shape)
        streams = RandomStreams("faults", WORLDS)
        streams.begin(seeds, episodes, ids)
        draw_faults(self.faults, streams, (robot.faults, robot.second_faults), ids)
        self.robot, self.own_faults, self.off = robot, robot.faults, no_faults(WORLDS, spec.n_joints)
        self.off.kind[:] = FREE
        self.gains = [(values, values.copy()) for values in (robot.params.kp, robot.params.kd)]

    def accepted(self, spec: RobotSpec, draw: Callable[[], Settings]) -> Any:
        """Return the first of the drawn settings that this robot admits."""
        for _ in range(DRAWS):
            try:
                drawn: Any = draw()
                drawn.check_robot(spec)
                return drawn
            except ValueError as error:
                self.refused.append(str(error))
        raise RuntimeError(f"{DRAWS} settings were refused, the last with: {self.refused[-1]}")

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

    def setting(self) -> dict[str, Any]:
        """What makes this group, for its line."""
        spec, contact, actuator = self.robot.spec, self.robot.spec.contact, self.robot.spec.actuator
        return {
            "model": contact.model, "n_links": spec.n_links, "dt_s": spec.step_s, "field": self.field,
            "actuator": actuator.kind, "imperfections": list(actuator.imperfections), "delay_s": actuator.delay_s,
            "stops": bool(np.isfinite(spec.joints("joint_stop_rad")).any()), "restitution": contact.restitution,
            "coulomb": spec.has_coulomb_friction, "contact_friction": [contact.friction_ns_m, contact.friction_coulomb],
            "faults": [self.faults.n_max, *self.faults.kinds] if self.faults.any else [],
            "second_share": self.faults.second_share, "intermittent_share": self.faults.intermittent_share,
            "ranges": {name: [r.low, r.high] for name, r in self.ranges.ranges.items()},
        }  # fmt: skip


def make_worlds(
    rng: np.random.Generator,
    seed: int,
    models: Collection[ContactModel],
    dt_s: float | None,
    seconds: float,
    without: Collection[str],
) -> tuple[Worlds, list[str]]:
    """The worlds of a group, and what was refused before there were any."""
    model, step_s = sorted(models)[rng.integers(len(models))], float(rng.choice(STEPS_S, p=STEP_CHANCES))
    refused: list[str] = []
    for _ in range(DRAWS):
        try:
            spec = draw_robot(rng, model, step_s if dt_s is None else dt_s)
            worlds = Worlds(rng, spec, seed, seconds, without)
            return worlds, [*refused, *worlds.refused]
        except ValueError as error:
            refused.append(str(error))
            if step_s > LONGEST_CONTACT_STEP_S:
                step_s = LONGEST_CONTACT_STEP_S
    raise RuntimeError(f"{DRAWS} robots of group {seed} were refused, the last with: {refused[-1]}")


def run_group(
    seed: int, seconds: float = 60.0, models: Collection[ContactModel] = ("rigid", "stiff"), dt_s: float | None = None,
    without: Collection[str] = (),
) -> Group:  # fmt: skip
    """The worlds of one robot; ``dt_s``: its step, None: a random one."""
    begun = time.perf_counter()
    rng = np.random.default_rng(seed)
    worlds, refused = make_worlds(rng, seed, models, dt_s, seconds, without)
    watch = Watch(worlds.robot, worlds.yards)
    rng = np.random.default_rng([seed, 1])
    for _ in range(round(seconds / CONTROL_DT_S)):
        powered = rng.random() < 0.75
        read = worlds.step(rng, powered)
        watch.look(powered)
        if not read or not watch.finite.all():
            watch.finite &= read
            break
    wall = (time.perf_counter() - begun) / WORLDS
    return Group(seed, worlds.setting(), refused, [watch.result(world, seed, wall) for world in range(WORLDS)])


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


def summarise(groups: list[Group], model: str) -> dict[str, Any]:
    """The table's row of one contact model."""
    episodes = [episode for group in groups for episode in group.episodes if episode.model == model]
    names = ("penetration", "energy", "coasting", "gap")
    worst = {name: max(episodes, key=operator.attrgetter(name)) for name in names}
    return {
        "model": model, "worlds": len(episodes), "seconds_per_world": float(np.mean([e.wall_s for e in episodes])),
        "broken": dict(Counter(name for e in episodes for name in e.broken())),
        "beyond_a_bar": sum(bool(e.broken()) for e in episodes),
        **{name: getattr(episode, name) for name, episode in worst.items()},
        "stood": float(np.mean([e.stood for e in episodes])), "stood_worst": max(e.stood for e in episodes),
        "mean_contacts": float(np.mean([e.contacts for e in episodes])),
        "worst_seeds": {name: [e.seed, e.world] for name, e in worst.items()},
    }  # fmt: skip


def run_groups(
    n: int, models: list[ContactModel], dt_s: float | None, seconds: float, jobs: int, out: Path | None
) -> list[Group]:
    """At least ``n`` worlds; finished groups are kept in ``out`` and not run again."""
    done: dict[int, Group] = {}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        step = "" if dt_s is None else f"_{1e3 * dt_s:g}ms"
        out = out / f"{'_'.join(sorted(models))}{step}_{seconds:g}s.jsonl"
        for line in out.read_text().splitlines() if out.exists() else []:
            group = json.loads(line)
            done[group["seed"]] = Group(**group | {"episodes": [Episode(**e) for e in group["episodes"]]})
    n_groups = math.ceil(n / WORLDS)
    missing = [seed for seed in range(n_groups) if seed not in done]
    with (
        Progress(console=Console(stderr=True), transient=True) as progress,
        ProcessPoolExecutor(jobs, get_context("spawn")) as pool,
    ):
        task = progress.add_task(f"{WORLDS * n_groups} worlds", total=n_groups, completed=n_groups - len(missing))
        for future in as_completed([pool.submit(run_group, seed, seconds, models, dt_s) for seed in missing]):
            group = future.result()
            done[group.seed] = group
            if out is not None:
                with out.open("a") as file:
                    episodes = [vars(episode) for episode in group.episodes]
                    file.write(json.dumps(vars(group) | {"episodes": episodes}) + "\n")
            progress.advance(task)
    return [done[seed] for seed in range(n_groups)]


def plot(groups: list[Group], path: Path) -> None:
    """Histogram of each world's deepest penetration."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    bins = np.logspace(-6.0, 1.0, 57)
    found = {m: [e.penetration for g in groups for e in g.episodes if e.model == m] for m in sorted(LIMITS)}
    for colour, (model, depths) in zip(("C0", "C1"), found.items(), strict=True):
        depth = np.clip(100.0 * np.array(depths), bins[0], None)
        if depth.size:
            axes.hist(depth, bins.tolist(), alpha=0.6, color=colour, label=f"{model}: worst {depth.max():.2g} %")
        axes.axvline(100.0 * LIMITS[model], color=colour, ls="--", lw=1.2, label=f"{model}: bar")
    axes.set_xscale("log")
    axes.set_xlabel("deepest penetration of a world [% of the shortest link] (1e-6: that or less)")
    axes.set_ylabel("worlds")
    axes.set_title(f"{sum(map(len, found.values()))} random worlds", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def tell_refused(groups: list[Group]) -> None:
    """Print what was refused before the start, by kind of message."""
    refused = [re.sub(r"\([^)]*\)", "(...)", message) for group in groups for message in group.refused]
    kinds = Counter(re.sub(r"-?\d[\d.e+-]*", "#", message) for message in refused)
    for message, count in kinds.most_common():
        print(f"refused {count} times: {message}", file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=10_000)
    parser.add_argument("--model", nargs="+", choices=sorted(LIMITS), default=sorted(LIMITS))
    parser.add_argument("--seconds", type=float, default=60.0, help="length of an episode")
    parser.add_argument("--dt", type=float, help="step [s], a divisor of 0.2, instead of random ones")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="processes")
    parser.add_argument("--seed", type=int, help="run this group alone and tell its settings")
    parser.add_argument("--without", nargs="+", default=(), metavar="NAME", help="leave these out of the group")
    parser.add_argument("--servos", type=int, default=0, help="episodes with stiff servos and stops")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep finished groups here, and go on from them")
    parser.add_argument("--json", metavar="FILE", help="write the rows as JSON; - for standard output")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="write a histogram of the penetrations")
    args = parser.parse_args()
    if args.seed is None:
        groups = run_groups(args.worlds, args.model, args.dt, args.seconds, args.jobs, args.out)
    else:
        groups = [run_group(args.seed, args.seconds, args.model, args.dt, args.without)]
        print(json.dumps(groups[0].setting), file=sys.stderr)
    for episode in (e for group in groups for e in group.episodes if e.broken()):
        print(f"seed {episode.seed}, world {episode.world} ({episode.model}): {', '.join(episode.broken())}; "
              f"penetration {100 * episode.penetration:.3g} %, energy without power {100 * episode.coasting:.3g} %",
              file=sys.stderr)  # fmt: skip
    tell_refused(groups)
    rows = [summarise(groups, m) for m in sorted({e.model for group in groups for e in group.episodes})]
    if args.plot:
        plot(groups, args.plot)
    for row in rows:
        print(f"{row['model']}: {row['worlds']} worlds of {args.seconds:g} s, {row['beyond_a_bar']} beyond a bar "
              f"({row['broken']}), deepest penetration {100 * row['penetration']:.3f} % of a link (bar "
              f"{100 * LIMITS[row['model']]:g} %), energy gained {row['energy']:.2g} of the largest "
              f"({row['coasting']:.2g} without power), joints {row['gap']:.1g} apart, {row['mean_contacts']:.1f} "
              f"contacts, stood still in {100 * row['stood']:.2g} % of the steps (worst: "
              f"{100 * row['stood_worst']:.2g} %), seeds of the worst {row['worst_seeds']}, "
              f"{row['seconds_per_world']:.2g} s a world", file=sys.stderr)  # fmt: skip
    servos = [run_servos(seed) for seed in range(math.ceil(args.servos / SERVO_WORLDS))]
    surging = [group for group in servos if not group.finite or group.surge > MOST_ENERGY]
    if servos:
        worst = max(servos, key=lambda group: group.surge)
        print(f"stiff servos: {SERVO_WORLDS * len(servos)} episodes of 10 s, {sum(not g.finite for g in servos)} "
              f"groups not finite, energy gained beyond the motors' {worst.surge:.2g} of the largest (seed "
              f"{worst.seed}), {sum(g.stood for g in servos)} of {sum(g.solutions for g in servos)} solutions stood "
              "still",
              file=sys.stderr)  # fmt: skip
    if args.json:
        text = json.dumps(rows, indent=1)
        print(text) if args.json == "-" else Path(args.json).write_text(text + "\n")
    return int(bool(surging) or any(row["beyond_a_bar"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
