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

A command may add pressures to those of the split; with ``direct`` there is no loop and they are all of it. What they
and faults of single muscles change in the torque follows from the rate foreseen for the step's end.

Faults: WEAK scales the pressures, FREE vents them (with the valves' lag), SLOW makes the valves slower, OFFSET and
SLIPPED shift phi_ref. Of a single muscle: a leak lets air out in proportion to the pressure, ``lag dp/dt = p_command -
p / kept``, so that the share ``kept`` of the command is left in the end; 0 after a burst, at once. A weak muscle has a
share of the tension.

Work is that of the air that the valves let in, none while they vent: an isothermal flow of absolute pressure times
volume V, worth ``ln(supply / atmosphere)`` each (air power: Cai, Kawashima, Kagawa, J. Fluids Eng. 128(2), 2006, 402),

    flow = V (p_command - p) / lag + (p + atmosphere) dV/dt,   V = area l (b - a/3 (l/l0)^2),   dV/dl = -F / p

with V the volume of the braid (Chou, Hannaford), and leaks in it.
"""

from __future__ import annotations

from typing import NamedTuple

from snake_gym.physics.faults import BURST_LEFT, BURST_RIGHT, LEAK_LEFT, LEAK_RIGHT, WEAK_LEFT, WEAK_RIGHT
from snake_gym.physics.lanes import (
    ADD_LEFT, ADD_RIGHT, ALPHA, BASE, BETA, FAULT, FF, F_KIND, F_OFF, F_ON, F_STRENGTH, G_LEFT, G_RIGHT, KD, KEPT_LEFT,
    KEPT_RIGHT, KP, LAW_K, LAW_T0, LOAD, OMEGA, OMEGA_P, PASSIVE_K, PASSIVE_T0, PULL_LEFT, PULL_RIGHT, P_LEFT,
    P_LEFT_P, P_RIGHT, P_RIGHT_P, RECORD, REF_NOW, REL, REQUEST_T0, SHARE_MET, SIGMA, SLOWED, STRENGTH, T0, V_LEFT,
    V_RIGHT, WORK, B, H, K, sin_cos,
)  # fmt: skip
from snake_gym.physics.simd import any_lane, kernel, load, select, splat, store

_LEAST_PULL = 1e-12
"""Least torque per pressure [N m/Pa] of a muscle that is used."""
_NEARLY = 0.02
"""Least relative error of SHARE_MET that is corrected."""
ATMOSPHERE_PA = 101_325.0
"""Pressure around the robot."""


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
    air_work: float
    """Work of the supply per absolute pressure times volume of air [1]."""
    direct: bool
    """True if pressures are commanded, without a loop."""


@kernel
def engage_muscles(s, n, step, n_slots):  # type: ignore[no-untyped-def]
    """Set what the faults of single muscles, in ``n_slots`` slots, leave in sub-step ``step``."""
    for i in range(1, n):
        a = i * RECORD
        for field in (KEPT_LEFT, KEPT_RIGHT, PULL_LEFT, PULL_RIGHT):
            store(s, a + field, 1.0)
        for slot in range(n_slots):
            f = a + slot * FAULT
            failed = (load(s, f + F_ON) <= step) & (load(s, f + F_OFF) > step)
            fault, strength = select(failed, load(s, f + F_KIND), 0.0), load(s, f + F_STRENGTH)
            for field, kind in (
                (KEPT_LEFT, LEAK_LEFT), (KEPT_RIGHT, LEAK_RIGHT), (PULL_LEFT, WEAK_LEFT), (PULL_RIGHT, WEAK_RIGHT),
            ):  # fmt: skip
                store(s, a + field, load(s, a + field) * select(fault == kind, strength, 1.0))
            for field, kind in ((KEPT_LEFT, BURST_LEFT), (KEPT_RIGHT, BURST_RIGHT)):
                store(s, a + field, select(fault == kind, 0.0, load(s, a + field)))


@kernel
def pull_side(cos, sin, side, m):  # type: ignore[no-untyped-def]
    """Return torque per pascal, g, stiffness per pascal, and volume of the muscle on ``side`` (1.0 left, -1.0 right).
    ``cos`` and ``sin`` are those of half the joint angle."""
    length = 2.0 * (m.attachment * cos + side * m.half_width * sin)
    arm = max(m.half_width * cos - side * m.attachment * sin, 0.0)
    stretch = length / m.rest_length
    force = max(m.area * (m.a * stretch * stretch - m.b), 0.0)
    rise = select(force > 0.0, 2.0 * m.area * m.a * stretch / m.rest_length, 0.0)
    volume = m.area * length * (m.b - m.a / 3.0 * stretch * stretch)
    return force * arm, rise * arm * arm - 0.25 * force * length, volume


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
def shares_of_valves(s, n, i, kept, m):  # type: ignore[no-untyped-def]
    """Return the shares of the base and of the command in a pressure at the step's end, for a muscle of joint i that
    keeps the share ``kept`` of its pressure (see above)."""
    h = load(s, (n + 1) * RECORD + H)
    holds = kept > 0.0
    whole = select(holds, kept, 1.0)
    share = h / (m.lag / load(s, i * RECORD + SLOWED) + h / whole)
    return select(holds, 1.0 - share / whole, 0.0), select(holds, share, 0.0)


@kernel
def base_pressure(s, n, i, pressure, past):  # type: ignore[no-untyped-def]
    """Return the base of the step of a muscle of joint i with these fields."""
    a, world = i * RECORD, (n + 1) * RECORD
    return load(s, world + ALPHA) * load(s, a + pressure) - load(s, world + BETA) * load(s, a + past)


@kernel
def old_pressures(s, n, i, m):  # type: ignore[no-untyped-def]
    """Return the pressures (left, right) of joint i that are left at the step's end without a command."""
    left, _ = shares_of_valves(s, n, i, load(s, i * RECORD + KEPT_LEFT), m)
    right, _ = shares_of_valves(s, n, i, load(s, i * RECORD + KEPT_RIGHT), m)
    left = left * base_pressure(s, n, i, P_LEFT, P_LEFT_P)
    right = right * base_pressure(s, n, i, P_RIGHT, P_RIGHT_P)
    return max(left, 0.0), max(right, 0.0)


@kernel
def command_pressures(s, i, asked, m):  # type: ignore[no-untyped-def]
    """Return the pressures (left, right) that joint i's valves are commanded where its loop asks for ``asked``."""
    left, right = asked[0] + load(s, i * RECORD + ADD_LEFT), asked[1] + load(s, i * RECORD + ADD_RIGHT)
    return min(max(left, 0.0), m.max_pressure), min(max(right, 0.0), m.max_pressure)


@kernel
def ask_pressures(s, i, request, m):  # type: ignore[no-untyped-def]
    """Return the pressures (left, right) that joint i's loop asks for a torque request; 0 without a loop."""
    if m.direct:
        return 0.0 * request, 0.0 * request
    return split_torque(request, load(s, i * RECORD + G_LEFT), load(s, i * RECORD + G_RIGHT), m)


@kernel
def unasked_torque(s, n, i, request, m):  # type: ignore[no-untyped-def]
    """Return the torque that added pressures and faults of single muscles change in what joint i's loop asks for."""
    a = i * RECORD
    asked = ask_pressures(s, i, request, m)
    left, right = command_pressures(s, i, asked, m)
    _, share = shares_of_valves(s, n, i, splat(s, 1.0), m)
    _, of_left = shares_of_valves(s, n, i, load(s, a + KEPT_LEFT), m)
    _, of_right = shares_of_valves(s, n, i, load(s, a + KEPT_RIGHT), m)
    left = of_left * load(s, a + PULL_LEFT) * left - share * asked[0]
    right = of_right * load(s, a + PULL_RIGHT) * right - share * asked[1]
    return load(s, a + STRENGTH) * (right * load(s, a + G_RIGHT) - left * load(s, a + G_LEFT))


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
    _, share = shares_of_valves(s, n, i, splat(s, 1.0), m)
    passes = h * met * share * load(s, a + STRENGTH)
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
        g_l, stiff_l, volume_l = pull_side(cos, sin, 1.0, m)
        g_r, stiff_r, volume_r = pull_side(cos, sin, -1.0, m)
        for field, value in ((G_LEFT, g_l), (G_RIGHT, g_r), (V_LEFT, volume_l), (V_RIGHT, volume_r)):
            store(s, a + field, value)
        left, right = old_pressures(s, n, i, m)
        # Co-contraction keeps its pressure while the valves work; its stiffness is that of the present pressures.
        pull_l, pull_r = load(s, a + PULL_LEFT), load(s, a + PULL_RIGHT)
        stiffness = load(s, a + P_LEFT) * pull_l * stiff_l + load(s, a + P_RIGHT) * pull_r * stiff_r
        stiffness = h * max(stiffness, 0.0)
        passive = select(load(s, a + STRENGTH) > 0.0, m.damping, 0.0)
        asked = load(s, a + FF) + load(s, a + KP) * (load(s, a + REF_NOW) - base)
        request = asked - (h * load(s, a + KP) + load(s, a + KD)) * rate
        met = splat(s, 0.0) if m.direct else met_share(request, g_l, g_r, m)
        store(s, a + REQUEST_T0, asked)
        store(s, a + SHARE_MET, met)
        store(s, a + PASSIVE_K, h * (load(s, a + LOAD) + passive + stiffness))
        torque = right * pull_r * g_r - left * pull_l * g_l + unasked_torque(s, n, i, request, m)
        store(s, a + PASSIVE_T0, h * (torque + stiffness * rate))
        k, t0 = muscle_law(s, n, i, met, m)
        store(s, a + K, k)
        store(s, a + T0, t0)
        store(s, a + B, 0.0)


@kernel
def revise_muscles(s, n, m):  # type: ignore[no-untyped-def]
    """Correct the share of requests that is met; return the first joint changed, or n + 1."""
    h = load(s, (n + 1) * RECORD + H)
    first = n + 1
    if m.direct:
        return first
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
def fill_muscle(s, n, i, fields, command, m, keeps_past, length):  # type: ignore[no-untyped-def]
    """Take over the pressure of a muscle of joint i at the end of a stage of ``length`` [s], and count its air.

    ``fields``: pressure, past pressure, share kept, volume, torque per pascal.
    """
    a, pressure, past = i * RECORD, fields[0], fields[1]
    h = load(s, (n + 1) * RECORD + H)
    stays, share = shares_of_valves(s, n, i, load(s, a + fields[2]), m)
    base = base_pressure(s, n, i, pressure, past)
    new = min(max(stays * base, 0.0) + share * command, m.max_pressure)
    grows = load(s, a + fields[4]) * load(s, a + REL) * (1.0 if pressure == P_RIGHT else -1.0)
    lag = m.lag / load(s, a + SLOWED)
    flow = (command - new) / lag if m.lag > 0.0 else (command - base) / h
    flow = load(s, a + fields[3]) * flow + (new + ATMOSPHERE_PA) * grows
    flow = select(command > 0.0, max(flow, 0.0), 0.0)
    store(s, a + WORK, load(s, a + WORK) + length * m.air_work * flow)
    if not keeps_past:
        store(s, a + past, load(s, a + pressure))
    store(s, a + pressure, new)


@kernel
def move_muscles(s, n, m, keeps_past, length):  # type: ignore[no-untyped-def]
    """Take over the pressures at a stage's end; the present ones become the past unless that is kept."""
    h = load(s, (n + 1) * RECORD + H)
    for i in range(1, n):
        a = i * RECORD
        gain = h * load(s, a + KP) + load(s, a + KD)
        request = load(s, a + REQUEST_T0) - gain * load(s, a + REL)
        left, right = command_pressures(s, i, ask_pressures(s, i, request, m), m)
        left, right = load(s, a + STRENGTH) * left, load(s, a + STRENGTH) * right
        fill_muscle(s, n, i, (P_LEFT, P_LEFT_P, KEPT_LEFT, V_LEFT, G_LEFT), left, m, keeps_past, length)
        fill_muscle(s, n, i, (P_RIGHT, P_RIGHT_P, KEPT_RIGHT, V_RIGHT, G_RIGHT), right, m, keeps_past, length)
