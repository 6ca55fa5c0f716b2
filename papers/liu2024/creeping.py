"""Creeping gait (CL) on the yaw joints of Snake Robot III: speed per rad/s of frequency (liu2024, section 5.2).

Gait, eq. 23 and 24 (both lost their fractions and signs): with n yaw joints and K_n waves along the body, neighbouring
joints are 2 pi K_n / n apart in phase and swing by 2 a_y sin(pi K_n / n), a_y being the initial angle of the wave.
Robot: preset ``snakesys``, a planar chain; its wheels slide with Coulomb coefficients of ours: the paper has none.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import j0

from papers.drives import measure
from snake_gym.controllers.cpg import Cpg, CpgConfig
from snake_gym.robot.measurement import Goal, mean_angle
from snake_gym.robot.presets import SNAKESYS
from snake_gym.simulation.simulated_robot import SimulatedRobot

K_N = 2
"""Number K_n of waves along the body (Table 4)."""
INITIAL_ANGLE_RAD = math.radians(50.0)
"""Initial angle a_y of the wave (Table 4)."""
FREQUENCY_RAD_S = math.pi / 5.0
"""Frequency omega (Table 4)."""
MEASURED_M_PER_RAD = 0.2553
"""Speed of the real robot over omega (section 5.2)."""
SETTLING_PERIODS, MEASURED_PERIODS = 2, 3


class Wave(NamedTuple):
    """Amplitude and phase shift of the CL gait [rad]."""

    amplitude_rad: float
    phase_shift_rad: float


def creeping_wave(n_joints: int, n_waves: int = K_N, initial_angle_rad: float = INITIAL_ANGLE_RAD) -> Wave:
    """Return the wave of eq. 23-24 for ``n_joints`` yaw joints."""
    half_shift = math.pi * n_waves / n_joints
    return Wave(2.0 * initial_angle_rad * math.sin(half_shift), 2.0 * half_shift)


def no_slip_speed() -> float:
    """Return speed over omega [m/rad] of a continuous serpenoid without side slip: J_0(a) times the wave's length.

    The body follows its own curve by one wave in each period; a serpenoid of initial angle a advances by J_0(a) of it.
    """
    wave_m = (SNAKESYS.length_m - 2.0 * float(SNAKESYS.links("link_half_length_m")[-1])) / K_N
    return wave_m * float(j0(INITIAL_ANGLE_RAD)) / (2.0 * math.pi)


class Creeping(NamedTuple):
    """Results of one run."""

    speed_m_per_rad: float
    """Distance of the centre of mass from period to period, once the network is locked, over the period and |omega|."""
    forwards_m: float
    """Same distance along the body's mean direction [m], negative if the tail leads."""


def creep(mu_along: float, mu_across: float, frequency_rad_s: float = FREQUENCY_RAD_S) -> Creeping:
    """Run the creeping gait on wheels with these Coulomb coefficients."""
    wave = creeping_wave(SNAKESYS.n_joints)
    period_s = 2.0 * math.pi / abs(frequency_rad_s)
    steps = round(period_s / SNAKESYS.control_dt_s)
    control_dt = period_s / steps  # whole control steps in a period: 0.1 s at omega = pi/5
    friction = replace(SNAKESYS.friction, tangential_coulomb=mu_along, normal_coulomb=mu_across)
    spec = replace(SNAKESYS, friction=friction, control_dt_s=control_dt, sim_dt_s=control_dt / SNAKESYS.n_substeps)
    robot = SimulatedRobot(spec, 1, n_threads=1)
    controller = Cpg(CpgConfig(wave.amplitude_rad, frequency_rad_s, wave.phase_shift_rad), spec)
    state = controller.initial_state(1)
    lag = wave.phase_shift_rad * np.arange(SNAKESYS.n_joints)
    state["u"][0], state["v"][0] = wave.amplitude_rad * np.sin(lag), -wave.amplitude_rad * np.cos(lag)  # locked
    robot.set_shape(state["u"], np.zeros(1), np.zeros((1, 2)))
    goal = Goal(np.zeros((1, 2)), np.zeros(1, dtype=bool))
    marks, headings = [], []
    for step in range((SETTLING_PERIODS + MEASURED_PERIODS) * steps + 1):
        sample = measure(robot)
        if step % steps == 0:
            marks.append(robot.state.centre_xy[0].copy())
            headings.append(float(mean_angle(sample)[0]))
        robot.step(controller.command(sample, goal, state, control_dt))
    way = np.diff(np.array(marks[SETTLING_PERIODS:]), axis=0)
    heading = np.array(headings[SETTLING_PERIODS:-1])
    forwards = float((way[:, 0] * np.cos(heading) + way[:, 1] * np.sin(heading)).sum())
    speed = float(np.hypot(way[:, 0], way[:, 1]).mean()) / period_s
    return Creeping(speed / abs(frequency_rad_s), forwards)
