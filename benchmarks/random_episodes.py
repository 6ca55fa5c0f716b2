"""Random robots, faults and ranges, and obstacles around robots, for stress.py and work_precision.py.

Frame: world x-y, angles counter-clockwise; W worlds, N links, F obstacle features (rows as in ``obstacles.shapes``).
Geometry is plain numpy from link angles and centres of mass and shares no code with the physics.
"""

from __future__ import annotations

import math
import typing
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_gym.obstacles.fields import FieldConfig, FieldKind, FieldMaker
from snake_gym.obstacles.grid import FieldBounds, empty_arrays, with_ends, write_world
from snake_gym.obstacles.shapes import Capsule, Circle, Polygon, Shape, features
from snake_gym.physics.state import ChainParams, ChainState, FloatArray, Obstacles
from snake_gym.robot.presets import MUSCLE, RESILIENT_SERVO
from snake_gym.robot.spec import ActuatorKind, ActuatorSpec, ContactModel, ContactSpec, FrictionSpec, RobotSpec
from snake_gym.simulation.fault_kinds import kinds_of
from snake_gym.simulation.faults import FaultConfig
from snake_gym.simulation.quantities import QUANTITIES, Range
from snake_gym.simulation.randomisation import RandomisationConfig
from snake_gym.tasks.obstacle_field import robot_extent

CONTROL_DT_S = 0.2
SKIN_M = 0.02
WALL_M = 0.02
"""Half the thickness of the four walls around a yard."""
FIELDS = ("yard", *(kind for kind in typing.get_args(FieldKind) if kind != "list"))
"""Kinds of fields: discs, capsules, polygons and thin walls at random, and all of the library's own."""
KINDS: tuple[ActuatorKind, ...] = ("torque", "position", "acceleration", "muscle")
RANGES = {
    "friction_along": (0.1, 10.0), "friction_across": (0.1, 10.0), "friction_turning": (0.1, 10.0),
    "patches": (0.0, 0.95), "slope_rad": (0.0, 0.5), "mass": (0.3, 3.0), "link_length": (0.5, 2.0),
    "payload_kg": (0.0, 5.0), "servo_gain": (0.1, 10.0), "servo_damping": (0.1, 10.0), "torque_limit": (0.2, 5.0),
    "speed_limit": (0.2, 5.0), "supply_voltage": (0.5, 1.5), "backlash_rad": (0.0, 0.2),
    "joint_friction_nm": (0.0, 0.3), "command_delay_s": (0.0, 0.5), "command_jitter_s": (0.0, 0.2),
    "push_hz": (0.0, 1.0), "push_m_s": (0.0, 1.0), "friction_backward": (0.1, 10.0), "mass_ahead": (-0.9, 0.9),
}  # fmt: skip
"""Widest ranges of what varies; payloads per mean link mass, joint friction per torque limit, others (0, 0.2)."""
AMPLITUDE_RAD, PHASE_SHIFT_RAD = 0.3, 0.7
"""Wave that a robot in a field of the library's begins with."""
PAIRS = {"push_m_s": "push_hz", "pose_outage_s": "pose_loss_hz"}
"""Quantities that vary only together with another."""


def draw_actuator(rng: np.random.Generator, torque: float) -> ActuatorSpec:
    """Servos whose torque limit is ``torque`` [N m]; rarely accelerations or muscles."""
    kind = KINDS[rng.choice(4, p=[0.4, 0.5, 0.05, 0.05])]
    speed = float(rng.uniform(1.0, 6.0))
    if kind == "acceleration":
        return ActuatorSpec(kind, float(rng.uniform(10.0, 200.0)), float(rng.uniform(5.0, 50.0)))
    if kind == "muscle":
        return MUSCLE.actuator

    def some(low: float, high: float, off: float = 0.0) -> float:
        value = float(rng.uniform(low, high))
        return value if rng.random() < 0.25 else off

    kp, kd = 0.0, torque / speed
    if kind == "position":
        kp, kd = 10.0 * torque, float(rng.uniform(0.5, 2.0)) * torque
    return ActuatorSpec(
        kind, kp, kd, torque,
        speed_limit_rad_s=speed if kind == "position" or rng.random() < 0.5 else math.inf,
        dead_band_rad=some(0.0, 0.05), delay_s=some(0.0, 0.3) * (kind == "position"), backlash_rad=some(0.0, 0.1),
        no_load_speed_rad_s=some(2.0, 10.0, math.inf), supply_resistance_ohm=some(0.0, 1.0),
        torque_constant_nm_a=torque / 2.0,
    )  # fmt: skip


def draw_robot(rng: np.random.Generator, model: ContactModel, dt_s: float) -> RobotSpec:
    n = int(2.0 * 32.5 ** rng.uniform(0.0, 1.0))  # 2 to 64, as many of 4 as of 40
    half = rng.uniform(0.03, 0.1) * rng.uniform(0.7, 1.3, n)
    mass = rng.uniform(2.0, 10.0) * 2.0 * half * rng.uniform(0.7, 1.3, n)
    ground = rng.choice(["viscous", "dry", "ice"], p=[0.4, 0.4, 0.2])
    dry, wet = ground == "dry", ground != "ice"
    friction = FrictionSpec(
        tangential_ns_m=float(mass.mean() * rng.uniform(0.0, 2.0)) * wet,
        normal_ns_m=float(mass.mean() * rng.uniform(1.0, 10.0)) * wet,
        tangential_coulomb=float(rng.uniform(0.0, 0.2)) * dry,
        normal_coulomb=float(rng.uniform(0.1, 0.6)) * dry,
        coulomb_axes="coupled" if rng.random() < 0.5 else "independent",
    )
    # From a motor that just lifts its link to one that lifts fifteen, as those of resilient_servo; speeds of servos.
    torque = float(15.0 ** rng.uniform(0.0, 1.0) * mass.mean() * 9.81 * half.mean())
    actuator = draw_actuator(rng, torque)
    stop = float(rng.uniform(0.6, 1.6)) if rng.random() < 0.5 else math.inf
    if actuator.kind == "muscle":
        stop = MUSCLE.joint_stop_rad  # type: ignore[assignment]
    contact = ContactSpec(
        model,
        restitution=float(rng.uniform(0.0, 1.0)) if rng.random() < 0.5 else 0.0,
        friction_ns_m=float(rng.uniform(0.0, 5.0)) if rng.random() < 0.3 else 0.0,
        friction_coulomb=float(rng.uniform(0.0, 0.6)) if rng.random() < 0.5 else 0.0,
    )
    uneven = rng.uniform(0.7, 1.3, n) if rng.random() < 0.5 else np.ones(n)
    radius = rng.uniform(0.15, 0.5) * half.mean() * uneven
    return RobotSpec(
        name="stress", n_links=n, link_half_length_m=tuple(half.tolist()), link_mass_kg=tuple(mass.tolist()),
        link_radius_m=tuple(radius.tolist()), friction=friction, contact=contact,
        actuator=actuator, joint_stop_rad=stop, free_joint_damping_nms_rad=float(rng.uniform(0.0, 0.02)) * torque,
        joint_friction_nm=float(rng.uniform(0.0, 0.3)) * torque * (rng.random() < 0.25),
        incline_rad=float(rng.uniform(0.0, 0.2)) if rng.random() < 0.3 else 0.0,
        incline_direction_rad=float(rng.uniform(-math.pi, math.pi)), control_dt_s=CONTROL_DT_S, sim_dt_s=dt_s,
    )  # fmt: skip


def draw_fault_settings(rng: np.random.Generator, n_joints: int, seconds: float) -> FaultConfig:
    """Random kinds of faults at random times, of up to all joints."""
    every = kinds_of("joint", RESILIENT_SERVO)
    kinds = rng.permutation(every)[: rng.integers(1, len(every) + 1)].tolist()
    share, duration, period = rng.uniform(0.0, 1.0, 4), seconds * rng.uniform(1 / 120, 0.3), rng.uniform(0.02, 2.0)
    most = int(rng.integers(0, n_joints + 1))
    return FaultConfig(
        n_max=most, kinds=tuple(kinds), onset_max_s=seconds, duration_s=float(duration),
        duration_max_s=float(2.0 * duration), recovering_share=float(share[0]),
        second_share=float(share[1]) * (len(kinds) > 1), intermittent_share=float(share[2]),
        period_min_s=float(period), period_max_s=float(3.0 * period), duty=(0.05, 1.0), jitter=(0.0, float(share[3])),
        weak_strength=(0.02, 0.9), slow_strength=(0.02, 0.9), offset_rad=(0.05, 0.8),
    )  # fmt: skip


def draw_randomisation(rng: np.random.Generator, spec: RobotSpec) -> RandomisationConfig:
    """Random ranges of a random half of all quantities."""
    per = {
        "payload_kg": float(spec.links("link_mass_kg").mean()),
        "joint_friction_nm": float(np.minimum(spec.joints("actuator.torque_limit_nm"), 10.0).max()),
    }
    given: dict[str, Any] = {}
    for name, quantity in QUANTITIES.items():
        low, high = RANGES.get(name, (0.0, 0.2))
        ends, on = np.sort(rng.uniform(0.0, 1.0, 2)), rng.random() < 0.5
        if quantity.nominal == 1.0:
            ends = low * (high / low) ** ends
        else:
            ends = (low + (high - low) * ends) * per.get(name, 1.0) - (0.1 if "_bias_" in name else 0.0)
        on = PAIRS[name] in given if name in PAIRS else on
        if on:
            given[name] = Range(float(ends[0]), float(ends[1]))
    for name, other in PAIRS.items():
        if name not in given:
            given.pop(other, None)
    return RandomisationConfig(patch_size_m=float(rng.uniform(0.05, 1.0)), **given)


def link_ends(params: ChainParams, state: ChainState) -> tuple[FloatArray, FloatArray]:
    """Tail and head ends of all links, (W, N, 2) [m] each, from link angles and the centre of mass."""
    angle, mass = state.link_angle, params.mass
    along = params.half_length[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    middle = np.concatenate([np.zeros_like(along[:, :1]), np.cumsum(along[:, :-1] + along[:, 1:], axis=1)], axis=1)
    share = (mass / mass.sum(axis=1, keepdims=True))[..., None]
    centre = middle + params.ahead[..., None] * along
    middle += (state.centre_xy - (share * centre).sum(axis=1))[:, None]
    return middle - along, middle + along


def _point_to_segment(point: FloatArray, start: FloatArray, way: FloatArray) -> FloatArray:
    length2 = np.maximum((way * way).sum(axis=-1), 1e-300)
    share = np.clip(((point - start) * way).sum(axis=-1) / length2, 0.0, 1.0)
    off = point - start - share[..., None] * way
    return np.sqrt((off * off).sum(axis=-1))


def segment_distance(a: FloatArray, b: FloatArray, row: FloatArray) -> FloatArray:
    """Distances (...,) [m] of the segments ab (..., 2) and the axes of features (..., 6)."""
    p, way = row[..., :2], row[..., 4:5] * row[..., 2:4]
    span = b - a
    ends = [_point_to_segment(x, p, way) for x in (a, b)]
    ends += [_point_to_segment(x, a, span) for x in (p, p + way)]

    def cross(u: FloatArray, v: FloatArray) -> FloatArray:
        return np.asarray(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0])

    sides = cross(way, a - p) * cross(way, b - p), cross(span, p - a) * cross(span, p + way - a)
    crossing = (sides[0] < 0.0) & (sides[1] < 0.0)
    return np.where(crossing, 0.0, np.minimum.reduce(ends))


class Yard(NamedTuple):
    """A walled place full of obstacles."""

    rows: FloatArray
    """Features (F, 6)."""
    low: FloatArray
    """Lower left corner (2,) [m] of the rectangle along the middle of the walls; ``high``: the upper right one."""
    high: FloatArray


def deepest_overlap(yards: list[Yard], tail: FloatArray, head: FloatArray, radius: FloatArray) -> FloatArray:
    """Deepest overlap (W, N) [m] of each link, ends (W, N, 2) and radii (W, N), with a feature of its world's yard."""
    rows = np.full((len(yards), max(len(yard.rows) for yard in yards), 6), (1e6, 1e6, 1.0, 0.0, 0.0, 0.0))
    for row, yard in zip(rows, yards, strict=True):
        row[: len(yard.rows)] = yard.rows
    first, way = rows[:, None, :, :2], rows[:, None, :, 4:5] * rows[:, None, :, 2:4]
    reach = 0.5 * np.linalg.norm(head - tail, axis=-1) + radius
    far = _point_to_segment(0.5 * (tail + head)[:, :, None], first, way)
    w, i, k = np.nonzero(far <= reach[..., None] + rows[:, None, :, 5])
    gap = segment_distance(tail[w, i], head[w, i], rows[w, k]) - radius[w, i] - rows[w, k, 5]
    deepest = np.zeros(radius.shape)
    np.maximum.at(deepest, (w, i), -gap)
    return deepest


def clear(rows: FloatArray, tail: FloatArray, head: FloatArray, radius: FloatArray) -> NDArray[np.bool_]:
    """Which features (F,) keep 2 mm from all links (N, 2)."""
    gap = segment_distance(tail, head, rows[:, None]) - rows[:, None, 5] - radius
    return np.asarray(gap.min(axis=1) > 0.002)


def draw_yard(
    rng: np.random.Generator, tail: FloatArray, head: FloatArray, radius: FloatArray, other: FloatArray | None
) -> Yard:
    """Yard around the robot whose links have these ends (N, 2) and radii (N,): four walls and what fits between them.

    ``other``: features that stand there instead of random shapes.
    """
    ends, size = np.concatenate([tail, head]), float(np.linalg.norm(head - tail, axis=1).mean())
    middle, reach = 0.5 * (ends.min(axis=0) + ends.max(axis=0)), 0.15 * len(tail) * size + 0.15
    room = 0.5 * np.ptp(ends, axis=0) + reach
    low, high = middle - room, middle + room
    (x0, y0), (x1, y1) = low.tolist(), high.tolist()
    walls = features([
        Capsule(x0, y0, x1, y0, WALL_M), Capsule(x1, y0, x1, y1, WALL_M),
        Capsule(x1, y1, x0, y1, WALL_M), Capsule(x0, y1, x0, y0, WALL_M),
    ])  # fmt: skip
    if other is not None:
        last = other[:, :2] + other[:, 4:5] * other[:, 2:4]
        thick = other[:, 5:]
        inside = (np.minimum(other[:, :2], last) - thick < high) & (np.maximum(other[:, :2], last) + thick > low)
        other = other[inside.all(axis=1)]
        return Yard(np.concatenate([walls, other[clear(other, tail, head, radius)]]), low, high)
    wanted = min(400, round(0.8 * 4.0 * room[0] * room[1] / (size * size)))
    at, far = rng.uniform(low, high, (3 * wanted, 2)), size * rng.uniform(0.15, 0.6, 3 * wanted)
    turn, kind = rng.uniform(0.0, 2.0 * math.pi, 3 * wanted), rng.integers(0, 5, 3 * wanted)
    along = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    long, thick = np.where(kind >= 3, 2.0 * far, 0.0), np.where(kind == 3, 0.3 * far, np.where(kind == 4, 0.0, far))
    hulls = np.column_stack([at, along, long, thick])
    shapes: list[Shape] = []
    for k in np.flatnonzero(clear(hulls, tail, head, radius))[:wanted].tolist():
        (x, y), f = at[k].tolist(), float(far[k])
        u, v = (at[k] + long[k] * along[k]).tolist()
        if kind[k] < 2:
            shapes.append(Circle(x, y, f))
        elif kind[k] == 2:
            corners = np.sort(rng.uniform(0.0, 2.0 * math.pi / 5, 5)) * 0.8 + 2.0 * math.pi / 5 * np.arange(5)
            shapes.append(Polygon(tuple((x + f * math.cos(c), y + f * math.sin(c)) for c in corners)))
        else:
            shapes.append(Capsule(x, y, u, v, float(thick[k]) if kind[k] == 3 else 0.0))
    return Yard(np.concatenate([walls, features(shapes)]), low, high)


def draw_shape(rng: np.random.Generator, spec: RobotSpec, kind: str, n_worlds: int) -> FloatArray:
    """Joint angles (W, J) [rad]: bent at random in a yard, a wave elsewhere."""
    if kind == "yard":
        most = min(0.5, 0.9 * float(spec.joints("joint_stop_rad").min()))
        return rng.uniform(-most, most, (n_worlds, spec.n_joints))
    wave = rng.uniform(0.0, 2.0 * math.pi, (n_worlds, 1)) + PHASE_SHIFT_RAD * np.arange(spec.n_joints)
    return np.asarray(AMPLITUDE_RAD * np.sin(wave))


def make_fields(rng: np.random.Generator, spec: RobotSpec, kind: str, heading: FloatArray) -> list[FloatArray | None]:
    """A field of the library's for each world, laid so that the origin is somewhere on the straight way; or None."""
    if kind == "yard":
        return [None] * len(heading)
    extent = robot_extent(spec, AMPLITUDE_RAD, PHASE_SHIFT_RAD, "centre")
    maker = FieldMaker(FieldConfig(kind=kind, difficulty=float(rng.uniform())), extent)  # type: ignore[arg-type]
    fields: list[FloatArray | None] = []
    for direction in heading.tolist():
        back = float(rng.uniform(0.0, 3.0 * spec.length_m))
        start = (-back * math.cos(direction), -back * math.sin(direction))
        fields.append(maker.make(rng, start, direction).features)
    return fields


def place_obstacles(spec: RobotSpec, fields: list[FloatArray], longest_link: float = 1.0) -> Obstacles:
    """Obstacles of the physics, for links up to ``longest_link`` times as long as those of ``spec``."""
    fields = [with_ends(rows) for rows in fields]
    half, radius = spec.links("link_half_length_m"), spec.links("link_radius_m")
    reach = float((longest_link * half + radius).max()) + SKIN_M
    ends = [np.concatenate([f[:, :2], f[:, :2] + f[:, 4:5] * f[:, 2:4]]) for f in fields]
    widest = max(float(np.ptp(points, axis=0).max()) for points in ends)
    thickest = max(float(f[:, 5].max()) for f in fields)
    bounds = FieldBounds(
        max(map(len, fields)), widest + 2.0 * thickest, max(float(f[:, 4].sum()) for f in fields), thickest
    )
    arrays = empty_arrays(len(fields), bounds, reach, SKIN_M)
    for world, rows in enumerate(fields):
        write_world(arrays, world, rows, reach)
    return arrays
