"""Memory layout of the kernels: worlds side by side, one record of named fields per link.

Some worlds form a block: 8 in float64, 16 in float32 (see ``simd``). All scratch memory of a block is *one array* of
rows, with a lane for each world; link i (counted from 1, tail first) owns the record at row ``i * RECORD``. Field f of
lane k is ``s[record + f, k]``, and ``load(s, record + f)`` is that field of all worlds of the block. Record 0 stays
zero and stands for the empty place behind the tail: the recursion needs no special case. One record for the world and
SLOTS short ones per link for contacts follow.

``sin_cos`` replaces libm, whose calls do not vectorise: Cody-Waite reduction by pi/2 and minimax polynomials (fdlibm
coefficients, S. Moshier's Cephes reduction constants); error below 4e-16 for |x| < 1e5, in float32 below 1e-7 for
|x| < 1e3.
"""

from __future__ import annotations

import math

from snake_gym.physics.simd import by_precision, inlined, kernel, select

_MOST_FIELDS = 256
"""Most fields of a record; the names below take the rows 0, 1, 2 ... in their order."""

# fmt: off
(
    # parameters of the link and of the joint at its head-side end; ARM: from the centre of mass to that end
    MASS, INERTIA, HALF, AHEAD, ARM, RADIUS, C_T, C_N, C_R, D_T, D_N, D_R, BACKWARD,
    KP, KD, T_MAX, S_MAX, C_FREE, STOP, REF, FF,
    # faults of the joint, two slots of the same fields
    F_KIND, F_ON, F_OFF, F_LATE, F_STRENGTH, F_OFFSET,
    F2_KIND, F2_ON, F2_OFF, F2_LATE, F2_STRENGTH, F2_OFFSET,
    # state, and the state one step before
    THETA, OMEGA, VX, VY, THETA_P, OMEGA_P, VX_P, VY_P,
    # geometry of the step; base of the step (angle and rate without the step's own forces)
    SIN, COS, BASE, BASE_W,
    # the linear problem of the link: inertia along, across, rotational; right-hand side
    A_T, A_N, A_R, RX, RY, RW,
    # BACKWARD where the link is foreseen to move backward, else 1
    FACING,
    # Coulomb friction, each axis: state of sliding (table in friction), share of the step in which it has slid;
    # speeds of the secants of coupled axes
    SLIDING_T, SLIDING_N, SLIDING_R, SLID_SHARE_T, SLID_SHARE_N, SLID_SHARE_R, SECANT, SECANT_R,
    # part of the obstacles in it, at the link's head-side end
    CXX, CXY, CYY, CXW, CYW, CWW, CPX, CPY, CPW, FORCE_X, FORCE_Y,
    # law of the joint: mu = T0 - K rel, or rel = B where RIGID; work, and the means of the last step it follows from
    RIGID, K, T0, B, LOAD, WORK, MEAN_TORQUE, MEAN_RATE,
    # parts of the law: angle turned since the onset of a lock, torque limit, share of the torque that faults leave,
    # reference with the shift by faults, that shift, speed limit; slip of the horn, its rate; square of the motor's
    # torque, over the time
    PAST_ONSET, LIMIT, STRENGTH, REF_NOW, SHIFT, FASTEST, SLIP, SLIP_RATE, SQUARE,
    # the law without its torque limit; states of limit (table in actuators) and stop (table in stops), and times that
    # the stop has let go in this step
    LAW_K, LAW_T0, AT_LIMIT, AT_STOP, N_RELEASED,
    # dry friction of the joint: largest torque, state of sliding (table in joint_friction)
    D_J, SLIDING_J,
    # rate and torque from which a step of the descent begins (joint_descent)
    LINE_REL, LINE_MU,
    # results of the elimination that the back substitution needs
    UWX, UWY, WW, G, E, PW,
    # impedance of all links behind the joint, as the next link feels it
    QXX, QXY, QYY, QX, QY, QW, PX, PY, PR,
    # solution; carried from record to record: joint velocity U, sum of m v; position of the link's middle
    SOL_W, REL, MU, UX, UY, SUM_X, SUM_Y, NEW_VX, NEW_VY, POS_X, POS_Y,
    # impulse of touching links at the link's head-side end, record 0: at the tail's end; place (in the world,
    # along the chain) and radius of the joint at its tail-side end
    PUSH_X, PUSH_Y, AT_X, AT_Y, ALONG, THICK,
    # a servo's imperfections: dead band, half the backlash, torque-speed line, share of the voltage per torque;
    # motor ahead of the joint, the same one step before, torque of the loop with the motor there, flank that pushes
    DEAD, PLAY, NO_LOAD, PER_NM, LASH, LASH_P, DRIVE, GAIN, FLANK,
    # muscles: pressures, those one step before, torque per pressure, share of the valves' speed; the law without the
    # loop, the torque that the loop requests at rel = 0, the share of it that the supply's pressure can meet
    P_LEFT, P_RIGHT, P_LEFT_P, P_RIGHT_P, G_LEFT, G_RIGHT, SLOWED, PASSIVE_K, PASSIVE_T0, REQUEST_T0, SHARE_MET,
    # of each muscle: volume, pressure that a command adds, shares of pressure and tension that its faults leave
    V_LEFT, V_RIGHT, ADD_LEFT, ADD_RIGHT, KEPT_LEFT, KEPT_RIGHT, PULL_LEFT, PULL_RIGHT,
    *_REST,
) = range(_MOST_FIELDS)
RECORD = _MOST_FIELDS - len(_REST)
FAULT_SLOTS = 2
"""Most faults of a joint at a time."""
FAULT = F2_KIND - F_KIND
"""Distance from a field of a joint's first fault to that of its second."""

# Values of the world: a record of their own behind the links', at (N + 1) * RECORD.
(
    CX, CY, CVX, CVY, TOTAL, GX, GY, HEAD_X, HEAD_Y, CX_P, CY_P, VOLT, OVERLAP,
    # place [m] and turns from which places and angles count in float32, so that it is fine enough; 0 in float64
    FROM_X, FROM_Y, FROM_TURNS,
    # patches of the ground: change of friction, wave vector, phases
    HEIGHT, WAVE_X, WAVE_Y, PHASE_X, PHASE_Y,
    # of the step: x' = ALPHA x - BETA x_p + H dx'/dt; SIGMA: weight in foreseen rates; AGE: smooth steps so far
    ALPHA, BETA, SIGMA, H, WEIGHT, AGE,
    # of contact: way since the last grid look-up, speed of the fastest point and that of the solution, longest ways
    # in a step (obstacles, links that touch), gap of the nearest touch, parts of the step, contacts, depth; shared laws
    TRAVEL, PACE, NEW_PACE, LONGEST_STRIDE, CURL_STRIDE, NEAREST, PARTS, TOUCHES, DEPTH, PER_H, FIRM, CLOSING,
    # of the corrections: numbers of corrections, of carried impulses and of corrected frictions of contacts in this
    # step; flags: joint laws, stops, contacts still change; descent of the joints' laws, its slope and what it may miss
    # (joint_descent); JAMMED: nothing has settled the laws, and the world stands still; number of such steps
    TRIES, CARRY_TRIES, FRICTION_TRIES, BOUNCE_TRIES, LAWS_CHANGE, STOPS_CHANGE, CONTACTS_CHANGE, DESCENT, SLOPE,
    TOLERANCE, JAMMED, STOOD_STILL,
    *_,
) = range(RECORD)

# Features of obstacles that a link may touch: SLOTS short records for each link, behind the world's.
SLOTS = 8
(
    # the feature (see state.Obstacles), the end of the link that meets it if it is a segment, and 1 for a used slot
    START_X, START_Y, AXIS_X, AXIS_Y, LENGTH, ROUND, END, NUMBER, USED,
    # gap as the step begins; geometry at its foreseen end: gap, normal, moments of normal and tangent, velocities
    BEFORE, GAP, NX, NY, N_ARM, T_ARM, VN, VT,
    # law: impulse = N_IMPULSE - N_STIFFNESS v_n' while ON, so that v_n' comes to TARGET (BOUNCE of it by restitution);
    # along the surface T_IMPULSE - T_STIFFNESS v_t', with SLIDES (table in contact_friction); force of the step before,
    # outcome of the present solution
    ON, TARGET, BOUNCE, N_IMPULSE, N_STIFFNESS, T_STIFFNESS, T_IMPULSE, SLIDES, IMPULSE, RESULT,
    # Coulomb friction that acted in the solution before, and mu times the normal impulse there
    T_BEFORE, T_LIMIT_BEFORE,
    *_REST,
) = range(_MOST_FIELDS)
SLOT = _MOST_FIELDS - len(_REST)
# fmt: on

_TWO_OVER_PI = 2.0 / math.pi
_HI, _MID = (1.5707963267341256e00, 1.5703125), (6.0771005063039659e-11, 4.83751296997e-4)
_LO = (2.0222662487959506e-21, 7.54978995489e-8)
"""pi/2 in three parts, in float64 (33 bits each) and in float32 (11)."""


@inlined
def slot_of(n: int, link: int, slot: int) -> int:
    """Return the row at which slot ``slot`` (from 0) of link ``link`` (from 1) begins."""
    return (n + 2) * RECORD + ((link - 1) * SLOTS + slot) * SLOT


@inlined
def scratch_rows(n: int) -> int:
    """Return the number of rows of the scratch array for a block of chains of n links."""
    return (n + 2) * RECORD + n * SLOTS * SLOT


@kernel
def sin_cos(x):  # type: ignore[no-untyped-def]
    """Return sine and cosine of x [rad], lane by lane; range and error stand at the top."""
    n = math.floor(x * _TWO_OVER_PI + 0.5)
    r = ((x - n * by_precision(x, *_HI)) - n * by_precision(x, *_MID)) - n * by_precision(x, *_LO)
    z = r * r
    s = r + r * z * (
        -1.66666666666666324348e-01
        + z * (8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04
        + z * (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10))))
    )  # fmt: skip
    c = 1.0 - (0.5 * z - z * z * (
        4.16666666666666019037e-02
        + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05
        + z * (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 - z * 1.13596475577881948265e-11))))
    ))  # fmt: skip
    half = math.floor(n * 0.5)
    swap = n - 2.0 * half > 0.5
    sign = 1.0 - 2.0 * (half - 2.0 * math.floor(half * 0.5))
    return sign * select(swap, c, s), sign * select(swap, -s, c)
