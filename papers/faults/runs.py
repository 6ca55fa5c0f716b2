"""Runs of the study of fault-aware control, which none of the papers has.

Contenders: the tuned controllers, and the fault-aware one with a part of it switched off. Detection: delay and share of
failed joints that the detector finds, and of healthy ones that it calls failed. Two joints fail in mid-gait, at a
random moment; the detector runs beside a controller that ignores it, so that all kinds and noises are judged on the
same motions. Progress: distance that robots with failed joints cover, on the same scenarios.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from snake_gym.benchmark.statistics import mean_interval
from snake_gym.config import build, load_yaml, merge
from snake_gym.controllers import make_controller, resolve_controller
from snake_gym.controllers.base import Controller, ControllerState
from snake_gym.controllers.fault_detection import HEALTHY, KIND_NAMES, FaultDetector, FaultDetectorConfig
from snake_gym.envs import WaypointsConfig
from snake_gym.envs.core import SnakeCore
from snake_gym.physics.faults import FAULT_CODES
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.spec import FloatArray

ROBOT = "resilient_servo"
TUNED = Path(__file__).parents[2] / "configs" / "controllers"
"""Folder of results of ``snake-gym tune``."""
Settings = dict[str, float | None]

COUPLED: Settings = {"free_ahead": None, "spread_ahead": None, "spread_behind": 0.0, "free_behind": 0.0}
"""Settings that couple failed joints as CC couples healthy ones; None: the controller's own coupling."""
HEAD_FIRST: Settings = {"front_weight_rad": 0.0, "free_front_weight_rad": 0.0, "turn_back": 0.0}
UNSCALED: Settings = {"amplitude_per_fault": 0.0, "frequency_per_fault": 0.0}
PARTS: dict[str, Settings] = {
    "without turning back": {"turn_back": 0.0},
    "without any reverse": HEAD_FIRST,
    "without spreading": COUPLED,
    "knowing nothing of faults": {"front_weight_rad": 0.0, "free_front_weight_rad": 0.0, **COUPLED, **UNSCALED},
    "with reversing for locked joints": {"front_weight_rad": 2.0},
}
"""Changes of the tuned fault-aware controller, by name."""
TURNING: Settings = {"turn_back": 0.6, "hysteresis_rad": 0.15}
SPREADING: Settings = {"spread_ahead": 0.5, "spread_behind": 0.5}
ADDED: dict[str, Settings] = {
    "cc + turning back": TURNING,
    "cc + reversing for faults": {"front_weight_rad": 2.0, "free_front_weight_rad": 6.0},
    "cc + spreading": SPREADING,
    "cc + all three": {**TURNING, **SPREADING, "front_weight_rad": 2.0, "free_front_weight_rad": 6.0},
}
"""Single parts added to the tuned CC, whose gait does not change."""


class Contender(NamedTuple):
    """Controller in the comparison."""

    name: str
    settings: dict[str, Any]
    told: bool = False
    """True if the env reveals the failed joints, in place of the detector."""


def tuned(kind: str, folder: Path = TUNED) -> dict[str, Any]:
    """Return the tuned settings of a controller kind. Raises ConfigError if there are none."""
    return resolve_controller({"file": str(folder / ROBOT / f"{kind}.yaml")}, kind)


def changed(name: str, folder: Path = TUNED) -> Contender:
    """Return the fault-aware controller with one of ``PARTS``, or the tuned CC with one of ``ADDED``."""
    if name in ADDED:
        settings = {**tuned("cc", folder), "kind": "fault_aware", **HEAD_FIRST, **UNSCALED, "weak_counts": 0.0}
        change = {**COUPLED, **ADDED[name]}
    else:
        settings, change = tuned("fault_aware", folder), PARTS[name]
    own = {key: settings["coupling"] if value is None else value for key, value in change.items()}
    return Contender(name, merge(settings, own))


def with_noise(settings: dict[str, Any], angle_noise_rad: float) -> dict[str, Any]:
    """Return settings that tell the detector the noise of the encoders."""
    return merge(settings, {"detector": {"angle_noise_rad": angle_noise_rad}})


def scenario_settings() -> dict[str, Any]:
    """Return the env settings that all were tuned in: configs/env/locked_joints.yaml."""
    return load_yaml(str(TUNED.parent / "env" / "locked_joints.yaml"))


SEED = 1_000_000
"""Seed of the first scenario: the benchmark's own, which no tuning has seen (tuning starts at 2,000,000)."""
OnStep = Callable[[SnakeCore, Controller, ControllerState, FloatArray], None]
"""Function called before each step with the env, the controller, its state and the next command."""


def play(
    controller: Mapping[str, Any],
    env: Mapping[str, Any],
    n_episodes: int,
    seed: int = SEED,
    on_step: OnStep | None = None,
) -> SnakeCore:
    """Play one episode in each world and return the env as it ends.

    Args:
        controller: settings, ``kind`` included.
        env: settings laid over configs/env/locked_joints.yaml (robot, faults, sensors, time_limit_s ...).
        n_episodes: worlds; world i has the scenario ``seed + i``.
    """
    settings = merge(scenario_settings(), {**env, "n_threads": 1})
    settings["action"] = {"kind": "joint_reference"}
    core = SnakeCore(build(WaypointsConfig, settings, "env"), n_episodes)
    core.reset(seed + np.arange(n_episodes, dtype=np.int64))
    driver = make_controller(dict(controller), core.spec)
    state = driver.initial_state(n_episodes)
    for _ in range(core.n_steps):
        command = driver.command(core.measurement, core.task.goal(), state, core.spec.control_dt_s)
        if on_step is not None:
            on_step(core, driver, state, command)
        core.step(command / core.spec.joint_limit_rad)
    return core


ONSET_S = (10.0, 12.0)
N_FAILED = 2
RATE_NOISE_PER_ANGLE = 5.0
"""Noise of the measured rate for each rad of noise of the angle [1/s]: a difference over one control step."""


class Detection(NamedTuple):
    """Detector results for one kind of fault."""

    robot: str
    kind: str
    """True kind of the fault; healthy: no joint fails."""
    noise_rad: float
    delay_s: FloatArray
    """(K,) [s] from onset to the first alarm of each failed joint; NaN: no alarm."""
    named: FloatArray
    """(4,) share of failed joints (healthy: of all) with this estimate at the end, in the order of KIND_NAMES."""
    false_alarms_per_h: float
    """Number of alarms on joints that are healthy at the time, per hour of such a joint."""
    flagged_share: float
    """Share of the healthy joints' time in which they are called failed."""

    @property
    def found(self) -> float:
        """Share of the failed joints that raised an alarm."""
        return float(np.isfinite(self.delay_s).mean()) if self.delay_s.size else float("nan")

    def delay_quantile_s(self, share: float) -> float:
        """Return the delay that ``share`` of all failed joints do not exceed; inf if fewer are found."""
        delays = np.where(np.isnan(self.delay_s), np.inf, self.delay_s)
        return float(np.quantile(delays, share, method="higher")) if delays.size else float("nan")


def watch(
    robot: str, controller: Mapping[str, Any], kind: str, noise_rad: float, n_episodes: int, time_limit_s: float = 40.0
) -> Detection:
    """Let joints of ``robot`` fail in the way ``kind`` (healthy: none) and return the detector's results."""
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
        faults |= {"onset_max_s": ONSET_S[1], **SEVERITY}
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


SEVERITY: dict[str, Any] = {"weak_strength": 0.3, "slow_strength": 0.3}
"""Shares of torque and speed that are left."""
SCENARIOS: dict[str, dict[str, Any]] = {
    "locked": {"n_min": 0, "n_max": 3, "kinds": ["locked"]},
    "locked in mid-run": {"n_min": 1, "n_max": 3, "kinds": ["locked"], "onset_min_s": 10.0, "onset_max_s": 30.0},
    "free": {"n_min": 1, "n_max": 2, "kinds": ["free"]},
    "weak": {"n_min": 1, "n_max": 3, "kinds": ["weak"]},
    "mixed": {"n_min": 0, "n_max": 3, "kinds": ["locked", "free", "weak"]},
}
"""Faults of an episode by scenario; ``locked`` are the benchmark's."""
RESAMPLES = 4000


class Result(NamedTuple):
    """Results of one contender in the scenarios of one kind."""

    name: str
    scenario: str
    progress_m: FloatArray
    """(W,) progress [m]."""
    n_faults: FloatArray
    """(W,) number of failed joints."""


class Difference(NamedTuple):
    """Mean and its 95 % interval."""

    mean: float
    low: float
    high: float


def compete(contender: Contender, scenario: str, n_episodes: int, seed: int = SEED, **env: Any) -> Result:
    """Play the scenarios ``seed`` to ``seed + n_episodes``; ``env`` are further settings."""
    faults = {**SEVERITY, **SCENARIOS[scenario], "reveal": contender.told}
    core = play(contender.settings, {"robot": ROBOT, "faults": faults, **env}, n_episodes, seed)
    infos = core.infos()
    return Result(contender.name, scenario, infos["progress_m"], infos["n_faults"])


def compete_with_one_failed(contender: Contender, kind: str, joint: int, n_episodes: int, seed: int = SEED) -> float:
    """Return mean progress [m] with joint ``joint`` (from 1 at the tail) failed from the start."""
    faults = {**SEVERITY, "joints": [joint], "kinds": [kind], "reveal": contender.told}
    core = play(contender.settings, {"robot": ROBOT, "faults": faults}, n_episodes, seed)
    return float(core.infos()["progress_m"].mean())


def mean_with_interval(values: FloatArray) -> Difference:
    """Return the mean of ``values`` (n,) with its bootstrap interval; the mean three times if all are equal."""
    return Difference(float(values.mean()), *mean_interval(values, RESAMPLES))


def against(results: Sequence[Result], name: str, other: str, scenario: str) -> Difference:
    """Return the lead of ``name`` over ``other`` [m]; scenarios are paired."""
    one, two = (find(results, who, scenario).progress_m for who in (name, other))
    return mean_with_interval(one - two)


def find(results: Sequence[Result], name: str, scenario: str) -> Result:
    """Return the result of one contender."""
    return next(r for r in results if (r.name, r.scenario) == (name, scenario))
