"""Random robots thrashing about in dense fields: does anything break?

    python benchmarks/stress.py [--model stiff rigid] [--episodes 1000] [--out DIR] [--dt 0.005] [--json -] [--plot PNG]
                                [--servos 200]

An episode is 60 s of a random robot (2 to 64 links that all differ, random friction or none, servos or torque motors,
slope, radius, contact law) walled into a small yard full of discs, capsules and polygons, with random faults at random
times and random references or torques that change every 0.2 s; a quarter of the time all joints are without power, so
that nothing may gain energy then. Eight episodes of one robot make a group and run side by side. Checked, with code of
its own for geometry and energy (plain numpy from link angles and centres of mass):

* ``nan``: episodes with a number that is not finite;
* ``penetration``: deepest overlap of a link and an obstacle, per length of the robot's shortest link, the larger of
  what the physics reports (every sub-step) and what is found here (every control step);
* ``energy``: kinetic energy + potential on the slope, minus its value a control step before, minus the positive work
  of the actuators in between (none while they are off); the largest of these, per the largest kinetic energy of the
  episode or 1 mJ if that is more; ``coasting`` the same of the steps without power alone, which is what the bar is for:
  with power, the sum of the work has an error of its own where a servo's rate jumps within one step. What the springs
  of stiff contacts held a control step before (those of the deepest overlap of each link) may come back;
* ``gap``: joints apart, per link length: head as the physics tracks it against head from the centre of mass;
* ``stood``: share of the solutions whose laws could not be settled, so that the world stood still (counted only).

``--servos`` runs episodes of 10 s besides, without obstacles: the same robots, all with stops and with servos far too
stiff for their torque limit, so that nearly all joints are at a limit, a stop or on the way from one to the other.
Checked in every sub-step: kinetic energy gained beyond the sum of torque limit times angle turned, per the largest.

``--out`` keeps every finished group as a line of JSON, and a run goes on where it stopped. Exit status 1: a bar missed.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.random_episodes import (
    CONTROL_DT_S,
    FloatArray,
    draw_faults,
    draw_robot,
    draw_yard,
    link_ends,
    near_pairs,
    place_obstacles,
    segment_distance,
)
from snake_gym.robot.spec import ActuatorSpec, ContactModel
from snake_gym.simulation.simulated_robot import SimulatedRobot

WORLDS = 8
SERVO_DT_S = 0.002
"""Step of the robots with stiff servos."""
LIMITS = {"rigid": 0.01, "stiff": 0.03}
"""Deepest penetration allowed, per link length."""
MOST_ENERGY, WIDEST_GAP = 5e-3, 1e-9
"""Energy from nowhere and joints apart that are allowed for the sake of the integration's own error: an impact acts in
the geometry of its step's end, which a link of speed v and half length l has turned by dt v / l, 1 % at 5 ms."""


@dataclass(frozen=True)
class Episode:
    """What an episode came to; see the module's text."""

    seed: int
    n_links: int
    finite: bool
    penetration: float
    energy: float
    coasting: float
    gap: float
    contacts: float
    """Mean number of touching contacts."""
    largest_energy_j: float
    wall_s: float
    stood: float = 0.0


class Watch:
    """Energy, penetration and joint gaps of a robot, worked out from its state."""

    def __init__(self, robot: SimulatedRobot) -> None:
        self.robot, self.spec = robot, robot.spec
        self.length = 2.0 * self.spec.links("link_half_length_m")
        w = robot.n_worlds
        self.finite = np.ones(w, bool)
        self.penetration, self.gap, self.excess, self.coasting, self.largest = (np.zeros(w) for _ in range(5))
        self.contacts = np.zeros(w)
        self._samples = 0
        self._work = robot.state.work_j.copy()
        self._energy, self._stored = self.energy(), np.zeros(w)

    def overlap(self) -> FloatArray:
        """Deepest overlap of each link with a feature (W, N) [m]."""
        tail, head = link_ends(self.spec, self.robot.state.link_angle, self.robot.state.centre_xy)
        row, radius = self.robot.obstacles.feature, self.spec.links("link_radius_m")
        w, i, f = near_pairs(tail, head, row, radius)
        gap = segment_distance(tail[w, i], head[w, i], row[w, f]) - radius[i] - row[w, f, 5]
        deepest = np.zeros(tail.shape[:2])
        np.maximum.at(deepest, (w, i), -gap)
        return deepest

    def energy(self) -> FloatArray:
        """Mechanical energy (W,) [J]."""
        state, spec = self.robot.state, self.spec
        angle, rate = state.link_angle, state.link_rate
        half, mass = spec.links("link_half_length_m"), spec.links("link_mass_kg")
        turn = (half * rate)[..., None] * np.stack([-np.sin(angle), np.cos(angle)], axis=-1)
        speed = np.concatenate([np.zeros_like(turn[:, :1]), np.cumsum(turn[:, :-1] + turn[:, 1:], axis=1)], axis=1)
        speed += (state.centre_vel - (mass[:, None] * speed).sum(axis=1) / mass.sum())[:, None]
        kinetic = 0.5 * (mass * (speed**2).sum(axis=-1) + spec.inertia() * rate**2).sum(axis=1)
        potential = -mass.sum() * state.centre_xy @ spec.body_acceleration
        self.largest = np.maximum(self.largest, kinetic)
        return np.asarray(kinetic + potential)

    def look(self, powered: bool) -> None:
        """After a control step with the joints powered or not."""
        state, spec = self.robot.state, self.spec
        numbers = (
            state.link_angle,
            state.link_rate,
            state.centre_xy,
            state.centre_vel,
            state.head_xy,
            state.joint_torque,
        )
        for number in numbers:
            self.finite &= np.isfinite(number).all(axis=1)
        energy = self.energy()
        excess = energy - self._energy - self._stored - (state.work_j - self._work)
        self.excess = np.fmax(self.excess, excess)
        if not powered:
            self.coasting = np.fmax(self.coasting, excess)
        self._energy, self._work = energy, state.work_j.copy()
        overlap = self.overlap()
        if spec.contact.model == "stiff":
            self._stored = 0.5 * spec.contact.stiffness_n_m * (overlap**2).sum(axis=1)
        seen = (overlap / self.length).max(axis=1)
        self.penetration = np.fmax(self.penetration, np.fmax(seen, state.penetration_m / self.length.min()))
        tail, head = link_ends(spec, state.link_angle, state.centre_xy)
        apart = np.linalg.norm(0.5 * (tail[:, -1] + head[:, -1]) - state.head_xy, axis=1)
        self.gap = np.fmax(self.gap, apart / self.length.min())
        self.contacts += state.n_contacts
        self._samples += 1

    def result(self, world: int, seed: int, wall_s: float) -> Episode:
        scale = max(1e-3, float(self.largest[world]))
        return Episode(
            seed, self.spec.n_links, bool(self.finite[world]), float(self.penetration[world]),
            float(self.excess[world]) / scale, float(self.coasting[world]) / scale, float(self.gap[world]),
            float(self.contacts[world]) / self._samples, float(self.largest[world]), wall_s,
            float(self.robot.state.stood_still[world] / (self._samples * self.spec.n_substeps)),
        )  # fmt: skip


def run_group(seed: int, model: ContactModel, dt_s: float, seconds: float = 60.0) -> list[Episode]:
    """The episodes of one robot."""
    begun = time.perf_counter()
    rng = np.random.default_rng(seed)
    spec = draw_robot(rng, model, dt_s)
    angle = rng.uniform(-math.pi, math.pi, (WORLDS, 1)) + np.cumsum(
        rng.uniform(-0.5, 0.5, (WORLDS, spec.n_links)), axis=1
    )
    ends = link_ends(spec, angle, np.zeros((WORLDS, 2)))
    fields = [draw_yard(rng, spec, tail, head) for tail, head in zip(*ends, strict=True)]
    robot = SimulatedRobot(spec, WORLDS, 1, obstacles=place_obstacles(spec, fields))
    robot.set_shape(angle[:, :-1] - angle[:, 1:], angle[:, -1], np.zeros((WORLDS, 2)), "centre")
    draw_faults(rng, robot, seconds)
    watch = Watch(robot)
    limit, shape = float(spec.joints("actuator.torque_limit_nm")[0]), (WORLDS, spec.n_joints)
    gains = [(values, values.copy()) for values in (robot.params.kp, robot.params.kd)]
    for _ in range(round(seconds / CONTROL_DT_S)):
        powered, aim, push = rng.random() < 0.75, rng.uniform(-1.2, 1.2, shape), np.zeros(shape)
        if spec.actuator.kind == "torque" and powered:
            push = limit * rng.uniform(-1.0, 1.0, shape)
        for values, with_power in gains:
            values[:] = with_power * powered
        robot.step(aim, push)
        watch.look(powered)
        if not watch.finite.all():
            break
    wall = (time.perf_counter() - begun) / WORLDS
    return [watch.result(world, seed, wall) for world in range(WORLDS)]


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
    """``WORLDS`` episodes of a robot whose servos are far too stiff for their torque limit, between stops."""
    rng = np.random.default_rng(seed)
    spec = draw_robot(rng, "rigid", SERVO_DT_S)
    torque, stop = float(spec.joints("actuator.torque_limit_nm")[0]), float(rng.uniform(0.3, 1.0))
    kp = torque * float(10.0 ** rng.uniform(1.0, 2.7))
    actuator = ActuatorSpec("position", kp, kp * float(10.0 ** rng.uniform(-3.0, -1.0)), torque)
    spec = replace(spec, actuator=actuator, joint_stop_rad=stop, incline_rad=0.0)
    robot, shape = SimulatedRobot(spec, WORLDS, 1), (WORLDS, spec.n_joints)
    robot.set_shape(rng.uniform(-stop, stop, shape), np.zeros(WORLDS), np.zeros((WORLDS, 2)), "centre")
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
    solutions = 2 * WORLDS * round(seconds / SERVO_DT_S)
    return ServoGroup(seed, finite, surge / largest, int(robot.state.stood_still.sum()), solutions)


def summarise(episodes: list[Episode], model: ContactModel) -> dict[str, Any]:
    """The table's row of one contact model."""
    names = ("penetration", "energy", "coasting", "gap")
    worst = {name: max(episodes, key=lambda e, n=name: getattr(e, n)) for name in names}
    return {
        "model": model, "episodes": len(episodes), "nan": sum(not e.finite for e in episodes),
        "penetration": worst["penetration"].penetration, "penetration_limit": LIMITS[model],
        "beyond_limit": sum(e.penetration > LIMITS[model] for e in episodes),
        "beyond_a_bar": sum(not keeps_bars(e, model) for e in episodes),
        "energy": worst["energy"].energy, "coasting": worst["coasting"].coasting, "gap": worst["gap"].gap,
        "stood": float(np.mean([e.stood for e in episodes])), "stood_worst": max(e.stood for e in episodes),
        "mean_contacts": float(np.mean([e.contacts for e in episodes])),
        "worst_seeds": {name: e.seed for name, e in worst.items()},
        "wall_s_per_episode": float(np.mean([e.wall_s for e in episodes])),
    }  # fmt: skip


def keeps_bars(episode: Episode, model: ContactModel) -> bool:
    """Whether nothing broke."""
    deep, gained = episode.penetration > LIMITS[model], episode.coasting > MOST_ENERGY
    return episode.finite and not deep and not gained and episode.gap <= WIDEST_GAP


def run_episodes(n: int, model: ContactModel, dt_s: float, seconds: float, out: Path | None) -> list[Episode]:
    """At least ``n`` episodes; finished groups are kept in ``out`` and not run again."""
    done: dict[int, list[Episode]] = {}
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        out = out / f"{model}_{1e3 * dt_s:g}ms_{seconds:g}s.jsonl"
        for line in out.read_text().splitlines() if out.exists() else []:
            group = json.loads(line)
            done[group["seed"]] = [Episode(**e) for e in group["episodes"]]
    n_groups = math.ceil(n / WORLDS)
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"{model}, {WORLDS * n_groups} episodes", total=n_groups)
        for seed in range(n_groups):
            if seed not in done:
                done[seed] = run_group(seed, model, dt_s, seconds)
                if out is not None:
                    with out.open("a") as file:
                        file.write(json.dumps({"seed": seed, "episodes": [vars(e) for e in done[seed]]}) + "\n")
            progress.advance(task)
    return [episode for seed in range(n_groups) for episode in done[seed]]


def plot(episodes: dict[ContactModel, list[Episode]], path: Path) -> None:
    """Histogram of each episode's deepest penetration."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    bins = np.logspace(-6.0, 1.0, 57)
    for colour, (model, found) in zip(("C0", "C1"), episodes.items(), strict=False):
        depth = np.clip([100.0 * e.penetration for e in found], bins[0], None)
        axes.hist(depth, bins, alpha=0.6, color=colour, label=f"{model}: worst {max(depth):.2g} %")
        axes.axvline(100.0 * LIMITS[model], color=colour, ls="--", lw=1.2, label=f"{model}: bar")
    axes.set_xscale("log")
    axes.set_xlabel("deepest penetration of an episode [% of the shortest link] (1e-6: that or less)")
    axes.set_ylabel("episodes")
    axes.set_title(f"{max(map(len, episodes.values()))} random episodes of 60 s with each model", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="+", choices=sorted(LIMITS), default=["stiff", "rigid"])
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60.0, help="length of an episode")
    parser.add_argument("--dt", type=float, default=0.005, help="step [s]; a divisor of 0.2")
    parser.add_argument("--servos", type=int, default=0, help="episodes with stiff servos and stops")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep finished groups here, and go on from them")
    parser.add_argument("--json", metavar="FILE", help="write the rows as JSON; - for standard output")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="write a histogram of the penetrations")
    args = parser.parse_args()
    found = {m: run_episodes(args.episodes, m, args.dt, args.seconds, args.out) for m in args.model}
    rows = [summarise(episodes, model) for model, episodes in found.items()]
    if args.plot:
        plot(found, args.plot)
    for row in rows:
        print(f"{row['model']}: {row['episodes']} episodes of {args.seconds:g} s, {row['nan']} not finite, deepest "
              f"penetration {100 * row['penetration']:.3f} % of a link ({row['beyond_limit']} beyond "
              f"{100 * row['penetration_limit']:g} %), energy gained {row['energy']:.2g} of the largest "
              f"({row['coasting']:.2g} without power), joints {row['gap']:.1g} apart, {row['mean_contacts']:.1f} "
              f"contacts, stood still in {100 * row['stood']:.2g} % of the steps (worst: "
              f"{100 * row['stood_worst']:.2g} %), seeds of the worst {row['worst_seeds']}",
              file=sys.stderr)  # fmt: skip
    groups = [run_servos(seed) for seed in range(math.ceil(args.servos / WORLDS))]
    surging = [group for group in groups if not group.finite or group.surge > MOST_ENERGY]
    if groups:
        worst = max(groups, key=lambda group: group.surge)
        print(f"stiff servos: {WORLDS * len(groups)} episodes of 10 s, {sum(not g.finite for g in groups)} groups not "
              f"finite, energy gained beyond the motors' {worst.surge:.2g} of the largest (seed {worst.seed}), "
              f"{sum(g.stood for g in groups)} of {sum(g.solutions for g in groups)} solutions stood still",
              file=sys.stderr)  # fmt: skip
    if args.json:
        text = json.dumps(rows, indent=1)
        print(text) if args.json == "-" else Path(args.json).write_text(text + "\n")
    return int(bool(surging) or any(row["beyond_a_bar"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
