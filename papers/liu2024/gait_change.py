"""Changes of amplitude and gait in mid-run: the pattern generator beside a serpenoid formula (sections 1 and 3.1).

A serpenoid is a formula of time; where its parameters change, its value jumps. The network's state moves on from where
it is. Judged against the fastest that a joint moves in the old or the new gait: omega rho dt in a command interval.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from papers.liu2024.creeping import FREQUENCY_RAD_S, creeping_wave
from papers.liu2024.network import RATES, standing_robot
from snake_gym.controllers.coupling import Topology
from snake_gym.controllers.cpg import Cpg, CpgConfig
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.robot.presets import SNAKESYS
from snake_gym.robot.spec import FloatArray

DT_S = 0.02
"""Command interval: the paper's robot takes commands at 10 to 100 Hz (section 4.5)."""
WATCHED_S = 30.0
"""A change from two waves to three takes the speed-limited network (J - 1) |change| / omega = 9.3 s."""

CHANGES: dict[str, dict[str, float]] = {
    "larger amplitude (a_y 50 to 70 deg)": {"initial_angle_rad": math.radians(70.0)},
    "smaller amplitude (a_y 50 to 20 deg)": {"initial_angle_rad": math.radians(20.0)},
    "frequency doubled": {"frequency": 2.0},
    "driving backwards": {"frequency": -1.0},
    "three waves in place of two": {"n_waves": 3.0},
    "one wave in place of two": {"n_waves": 1.0},
    "all at once": {"n_waves": 3.0, "initial_angle_rad": math.radians(40.0), "frequency": 1.5},
}


class Change(NamedTuple):
    """One change of gait in one network."""

    name: str
    topology: Topology
    rates: str
    step: float
    """Largest step of a joint from command to command, in omega rho dt (1: as fast as the faster gait)."""
    unlimited_step: float
    """The same by the published equations alone: the new phase shift at once, no limit of speed."""
    serpenoid_step: float
    """The same for the serpenoid formula."""
    smallest_radius: float
    """Smallest radius of an oscillator on the way, over the smaller rho of the two gaits."""
    unlimited_radius: float
    """The same by the published equations alone."""
    phase_error_rad: float
    """Largest error of a phase difference at the end."""
    time_s: FloatArray
    """(T,) [s] after the change."""
    joints: FloatArray
    """(T, J) [rad] the network's commands."""
    unlimited: FloatArray
    """(T, J) [rad] by the published equations alone."""
    serpenoid: FloatArray
    """(T, J) [rad]."""


def change_gait(name: str, topology: Topology, rates: str, watched_s: float = WATCHED_S) -> Change:
    """Lock a network on the creeping gait, change it as ``CHANGES[name]`` says, and watch."""
    limited, radius, phase = _play(name, topology, rates, True, watched_s)
    unlimited, unlimited_radius, _ = _play(name, topology, rates, False, watched_s)
    before, after = gaits(name)
    scale = max(abs(g[1]) for g in (before, after)) * max(g[0] for g in (before, after)) * DT_S
    time: FloatArray = DT_S * np.arange(-1.0, len(limited) - 1.0)
    old, new = (
        serpenoid_reference(frequency * time, amplitude, shift, SNAKESYS.n_joints)
        for amplitude, frequency, shift in (before, after)
    )
    formula = np.where(time[:, None] < 0.0, old, new)

    def largest(joints: FloatArray) -> float:
        return float(np.abs(np.diff(joints, axis=0)).max() / scale)

    return Change(
        name, topology, rates, largest(limited), largest(unlimited), largest(formula), radius,
        unlimited_radius, phase, time, limited, unlimited, formula,
    )  # fmt: skip


def gaits(name: str) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """(amplitude [rad], frequency [rad/s], phase shift [rad]) before and after."""
    change = CHANGES[name]
    before = creeping_wave(SNAKESYS.n_joints)
    wave = creeping_wave(
        SNAKESYS.n_joints, int(change.get("n_waves", 2)), change.get("initial_angle_rad", math.radians(50.0))
    )
    frequency = FREQUENCY_RAD_S * change.get("frequency", 1.0)
    return (
        (before.amplitude_rad, FREQUENCY_RAD_S, before.phase_shift_rad),
        (wave.amplitude_rad, frequency, wave.phase_shift_rad),
    )


def _play(
    name: str, topology: Topology, rates: str, limited: bool, watched_s: float
) -> tuple[FloatArray, float, float]:
    """Commands (T, J) from the last one of the old gait on, smallest radius, final error of the phases."""
    before, (amplitude, frequency, shift) = gaits(name)
    config = CpgConfig(*before, topology=topology, **RATES[rates])
    controller = Cpg(config, SNAKESYS)
    state = controller.initial_state(1)
    wave = before[2] * np.arange(SNAKESYS.n_joints) - before[1] * DT_S
    state["u"][0], state["v"][0] = before[0] * np.sin(wave), -before[0] * np.cos(wave)
    sample, goal = standing_robot(SNAKESYS.n_joints)
    joints = [controller.command(sample, goal, state, DT_S)[0]]
    controller.set_gait(state, np.array([True]), amplitude, frequency, shift)
    if not limited:
        state["phase_shift_rad"][:] = shift
        state["speed_limit_rad_s"][:] = np.inf
    smallest = np.inf
    for _ in range(round(watched_s / DT_S)):
        joints.append(controller.command(sample, goal, state, DT_S)[0])
        smallest = min(smallest, float(np.hypot(state["u"], state["v"]).min()))
    z = state["u"][0] + 1j * state["v"][0]
    phase = np.angle(z[1:] / z[:-1] * np.exp(-1j * shift))
    return np.array(joints), smallest / min(before[0], amplitude), float(np.abs(phase).max())
