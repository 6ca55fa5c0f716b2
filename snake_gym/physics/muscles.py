"""Antagonistic pneumatic muscles as a joint law of the implicit step.

Model (haghshenas2022, eq. 1-9; Chou, Hannaford 1996; Tondu, Lopez 2000; see ``robot.spec.MuscleSpec``): with the joint
angle phi, left and right muscle have length, lever and force

    l = 2 (h cos(phi/2) +- w sin(phi/2)),  arm = w cos(phi/2) -+ h sin(phi/2),  F = p area max(a (l/l0)^2 - b, 0)

so that the pair turns the joint by ``T = p_R g_R - p_L g_L`` with g = F arm / p. The command is a torque request
``u = feedforward + kp (phi_ref - phi) - kd phi_dot``; it is met around the pressure of co-contraction, within 0 and the
supply's. Pressures are state, ``lag dp/dt = p_command - p``, taken by the same step as everything else (``implicit``):
``p' = ((base of p) lag + h p_command) / (lag + h)``.

The law ``mu = T0 - K rel`` is T at the step's end: the old pressures' part, linearised at the foreseen end with the
stiffness of the pressed muscles (where it is positive), and the request at the step's end, as far as it passes the
valves within the step. A request beyond the supply's pressure is replaced by its chord, request times SHARE_MET, until
that share fits the rate that comes out (the iteration of Kacanov, which cannot circle).

Faults: WEAK scales the pressures, FREE vents them (with the valves' lag), SLOW makes the valves slower, OFFSET and
SLIPPED shift phi_ref.
"""

from __future__ import annotations

from typing import NamedTuple

from snake_gym.physics.lanes import (
    ALPHA, BASE, BETA, FF, G_LEFT, G_RIGHT, KD, KP, LAW_K, LAW_T0, LOAD, OMEGA, OMEGA_P, PASSIVE_K, PASSIVE_T0,
    P_LEFT, P_LEFT_P, P_RIGHT, P_RIGHT_P, RECORD, REF_NOW, REL, REQUEST_T0, SHARE_MET, SIGMA, SLOWED, STRENGTH, T0,
    B, H, K, sin_cos,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, kernel, load, select, store

_LEAST_PULL = 1e-12
"""Least torque per pressure [N m/Pa] of a muscle that is used."""
_NEARLY = 0.02
"""Least relative error of SHARE_MET that is corrected."""


class MuscleParams(NamedTuple):
    """Parameters of one pair of muscles, the same at all joints."""

    attachment: float
    """Distance h [m] from the joint to the muscle's ends, along the link."""
    half_width: float
    """Distance w [m] from the link's axis to the muscle's ends."""
    rest_length: float
    """Length l0 [m] without pressure and load."""
    area: float
    """Cross-section pi r^2 [m^2]."""
    a: float
    b: float
    max_pressure: float
    """Gauge pressure of the supply [Pa]."""
    base_pressure: float
    """Gauge pressure of co-contraction [Pa]."""
    lag: float
    """Time constant of the valves [s]."""
    damping: float
    """Viscous friction at the joint [N m s/rad]."""


@kernel
def pull_side(cos, sin, side, m):  # type: ignore[no-untyped-def]
    """Return torque per pascal, g, and stiffness per pascal of the muscle on ``side`` (1.0 left, -1.0 right).
    ``cos`` and ``sin`` are those of half the joint angle."""
    length = 2.0 * (m.attachment * cos + side * m.half_width * sin)
    arm = max(m.half_width * cos - side * m.attachment * sin, 0.0)
    stretch = length / m.rest_length
    force = max(m.area * (m.a * stretch * stretch - m.b), 0.0)
    rise = select(force > 0.0, 2.0 * m.area * m.a * stretch / m.rest_length, 0.0)
    return force * arm, rise * arm * arm - 0.25 * force * length


@kernel
def split_torque(torque, g_left, g_right, m):  # type: ignore[no-untyped-def]
    """Return the pressures (left, right) that give ``torque`` [N m] at co-contraction as far as the limits allow."""
    base, most = m.base_pressure, m.max_pressure
    g_l, g_r = max(g_left, _LEAST_PULL), max(g_right, _LEAST_PULL)
    difference = (torque - base * (g_r - g_l)) / (g_r + g_l)
    left = min(max(base - difference, 0.0), most)
    right = min(max((torque + left * g_l) / g_r, 0.0), most)
    return min(max((right * g_r - torque) / g_l, 0.0), most), right


@kernel
def share_of_valves(s, n, i, m):  # type: ignore[no-untyped-def]
    """Return the share of the command in the pressure at the step's end, for joint i."""
    h = load(s, (n + 1) * RECORD + H)
    return h / (m.lag / load(s, i * RECORD + SLOWED) + h)


@kernel
def old_pressures(s, n, i, m):  # type: ignore[no-untyped-def]
    """Return the pressures (left, right) of joint i that are left at the step's end without a command."""
    a, world = i * RECORD, (n + 1) * RECORD
    alpha, beta = load(s, world + ALPHA), load(s, world + BETA)
    stays = 1.0 - share_of_valves(s, n, i, m)
    left = stays * (alpha * load(s, a + P_LEFT) - beta * load(s, a + P_LEFT_P))
    right = stays * (alpha * load(s, a + P_RIGHT) - beta * load(s, a + P_RIGHT_P))
    return max(left, 0.0), max(right, 0.0)


@kernel
def met_share(request, g_left, g_right, m):  # type: ignore[no-untyped-def]
    """Return the share of a torque request that the supply's pressure can meet."""
    most = m.max_pressure * select(request > 0.0, g_right, g_left)
    size = abs(request)
    return select(size > most, most / size, 1.0)


@kernel
def muscle_law(s, n, i, met, m):  # type: ignore[no-untyped-def]
    """Return K and T0 of joint i with the share ``met`` of its request."""
    a = i * RECORD
    h = load(s, (n + 1) * RECORD + H)
    passes = h * met * share_of_valves(s, n, i, m) * load(s, a + STRENGTH)
    gain = h * load(s, a + KP) + load(s, a + KD)
    return load(s, a + PASSIVE_K) + passes * gain, load(s, a + PASSIVE_T0) + passes * load(s, a + REQUEST_T0)


@kernel
def load_muscles(s, n, m):  # type: ignore[no-untyped-def]
    """Set the joint laws of one implicit step."""
    world = (n + 1) * RECORD
    h, sigma = load(s, world + H), load(s, world + SIGMA)
    for i in range(1, n):
        a = i * RECORD
        b = a + RECORD
        rate = load(s, a + OMEGA) - load(s, b + OMEGA)
        rate = rate + sigma * (rate - (load(s, a + OMEGA_P) - load(s, b + OMEGA_P)))
        base = load(s, a + BASE) - load(s, b + BASE)
        sin, cos = sin_cos(0.5 * (base + h * rate))
        g_l, stiff_l = pull_side(cos, sin, 1.0, m)
        g_r, stiff_r = pull_side(cos, sin, -1.0, m)
        store(s, a + G_LEFT, g_l)
        store(s, a + G_RIGHT, g_r)
        left, right = old_pressures(s, n, i, m)
        # Co-contraction keeps its pressure while the valves work; its stiffness is that of the present pressures.
        stiffness = h * max(load(s, a + P_LEFT) * stiff_l + load(s, a + P_RIGHT) * stiff_r, 0.0)
        passive = select(load(s, a + STRENGTH) > 0.0, m.damping, 0.0)
        asked = load(s, a + FF) + load(s, a + KP) * (load(s, a + REF_NOW) - base)
        request = asked - (h * load(s, a + KP) + load(s, a + KD)) * rate
        met = met_share(request, g_l, g_r, m)
        store(s, a + REQUEST_T0, asked)
        store(s, a + SHARE_MET, met)
        store(s, a + PASSIVE_K, h * (load(s, a + LOAD) + passive + stiffness))
        store(s, a + PASSIVE_T0, h * (right * g_r - left * g_l + stiffness * rate))
        k, t0 = muscle_law(s, n, i, met, m)
        store(s, a + K, k)
        store(s, a + T0, t0)
        store(s, a + B, 0.0)


@kernel
def revise_muscles(s, n, m):  # type: ignore[no-untyped-def]
    """Correct the share of requests that is met; return the first joint changed, or n + 1."""
    h = load(s, (n + 1) * RECORD + H)
    first = n + 1
    for i in range(n - 1, 0, -1):
        a = i * RECORD
        gain = h * load(s, a + KP) + load(s, a + KD)
        request = load(s, a + REQUEST_T0) - gain * load(s, a + REL)
        was = load(s, a + SHARE_MET)
        met = met_share(request, load(s, a + G_LEFT), load(s, a + G_RIGHT), m)
        changes = abs(met - was) > _NEARLY * was
        if any_lane(changes):
            first = i
            k, t0 = muscle_law(s, n, i, met, m)
            store(s, a + SHARE_MET, select(changes, met, was))
            for field, value in ((K, k), (T0, t0), (LAW_K, k), (LAW_T0, t0)):
                store(s, a + field, select(changes, value, load(s, a + field)))
    return first


@kernel
def move_muscles(s, n, m, keeps_past):  # type: ignore[no-untyped-def]
    """Take over the pressures at the step's end; the present ones become the past unless that is kept."""
    h = load(s, (n + 1) * RECORD + H)
    for i in range(1, n):
        a = i * RECORD
        gain = h * load(s, a + KP) + load(s, a + KD)
        request = load(s, a + REQUEST_T0) - gain * load(s, a + REL)
        left, right = split_torque(request, load(s, a + G_LEFT), load(s, a + G_RIGHT), m)
        share = share_of_valves(s, n, i, m) * load(s, a + STRENGTH)
        old_left, old_right = old_pressures(s, n, i, m)
        if not keeps_past:
            store(s, a + P_LEFT_P, load(s, a + P_LEFT))
            store(s, a + P_RIGHT_P, load(s, a + P_RIGHT))
        store(s, a + P_LEFT, min(old_left + share * left, m.max_pressure))
        store(s, a + P_RIGHT, min(old_right + share * right, m.max_pressure))
