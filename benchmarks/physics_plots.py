"""The pictures of docs/physics.md, made from the shipped physics.

    python benchmarks/physics_plots.py [--out docs/images/physics]

The work-precision diagram is another program's: ``python benchmarks/accuracy.py --plot ...``.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.patches import Circle

from papers.haghshenas2022.muscle_pair import muscle_force, muscle_torque
from snake_gym.obstacles.grid import with_ends
from snake_gym.physics.state import Obstacles
from snake_gym.robot.presets import MUSCLE, PEGBOARD, ROBO_CONDA
from snake_gym.robot.spec import ActuatorSpec, ContactModel, ContactSpec, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

FloatArray = NDArray[np.float64]
GRAVITY = 9.80665


def pegs(centres: FloatArray, radius: float) -> Obstacles:
    """Discs in a grid of one cell."""
    features = np.zeros((len(centres), 6))
    features[:, :2], features[:, 5] = centres, radius
    features = with_ends(features)
    n = len(features)
    return Obstacles(
        features[None], np.array([[0, n]]), np.arange(n)[None], np.array([[-50.0, -50.0]]), np.ones((1, 2), np.int64),
        100.0, 50.0,
    )  # fmt: skip


def rod(friction: FrictionSpec, contact: ContactSpec, dt: float, obstacles: Obstacles | None = None) -> SimulatedRobot:
    """Two links that do not bend, 0.28 m long together."""
    actuator = ActuatorSpec(kind="acceleration", kp=0.0, kd=0.0)
    spec = RobotSpec(
        "rod", "plot", 2, friction=friction, contact=contact, actuator=actuator, control_dt_s=dt, sim_dt_s=dt
    )
    return SimulatedRobot(spec, 1, 1, obstacles)


def sliding(axes: Axes) -> None:
    """A rod slides to rest on dry ground: distance against time, and the closed form."""
    mu, speed = 0.2, 0.7
    stop = speed / (mu * GRAVITY)
    time = np.linspace(0.0, 0.5, 300)
    capped = np.minimum(time, stop)
    axes.plot(time, 1e3 * (speed * capped - 0.5 * mu * GRAVITY * capped**2), color="0.6", lw=3, label="closed form")
    for dt, marker in ((0.05, "s"), (0.02, "o")):
        robot = rod(FrictionSpec(0.0, 0.0, tangential_coulomb=mu, normal_coulomb=mu), ContactSpec(), dt)
        robot.state.centre_vel[0, 0] = speed
        track = [(0.0, 0.0)]
        while track[-1][0] < 0.49:
            robot.step(np.zeros((1, 1)))
            track.append((float(robot.state.time_s[0]), 1e3 * float(robot.state.centre_xy[0, 0])))
        axes.plot(*zip(*track, strict=True), marker, mfc="none", label=f"steps of {1e3 * dt:g} ms")
    axes.set(xlabel="time [s]", ylabel="distance [mm]", title="Coulomb friction: sliding to rest")
    axes.legend()


def bouncing(axes: Axes) -> None:
    """A rod flies end-on against a disc and comes back, for both models of contact and two restitutions."""
    wall = pegs(np.array([[1.0, 0.0]]), 0.1)
    reach = 0.28 + 0.03 + 0.1
    for restitution, colour in ((0.0, "C0"), (0.6, "C1")):
        models: tuple[tuple[ContactModel, str], ...] = (("rigid", "-"), ("stiff", "--"))
        for model, style in models:
            robot = rod(FrictionSpec(0.0, 0.0), ContactSpec(model=model, restitution=restitution), 0.005, wall)
            robot.state.centre_vel[0, 0] = 1.0
            track = []
            for _ in range(200):
                robot.step(np.zeros((1, 1)))
                # The rod's tip against the disc: centre of mass plus half its length and the radii.
                gap = 1.0 - reach + 0.14 - float(robot.state.centre_xy[0, 0])
                track.append((float(robot.state.time_s[0]), 1e3 * gap))
            axes.plot(*zip(*track, strict=True), style, color=colour, label=f"{model}, restitution {restitution:g}")
    time = np.linspace(0.0, 1.0, 200)
    hit = 1.0 - reach + 0.14
    axes.plot(
        time,
        1e3 * np.where(time < hit, hit - time, 0.6 * (time - hit)),
        color="0.6",
        lw=4,
        zorder=0,
        label="closed form, 0.6",
    )
    axes.set(xlabel="time [s]", ylabel="gap [mm]", title="Impact of a link, head on")
    axes.legend(fontsize=8)


def muscles(axes: Axes) -> None:
    """Tension of one muscle against its length at some pressures."""
    spec = MUSCLE.actuator.muscle
    length = np.linspace(0.070, 0.115, 200)
    for bar in (0.5, 1.0, 2.0, 3.0):
        axes.plot(1e3 * length, muscle_force(spec, length, np.array(bar * 1e5)), label=f"{bar:g} bar")
    axes.axvline(1e3 * spec.rest_length_m, color="0.6", lw=0.8)
    axes.set(xlabel="length [mm]", ylabel="tension [N]", title="McKibben muscle of the preset")
    axes.legend()


def pairs(axes: Axes) -> None:
    """Torque of an antagonistic pair against the joint angle."""
    spec = MUSCLE.actuator.muscle
    angle = np.radians(np.linspace(-44.0, 44.0, 200))
    for left, right in ((0.5, 0.5), (0.0, 2.0), (2.0, 0.0), (3.0, 3.0)):
        pressure = np.tile(np.array([left, right]) * 1e5, (angle.size, 1))
        axes.plot(np.degrees(angle), 1e3 * muscle_torque(spec, angle, pressure), label=f"{left:g} | {right:g} bar")
    axes.axhline(0.0, color="0.6", lw=0.8)
    axes.set(
        xlabel="joint angle [deg]",
        ylabel="torque [mN m]",
        title="Antagonistic pair, left | right",
        ylim=(-1100.0, 1900.0),
    )
    axes.legend(ncols=2)


def servo_limits(axes: Axes) -> None:
    """Largest torque of a servo against its speed, full and sagging supply: measured on a heavy link."""
    for resistance, colour in ((0.0, "C0"), (0.6, "C1")):
        actuator = replace(
            ROBO_CONDA.actuator, kp=1e4, kd=100.0, torque_limit_nm=1.2, speed_limit_rad_s=math.inf,
            no_load_speed_rad_s=4.0, supply_voltage_v=6.0, supply_resistance_ohm=resistance, torque_constant_nm_a=0.48,
        )  # fmt: skip
        spec = replace(
            PEGBOARD, name="arm", n_links=2, link_mass_kg=(1e4, 2.0), link_inertia_kgm2=(1e4, 0.3),
            friction=FrictionSpec(0.0, 0.0), actuator=actuator, contact=ContactSpec(), joint_limit_rad=3.1,
            control_dt_s=0.01, sim_dt_s=0.005,
        )  # fmt: skip
        robot = SimulatedRobot(spec, 1, 1)
        points = []
        for _ in range(260):
            robot.step(np.full((1, 1), 3.0))
            points.append((abs(float(robot.joint_rate()[0, 0])), abs(float(robot.state.joint_torque[0, 0]))))
            if robot.joint_angle()[0, 0] > 2.5:
                break
        name = "stiff supply" if resistance == 0.0 else f"{resistance:g} ohm in the supply"
        axes.plot(*zip(*points, strict=True), ".", color=colour, label=name)
    speed = np.linspace(0.0, 4.0, 50)
    axes.plot(speed, 1.2 * (1.0 - speed / 4.0), color="0.6", lw=3, zorder=0, label="1.2 N m, 4 rad/s")
    axes.set(xlabel="joint speed [rad/s]", ylabel="torque [N m]", title="Torque-speed line and supply")
    axes.legend()


def board() -> FloatArray:
    """Centres (P, 2) [m] of pegs on a staggered lattice."""
    grid = np.stack(np.meshgrid(np.arange(0.2, 3.0, 0.42), np.arange(-0.84, 0.9, 0.42)), axis=-1)
    grid[::2, :, 0] += 0.21
    return np.asarray(grid.reshape(-1, 2))


def many_crossings(model: ContactModel, centres: FloatArray, n: int, seconds: float) -> tuple[FloatArray, FloatArray]:
    """Heads (T, n, 2) [m] of runs that differ in phase and heading, and their mean number of contacts (n,)."""
    spec = replace(PEGBOARD, contact=replace(PEGBOARD.contact, model=model, restitution=0.0), sim_dt_s=0.005)
    one = pegs(centres, 0.04)
    robot = SimulatedRobot(
        spec, n, 1, Obstacles(*(np.repeat(a, n, axis=0) if isinstance(a, np.ndarray) else a for a in one))
    )
    rng = np.random.default_rng(0)
    phase = rng.uniform(0.0, 2.0 * math.pi, (n, 1)) + 0.65 * np.arange(spec.n_joints)
    robot.set_shape(0.5 * np.sin(phase), rng.uniform(-0.4, 0.4, n), np.tile([-0.2, 0.0], (n, 1)), "head")
    path, contacts = [], np.zeros(n)
    for k in range(round(seconds / spec.control_dt_s)):
        robot.step(0.5 * np.sin(2.0 * (k + 1) * spec.control_dt_s + phase))
        path.append(robot.state.head_xy.copy())
        contacts += robot.state.n_contacts
    return np.array(path), contacts / len(path)


def agreement(n: int = 256, seconds: float = 10.0) -> str:
    """How far apart both models take the heads of ``n`` robots."""
    (rigid, contacts), (stiff, _) = (many_crossings(model, board(), n, seconds) for model in ("rigid", "stiff"))
    touched = contacts > 0.0
    apart = np.linalg.norm(rigid - stiff, axis=2).max(axis=0)[touched] / PEGBOARD.length_m
    middle, most = np.quantile(apart, [0.5, 0.9])
    return (
        f"{touched.sum()} of {n} runs of {seconds:g} s touch pegs ({contacts[touched].mean():.1f} contacts, mean); "
        f"heads apart by at most {100 * middle:.2g} % of the robot's length in half of them, {100 * most:.2g} % in "
        f"nine of ten, {100 * apart.max():.2g} % in all"
    )


def crossing(model: ContactModel, centres: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """Path of the head (T, 2), largest contact force on any link (T,) [N], deepest penetration [m]."""
    spec = replace(PEGBOARD, contact=replace(PEGBOARD.contact, model=model, restitution=0.0), sim_dt_s=0.005)
    robot = SimulatedRobot(spec, 1, 1, pegs(centres, 0.04))
    lag = 0.65 * np.arange(spec.n_joints)
    robot.set_shape(0.5 * np.sin(lag)[None], np.full(1, 0.9), np.array([[-0.2, 0.0]]), "head")
    path, force, deepest = [], [], 0.0
    for k in range(100):
        robot.step(0.5 * np.sin(2.0 * (k + 1) * spec.control_dt_s + lag)[None])
        path.append(robot.state.head_xy[0].copy())
        force.append(float(np.linalg.norm(robot.state.contact_force[0], axis=1).max()))
        deepest = max(deepest, float(robot.state.penetration_m[0]))
    return np.array(path), np.array(force), deepest


def contact_models(axes: Axes, forces: Axes) -> str:
    """The same run among pegs with both models."""
    centres = board()
    for centre in centres:
        axes.add_patch(Circle((float(centre[0]), float(centre[1])), 0.04, color="0.8"))
    runs = {}
    models: tuple[tuple[ContactModel, str, str], ...] = (("rigid", "C0", "-"), ("stiff", "C1", "--"))
    for model, colour, style in models:
        path, force, deepest = crossing(model, centres)
        runs[model] = path
        axes.plot(path[:, 0], path[:, 1], style, color=colour, label=f"{model}: at most {1e3 * deepest:.2g} mm deep")
        forces.plot(0.1 * np.arange(1, len(force) + 1), force, style, color=colour, lw=0.9, label=model)
    axes.set(
        xlabel="x [m]",
        ylabel="y [m]",
        title="Head among pegs, open-loop gait",
        aspect="equal",
        xlim=(-0.4, 2.4),
        ylim=(-1.5, 1.5),
    )
    axes.legend(fontsize=8, loc="lower left")
    forces.set(xlabel="time [s]", ylabel="force [N]", title="Largest contact force on a link (means of 0.1 s)")
    forces.legend()
    apart = np.linalg.norm(runs["rigid"] - runs["stiff"], axis=1)
    way = np.linalg.norm(np.diff(runs["rigid"], axis=0), axis=1).sum()
    return f"rigid and stiff heads are at most {1e3 * apart.max():.1f} mm apart on {way:.2f} m"


def save(path: Path, size: tuple[float, float], n: int, *draw: Callable[[Axes], None]) -> None:
    figure, all_axes = pyplot.subplots(1, n, figsize=size, layout="constrained")
    for one, axes in zip(draw, np.atleast_1d(all_axes), strict=True):
        one(axes)
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=90)
    pyplot.close(figure)
    print(f"wrote {path}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "images" / "physics")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    save(out / "closed_forms.png", (9.0, 3.6), 2, sliding, bouncing)
    save(out / "muscles.png", (9.0, 3.6), 2, muscles, pairs)
    save(out / "servo.png", (5.0, 3.6), 1, servo_limits)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10.0, 4.0), layout="constrained")
    print(contact_models(left, right))
    print(agreement())
    right.grid(alpha=0.3)
    figure.savefig(out / "contact_models.png", dpi=90)
    print(f"wrote {out / 'contact_models.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
