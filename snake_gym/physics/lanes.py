"""Memory layout of the kernels: worlds side by side, one record of named fields per link.

``LANES`` worlds form a block. All scratch memory of a block is *one flat array*; link i (counted from 1, tail first)
owns the record at ``i * RECORD``, and field f of lane k lies at ``record + f * LANES + k``: ``load(s, record + f)`` is
that field of all worlds of the block (see ``simd``). Record 0 stays zero: it is the "nothing" behind the tail, so that
the recursion needs no special case.

``sin_cos`` replaces libm, whose calls do not vectorise: Cody-Waite reduction by pi/2 and minimax polynomials (fdlibm
coefficients, S. Moshier's Cephes reduction constants); error below 4e-16 for |x| < 1e5.
"""

from __future__ import annotations

import math

from numba import njit

from snake_gym.physics.simd import LANES, floor, select

_FIELDS = (
    # parameters of the link and of the joint at its head-side end
    *("MASS", "INERTIA", "HALF", "C_T", "C_N", "C_R"),
    *("KP", "KD", "T_MAX", "S_MAX", "C_FREE", "F_KIND", "F_ON", "F_OFF", "F_STRENGTH", "REF", "FF"),
    # state
    *("THETA", "OMEGA", "SIN", "COS", "VX", "VY"),
    # the linear problem of the link: inertia along, across, rotational; right-hand side
    *("A_T", "A_N", "A_R", "RX", "RY", "RW"),
    # law of the joint: mu = T0 - K rel, or rel = B where RIGID
    *("RIGID", "GAIN", "DEMAND", "LIMIT", "PUSH", "K", "T0", "B", "LOAD", "WORK"),
    # what the elimination keeps for the way back
    *("UWX", "UWY", "WW", "G", "E", "PW"),
    # impedance of everything behind the joint, as the next link feels it
    *("QXX", "QXY", "QYY", "QX", "QY", "QW", "PX", "PY", "PR"),
    # solution; carried from record to record: joint velocity U, sum of m v
    *("SOL_W", "REL", "MU", "UX", "UY", "SUM_X", "SUM_Y"),
    # Runge-Kutta: stage base and weighted sum
    *("TH0", "OM0", "DTH", "DOM"),
)
N_FIELDS = len(_FIELDS)
RECORD = N_FIELDS * LANES
(
    MASS, INERTIA, HALF, C_T, C_N, C_R,
    KP, KD, T_MAX, S_MAX, C_FREE, F_KIND, F_ON, F_OFF, F_STRENGTH, REF, FF,
    THETA, OMEGA, SIN, COS, VX, VY,
    A_T, A_N, A_R, RX, RY, RW,
    RIGID, GAIN, DEMAND, LIMIT, PUSH, K, T0, B, LOAD, WORK,
    UWX, UWY, WW, G, E, PW,
    QXX, QXY, QYY, QX, QY, QW, PX, PY, PR,
    SOL_W, REL, MU, UX, UY, SUM_X, SUM_Y,
    TH0, OM0, DTH, DOM,
) = (i * LANES for i in range(N_FIELDS))  # fmt: skip

# Per-world values live in a last record of their own, at (N + 1) * RECORD, with these fields.
(CX, CY, CVX, CVY, TOTAL, HEAD_X, HEAD_Y, CX0, CY0, CVX0, CVY0, DCX, DCY, DCVX, DCVY) = (i * LANES for i in range(15))

_TWO_OVER_PI = 2.0 / math.pi
_PIO2_HI = 1.5707963267341256e00  # first 33 bits of pi/2
_PIO2_MID = 6.0771005063039659e-11  # next 33 bits
_PIO2_LO = 2.0222662487959506e-21  # the rest


@njit(error_model="numpy")
def sin_cos(x):  # type: ignore[no-untyped-def]
    """Sine and cosine of x [rad], |x| < 1e5, lane by lane."""
    n = floor(x * _TWO_OVER_PI + 0.5)
    r = ((x - n * _PIO2_HI) - n * _PIO2_MID) - n * _PIO2_LO
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
    half = floor(n * 0.5)
    swap = n - 2.0 * half > 0.5
    sign = 1.0 - 2.0 * (half - 2.0 * floor(half * 0.5))
    return sign * select(swap, c, s), sign * select(swap, -s, c)
