"""The sliding-window five-point derivative against the exact one, on the network's own output (section 3.3).

A locked network's output is a sine, whose derivatives are known; errors are relative to their amplitudes, after the
window has filled. The steps span the paper's 10 to 100 Hz (section 4.5) and coarser ones.
"""

from __future__ import annotations

import math

import numpy as np

from papers.liu2024.creeping import FREQUENCY_RAD_S, creeping_wave
from papers.liu2024.derivative import Derivatives, SlidingDerivative
from snake_gym.robot.presets import SNAKESYS
from snake_gym.robot.spec import FloatArray

STEPS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)
DELAY = {"rate": 0, "settled_rate": 2, "acceleration": 0, "late_acceleration": 2, "settled_acceleration": 4}
"""How many samples each result is behind the newest."""
TITLES = {
    "rate": "rate now (eq. 40)",
    "settled_rate": "rate, settled (eq. 38)",
    "acceleration": "acceleration now (eq. 45 on k-4..k)",
    "late_acceleration": "acceleration, S4 as printed, taken for now",
    "settled_acceleration": "acceleration, settled (eq. 43)",
}
"""What is commanded now counts at the newest sample, what is settled at its own."""


def errors(frequency_rad_s: float = FREQUENCY_RAD_S) -> dict[str, FloatArray]:
    """Largest relative error of each result of ``SlidingDerivative``, one for each of ``STEPS_S``."""
    table = {name: np.zeros(len(STEPS_S)) for name in DELAY}
    for k, step in enumerate(STEPS_S):
        for name, value in errors_at(step, frequency_rad_s).items():
            table[name][k] = value
    return table


def errors_at(dt_s: float, frequency_rad_s: float = FREQUENCY_RAD_S) -> dict[str, float]:
    """The same for one step ``dt_s`` [s]."""
    wave = creeping_wave(SNAKESYS.n_joints)
    lag = wave.phase_shift_rad * np.arange(SNAKESYS.n_joints)
    sliding = SlidingDerivative(SNAKESYS.n_joints)
    state = sliding.initial_state(1)
    n = 12 + math.ceil(2.0 * math.pi / abs(frequency_rad_s) / dt_s)
    given: list[Derivatives] = []
    phase = frequency_rad_s * dt_s * np.arange(n)[:, None] + lag
    for row in wave.amplitude_rad * np.sin(phase):
        given.append(sliding.update(state, row[None], dt_s))
    worst = {}
    for name, delay in DELAY.items():
        counts = 0 if name == "late_acceleration" else delay
        at = phase[12:] - counts * frequency_rad_s * dt_s
        exact = np.cos(at) if name.endswith("rate") else -np.sin(at)
        scale = wave.amplitude_rad * frequency_rad_s ** (1 if name.endswith("rate") else 2)
        values = np.array([getattr(derivatives, name)[0] for derivatives in given[12:]])
        worst[name] = float(np.abs(values / scale - exact).max())
    return worst


def orders(table: dict[str, FloatArray]) -> dict[str, float]:
    """Order of each error in the step, from the last but one doubling."""
    a, b = STEPS_S.index(0.1), STEPS_S.index(0.2)
    return {name: math.log2(values[b] / values[a]) for name, values in table.items()}
