"""Fastest and tightest motion of Robo-Conda 1 (section 2), and heads on the way to the finish line (Fig. 8-13).

Speed: the paper's robot makes 750 mm/s "when the supply voltage is increased to 7.5 V" from 6 V, with a gait that it
does not name. Here the servos' speed and torque grow with the voltage, and the fastest of the gaits of 38 degrees at
any phase shift counts with its joints within that speed: the wave hardly slips, so servo speed and gait bring the
number about. Turning: the smallest circle of a healthy robot with a bias on all joints, the amplitude reduced so that
they stay within their stops; a robot that circles on less than ``FOLLOWER_RADIUS_M`` spins on the spot. Payload: spread
over the links, their inertia too; performance counts as compromised where the fastest gait at 6 V is ``LOSS`` slower.

The paper's simulator imposes the measured joint angles; a failed joint is free in it. Here ``IMPOSED`` joints do so,
and the simulated robot with its servos stands in for the robot: the logs of the real one are not public.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import j0

from papers.irani2015 import crawling
from papers.irani2015.crawling import AMPLITUDE_RAD, SPEC, Paths, Trial, crawl, judge
from papers.study import Finding, claim, grade
from snake_gym.robot.spec import FloatArray, RobotSpec

SPEED_M_S = 0.75
RADIUS_M, RADIUS_TOLERANCE = 0.6, 0.2
VOLTAGE = 7.5 / 6.0
"""Raised supply voltage over the usual one."""
FAST = replace(
    SPEC,
    actuator=replace(
        SPEC.actuator,
        torque_limit_nm=VOLTAGE * float(SPEC.joints("actuator.torque_limit_nm")[0]),
        speed_limit_rad_s=VOLTAGE * float(SPEC.joints("actuator.speed_limit_rad_s")[0]),
    ),
)
PAYLOAD_KG, LOSS = 5.5, 0.1
PAYLOADS_KG = (0.0, 2.0, 4.0, 5.5, 7.0, 9.0, 12.0)
MODULE_M = SPEC.length_m / SPEC.n_links
FOLLOWER_RADIUS_M = 0.5 * MODULE_M / math.tan(0.5 * AMPLITUDE_RAD)
"""Radius of a circle through all joints, bent at their stops."""
SERVO_SHARES = (0.7, 0.8, 0.9, 1.0)
"""Peak rates of the commands, as shares of the servos' speed."""
BIASES_RAD = tuple(math.radians(b) for b in range(4, 29, 2))
CASES = {"no failure": (0, 0.0), "J7": (7, 0.0), "J13": (13, 0.0), "J7 + bias": (7, crawling.BIAS_RAD)}
"""Case of Table 2 -> failed joint and bias [rad]."""
N_STARTS = 5
_PERIODS = 12


class Performance(NamedTuple):
    """Results of this module's runs."""

    speed_m_s: FloatArray
    """(P, F) net speed at 7.5 V for each phase shift and each of ``SERVO_SHARES``."""
    radius_m: FloatArray
    """(P, B) radius of the circle with each of ``BIASES_RAD``; NaN where the robot stalls."""
    loaded_m_s: FloatArray
    """Net speed of the fastest gait at 6 V with each of ``PAYLOADS_KG``."""
    shifts_rad: FloatArray
    """(P,) [rad] phase shifts."""
    robot: Paths
    """Paths of the robot with servos, trials (case, start) flat."""
    simulator: Paths
    """Paths with imposed joint motion, the same trials."""


def no_slip_speed(shift_rad: float) -> float:
    """Return the speed [m/s] of a wave that does not slip, at the servos' speed: wavelength J_0(a) times frequency.

    a is the initial angle of the serpenoid with the gait's amplitude.
    """
    initial = AMPLITUDE_RAD / (2.0 * math.sin(0.5 * shift_rad))
    frequency_hz = float(FAST.joints("actuator.speed_limit_rad_s")[0]) / AMPLITUDE_RAD / (2.0 * math.pi)
    return 2.0 * math.pi / shift_rad * MODULE_M * float(j0(initial)) * frequency_hz


def loaded(payload_kg: float) -> RobotSpec:
    """Return the robot with a payload on all its links."""
    mass = SPEC.links("link_mass_kg")
    share = 1.0 + payload_kg / float(mass.sum())
    inertia = share * SPEC.links("link_inertia_kgm2")
    return replace(SPEC, link_mass_kg=tuple((share * mass).tolist()), link_inertia_kgm2=tuple(inertia.tolist()))


def net_speed(shifts: list[float], spec: RobotSpec) -> FloatArray:
    """Return the net speed [m/s] at each phase shift and each of ``SERVO_SHARES`` (P, F)."""
    top = float(spec.joints("actuator.speed_limit_rad_s")[0])
    fast = [Trial(0, s, frequency_rad_s=share * top / AMPLITUDE_RAD) for s in shifts for share in SERVO_SHARES]
    centre = crawl(fast, _PERIODS, spec=spec).centre_xy
    half = len(centre) // 2
    way = np.hypot(*np.moveaxis(centre[-1] - centre[half], -1, 0))
    speed = way / ((len(centre) - 1 - half) * crawling.PERIOD_S / crawling.SAMPLES_PER_PERIOD)
    return np.asarray(speed.reshape(len(shifts), -1))


def perform(shifts_rad: FloatArray, shown_rad: float) -> Performance:
    """Run everything at these phase shifts (P,), and the cases of Table 2 at ``shown_rad``."""
    shifts = shifts_rad.tolist()
    speed = net_speed(shifts, FAST)
    with_load = np.array([net_speed(shifts, loaded(payload)).max() for payload in PAYLOADS_KG])
    bent = [Trial(0, s, 0.0, bias, amplitude_rad=AMPLITUDE_RAD - bias) for s in shifts for bias in BIASES_RAD]
    motion = judge(crawl(bent, _PERIODS))
    radius = np.where(motion.stalls, np.nan, 0.5 * motion.diameter_m)
    starts = (math.pi / N_STARTS * np.arange(N_STARTS)).tolist()
    cases = [Trial(joint, shown_rad, start, bias) for joint, bias in CASES.values() for start in starts]
    robot, simulator = crawl(cases, _PERIODS), crawl(cases, _PERIODS, spec=crawling.IMPOSED)
    return Performance(speed, radius.reshape(len(shifts), -1), with_load, shifts_rad, robot, simulator)


def end_points(paths: Paths) -> FloatArray:
    """Return the heads (R, 2) [m] where they first cross the finish line, or at the end, from their start."""
    head = paths.head_xy - paths.head_xy[0]
    across = head[..., 0] >= crawling.FINISH_M
    row = np.where(across.any(axis=0), across.argmax(axis=0), len(head) - 1)
    return np.asarray(head[row, np.arange(head.shape[1])])


@claim("At 7.5 V the robot makes up to 750 mm/s", "Section 2, Fig. 3", SPEED_M_S, "m/s", 0.1, built=True)
def _fastest(result: Performance) -> Finding:
    row, column = np.unravel_index(np.argmax(result.speed_m_s), result.speed_m_s.shape)
    note = (
        f"fastest of {result.speed_m_s.size} gaits of 38 deg: phase shift "
        f"{math.degrees(result.shifts_rad[row]):g} deg, commands at {100 * SERVO_SHARES[int(column)]:g} % of the "
        f"servos' {math.degrees(float(FAST.joints('actuator.speed_limit_rad_s')[0])):.0f} deg/s, at which a wave that "
        f"does not slip makes {no_slip_speed(float(result.shifts_rad[row])):.3f} m/s there"
    )
    return Finding(None, note, float(result.speed_m_s.max()))


@claim("The robot's smallest turning radius is 0.6 m", "Section 2", RADIUS_M, "m", RADIUS_TOLERANCE)
def _tightest(result: Performance) -> Finding:
    driven = np.where(result.radius_m >= FOLLOWER_RADIUS_M, result.radius_m, np.nan)
    if not np.isfinite(driven).any():
        return Finding("not", "no circle was driven", math.nan)
    off = np.abs(driven / RADIUS_M - 1.0)
    usual = math.degrees(BIASES_RAD[int(np.nanargmin(off)) % len(BIASES_RAD)])
    row, column = np.unravel_index(np.nanargmin(driven), driven.shape)
    note = (
        f"healthy robot, bias of {math.degrees(BIASES_RAD[int(column)]):g} deg on all joints and an amplitude of "
        f"{math.degrees(AMPLITUDE_RAD - BIASES_RAD[int(column)]):g} deg, phase shift "
        f"{math.degrees(result.shifts_rad[row]):g} deg; circle of the centre of mass. Below the "
        f"{FOLLOWER_RADIUS_M:.2f} m of joints bent at their stops the robot spins on the spot (down to "
        f"{np.nanmin(result.radius_m):.2f} m). 0.6 m comes with a bias of {usual:g} deg; the paper names none"
    )
    smallest = float(np.nanmin(driven))
    holds = abs(smallest / RADIUS_M - 1.0) <= RADIUS_TOLERANCE
    return Finding(grade(holds, np.nanmin(off) <= RADIUS_TOLERANCE), note, smallest)


@claim("It carries up to 5.5 kg more before its performance is compromised", "Section 2", PAYLOAD_KG, "kg", 0.3)
def _strongest(result: Performance) -> Finding:
    share = result.loaded_m_s / result.loaded_m_s[0]
    slow = np.flatnonzero(share < 1.0 - LOSS)
    most = PAYLOADS_KG[slow[0] - 1] if slow.size else PAYLOADS_KG[-1]
    speeds = ", ".join(
        f"{speed:.3f} m/s with {load:g} kg" for speed, load in zip(result.loaded_m_s, PAYLOADS_KG, strict=True)
    )
    note = f"fastest gaits at 6 V: {speeds}; compromised: {LOSS:.0%} slower. The paper names neither place nor measure"
    return Finding(None, note, most)


CLAIMS = (_fastest, _tightest, _strongest)
