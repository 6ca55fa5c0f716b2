"""How soon and how surely the detector finds a failed joint, and how often it calls a healthy one failed.

Two joints fail in mid-gait, at a random moment. The detector watches beside a controller that does not listen to it, so
that all kinds and noises are judged on the same motions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from papers.fault_aware.episodes import play
from snake_gym.controllers.base import Controller, ControllerState
from snake_gym.controllers.fault_detection import HEALTHY, KIND_NAMES, FaultDetector, FaultDetectorConfig
from snake_gym.envs.core import SnakeCore
from snake_gym.physics.faults import FAULT_CODES
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.spec import FloatArray

ONSET_S = (10.0, 12.0)
N_FAILED = 2
RATE_NOISE_PER_ANGLE = 5.0
"""Noise of the measured rate for each rad of noise of the angle [1/s]: a difference over one control step."""


class Detection(NamedTuple):
    """What the detector made of one kind of fault."""

    robot: str
    kind: str
    """The true kind; healthy: no joint fails."""
    noise_rad: float
    delay_s: FloatArray
    """(K,) from onset to the first alarm of each failed joint; NaN: none."""
    named: FloatArray
    """(4,) share of the failed joints (healthy: of all) that the estimate names so at the end; order of KIND_NAMES."""
    false_alarms_per_h: float
    """Alarms on joints that are healthy at the time, per hour of such a joint."""
    flagged_share: float
    """Share of the healthy joints' time in which they are called failed."""

    @property
    def found(self) -> float:
        """Share of the failed joints that raised an alarm."""
        return float(np.isfinite(self.delay_s).mean()) if self.delay_s.size else float("nan")

    def delay_quantile_s(self, share: float) -> float:
        """Delay that ``share`` of all failed joints do not exceed; inf where fewer are found."""
        delays = np.where(np.isnan(self.delay_s), np.inf, self.delay_s)
        return float(np.quantile(delays, share, method="higher")) if delays.size else float("nan")


def watch(
    robot: str, controller: Mapping[str, Any], kind: str, noise_rad: float, n_episodes: int, time_limit_s: float = 40.0
) -> Detection:
    """Let joints of ``robot`` fail in the way ``kind`` (or healthy: none) and watch."""
    spec = load_robot(robot)
    detector = FaultDetector(FaultDetectorConfig(angle_noise_rad=noise_rad), spec)
    state = detector.initial_state(n_episodes)
    estimates: list[FloatArray] = []

    def on_step(core: SnakeCore, driver: Controller, driving: ControllerState, command: FloatArray) -> None:
        estimates.append(detector.update(state, core.measurement, spec.control_dt_s).copy())
        detector.command_given(state, command)

    faults: dict[str, Any] = {"n_min": 0, "n_max": 0}
    if kind != "healthy":
        faults = {"n_min": N_FAILED, "n_max": N_FAILED, "kinds": [kind], "onset_min_s": ONSET_S[0]}
        faults["onset_max_s"] = ONSET_S[1]
    sensors = {"angle_noise_rad": noise_rad, "rate_noise_rad_s": RATE_NOISE_PER_ANGLE * noise_rad}
    env = {"robot": robot, "faults": faults, "sensors": sensors, "time_limit_s": time_limit_s}
    truth = play(controller, env, n_episodes, on_step=on_step).robot.faults
    failing = truth.kind != FAULT_CODES["healthy"]
    time = spec.control_dt_s * np.arange(len(estimates))[:, None, None]
    acting = failing & (time >= truth.onset_s)
    alarm = np.array(estimates) != HEALTHY
    begins = alarm[1:] & ~alarm[:-1] & ~acting[1:]
    delay = np.where(alarm & acting, time - truth.onset_s, np.nan)
    final = estimates[-1][failing] if failing.any() else estimates[-1].ravel()
    with np.errstate(invalid="ignore"):
        first = np.fmin.reduce(delay, axis=0)[failing]
    healthy_h = float((~acting).sum()) * spec.control_dt_s / 3600.0
    return Detection(
        robot, kind, noise_rad, first, np.array([(final == code).mean() for code in range(len(KIND_NAMES))]),
        float(begins.sum()) / healthy_h, float(alarm[~acting].mean()),
    )  # fmt: skip
