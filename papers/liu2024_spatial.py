"""Rerun of the spatial part of liu2024 (SnakeSys): five gaits of Snake Robot III on MuJoCo.

``experiments``: creeping, side winding and arc rolling with the servos' limits (Table 4). ``simulations``: all five
with unlimited joints (Table 3), spiral rolling on a pole with joints of several gains. ``complex ground``: side winding
and arc rolling on height fields (Table 5). One contact model serves all of them: masses, wheels, sections and gain are
the authors', and so is the friction of 0.2 of their simulator, which stands for the floor of the experiments too. No
number is fitted to a speed; ``SENSITIVITY``: what else friction and gain might be. docs/spatial.md says what is ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from papers.pole_statics import even_holding_friction, holding_friction
from papers.study import Advance, Cell, Finding, Study, Table, claim, figure, grade
from snake_gym.render.palette import BLUE, ORANGE
from snake_gym.robot.measurement import Goal
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.sensors import SensorConfig
from snake_gym.spatial.gaits import COMPLEX, EXPERIMENTS, GAITS, GaitMode, Mode, Multimodal, MultimodalConfig, Wave
from snake_gym.spatial.ground import GroundSpec
from snake_gym.spatial.kinematics import wind_pose
from snake_gym.spatial.sensors import SpatialSensors
from snake_gym.spatial.simulation import SpatialRobot
from snake_gym.spatial.spec import SpatialSpec, load_spatial_robot

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

ROBOT = "configs/robot/spatial/snake_robot_iii.yaml"
BOXES = ("TWL", "SRL")
"""Modes with links of box section (section 5.1); the others have cylinders."""
STEP_S, FINE_STEP_S, OUTDOOR_STEP_S = 0.002, 0.001, 0.004
OUTDOORS = 0.3
"""Friction on grass and rocks: ours, the paper has none."""
MEASURED = {"CL": 0.2553, "SWL": 0.1415, "ARL": 0.0437}
"""Speeds of the real robot over omega [m/rad] (section 5.2)."""
SPEED_TOLERANCE = {"CL": 0.08, "SWL": 0.08, "ARL": 0.12}
RATIO_TOLERANCE = {"SWL": 0.05, "ARL": 0.08}
SENSITIVITY = ((0.1, 100.01), (0.3, 100.01), (0.2, 50.001), (0.2, 200.0))
"""Other frictions, and gains [N m/rad] of the servos: 50.001 is in the authors' first file."""
OPEN_RAD, CLOSING_RAD = math.pi, 0.0
"""Phases from which an arc rolls with its middle ahead, or with its open side."""
SETTLING = 3
"""Periods in which amplitudes come within 0.5 % of a gait's."""
CONTROL_DT_S = 0.04
POLE_RADIUS_M = 0.2
CLIMBING_GAINS = (100.01, 1000.0, 2000.0, 5000.0)
"""Gains [N m/rad] of the joints that climb."""
DAMPING_S = 0.02
"""Their damping over their gain."""
CLIMBS_M = 0.3
"""Rise in a period from which a spiral counts as climbing: ours."""
WIDE_RADIUS_M = 0.3
"""Radius of the spiral that does not touch the pole, from which the robot winds itself up without weight."""
WINDING_S = 2.0
LOWEST_M = 0.8
"""Height of its lowest link then."""
GRIP_RADIUS_M = 0.2
"""Radius that servos are commanded to hold on with: beyond what the pole leaves, they press with all their torque."""
HOLDING = (0.4, 0.6, 0.8, 1.0, 1.2)
"""Frictions at which they are tried."""
HOLDING_S = 2.0
GROUND_SEEDS = 2


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
    """Height that the centre of mass gained in a period."""
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
    settling: int = SETTLING,
    phase_rad: float = OPEN_RAD,
) -> Run:
    """Play a gait on one ground after the other, or on the plane: ``settling`` periods, then ``periods`` that count.

    The robot begins straight, around a pole wound up; ``phase_rad``: phase of the gait that it begins at.
    """
    runs = [_play(spec, gait, ground, periods, settling, phase_rad) for ground in grounds or [GroundSpec()]]
    means: dict[str, Any] = {name: float(np.mean([getattr(run, name) for run in runs])) for name in Run._fields[:5]}
    return runs[0]._replace(**means)


def _play(spec: SpatialSpec, gait: GaitMode, ground: GroundSpec, periods: int, settling: int, phase_rad: float) -> Run:
    spec = replace(spec, control_dt_s=CONTROL_DT_S)
    robot, sensors = SpatialRobot(spec, 1, 1, ground), SpatialSensors(SensorConfig(), 1, spec.n_joints)
    controller, one = Multimodal(MultimodalConfig(), spec), np.ones(1, bool)
    state, wave = controller.initial_state(1), Wave(gait, spec)
    controller.set_gait(state, one, gait)
    state["theta"][:], state["psi"][:], state["psi_goal"][:] = phase_rad, wave.phase_rad, wave.phase_rad
    if ground.kind == "pole":
        state["begun"][:], state["rho"][:], state["omega"][:] = 1.0, wave.amplitude_rad, 0.0
        wind(robot, gait, controller.reference(state)[0])
    else:
        state["omega"][:] = wave.frequency_rad_s
        robot.set_shape(np.zeros((1, spec.n_joints)), np.zeros(1), np.zeros((1, 2)), "centre")
        robot.state.physics[:, 3] += ground.height_m if ground.kind in ("grass", "rocks") else 0.0
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
        float(way[2]) / periods, CONTROL_DT_S * np.arange(float(n_period)), angle, aim, torque,
    )  # fmt: skip


def wind(robot: SpatialRobot, gait: GaitMode, bent: FloatArray) -> None:
    """Wind one robot around the z axis, weightless: from a wide spiral to the references ``bent`` (J,) [rad]."""
    wave = Wave(replace(gait, spiral_radius_m=WIDE_RADIUS_M), robot.spec)
    wide = wave.amplitude_rad * np.cos(wave.phase_rad)
    quaternion, origin = wind_pose(robot.spec, wide)
    robot.set_pose(wide[None], quaternion[None], (origin + np.array([0.0, 0.0, LOWEST_M]))[None])
    weight = robot.model.opt.gravity[2]
    robot.model.opt.gravity[2] = 0.0
    for share in np.linspace(0.0, 1.0, round(WINDING_S / CONTROL_DT_S)):
        robot.step((wide + (bent - wide) * share * share * (3.0 - 2.0 * share))[None])
    robot.model.opt.gravity[2] = weight


class Results(NamedTuple):
    """Results of the study."""

    experiments: dict[str, Run]
    fine: dict[str, Run]
    """Experiments with physics steps of ``FINE_STEP_S``."""
    closing: Run
    """ARL of the experiments, begun at ``CLOSING_RAD``."""
    sensitivity: dict[tuple[float, float], dict[str, Run]]
    """SWL and ARL with other frictions and gains, and CL as it is: neither changes it."""
    simulations: dict[str, Run]
    """SRL is that of ``climbs`` with the softest joints that climb, or with the stiffest."""
    backwards: Run
    """TWL with positive frequency."""
    climbs: dict[tuple[str, float], Run]
    """SRL on the pole by section and gain [N m/rad] of its joints."""
    slides: dict[float, float]
    """Ways [m] that the real robot slides down the pole by friction."""
    ground: dict[str, Run]


def servo_robot(spec: SpatialSpec, mode: str, step_s: float = STEP_S) -> SpatialSpec:
    """Return the real robot: servos with limits, wheels for creeping, the section that suits the gait."""
    section: Literal["box", "cylinder"] = "box" if mode in BOXES else "cylinder"
    wheels = replace(spec.wheels, pairs=mode == "CL")
    return replace(spec, wheels=wheels, section=section, rounded=False, sim_dt_s=step_s)


def free_robot(spec: SpatialSpec, mode: str) -> SpatialSpec:
    """Return the robot of the authors' simulations: joints without limits."""
    robot = servo_robot(spec, mode)
    actuator = replace(robot.actuator, torque_limit_nm=math.inf, speed_limit_rad_s=math.inf)
    return replace(robot, actuator=actuator)


def climb(spec: SpatialSpec, gain: float, section: Literal["box", "cylinder"], periods: int) -> Run:
    """Wind the robot around the pole and roll, by the paper's spiral and friction, with joints of this gain."""
    robot = free_robot(spec, "SRL")
    stiff = replace(robot.actuator, kp=gain, kd=DAMPING_S * gain)
    robot = replace(robot, actuator=stiff, section=section, solver="newton")
    return play(robot, GAITS["SRL"], [GroundSpec(kind="pole", radius_m=POLE_RADIUS_M)], periods, 1, 0.0)


def hold(spec: SpatialSpec, friction: float) -> float:
    """Return how far [m] the real robot, with links of cylinders, slides down a pole of this friction."""
    robot = replace(spec, friction=friction, rounded=False, sim_dt_s=STEP_S, control_dt_s=CONTROL_DT_S)
    one = SpatialRobot(robot, 1, 1, GroundSpec(kind="pole", radius_m=POLE_RADIUS_M))
    gait = replace(GAITS["SRL"], spiral_radius_m=GRIP_RADIUS_M)
    wave = Wave(gait, robot)
    bent = wave.amplitude_rad * np.cos(wave.phase_rad)
    wind(one, gait, bent)
    height = one.state.centre_z[0]
    for _ in range(round(HOLDING_S / CONTROL_DT_S)):
        one.step(bent[None])
    return float(height - one.state.centre_z[0])


def _experiment(quick: bool, advance: Advance) -> Results:
    spec = load_spatial_robot(ROBOT)
    periods = {"ARL": 4 if quick else 8}

    def experiments(robot: SpatialSpec, step_s: float = STEP_S, modes: Sequence[Mode] = ("CL", "SWL", "ARL")) -> Any:
        """Return the runs of Table 4."""
        return {
            mode: play(servo_robot(robot, mode, step_s), EXPERIMENTS[mode], None, periods.get(mode, 1))
            for mode in modes
        }

    advance(0.0, "experiments")
    measured = experiments(spec)
    closing = play(servo_robot(spec, "ARL"), EXPERIMENTS["ARL"], None, periods["ARL"], phase_rad=CLOSING_RAD)
    advance(0.1, "experiments with finer steps")
    fine = experiments(spec, FINE_STEP_S, ("ARL",) if quick else ("CL", "SWL", "ARL"))
    sensitivity = {}
    for i, (friction, gain) in enumerate(SENSITIVITY[:1] if quick else SENSITIVITY):
        advance(0.25 + 0.08 * i, f"friction {friction:g}, gain {gain:g} N m/rad")
        other = replace(spec, friction=friction, actuator=replace(spec.actuator, kp=gain))
        sensitivity[friction, gain] = {"CL": measured["CL"], **experiments(other, modes=("SWL", "ARL"))}
    advance(0.55, "simulations")
    simulations: dict[str, Run] = {
        mode: play(free_robot(spec, mode), GAITS[mode], None, 1) for mode in GAITS if mode != "SRL"
    }
    turned = replace(GAITS["TWL"], frequency_rad_s=-GAITS["TWL"].frequency_rad_s)
    backwards = play(free_robot(spec, "TWL"), turned, None, 1)
    advance(0.65, "spiral rolling on a pole")
    gains = CLIMBING_GAINS[-2:-1] if quick else CLIMBING_GAINS
    climbs = {("box", gain): climb(spec, gain, "box", 1) for gain in gains}
    simulations["SRL"] = next((run for run in climbs.values() if run.rise_m > CLIMBS_M), climbs["box", gains[-1]])
    climbs["cylinder", CLIMBING_GAINS[-2]] = climb(spec, CLIMBING_GAINS[-2], "cylinder", 1)
    slides = {friction: hold(spec, friction) for friction in (HOLDING[::4] if quick else HOLDING)}
    ground = {}
    for i, (name, gait) in enumerate(COMPLEX.items()):
        advance(0.75 + 0.03 * i, f"complex ground: {name}")
        kind: Literal["grass", "rocks"] = "grass" if name[-1] in "12" else "rocks"
        seeds = range(1 if quick else GROUND_SEEDS)
        grounds = [GroundSpec(kind=kind, seed=seed, height_m=0.06, grain_m=0.25, size_m=12.0) for seed in seeds]
        robot = replace(servo_robot(spec, name[:3], OUTDOOR_STEP_S), friction=OUTDOORS)
        ground[name] = play(robot, gait, grounds, periods.get(name[:3], 2))
    return Results(measured, fine, closing, sensitivity, simulations, backwards, climbs, slides, ground)


# --- claims ----------------------------------------------------------------------------------------------------------


def _speed(results: Results, mode: str) -> Finding:
    speed, fine = results.experiments[mode].speed_m_per_rad, results.fine.get(mode)
    note = "friction 0.2, gain 100 N m/rad, nothing fitted"
    if fine is not None:
        note += f"; with 1 ms steps in place of 2 ms {fine.speed_m_per_rad:.4f}"
    if mode == "ARL":
        note += f"; begun with its open side ahead {results.closing.speed_m_per_rad:.4f}"
    return Finding(None, note, speed)


def _ratio(results: Results, mode: str) -> Finding:
    ratio = results.experiments[mode].speed_m_per_rad / results.experiments["CL"].speed_m_per_rad
    others = [runs[mode].speed_m_per_rad / runs["CL"].speed_m_per_rad for runs in results.sensitivity.values()]
    note = f"with other frictions and gains {min(others):.3f} to {max(others):.3f}"
    return Finding(None, note, ratio)


_SOURCE = "Section 5.2, Fig. 16"
_speeds = [
    claim(f"{mode} makes {speed:g} m/rad over omega (experiment)", _SOURCE, speed, "m/rad", SPEED_TOLERANCE[mode])(
        partial(_speed, mode=mode)
    )
    for mode, speed in MEASURED.items()
]
_ratios = [
    claim(f"{mode} makes {MEASURED[mode] / MEASURED['CL']:.3f} of CL's speed over omega (experiment)", _SOURCE,
          MEASURED[mode] / MEASURED["CL"], "", tolerance)(partial(_ratio, mode=mode))
    for mode, tolerance in RATIO_TOLERANCE.items()
]  # fmt: skip


@claim("CL is the fastest of the five gaits (simulation)", "Section 5.1, Fig. 14a")
def _fastest(results: Results) -> Finding:
    runs = results.simulations
    others = max(run.speed_m_per_rad for mode, run in runs.items() if mode not in ("CL", "SRL"))
    told = ", ".join(f"{mode} {run.speed_m_per_rad:.3f}" for mode, run in runs.items() if mode != "SRL")
    climbing = runs["SRL"].rise_m / (2.0 * math.pi)
    note = f"{told} m/rad; SRL climbs {climbing:.3f} m/rad"
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
    torques = ", ".join(f"{run.largest_nm:.0f} at {gain:g}" for gain, run in _boxes(results).items())
    note = f"SRL's torque follows from the gain of its joints, which the paper does not have: {torques} N m/rad"
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


def _boxes(results: Results) -> dict[float, Run]:
    """Return the runs of SRL with boxes by the gain of their joints."""
    return {gain: run for (section, gain), run in results.climbs.items() if section == "box"}


@claim("The spiral of SRL climbs along a cylinder", "Section 3.2")
def _climbs(results: Results) -> Finding:
    rises = ", ".join(f"{100 * run.rise_m:+.0f} at {gain:g}" for gain, run in _boxes(results).items())
    round_ones = [100 * run.rise_m for (section, _), run in results.climbs.items() if section == "cylinder"]
    best = max(run.rise_m for run in _boxes(results).values())
    note = (
        f"published spiral, friction 0.2, a pole of {POLE_RADIUS_M:g} m, boxes: cm in a period {rises} N m/rad, which "
        f"the paper does not name; cylinders at {CLIMBING_GAINS[-2]:g} N m/rad {round_ones[0]:+.0f}"
    )
    return Finding(grade(best > CLIMBS_M, best > 0.0), note, best)


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


def _own(spec: SpatialSpec) -> tuple[float, float]:
    """Return friction and gain [N m/rad] of the robot as it is."""
    return spec.friction, float(spec.joints("actuator.kp")[0])


def _sensitivity_table(results: Results) -> Table:
    spec = load_spatial_robot(ROBOT)
    rows: list[list[Cell]] = []
    every = {(*_own(spec), STEP_S): results.experiments, (*_own(spec), FINE_STEP_S): results.fine}
    every |= {(*key, STEP_S): runs for key, runs in results.sensitivity.items()}
    for (friction, gain, step), runs in every.items():
        speed = [runs[mode].speed_m_per_rad if mode in runs else None for mode in MEASURED]
        ratios = [None if part is None or speed[0] is None else part / speed[0] for part in speed[1:]]
        rows.append([friction, gain, 1000.0 * step, *speed, *ratios])
    columns = ["friction", "gain [N m/rad]", "step [ms]", *(f"{mode} [m/rad]" for mode in MEASURED), "SWL / CL",
               "ARL / CL"]  # fmt: skip
    return Table("sensitivity", "Experiments against friction, gain and step", columns, rows)


def _climb_table(results: Results) -> Table:
    rows: list[list[Cell]] = [
        [section, gain, run.rise_m, run.largest_nm] for (section, gain), run in results.climbs.items()
    ]
    columns = ["section", "gain [N m/rad]", "rise in a period [m]", "largest torque [N m]"]
    return Table("climbs", "SRL on the pole by section and gain of the joints", columns, rows)


def _hold_table(results: Results) -> Table:
    spec = load_spatial_robot(ROBOT)
    reach = replace(GAITS["SRL"], spiral_radius_m=POLE_RADIUS_M + spec.radius_m)
    note = (
        f"statics: no forces hold it below {holding_friction(spec, reach):.2f}, even pressure holds it from "
        f"{even_holding_friction(spec, POLE_RADIUS_M):.2f} on"
    )
    columns = ["friction", f"way down in {HOLDING_S:g} s [m]"]
    return Table("holding", "The real robot on the pole, all servos pressing", columns, [*results.slides.items()], note)


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
    speeds[modes.index("SRL")] = results.simulations["SRL"].rise_m / (2.0 * math.pi)
    left.bar(modes, speeds, color=BLUE)
    left.set_ylabel("speed / omega [m/rad]")
    left.set_title("SRL: climbing")
    right.bar(modes, [run.largest_nm for run in results.simulations.values()], color=BLUE)
    right.set_yscale("log")
    right.set_ylabel("largest joint torque [N m]")
    ours = results.experiments["CL"].speed_m_per_rad
    places = np.arange(3)
    ratio.bar(
        places - 0.2, [results.experiments[m].speed_m_per_rad / ours for m in MEASURED], 0.4, label="ours", color=BLUE
    )
    ratio.bar(places + 0.2, [v / MEASURED["CL"] for v in MEASURED.values()], 0.4, label="paper", color=ORANGE)
    ratio.set_xticks(places, list(MEASURED))
    ratio.set_ylabel("speed / speed of CL")
    ratio.legend()


def _draw_sensitivity(canvas: Canvas, results: Results) -> None:
    """Draw both ratios over friction and over gain, all others being as published."""
    spec = load_spatial_robot(ROBOT)
    runs = {**results.sensitivity, _own(spec): results.experiments}
    axes = canvas.subplots(1, 2, sharey=True)
    for place, label in enumerate(("friction", "gain [N m/rad]")):
        line = sorted(key for key in runs if key[1 - place] == _own(spec)[1 - place])
        for colour, mode in zip((BLUE, ORANGE), RATIO_TOLERANCE, strict=True):
            published = MEASURED[mode] / MEASURED["CL"]
            ratio = [runs[key][mode].speed_m_per_rad / runs[key]["CL"].speed_m_per_rad for key in line]
            axes[place].plot([key[place] for key in line], ratio, "o-", color=colour, label=f"{mode} / CL")
            axes[place].axhline(published, color=colour, ls=":", label=f"{mode} / CL, paper")
        axes[place].set_xlabel(label)
    axes[0].set_ylabel("ratio of speeds")
    axes[0].set_ylim(0.0)
    axes[1].legend()


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
    figure("sensitivity", "Speeds over CL's against friction and gain: both open the arc and flatten the winding",
           _draw_sensitivity, (9.0, 4.0)),
)  # fmt: skip


STUDY = Study(
    name="liu2024_spatial",
    title="SnakeSys in space: five gaits of Snake Robot III on flat and rough ground and on a pole",
    citation="X. Liu, Y. Zang, Z. Gao: Bio-Inspired Multimodal Motion Gait Control of Snake Robots with Environmental "
    "Adaptability Based on ROS. Electronics 13(17), 3437, 2024. doi:10.3390/electronics13173437",
    experiment=_experiment,
    claims=(
        *_speeds, *_ratios, _fastest, _torque_order, _spiral_torque, _alike, _motion, _forward, _climbs,
        *_GROUND,
    ),
    tables=(_runs_table, _sensitivity_table, _climb_table, _hold_table),
    figures=FIGURES,
    data=lambda _: {"outdoors": OUTDOORS},
)  # fmt: skip
