r"""Planar chain of N rigid links: kinematics and the O(N) solution of its equations of motion.

Frames and signs: world x-y plane; link 1 is the tail, link N the head; t_i = (cos theta_i, sin theta_i),
n_i = (-sin theta_i, cos theta_i); phi_i = theta_i - theta_{i+1}; the torque mu_i turns link i by +mu_i and link i+1 by
-mu_i (Liljebäck et al.; sibilska2022, eq. 1-16).

Every step solves the same linear system. Each link is a free body with a 3x3 matrix (inertia, plus dt times friction in
the implicit step) and a right-hand side (momentum or force); neighbours share the velocity of their joint; each joint
obeys ``mu = T0 - K rel`` (actuator) or ``rel = B`` (prescribed rate), rel = omega_i - omega_{i+1}. Eliminating links
from the tail (articulated-body recursion of Featherstone, Rigid Body Dynamics Algorithms, ch. 7, the joint law folded
in) leaves behind joint i an impedance

    F = Q V - P,   V = (u_x, u_y, omega_{i+1}),  u the velocity of joint i,

which costs one division per joint, where the block-tridiagonal form in the joint impulses inverts a 3x3 block. The free
head closes the recursion with ``Q V = P``; the way back yields all rates. Rigid joints (locked or acceleration-driven)
are the case G = 0: no stiffness, no small step.
"""

from __future__ import annotations

from snake_gym.physics.lanes import (
    AHEAD, ARM, A_N, A_R, A_T, COS, CPW, CPX, CPY, CVX, CVY, CWW, CX, CXW, CXX, CXY, CY, CYW, CYY, HALF, HEAD_X, HEAD_Y,
    MASS, MU, NEW_VX, NEW_VY, OMEGA, POS_X, POS_Y, PR, PUSH_X, PUSH_Y, PW, PX, PY, QW, QX, QXX, QXY, QY, QYY, RECORD,
    REL, RIGID, RW, RX, RY, SIN, SOL_W, SUM_X, SUM_Y, T0, THETA, TOTAL, UWX, UWY, UX, UY, VX, VY, WW, B, E, G, K,
    sin_cos,
)  # fmt: skip
from snake_gym.physics.simd import kernel, load, splat, store


@kernel
def turn_links(s, n):  # type: ignore[no-untyped-def]
    """Set SIN and COS from the present link angles."""
    for i in range(1, n + 1):
        a = i * RECORD
        sin, cos = sin_cos(load(s, a + THETA))
        store(s, a + SIN, sin)
        store(s, a + COS, cos)


@kernel
def join_links(s, n, x, y, mean, middles):  # type: ignore[no-untyped-def]
    """Join half links end to end: replace the vectors (or velocities) of half links in the fields ``x``, ``y`` by the
    positions (or velocities) of the links' ``middles``, or else centres of mass, such that the chain's has ``mean``."""
    at_x, at_y = splat(s, 0.0), splat(s, 0.0)
    sum_x, sum_y = splat(s, 0.0), splat(s, 0.0)
    behind_x, behind_y = splat(s, 0.0), splat(s, 0.0)
    for i in range(1, n + 1):
        a = i * RECORD
        half_x, half_y = load(s, a + x), load(s, a + y)
        at_x = at_x + behind_x + half_x
        at_y = at_y + behind_y + half_y
        behind_x, behind_y = half_x, half_y
        ahead = load(s, a + AHEAD)
        centre_x, centre_y = at_x + ahead * half_x, at_y + ahead * half_y
        sum_x = sum_x + load(s, a + MASS) * centre_x
        sum_y = sum_y + load(s, a + MASS) * centre_y
        store(s, a + x, at_x if middles else centre_x)
        store(s, a + y, at_y if middles else centre_y)
    # Up to here all vectors are relative to the tail's end.
    total = load(s, (n + 1) * RECORD + TOTAL)
    shift_x = mean[0] - sum_x / total
    shift_y = mean[1] - sum_y / total
    for i in range(1, n + 1):
        a = i * RECORD
        store(s, a + x, load(s, a + x) + shift_x)
        store(s, a + y, load(s, a + y) + shift_y)


@kernel
def place_links(s, n):  # type: ignore[no-untyped-def]
    """Set SIN, COS and the velocities VX, VY of the links' centres of mass from rates and that of the chain's."""
    turn_links(s, n)
    for i in range(1, n + 1):
        a = i * RECORD
        lw = load(s, a + HALF) * load(s, a + OMEGA)
        store(s, a + VX, -lw * load(s, a + SIN))
        store(s, a + VY, lw * load(s, a + COS))
    world = (n + 1) * RECORD
    join_links(s, n, VX, VY, (load(s, world + CVX), load(s, world + CVY)), False)


@kernel
def locate_links(s, n, base):  # type: ignore[no-untyped-def]
    """Set the links' middles POS_X, POS_Y from the geometry SIN, COS and the centre of mass at ``base``."""
    for i in range(1, n + 1):
        a = i * RECORD
        half = load(s, a + HALF)
        store(s, a + POS_X, half * load(s, a + COS))
        store(s, a + POS_Y, half * load(s, a + SIN))
    join_links(s, n, POS_X, POS_Y, base, True)


@kernel
def locate_head(s, n):  # type: ignore[no-untyped-def]
    """Set the head link's middle HEAD_X, HEAD_Y from the link angles and the centre of mass."""
    world = (n + 1) * RECORD
    turn_links(s, n)
    locate_links(s, n, (load(s, world + CX), load(s, world + CY)))
    store(s, world + HEAD_X, load(s, n * RECORD + POS_X))
    store(s, world + HEAD_Y, load(s, n * RECORD + POS_Y))


@kernel
def eliminate_links(s, first, n, touching, pressed):  # type: ignore[no-untyped-def]
    """Fold link after link and joint after joint, from link ``first`` to the head, into the impedance Q, P.

    ``touching``: the records hold the contacts' part (``contact``), which acts at the link's head-side end;
    ``pressed``: they hold impulses there of links that touch each other (``touch``).
    """
    for i in range(first, n + 1):
        a = i * RECORD
        p = a - RECORD
        sin = load(s, a + SIN)
        cos = load(s, a + COS)
        half = load(s, a + HALF)
        # Impedance F = Q V - P of all that lies behind, carried from the link's tail-side end to its head-side end,
        # whose velocity is u: u_tail = u + d omega with d = -2 l n, so
        #   Q_uu stays,  Q_uw := q + Q_uu d,  Q_ww := q_w + d (q + Q_uw),  P_w := p_w + d p.
        dx = 2.0 * half * sin
        dy = -2.0 * half * cos
        qxx = load(s, p + QXX)
        qxy = load(s, p + QXY)
        qyy = load(s, p + QYY)
        qx = load(s, p + QX)
        qy = load(s, p + QY)
        uwx = qx + qxx * dx + qxy * dy
        uwy = qy + qxy * dx + qyy * dy
        ww = load(s, p + QW) + dx * (qx + uwx) + dy * (qy + uwy)
        px = load(s, p + PX)
        py = load(s, p + PY)
        pw = load(s, p + PR) + dx * px + dy * py
        # The link's own matrix and right-hand side at its centre of mass, whose velocity is u + c omega with
        # c = -a n, a the arm from it to the head-side end:
        #   Q_uu += A_t t t^T + A_n n n^T,  Q_uw += A_n c,  Q_ww += A_r + a^2 A_n,  P_u += r,  P_w += r_w + c r.
        along = load(s, a + A_T)
        across = load(s, a + A_N)
        arm = load(s, a + ARM)
        lx = arm * sin
        ly = -arm * cos
        rx = load(s, a + RX)
        ry = load(s, a + RY)
        qxx += along * cos * cos + across * sin * sin
        qxy += (along - across) * sin * cos
        qyy += along * sin * sin + across * cos * cos
        uwx += across * lx
        uwy += across * ly
        ww += load(s, a + A_R) + arm * arm * across
        px += rx
        py += ry
        pw += load(s, a + RW) + lx * rx + ly * ry
        if touching:  # contacts act at the head-side end: Q += C, P += C_p (contact_law)
            qxx += load(s, a + CXX)
            qxy += load(s, a + CXY)
            qyy += load(s, a + CYY)
            uwx += load(s, a + CXW)
            uwy += load(s, a + CYW)
            ww += load(s, a + CWW)
            px += load(s, a + CPX)
            py += load(s, a + CPY)
            pw += load(s, a + CPW)
        if pressed:
            px += load(s, a + PUSH_X)
            py += load(s, a + PUSH_Y)
        # Joint at the head-side end: omega = omega_next + rel, and Q_uw u + Q_ww omega - P_w = mu with
        # mu = T0 - K rel gives, with g = 1 / (Q_ww + K),
        #   rel = E - g (Q_uw u + Q_ww omega_next),  E = g (T0 + P_w);  a rigid joint is rel = B: g = 0, E = B.
        rigid = load(s, a + RIGID)
        g = (1.0 - rigid) / (ww + load(s, a + K))
        e = rigid * load(s, a + B) + g * (load(s, a + T0) + pw)
        gx = g * uwx
        gy = g * uwy
        keep = 1.0 - g * ww
        store(s, a + UWX, uwx)
        store(s, a + UWY, uwy)
        store(s, a + WW, ww)
        store(s, a + PW, pw)
        store(s, a + G, g)
        store(s, a + E, e)
        # rel put into Q V - P leaves the impedance that the next link feels:
        #   Q_uu -= g Q_uw Q_uw^T,  q = (1 - g Q_ww) Q_uw,  q_w = (1 - g Q_ww) Q_ww,  P -= (Q_uw, Q_ww) E.
        store(s, a + QXX, qxx - gx * uwx)
        store(s, a + QXY, qxy - gx * uwy)
        store(s, a + QYY, qyy - gy * uwy)
        store(s, a + QX, keep * uwx)
        store(s, a + QY, keep * uwy)
        store(s, a + QW, keep * ww)
        store(s, a + PX, px - uwx * e)
        store(s, a + PY, py - uwy * e)
        store(s, a + PR, pw - ww * e)


@kernel
def substitute_back(s, n):  # type: ignore[no-untyped-def]
    """Solve from head to tail: SOL_W, NEW_VX, NEW_VY of links, REL, MU of joints, sum of m_i v_i in SUM of link 1.

    The record of the head must have been eliminated with a torque-free joint (K = T0 = RIGID = 0): then its Q, P before
    the joint are recovered from UW, WW, PW, and the 3x3 system is solved with the joint's row as the last pivot.
    """
    a = n * RECORD
    b = a + RECORD
    # Schur complement of the head's rotation: exactly what the torque-free elimination left in Q, P.
    qxx = load(s, a + QXX)
    qxy = load(s, a + QXY)
    qyy = load(s, a + QYY)
    px = load(s, a + PX)
    py = load(s, a + PY)
    r = 1.0 / qxx
    uy = (py - qxy * r * px) / (qyy - qxy * r * qxy)
    ux = (px - qxy * uy) * r
    store(s, a + SOL_W, load(s, a + E) - load(s, a + G) * (load(s, a + UWX) * ux + load(s, a + UWY) * uy))
    store(s, b + UX, ux)
    store(s, b + UY, uy)
    store(s, b + SUM_X, 0.0)
    store(s, b + SUM_Y, 0.0)
    for i in range(n, 0, -1):
        a = i * RECORD
        b = a + RECORD
        p = a - RECORD
        w = load(s, a + SOL_W)
        sin, cos = load(s, a + SIN), load(s, a + COS)
        arm = load(s, a + ARM)
        rest = 2.0 * load(s, a + HALF) - arm
        ux = load(s, b + UX) + arm * sin * w
        uy = load(s, b + UY) - arm * cos * w
        mass = load(s, a + MASS)
        store(s, a + SUM_X, load(s, b + SUM_X) + mass * ux)
        store(s, a + SUM_Y, load(s, b + SUM_Y) + mass * uy)
        store(s, a + NEW_VX, ux)
        store(s, a + NEW_VY, uy)
        ux += rest * sin * w
        uy -= rest * cos * w
        store(s, a + UX, ux)
        store(s, a + UY, uy)
        moment = load(s, p + UWX) * ux + load(s, p + UWY) * uy + load(s, p + WW) * w
        rel = load(s, p + E) - load(s, p + G) * moment
        store(s, p + REL, rel)
        store(s, p + MU, moment + load(s, p + WW) * rel - load(s, p + PW))
        store(s, p + SOL_W, w + rel)
