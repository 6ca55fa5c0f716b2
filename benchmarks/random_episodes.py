"""Random robots and the yards of obstacles that they are put into, for benchmarks/stress.py.

Frame: world x-y, angles counter-clockwise; W worlds, N links, F obstacle features (rows as in ``obstacles.shapes``).
Geometry is plain numpy from link angles and centres of mass and shares no code with the physics.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from snake_gym.obstacles.grid import FieldBounds, empty_arrays, with_ends, write_world
from snake_gym.obstacles.shapes import Capsule, Circle, Polygon, Shape, features
from snake_gym.physics.faults import FAULT_CODES
from snake_gym.physics.state import Obstacles
from snake_gym.robot.spec import ActuatorSpec, ContactModel, ContactSpec, FrictionSpec, RobotSpec
from snake_gym.simulation.simulated_robot import SimulatedRobot

FloatArray = NDArray[np.float64]
CONTROL_DT_S = 0.2
SKIN_M = 0.02


def draw_robot(rng: np.random.Generator, model: ContactModel, dt_s: float) -> RobotSpec:
    n = int(2.0 * 32.0 ** rng.uniform(0.0, 1.0))  # 2 to 64, as many of 4 as of 40
    half = rng.uniform(0.03, 0.1) * rng.uniform(0.7, 1.3, n)
    mass = rng.uniform(2.0, 10.0) * 2.0 * half * rng.uniform(0.7, 1.3, n)
    ground = rng.choice(["viscous", "dry", "ice"], p=[0.4, 0.4, 0.2])
    dry, wet = ground == "dry", ground != "ice"
    friction = FrictionSpec(
        tangential_ns_m=float(mass.mean() * rng.uniform(0.0, 2.0)) * wet,
        normal_ns_m=float(mass.mean() * rng.uniform(1.0, 10.0)) * wet,
        tangential_coulomb=float(rng.uniform(0.0, 0.2)) * dry,
        normal_coulomb=float(rng.uniform(0.1, 0.6)) * dry,
    )
    # From a motor that just lifts its link to one that lifts fifteen, as those of resilient_servo; speeds of servos.
    torque = float(15.0 ** rng.uniform(0.0, 1.0) * mass.mean() * 9.81 * half.mean())
    speed = float(rng.uniform(1.0, 6.0))
    if rng.random() < 0.5:
        actuator = ActuatorSpec("torque", 0.0, torque / speed, torque)
    else:
        actuator = ActuatorSpec("position", 10.0 * torque, float(rng.uniform(0.5, 2.0)) * torque, torque, speed)
    stop = float(rng.uniform(0.6, 1.6)) if rng.random() < 0.5 else math.inf
    contact = ContactSpec(
        model,
        restitution=float(rng.uniform(0.0, 1.0)) if rng.random() < 0.5 else 0.0,
        friction_ns_m=float(rng.uniform(0.0, 5.0)) if rng.random() < 0.3 else 0.0,
        friction_coulomb=float(rng.uniform(0.0, 0.6)) if rng.random() < 0.5 else 0.0,
    )
    return RobotSpec(
        name="stress", n_links=n, link_half_length_m=tuple(half.tolist()), link_mass_kg=tuple(mass.tolist()),
        link_radius_m=float(rng.uniform(0.15, 0.5) * half.mean()), friction=friction, contact=contact,
        actuator=actuator, joint_stop_rad=stop, free_joint_damping_nms_rad=float(rng.uniform(0.0, 0.02)) * torque,
        incline_rad=float(rng.uniform(0.0, 0.2)) if rng.random() < 0.3 else 0.0,
        incline_direction_rad=float(rng.uniform(-math.pi, math.pi)), control_dt_s=CONTROL_DT_S, sim_dt_s=dt_s,
    )  # fmt: skip


def link_ends(spec: RobotSpec, angle: FloatArray, centre: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Tail and head ends of all links, (W, N, 2) [m] each, from link angles and the centre of mass."""
    half = spec.links("link_half_length_m")[:, None]
    along = half * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    middle = np.concatenate([np.zeros_like(along[:, :1]), np.cumsum(along[:, :-1] + along[:, 1:], axis=1)], axis=1)
    share = (spec.links("link_mass_kg") / spec.links("link_mass_kg").sum())[:, None]
    middle += (centre - (share * middle).sum(axis=1))[:, None]
    return middle - along, middle + along


def _point_to_segment(point: FloatArray, start: FloatArray, way: FloatArray) -> FloatArray:
    length2 = np.maximum((way * way).sum(axis=-1), 1e-300)
    share = np.clip(((point - start) * way).sum(axis=-1) / length2, 0.0, 1.0)
    return np.linalg.norm(point - start - share[..., None] * way, axis=-1)


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


def near_pairs(tail: FloatArray, head: FloatArray, row: FloatArray, radius: FloatArray) -> tuple[NDArray[np.intp], ...]:
    """Indices (world, link, feature) of the pairs that may touch: links (W, N, 2), features (W, F, 6), radii (N,)."""
    middle, half = 0.5 * (tail + head), 0.5 * np.linalg.norm(head - tail, axis=-1)
    reach = half + radius
    low, high = (f(middle, axis=1) for f in (np.min, np.max))
    first, last = row[..., :2], row[..., :2] + row[..., 4:5] * row[..., 2:4]
    far = row[..., 5:6] + reach.max()
    near = (np.maximum(first, last) + far > low[:, None]) & (np.minimum(first, last) - far < high[:, None])
    w, f = np.nonzero(near.all(axis=-1))
    gap = _point_to_segment(middle[w], first[w, f][:, None], (last - first)[w, f][:, None])
    pair, i = np.nonzero(gap <= reach[w] + row[w, f, 5][:, None])
    return w[pair], i, f[pair]


def draw_yard(rng: np.random.Generator, spec: RobotSpec, tail: FloatArray, head: FloatArray) -> FloatArray:
    """Obstacles (F, 6) around the robot whose links have these ends (N, 2): four walls and what fits between them."""
    reach = 0.15 * spec.length_m + 0.15
    middle = 0.5 * (tail + head).mean(axis=0)
    room = np.abs(np.concatenate([tail, head]) - middle).max(axis=0) + reach
    (x0, y0), (x1, y1) = middle - room, middle + room
    thick = 0.02
    shapes: list[Shape] = [
        Capsule(x0, y0, x1, y0, thick), Capsule(x1, y0, x1, y1, thick),
        Capsule(x1, y1, x0, y1, thick), Capsule(x0, y1, x0, y0, thick),
    ]  # fmt: skip
    size = 2.0 * spec.links("link_half_length_m").mean()
    wanted = min(400, round(0.8 * 4.0 * room[0] * room[1] / (size * size)))
    for _ in range(10 * wanted):
        at, far = rng.uniform(middle - room, middle + room), size * rng.uniform(0.15, 0.6)
        kind, turn = rng.integers(4), rng.uniform(0.0, 2.0 * math.pi)
        other = at + 2.0 * far * np.array([math.cos(turn), math.sin(turn)])
        shape: Shape
        if kind < 2:
            shape = Circle(*at, far)
        elif kind == 2:
            shape = Capsule(*at, *other, 0.3 * far)
        else:
            corners = np.sort(rng.uniform(0.0, 2.0 * math.pi / 5, 5)) * 0.8 + 2.0 * math.pi / 5 * np.arange(5)
            shape = Polygon(tuple((at[0] + far * math.cos(c), at[1] + far * math.sin(c)) for c in corners))
        rows = features(shape)
        clear = segment_distance(tail[:, None], head[:, None], rows) - rows[:, 5]
        inside = isinstance(shape, Polygon) and any(shape.contains(*x) for x in (*tail, *head))
        if not inside and (clear - spec.links("link_radius_m")[:, None]).min() > 0.002:
            shapes.append(shape)
        if len(shapes) >= wanted:
            break
    return features(shapes)


def place_obstacles(spec: RobotSpec, fields: list[FloatArray]) -> Obstacles:
    fields = [with_ends(rows) for rows in fields]
    reach = float((spec.links("link_half_length_m") + spec.links("link_radius_m")).max()) + SKIN_M
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


def draw_faults(rng: np.random.Generator, robot: SimulatedRobot, seconds: float) -> None:
    """Up to a third of the joints fail some time, half of those for a while only."""
    faults = robot.faults
    kinds = [FAULT_CODES[name] for name in ("locked", "free", "weak")]
    failed = rng.random(faults.kind.shape) < rng.uniform(0.0, 1 / 3, (robot.n_worlds, 1))
    faults.kind[:] = np.where(failed, rng.choice(kinds, faults.kind.shape), 0)
    faults.onset_s[:] = rng.uniform(0.0, seconds, faults.kind.shape)
    brief = rng.random(faults.kind.shape) < 0.5
    faults.end_s[:] = np.where(brief, faults.onset_s + rng.uniform(0.5, 20.0, faults.kind.shape), np.inf)
    faults.strength[:] = rng.uniform(0.1, 0.9, faults.kind.shape)
