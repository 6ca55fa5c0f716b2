"""Oracle: contacts and impacts of a rigid chain by dense algebra in plain numpy. Shares no code with ``snake_gym``.

Links are capsules: all points within ``radius`` of the segment of length 2 l that the link is. An obstacle is a row
[start_x, start_y, axis_x, axis_y, length, radius]: all points within its radius of its segment. World frame.
Generalised velocity u = (theta_dot (N), centre_dot (2)), inertia M(theta) of ``dense_chain``, rows J of the contacts'
normal velocities and H of joints that are held (locked, or at rest against each other). Impact law, with restitution e:

    u+ = u- + M^-1 (J^T lambda + H^T nu),   H u+ = 0,
    0 <= lambda  perpendicular to  J u+ + e min(J u-, 0) >= 0

i.e. for contacts that all stay closed ``u+ = u- - (1 + e) M^-1 J^T (J M^-1 J^T)^-1 J u-`` (Newton's hypothesis through
the articulated inertia; wang, eq. 11-19, whose eq. 12 has the inertia of the link alone). The complementarity problem
is solved by trying every subset of closed contacts.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np

from snake_gym.robot.spec import FloatArray
from tests.oracles.dense_chain import DenseChain, DenseState


class Contact(NamedTuple):
    """One link and one obstacle."""

    link: int
    """From 0."""
    feature: int
    """From 0."""
    gap: float
    """[m] distance of the two surfaces, negative where they overlap."""
    point: FloatArray
    """(2,) [m] on the link's axis, nearest to the obstacle."""
    normal: FloatArray
    """(2,) from obstacle to link."""


class Impact(NamedTuple):
    """What an impact leaves."""

    velocity: FloatArray
    """(N + 2,) u+."""
    impulse: FloatArray
    """(C,) [N s] of each contact."""


def project(point: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    """Nearest point of the segment ab to ``point``."""
    length2 = float((b - a) @ (b - a))
    return a if length2 == 0.0 else a + min(max(float((point - a) @ (b - a)) / length2, 0.0), 1.0) * (b - a)


def nearest_points(a: FloatArray, b: FloatArray, p: FloatArray, q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Nearest points of two segments ab and pq that do not cross: one of the four is an end."""
    pairs = [(x, project(x, p, q)) for x in (a, b)] + [(project(x, a, b), x) for x in (p, q)]
    return min(pairs, key=lambda pair: float(np.linalg.norm(pair[0] - pair[1])))


def find_contacts(
    chain: DenseChain, radius: FloatArray, theta: FloatArray, centre: FloatArray, features: FloatArray, below: float
) -> list[Contact]:
    """Pairs of link and obstacle with a gap of less than ``below`` [m]; theta (N,), centre (2,), features (F, 6)."""
    found = []
    for link, middle in enumerate(chain.link_centres(theta, centre)):
        half = chain.half_length[link] * np.array([np.cos(theta[link]), np.sin(theta[link])])
        for number, row in enumerate(features):
            start = row[:2]
            here, there = nearest_points(middle - half, middle + half, start, start + row[4] * row[2:4])
            apart = here - there
            distance = float(np.linalg.norm(apart))
            gap = distance - radius[link] - row[5]
            if gap < below:
                found.append(Contact(link, number, gap, here, apart / distance))
    return found


def generalised_inertia(chain: DenseChain, theta: FloatArray) -> FloatArray:
    """M (N + 2, N + 2)."""
    n = chain.n_links
    inertia = np.zeros((n + 2, n + 2))
    inertia[:n, :n] = chain.mass_matrix(theta[None])[0]
    inertia[n:, n:] = chain.mass.sum() * np.eye(2)
    return inertia


def velocity_rows(chain: DenseChain, theta: FloatArray) -> FloatArray:
    """(N, 2, N + 2): velocity of each link's centre per unit of each generalised velocity."""
    n = chain.n_links
    unit = np.eye(n + 2)
    many = DenseState(np.tile(theta, (n + 2, 1)), unit[:, :n], np.zeros((n + 2, 2)), unit[:, n:])
    return np.stack([v.T for v in chain.link_velocities(many)], axis=1)


def contact_rows(chain: DenseChain, theta: FloatArray, centre: FloatArray, contacts: list[Contact]) -> FloatArray:
    """J (C, N + 2): normal velocity of the link's axis point at each contact (the surface point's is the same)."""
    velocity, middle = velocity_rows(chain, theta), chain.link_centres(theta, centre)
    rows = np.zeros((len(contacts), chain.n_links + 2))
    for row, contact in zip(rows, contacts, strict=True):
        lever = contact.point - middle[contact.link]
        row += contact.normal @ velocity[contact.link]
        row[contact.link] += lever[0] * contact.normal[1] - lever[1] * contact.normal[0]
    return rows


def held_rows(n_links: int, joints: list[int]) -> FloatArray:
    """H (len(joints), N + 2): relative rates of joints (from 0)."""
    rows = np.zeros((len(joints), n_links + 2))
    for row, joint in zip(rows, joints, strict=True):
        row[joint], row[joint + 1] = 1.0, -1.0
    return rows


def solve_impact(
    inertia: FloatArray, before: FloatArray, rows: FloatArray, restitution: float = 0.0, held: FloatArray | None = None
) -> Impact:
    """The impact law of this module; ``rows`` (C, N + 2), ``held`` (H, N + 2)."""
    held = np.zeros((0, len(before))) if held is None else held
    wanted = -restitution * np.minimum(rows @ before, 0.0)
    for size in range(len(rows) + 1):
        for closed in map(list, combinations(range(len(rows)), size)):
            joined = np.vstack([rows[closed], held])
            target = np.concatenate([wanted[closed], np.zeros(len(held))])
            effective = joined @ np.linalg.solve(inertia, joined.T)
            if len(joined) and np.linalg.matrix_rank(effective) < len(joined):
                continue
            multiplier = np.linalg.solve(effective, target - joined @ before)
            after = before + np.linalg.solve(inertia, joined.T @ multiplier)
            impulse = np.zeros(len(rows))
            impulse[closed] = multiplier[:size]
            scale = np.abs(before).max()
            if (impulse >= -1e-12 * scale).all() and (rows @ after >= wanted - 1e-10 * scale).all():
                return Impact(after, impulse)
    raise ArithmeticError("no subset of contacts satisfies complementarity")
