"""Rerun of the spatial part of liu2024 (SnakeSys): five gaits of Snake Robot III on MuJoCo.

``experiments``: creeping, side winding and arc rolling with the servos' limits (Table 4). ``simulations``: all five
with unlimited joints, the authors' gains, contact friction and shapes (Table 3), spiral rolling on a pole, with
cylinders in place of the boxes of section 5.1. ``complex ground``: side winding and arc rolling on height fields
(Table 5). The authors' simulator has a contact friction of 0.2, which stands for the floor of the experiments too; the
one friction that is fitted, to the creeping speed of the experiments alone, is that of the wheels' axles, ``AXLE``.
docs/spatial.md says what else is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from papers.study import Advance, Cell, Finding, Study, Table, claim, figure, grade
from snake_gym.robot.measurement import Goal
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.sensors import SensorConfig
from snake_gym.spatial.gaits import (
    COMPLEX,
    EXPERIMENTS,
    GAITS,
    GaitMode,
    Multimodal,
    MultimodalConfig,
)
from snake_gym.spatial.ground import GroundSpec
from snake_gym.spatial.kinematics import wind_pose
from snake_gym.spatial.sensors import SpatialSensors
from snake_gym.spatial.simulation import SpatialRobot
from snake_gym.spatial.spec import SpatialSpec, load_spatial_robot

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

ROBOT = "configs/robot/spatial/snake_robot_iii.yaml"
FLOOR = 0.2
"""Friction of links and wheels in the authors' simulator; the ground's is larger and does not count."""
AXLE = 6.4e-4
"""Viscous friction of a wheel's axle in the experiments [N m s/rad], fitted to the speed of CL."""
SERVO_GAINS = (200.0, 2.0)
"""Gains [N m/rad, N m s/rad] of the real servos: ours; full torque at 2.4 degrees. The authors' simulated joints have
50 N m/rad, which the friction of the ground bends back."""
SCANNED_AXLES = (0.0, 3e-4, AXLE, 1e-3, 3e-3)
OUTDOORS = 0.3
"""Friction on grass and rocks: ours, the paper has none."""
MEASURED = {"CL": 0.2553, "SWL": 0.1415, "ARL": 0.0437}
"""Speeds of the real robot over omega [m/rad] (section 5.2)."""
RATIO_TOLERANCE = 0.15
CONTROL_DT_S = 0.04
POLE_RADIUS_M = 0.2
POLE_GAINS = (500.0, 10.0)
"""Gains [N m/rad, N m s/rad] of the joints that climb: the published 50 N m/rad give way under the grip."""
POLE_FRICTION = 0.5
GRIP_RADIUS_M = 0.2
"""Radius that the climbing spiral is commanded; what the pole leaves is POLE_RADIUS_M and the robot's own."""
START_RADIUS_M = 0.262
"""Radius of the spiral in which the robot begins around the pole: it just does not touch."""
LOWEST_M = 0.4
"""Height of its lowest link then."""
GROUND_SEEDS = 4


class Run(NamedTuple):
    """Result of one gait in W worlds."""

    speed_m_per_rad: float
    """Mean speed of the centre of mass over omega: net way over time, W worlds' mean."""
    along_m_per_rad: float
    """Its part along the body's heading at the start of the measurement."""
    left_m_per_rad: float
    """Its part to the left of it."""
    turn_rad: float
    """Mean size of the change of heading over the measured periods."""
    largest_nm: float
    """Largest joint torque."""
    motion_rad: float
    """Largest swing of a joint, from end to end."""
    rise_m: float
    """Height that the centre of mass gained."""
    time_s: FloatArray
    angle_rad: FloatArray
    """(T, J) joint angles of the first world in the last period, from the tail."""
    aim_rad: FloatArray
    """(T, J) their references."""
    torque_nm: FloatArray
    """(T, J) their torques."""


def play(
    spec: SpatialSpec,
    gait: GaitMode,
    grounds: list[GroundSpec] | None = None,
    periods: int = 3,
    settling: int = 2,
    wound: GaitMode | None = None,
) -> Run:
    """Play a gait on one ground after the other, or on the plane: ``settling`` periods, then ``periods`` that count.

    ``wound``: the robot begins wound around the z axis, bent as this gait at phase 0; None: straight on the ground.
    """
    runs = [_play(spec, gait, ground, periods, settling, wound) for ground in grounds or [GroundSpec()]]
    means: dict[str, Any] = {name: float(np.mean([getattr(run, name) for run in runs])) for name in Run._fields[:5]}
    return runs[0]._replace(**means)


def _play(
    spec: SpatialSpec, gait: GaitMode, ground: GroundSpec, periods: int, settling: int, wound: GaitMode | None
) -> Run:
    spec = replace(spec, control_dt_s=CONTROL_DT_S)
    robot, sensors = SpatialRobot(spec, 1, 1, ground), SpatialSensors(SensorConfig(), 1, spec.n_joints)
    controller, one = Multimodal(MultimodalConfig(), spec), np.ones(1, bool)
    state = controller.initial_state(1)
    if wound is None:
        robot.set_shape(np.zeros((1, spec.n_joints)), np.zeros(1), np.zeros((1, 2)), "centre")
        robot.state.physics[:, 3] += ground.height_m if ground.kind in ("grass", "rocks") else 0.0
    else:
        controller.set_gait(state, one, wound, 0.0)
        for name in ("rho", "psi", "omega"):
            state[name][:] = state[f"{name}_goal"]
        state["begun"][:] = 1.0
        bent = controller.reference(state)
        quaternion, origin = wind_pose(spec, bent[0])
        robot.set_pose(bent, quaternion[None], (origin + np.array([0.0, 0.0, LOWEST_M]))[None])
    controller.set_gait(state, one, gait)
    goal = Goal(np.zeros((1, 2)), np.zeros(1, bool))
    omega = abs(gait.frequency_rad_s)
    n_period = round(2.0 * math.pi / omega / CONTROL_DT_S)
    rows: list[FloatArray] = []
    for _ in range((settling + periods) * n_period):
        reference = controller.command(sensors.measure(robot), goal, state, CONTROL_DT_S)
        robot.step(reference)
        s, largest = robot.state, np.abs(robot.torques[0]).max()
        place = [*s.centre_xy[0], s.centre_z[0], s.heading[0], largest]
        rows.append(np.concatenate([place, robot.joint_angle()[0], reference[0], s.joint_torque[0]]))
    counted = np.array(rows[settling * n_period - 1 :])
    way, heading = counted[-1, :3] - counted[0, :3], counted[0, 3]
    velocity = way[:2] / ((len(counted) - 1) * CONTROL_DT_S) / omega
    ahead = np.array([math.cos(heading), math.sin(heading)])
    turned = np.unwrap(counted[:, 3])
    angle, aim, torque = np.split(counted[-n_period:, 5:], 3, axis=1)
    return Run(
        float(np.hypot(*velocity)), float(velocity @ ahead), float(velocity @ [-ahead[1], ahead[0]]),
        abs(float(turned[-1] - turned[0])), float(counted[1:, 4].max()), float(np.ptp(angle, axis=0).max()),
        float(way[2]), CONTROL_DT_S * np.arange(float(n_period)), angle, aim, torque,
    )  # fmt: skip


class Results(NamedTuple):
    """Results of the study."""

    experiments: dict[str, Run]
    simulations: dict[str, Run]
    backwards: Run
    """TWL with positive frequency."""
    fit: dict[float, float]
    """Speed of CL over omega by friction of the axles."""
    ground: dict[str, Run]
    published_spiral: Run
    """SRL on the pole with the paper's radius, gains and friction, on cylinders."""


def servo_robot(spec: SpatialSpec, mode: str, friction: float, axle: float = 0.0) -> SpatialSpec:
    """Return the real robot: servos with limits, wheels for creeping."""
    wheels = replace(spec.wheels, pairs=mode == "CL", axle_damping_nms_rad=axle)
    actuator = replace(spec.actuator, kp=SERVO_GAINS[0], kd=SERVO_GAINS[1])
    return replace(spec, friction=friction, wheels=wheels, actuator=actuator)


def free_robot(spec: SpatialSpec, mode: str) -> SpatialSpec:
    """Return the robot of the authors' simulations: joints without limits, the shape that suits the gait."""
    actuator = replace(spec.actuator, torque_limit_nm=math.inf, speed_limit_rad_s=math.inf)
    wheels = replace(spec.wheels, pairs=mode == "CL")
    free = replace(spec, friction=FLOOR, wheels=wheels, actuator=actuator)
    return replace(free, section="box") if mode in ("TWL", "SRL") else free


def climb(spec: SpatialSpec, published: bool, periods: int) -> Run:
    """Wind the robot around the pole and roll: with the paper's spiral, gains and friction, or with our grip.

    Links are cylinders; the paper's simulations of SRL have boxes (section 5.1).
    """
    plain = free_robot(spec, "SRL")
    gait = GAITS["SRL"]
    if not published:
        kp, kd = POLE_GAINS
        plain = replace(plain, actuator=replace(plain.actuator, kp=kp, kd=kd), friction=POLE_FRICTION)
        gait = replace(gait, spiral_radius_m=GRIP_RADIUS_M)
    plain = replace(plain, section="cylinder", sim_dt_s=0.002, solver="newton")
    pole = GroundSpec(kind="pole", radius_m=POLE_RADIUS_M)
    return play(plain, gait, [pole], periods, 1, replace(GAITS["SRL"], spiral_radius_m=START_RADIUS_M))


def _experiment(quick: bool, advance: Advance) -> Results:
    spec = load_spatial_robot(ROBOT)
    periods = 2 if quick else 4
    advance(0.0, "experiments")
    experiments: dict[str, Run] = {
        mode: play(servo_robot(spec, mode, FLOOR, AXLE), gait, None, periods * (2 if mode == "ARL" else 1))
        for mode, gait in EXPERIMENTS.items()
    }
    advance(0.25, "friction of the axles")
    scanned = (AXLE,) if quick else SCANNED_AXLES
    fit = {c: play(servo_robot(spec, "CL", FLOOR, c), EXPERIMENTS["CL"], None, 2).speed_m_per_rad for c in scanned}
    advance(0.4, "simulations")
    simulations: dict[str, Run] = {
        mode: play(free_robot(spec, mode), GAITS[mode], None, periods) for mode in ("CL", "TWL", "SWL", "ARL")
    }
    advance(0.55, "spiral rolling on a pole")
    simulations["SRL"] = climb(spec, False, 1)
    published = climb(spec, True, 1)
    turned = replace(GAITS["TWL"], frequency_rad_s=-GAITS["TWL"].frequency_rad_s)
    backwards = play(free_robot(spec, "TWL"), turned, None, 2)
    ground = {}
    for i, (name, gait) in enumerate(COMPLEX.items()):
        advance(0.65 + 0.04 * i, f"complex ground: {name}")
        kind: Literal["grass", "rocks"] = "grass" if name[-1] in "12" else "rocks"
        seeds = range(1 if quick else GROUND_SEEDS)
        grounds = [GroundSpec(kind=kind, seed=seed, height_m=0.06, grain_m=0.25, size_m=12.0) for seed in seeds]
        ground[name] = play(
            servo_robot(spec, name[:3], OUTDOORS), gait, grounds, periods * (2 if name[0] == "A" else 1)
        )
    return Results(experiments, simulations, backwards, fit, ground, published)


# --- claims ----------------------------------------------------------------------------------------------------------


def _ratio(results: Results, mode: str) -> Finding:
    runs = results.experiments
    ratio = runs[mode].speed_m_per_rad / runs["CL"].speed_m_per_rad
    note = (
        f"{mode} {runs[mode].speed_m_per_rad:.4f}, CL {runs['CL'].speed_m_per_rad:.4f} m/rad; measured "
        f"{MEASURED[mode]:g} and {MEASURED['CL']:g}"
    )
    return Finding(None, note, ratio)


_MEASURED = "Section 5.2, Fig. 16"
_side_winding, _arc_rolling = (
    claim(text, _MEASURED, MEASURED[mode] / MEASURED["CL"], "", RATIO_TOLERANCE)(partial(_ratio, mode=mode))
    for text, mode in (
        ("SWL makes 0.554 of CL's speed over omega (experiment)", "SWL"),
        ("ARL makes 0.171 of CL's speed over omega (experiment)", "ARL"),
    )
)


@claim("CL is the fastest of the five gaits (simulation)", "Section 5.1, Fig. 14a")
def _fastest(results: Results) -> Finding:
    runs = results.simulations
    others = max(run.speed_m_per_rad for mode, run in runs.items() if mode not in ("CL", "SRL"))
    told = ", ".join(f"{mode} {run.speed_m_per_rad:.3f}" for mode, run in runs.items() if mode != "SRL")
    note = f"{told} m/rad; SRL climbs {runs['SRL'].rise_m / 2.0 / math.pi:.3f} m/rad"
    climbing = runs["SRL"].rise_m / (2.0 * math.pi)
    return Finding(grade(runs["CL"].speed_m_per_rad > max(others, climbing)), note)


@claim("CL has the smallest, SRL the largest joint torque", "Section 5.1, Fig. 14b")
def _torque_order(results: Results) -> Finding:
    torque = {mode: run.largest_nm for mode, run in results.simulations.items()}
    note = ", ".join(f"{mode} {value:.1f}" for mode, value in torque.items()) + " N m"
    least, most = min(torque, key=lambda m: torque[m]), max(torque, key=lambda m: torque[m])
    return Finding(grade(least == "CL" and most == "SRL", least == "CL" or most == "SRL"), note)


@claim("SRL's torque is almost 300 times CL's", "Section 5.1", 300.0, "", 0.3)
def _spiral_torque(results: Results) -> Finding:
    runs = results.simulations
    note = "what a spiral bears follows from how hard it grips; the paper has no friction and no grip"
    return Finding(None, note, runs["SRL"].largest_nm / runs["CL"].largest_nm)


@claim("The joint torques of TWL and SWL are close to each other (taken as: within a factor of 1.5)",
       "Section 5.1")  # fmt: skip
def _alike(results: Results) -> Finding:
    ratio = results.simulations["TWL"].largest_nm / results.simulations["SWL"].largest_nm
    return Finding(grade(1 / 1.5 < ratio < 1.5, 1 / 3 < ratio < 3), "largest torque of TWL over SWL's", ratio)


@claim("Joints move least in ARL and most in TWL and SRL", "Section 5.1, Fig. 13")
def _motion(results: Results) -> Finding:
    swing = {mode: math.degrees(run.motion_rad) for mode, run in results.simulations.items()}
    order = sorted(swing, key=lambda mode: swing[mode])
    note = ", ".join(f"{mode} {swing[mode]:.0f}" for mode in order) + " degrees from end to end"
    return Finding(grade(order[0] == "ARL" and set(order[-2:]) == {"TWL", "SRL"}, order[0] == "ARL"), note)


@claim("TWL moves forward for negative frequency and backward for positive", "Section 5.1")
def _forward(results: Results) -> Finding:
    forth, back = results.simulations["TWL"].along_m_per_rad, results.backwards.along_m_per_rad
    return Finding(grade(forth > 0.01 and back < -0.01), f"{forth:.3f} and {back:.3f} m/rad along the body")


@claim("The spiral of SRL climbs along a cylinder", "Section 3.2")
def _climbs(results: Results) -> Finding:
    rise, published = results.simulations["SRL"].rise_m, results.published_spiral.rise_m
    note = (
        f"{100 * rise:.0f} cm in a period with friction {POLE_FRICTION:g}, gain {POLE_GAINS[0]:g} N m/rad and a "
        f"commanded radius of {GRIP_RADIUS_M:g} m; as published (0.26 m, 50 N m/rad, friction {FLOOR:g}): "
        f"{100 * published:+.0f} cm on a pole of {POLE_RADIUS_M:g} m. Both with cylinders, where section 5.1 has boxes"
    )
    return Finding(grade(published > 0.05, rise > 0.05), note, rise)


def _on_ground(results: Results, name: str, unit: str, pairs: str) -> Finding:
    """Judge that a quantity is larger in the first run of each pair, such as ``SWL1>SWL3``, than in the second."""
    value = {run: float(getattr(result, name)) for run, result in results.ground.items()}
    holds = [value[first] > value[second] for first, second in (pair.split(">") for pair in pairs.split())]
    listed = ", ".join(f"{run} {number:.3f}" for run, number in value.items())
    return Finding(grade(all(holds), any(holds)), f"{listed} {unit}; both fields (1, 2: grass; 3, 4: rocks) are ours")


_SIDE_BY_SIDE = "SWL1>ARL1 SWL2>ARL2 SWL3>ARL3 SWL4>ARL4"
_GROUND = tuple(
    claim(text, source)(partial(_on_ground, name=name, unit=unit, pairs=pairs))
    for text, source, name, unit, pairs in (
        ("On complex ground SWL is faster than ARL at the same frequency, overall", "Section 5.3, Fig. 18a",
         "speed_m_per_rad", "m/rad", _SIDE_BY_SIDE),
        ("SWL is faster on grass than on rocks (SWL1 > SWL3, SWL2 > SWL4)", "Section 5.3",
         "speed_m_per_rad", "m/rad", "SWL1>SWL3 SWL2>SWL4"),
        ("ARL is faster on rocks than on grass (ARL3 > ARL1, ARL4 > ARL2)", "Section 5.3",
         "speed_m_per_rad", "m/rad", "ARL3>ARL1 ARL4>ARL2"),
        ("The joint torque of SWL is generally greater than that of ARL", "Section 5.3, Fig. 18b",
         "largest_nm", "N m, of 8.34 at most", _SIDE_BY_SIDE),
        ("ARL keeps its direction better on rocks than on grass", "Section 5.3",
         "turn_rad", "rad of change of heading", "ARL1>ARL3 ARL2>ARL4"),
    )
)  # fmt: skip


# --- tables and figures ----------------------------------------------------------------------------------------------


def _runs_table(results: Results) -> Table:
    rows: list[list[Cell]] = [
        [what, mode, run.speed_m_per_rad, run.along_m_per_rad, run.left_m_per_rad, math.degrees(run.turn_rad),
         run.largest_nm, math.degrees(run.motion_rad), run.rise_m]
        for what, runs in (("experiment", results.experiments), ("simulation", results.simulations),
                           ("complex ground", results.ground))
        for mode, run in runs.items()
    ]  # fmt: skip
    columns = ["run", "gait", "speed / omega [m/rad]", "along [m/rad]", "to the left [m/rad]", "turn [deg]",
               "largest torque [N m]", "joint motion [deg]", "rise [m]"]  # fmt: skip
    return Table("runs", "Gaits of Snake Robot III", columns, rows)


def _fit_table(results: Results) -> Table:
    note = f"measured on the robot: {MEASURED['CL']:g}"
    columns = ["axle friction [N m s/rad]", "speed / omega [m/rad]"]
    return Table("axles", "CL against the friction of the wheels' axles", columns, [*results.fit.items()], note)


def _draw_curves(canvas: Canvas, results: Results, group: str, modes: Sequence[str] = ()) -> None:
    """Draw all runs of a group of ``Results``, or these modes."""
    every: dict[str, Run] = getattr(results, group)
    runs = {mode: every[mode] for mode in modes or every}
    axes = canvas.subplots(2, len(runs), sharex="col", squeeze=False)
    for column, (mode, run) in enumerate(runs.items()):
        for joint in range(run.angle_rad.shape[1] - 1, -1, -1):
            from_head = run.angle_rad.shape[1] - joint
            shade = 0.25 + 0.7 * from_head / run.angle_rad.shape[1]
            colour = (0.0, shade * 0.75, 0.2) if from_head % 2 else (shade * 0.6, 0.1, shade * 0.7)
            axes[0, column].plot(run.time_s, np.degrees(run.angle_rad[:, joint]), color=colour, lw=0.7)
            axes[0, column].plot(run.time_s, np.degrees(run.aim_rad[:, joint]), color=colour, lw=0.4, ls="--")
            axes[1, column].plot(run.time_s, run.torque_nm[:, joint], color=colour, lw=0.7)
        axes[0, column].set_title(mode)
        axes[1, column].set_xlabel("time in the last period [s]")
    axes[0, 0].set_ylabel("joint angle [deg]")
    axes[1, 0].set_ylabel("joint torque [N m]")


def _draw_bars(canvas: Canvas, results: Results) -> None:
    left, right, ratio = canvas.subplots(1, 3)
    modes = list(results.simulations)
    speeds = [run.speed_m_per_rad for run in results.simulations.values()]
    speeds[-1] = results.simulations["SRL"].rise_m / (2.0 * math.pi)
    left.bar(modes, speeds)
    left.set_ylabel("speed / omega [m/rad] (SRL: climbing)")
    right.bar(modes, [run.largest_nm for run in results.simulations.values()])
    right.set_yscale("log")
    right.set_ylabel("largest joint torque [N m]")
    ours = results.experiments["CL"].speed_m_per_rad
    places = np.arange(3)
    ratio.bar(places - 0.2, [results.experiments[m].speed_m_per_rad / ours for m in MEASURED], 0.4, label="ours")
    ratio.bar(places + 0.2, [v / MEASURED["CL"] for v in MEASURED.values()], 0.4, label="measured by the paper")
    ratio.set_xticks(places, list(MEASURED))
    ratio.set_ylabel("speed / speed of CL")
    ratio.legend()


FIGURES = (
    figure("simulated_curves", "Joint positions and torques in one period of the simulations: yaw joints green, pitch "
           "joints purple, from the head dark to light; references dashed (beside Fig. 13)",
           partial(_draw_curves, group="simulations"), (15.0, 6.0)),
    figure("experiment_curves", "The same with the servos' limits (beside Fig. 15)",
           partial(_draw_curves, group="experiments"), (10.0, 6.0)),
    figure("ground_curves", "The same on grass (1) and rocks (3) (beside Fig. 17)",
           partial(_draw_curves, group="ground", modes=("SWL1", "SWL3", "ARL1", "ARL3")), (13.0, 6.0)),
    figure("speeds_and_torques", "Speeds and largest torques of the five gaits (beside Fig. 14), speeds beside the "
           "measured ones (beside Fig. 16)", _draw_bars, (13.0, 4.0)),
)  # fmt: skip


STUDY = Study(
    name="liu2024_spatial",
    title="SnakeSys in space: five gaits of Snake Robot III on flat and rough ground and on a pole",
    citation="X. Liu, Y. Zang, Z. Gao: Bio-Inspired Multimodal Motion Gait Control of Snake Robots with Environmental "
    "Adaptability Based on ROS. Electronics 13(17), 3437, 2024. doi:10.3390/electronics13173437",
    experiment=_experiment,
    claims=(
        _side_winding, _arc_rolling, _fastest, _torque_order, _spiral_torque, _alike, _motion, _forward, _climbs,
        *_GROUND,
    ),
    tables=(_runs_table, _fit_table),
    figures=FIGURES,
    data=lambda _: {"floor": FLOOR, "axle": AXLE, "outdoors": OUTDOORS},
)  # fmt: skip
