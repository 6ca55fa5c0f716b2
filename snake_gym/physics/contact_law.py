r"""Contact between a link (a capsule) and a feature of the obstacles: geometry, law, and effect on the link.

A link touches a feature in one point: a disc where the link's axis comes nearest to it, a segment (edge of a polygon,
side of a capsule, wall) with the ends of the link; so a link along a wall has two contacts and one across a corner has
one. A joint counts as the end of the link behind it, and of the one before it too if that is thicker. With the normal n
from obstacle to link, the gap g_0 as the step of length h begins and g' at its end, and v_n' the normal velocity there,

    impulse j = N_STIFFNESS (v_t - v_n'),   j >= 0,   v_t such that g' = min(g_0, 0) (1 - h r),  r = k / (h k + d):

a link that has not arrived yet is slowed just so that it arrives, and an overlap shrinks at the rate r of the spring
against its damper. N_STIFFNESS = h (h k + d) is that of a spring and damper, or more where that is not firm. g' is
linear in v_n' about the foreseen end of the step, ``g' = g* + h (v_n' - v_n*)``. That is a rank-one addition to the
link's matrix: it passes through all joints in the same elimination, so that an impact meets the chain's own effective
mass (wang, eq. 12-15 treat the link as free). Restitution (Newton's) raises v_n' to ``-e`` times the approach. With
Coulomb friction that is done at e = 0 too: a link that is slowed in one step and stopped in the next meets two impacts,
and what sticks in one may slide in two.

The rigid model (wang, eq. 11-19; Moreau's time stepping) is the limit of infinite N_STIFFNESS with g' = 0: 0 <= j,
v_n' >= v_t, and j (v_n' - v_t) = 0.

The velocities at a contact are those that the foreseen rates give in the step's geometry; gaps after a solution follow
from them by their difference to the solution's, which leaves no error of first order.

Friction along the surface: viscous (wang, eq. 22, but at the point of contact instead of the link's centre) and Coulomb
(``contact_friction``).
"""

from __future__ import annotations

import math

from snake_gym.physics.chain import join_links
from snake_gym.physics.contact_friction import set_friction
from snake_gym.physics.lanes import (
    AXIS_X, AXIS_Y, BEFORE, BOUNCE, CLOSING, COS, CPW, CPX, CPY, CVX, CVY, CWW, CXW, CXX, CXY, CYW, CYY, END, FIRM, GAP,
    T_STIFFNESS, HALF, LENGTH, NEW_VX, NEW_VY, NX, NY, N_ARM, OMEGA, OMEGA_P, ON, PER_H, POS_X, POS_Y, N_IMPULSE,
    RADIUS, RECORD, ROUND, T_IMPULSE, SIGMA, SIN, SOL_W, START_X, START_Y, N_STIFFNESS, TARGET, TOTAL, T_ARM, USED, UX,
    UY, VN, VT, H, slot_of,
)  # fmt: skip
from snake_gym.physics.simd import kernel, load, select, splat, store

FAR = 1e9
"""Gap [m] of a slot without a contact."""
_SLOWEST_IMPACT = 0.02
"""Least approach speed [m/s] that bounces."""
_FIRMNESS = 1e3
"""Least N_STIFFNESS, in masses of the robot: it makes an impact one event at any step size."""
_FASTEST_WAY_OUT = 0.05
"""Speed [m/s] at which a link is pushed out of an obstacle at most: it has no energy to gain there."""
_RIGIDITY = 1e4
"""N_STIFFNESS of rigid contact, in masses of the robot; corrections remove the rest of v_n' - v_t."""


@kernel
def foresee_velocities(s, n):  # type: ignore[no-untyped-def]
    """Set NEW_VX, NEW_VY of the links' middles in the step's geometry at the foreseen rates."""
    world = (n + 1) * RECORD
    sigma = load(s, world + SIGMA)
    for i in range(1, n + 1):
        a = i * RECORD
        w = load(s, a + OMEGA)
        lw = load(s, a + HALF) * (w + sigma * (w - load(s, a + OMEGA_P)))
        store(s, a + NEW_VX, -lw * load(s, a + SIN))
        store(s, a + NEW_VY, lw * load(s, a + COS))
    join_links(s, n, NEW_VX, NEW_VY, (load(s, world + CVX), load(s, world + CVY)), True)


@kernel
def measure_slot(s, n, a, c):  # type: ignore[no-untyped-def]
    """Set gap, normal, moments and foreseen velocities of the slot at ``c`` of the link at ``a``."""
    sin, cos, half, radius = load(s, a + SIN), load(s, a + COS), load(s, a + HALF), load(s, a + RADIUS)
    x, y = load(s, a + POS_X), load(s, a + POS_Y)
    ax, ay, length = load(s, c + AXIS_X), load(s, c + AXIS_Y), load(s, c + LENGTH)
    end = load(s, c + END) * half
    ox = x + end * cos - load(s, c + START_X)
    oy = y + end * sin - load(s, c + START_Y)
    u = ox * ax + oy * ay
    beside = (length > 0.0) & ((u < 0.0) | (u > length))
    u = min(max(u, 0.0), length)
    # The contact is at the axis point nearest to a disc; for a segment it is the link's end.
    px = load(s, c + START_X) + u * ax - x
    py = load(s, c + START_Y) + u * ay - y
    foot = px * cos + py * sin
    along = select(length > 0.0, end, min(max(foot, -half), half))
    if a > RECORD:
        # A contact at the joint with the link behind belongs to that link, unless it is thinner.
        covered = load(s, a - RECORD + RADIUS) >= radius
        beside = beside | ((length == 0.0) & (foot < -half) & covered)
    dx = along * cos - px
    dy = along * sin - py
    distance = math.sqrt(dx * dx + dy * dy)
    inverse = 1.0 / max(distance, 1e-12)
    nx = dx * inverse
    ny = dy * inverse
    gap = distance - radius - load(s, c + ROUND)
    store(s, c + GAP, select(beside | (load(s, c + USED) == 0.0), FAR, gap))
    store(s, c + NX, nx)
    store(s, c + NY, ny)
    cross = cos * ny - sin * nx
    dot = cos * nx + sin * ny
    store(s, c + N_ARM, (along - half) * cross)
    store(s, c + T_ARM, (along - half) * dot - radius)
    sigma = load(s, (n + 1) * RECORD + SIGMA)
    w = load(s, a + OMEGA)
    w = w + sigma * (w - load(s, a + OMEGA_P))
    vx, vy = load(s, a + NEW_VX), load(s, a + NEW_VY)
    store(s, c + VN, nx * vx + ny * vy + along * cross * w)
    store(s, c + VT, nx * vy - ny * vx + (along * dot - radius) * w)


@kernel
def set_laws(s, n, law):  # type: ignore[no-untyped-def]
    """Set what all contacts of a world share in a step of length H: 1/h, N_STIFFNESS, closing rate of gaps < 0."""
    world = (n + 1) * RECORD
    h, total = load(s, world + H), load(s, world + TOTAL)
    store(s, world + PER_H, 1.0 / h)
    if law.rigid:
        store(s, world + FIRM, _RIGIDITY * total)
        store(s, world + CLOSING, 1.0 / h)
    else:
        yielding = h * law.stiffness + law.damping
        store(s, world + FIRM, max(h * yielding, _FIRMNESS * total))
        store(s, world + CLOSING, law.stiffness / yielding)


@kernel
def set_law(s, n, c, law):  # type: ignore[no-untyped-def]
    """Set the coefficients of the slot's impulse and surface friction for this step."""
    world = (n + 1) * RECORD
    h, stiff = load(s, world + H), load(s, world + FIRM)
    vn = load(s, c + VN)
    gap = load(s, c + GAP) - h * vn
    before = load(s, c + BEFORE)
    before = select(before < FAR, before, gap)
    # Overlap that is left at the step's end.
    overlap = min(before, 0.0)
    left = min(overlap * (1.0 - h * load(s, world + CLOSING)), overlap + h * _FASTEST_WAY_OUT)
    target = (left - gap) * load(s, world + PER_H)
    if law.restitution > 0.0 or law.coulomb > 0.0:
        impact = (vn < -_SLOWEST_IMPACT) & (load(s, c + GAP) < 0.0)
        bounce = select(impact, max(-law.restitution * vn - target, 0.0), 0.0)
        store(s, c + BOUNCE, bounce)
        target = target + bounce
        if law.coulomb > 0.0:
            # The link may be stopped short of the obstacle, where nothing takes what speed is left.
            stiff = select(impact, max(stiff, _RIGIDITY * load(s, world + TOTAL)), stiff)
    store(s, c + N_STIFFNESS, stiff)
    store(s, c + TARGET, target)
    store(s, c + N_IMPULSE, stiff * target)
    set_friction(s, n, c, law)


@kernel
def add_contacts(s, n, i, count):  # type: ignore[no-untyped-def]
    """Sum the parts of the link's touching slots in its matrix and right-hand side, at its head-side end."""
    a = i * RECORD
    zero = splat(s, 0.0)
    xx, xy, yy, xw, yw, ww = zero, zero, zero, zero, zero, zero
    px, py, pw = zero, zero, zero
    for j in range(count):
        c = slot_of(n, i, j)
        on = load(s, c + ON)
        stiff = on * load(s, c + N_STIFFNESS)
        press = on * load(s, c + N_IMPULSE)
        grip = on * load(s, c + T_STIFFNESS)
        rub = on * load(s, c + T_IMPULSE)
        nx, ny = load(s, c + NX), load(s, c + NY)
        arm, side = load(s, c + N_ARM), load(s, c + T_ARM)
        xx = xx + stiff * nx * nx + grip * ny * ny
        xy = xy + (stiff - grip) * nx * ny
        yy = yy + stiff * ny * ny + grip * nx * nx
        xw = xw + stiff * nx * arm - grip * ny * side
        yw = yw + stiff * ny * arm + grip * nx * side
        ww = ww + stiff * arm * arm + grip * side * side
        px = px + (press * nx - rub * ny)
        py = py + (press * ny + rub * nx)
        pw = pw + (press * arm + rub * side)
    store(s, a + CXX, xx)
    store(s, a + CXY, xy)
    store(s, a + CYY, yy)
    store(s, a + CXW, xw)
    store(s, a + CYW, yw)
    store(s, a + CWW, ww)
    store(s, a + CPX, px)
    store(s, a + CPY, py)
    store(s, a + CPW, pw)


@kernel
def normal_velocity(s, a, c):  # type: ignore[no-untyped-def]
    """Return v_n' [m/s] of the slot at ``c`` of the link at ``a`` after a solution."""
    b = a + RECORD
    return (
        load(s, c + NX) * load(s, b + UX) + load(s, c + NY) * load(s, b + UY) + load(s, c + N_ARM) * load(s, a + SOL_W)
    )
