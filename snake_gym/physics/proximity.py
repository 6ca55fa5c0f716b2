"""Where links come near obstacles: gap, normal, moments and velocity of each slot, at the foreseen end of a step.

A link is the segment of its axis with a radius, a feature a point or segment with a radius (``state.Obstacles``). The
velocities are those that the foreseen rates give in the step's geometry; gaps after a solution follow from them by
their difference to the solution's, which leaves no error of first order.
"""

from __future__ import annotations

from numba import njit

from snake_gym.physics.lanes import (
    AXIS_X, AXIS_Y, COS, CVX, CVY, END, GAP, HALF, LENGTH, MASS, NEW_VX, NEW_VY, NX, NY, N_ARM, OMEGA, OMEGA_P, POS_X,
    POS_Y, RADIUS, RECORD, ROUND, SIGMA, SIN, START_X, START_Y, STRIDE, TOTAL, TRAVEL, T_ARM, USED, VN, VT,
)  # fmt: skip
from snake_gym.physics.simd import absolute, larger, load, select, smaller, splat, square_root, store

FAR = 1e9
"""[m] gap where there is none."""


@njit(error_model="numpy")
def foresee_velocities(s, n, dt):  # type: ignore[no-untyped-def]
    """Velocities NEW_VX, NEW_VY of the links' centres in the step's geometry at the foreseen rates; adds to TRAVEL."""
    world = (n + 1) * RECORD
    sigma = load(s, world + SIGMA)
    vx, vy, px, py = splat(0.0), splat(0.0), splat(0.0), splat(0.0)
    sum_x, sum_y = splat(0.0), splat(0.0)
    for i in range(1, n + 1):
        a = i * RECORD
        w = load(s, a + OMEGA)
        lw = load(s, a + HALF) * (w + sigma * (w - load(s, a + OMEGA_P)))
        rx = -lw * load(s, a + SIN)
        ry = lw * load(s, a + COS)
        vx = vx + px + rx
        vy = vy + py + ry
        px, py = rx, ry
        sum_x = sum_x + load(s, a + MASS) * vx
        sum_y = sum_y + load(s, a + MASS) * vy
        store(s, a + NEW_VX, vx)
        store(s, a + NEW_VY, vy)
    ux = load(s, world + CVX) - sum_x / load(s, world + TOTAL)
    uy = load(s, world + CVY) - sum_y / load(s, world + TOTAL)
    fastest = splat(0.0)
    for i in range(1, n + 1):
        a = i * RECORD
        vx = load(s, a + NEW_VX) + ux
        vy = load(s, a + NEW_VY) + uy
        store(s, a + NEW_VX, vx)
        store(s, a + NEW_VY, vy)
        speed = square_root(vx * vx + vy * vy) + load(s, a + HALF) * absolute(load(s, a + OMEGA))
        fastest = larger(fastest, speed)
    store(s, world + STRIDE, dt * fastest)
    store(s, world + TRAVEL, load(s, world + TRAVEL) + dt * fastest)


@njit(error_model="numpy")
def measure_slot(s, n, a, c):  # type: ignore[no-untyped-def]
    """Gap, normal, moments and foreseen velocities of the slot at ``c`` of the link at ``a``."""
    sin, cos, half, radius = load(s, a + SIN), load(s, a + COS), load(s, a + HALF), load(s, a + RADIUS)
    x, y = load(s, a + POS_X), load(s, a + POS_Y)
    ax, ay, length = load(s, c + AXIS_X), load(s, c + AXIS_Y), load(s, c + LENGTH)
    end = load(s, c + END) * half
    ox = x + end * cos - load(s, c + START_X)
    oy = y + end * sin - load(s, c + START_Y)
    u = ox * ax + oy * ay
    beside = (length > 0.0) & ((u < 0.0) | (u > length))
    u = smaller(larger(u, splat(0.0)), length)
    # Nearest point of the link's axis to the feature's nearest point; of a segment the link's end itself.
    px = load(s, c + START_X) + u * ax - x
    py = load(s, c + START_Y) + u * ay - y
    foot = px * cos + py * sin
    along = select(length > 0.0, end, smaller(larger(foot, -half), half))
    if a > RECORD:
        # The joint with the link behind is that link's.
        beside = beside | ((length == 0.0) & (foot < -half))
    dx = along * cos - px
    dy = along * sin - py
    distance = square_root(dx * dx + dy * dy)
    inverse = 1.0 / larger(distance, splat(1e-12))
    nx = dx * inverse
    ny = dy * inverse
    gap = distance - radius - load(s, c + ROUND)
    store(s, c + GAP, select(beside | (load(s, c + USED) == 0.0), splat(FAR), gap))
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
