"""Logs of robots whose joints fail in mid-run: what a detector of faults sees, and the truth beside it.

Robots drive by a classical gait with parameters drawn for each world, and half of the worlds add slow noise to their
references, as a policy might. Detectors listen only: all of them are judged on the same motions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import build, merge
from snake_gym.controllers import make_controller
from snake_gym.controllers.base import ControllerState
from snake_gym.controllers.learned_detection import CODES
from snake_gym.envs import WaypointsConfig
from snake_gym.envs.core import SnakeCore
from snake_gym.physics.faults import HEALTHY, OFFSET, SLOW, WEAK
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.simulation.fault_kinds import has_speed_limit

KINDS = tuple(CODES)[1:]
"""Kinds of faults that occur in logs."""
FAULTS: dict[str, Any] = {
    "n_min": 0, "n_max": 3, "kinds": list(KINDS), "onset_min_s": 3.0, "weak_strength": [0.05, 0.5],
    "slow_strength": [0.05, 0.5], "offset_rad": [0.1, 0.5],
}  # fmt: skip
"""Faults of a log, unless others are asked for; they begin within the first 70 % of it."""
NOISE_RAD, NOISE_MEMORY_S = 0.1, 0.5
"""Size of the noise that half of the worlds add to their references, and its correlation time [s]."""


class FaultLog(NamedTuple):
    """Measurements, references and truth; T steps, W worlds, J joints."""

    spec: RobotSpec
    joint_angle: FloatArray
    """Measured (T, W, J) [rad], and so the rates."""
    joint_rate: FloatArray
    reference: FloatArray
    """References sent after each measurement (T, W, J) [rad]."""
    kind: NDArray[np.int64]
    """Code of the fault that acts on each joint at the time of the measurement (T, W, J)."""
    severity: FloatArray
    """Share of torque or speed left (weak, slow), or offset [rad] (T, W, J); 0 for others."""

    def measurements(self) -> Iterator[Measurement]:
        """Yield the measurements in their order; poses are not in the log."""
        n_worlds = self.kind.shape[1]
        for angle, rate in zip(self.joint_angle, self.joint_rate, strict=True):
            yield Measurement(angle, rate, np.zeros((n_worlds, 2)), np.zeros(n_worlds), np.ones(n_worlds, bool))


class Detector(Protocol):
    """What ``FaultDetector`` and ``LearnedDetector`` have in common."""

    def initial_state(self, n_worlds: int) -> ControllerState: ...
    def update(self, state: ControllerState, measurement: Measurement, dt_s: float) -> FloatArray: ...
    def command_given(self, state: ControllerState, reference: FloatArray) -> None: ...


def record(
    env: Mapping[str, Any], n_worlds: int, seed: int, time_s: float, controller: str = "cc", noisy: bool = True
) -> FaultLog:
    """Return the log of ``n_worlds`` robots over ``time_s`` [s]; world i has the scenario ``seed + i``.

    ``env`` are settings of the env with ``robot`` and any ``faults``, ``sensors`` and ``randomisation``.
    """
    settings = merge({"faults": {**FAULTS, "onset_max_s": 0.7 * time_s}}, env)
    if not has_speed_limit(load_robot(settings["robot"])):
        kinds = [kind for kind in settings["faults"]["kinds"] if kind != "slow"]
        settings = merge(settings, {"faults": {"kinds": kinds}})
    own = {"time_limit_s": time_s, "action": {"kind": "joint_reference"}, "n_threads": 1}
    config = build(WaypointsConfig, {**settings, **own}, "env")
    core = SnakeCore(config, n_worlds)
    core.reset(seed + np.arange(n_worlds, dtype=np.int64))
    rng = np.random.default_rng(seed)
    driver = make_controller({"kind": controller}, core.spec, random_gaits(core.spec, n_worlds, rng))
    state, limit, dt_s = driver.initial_state(n_worlds), core.spec.joint_limit_rad, core.spec.control_dt_s
    noise = np.zeros((n_worlds, core.spec.n_joints))
    size = NOISE_RAD * (np.arange(n_worlds) % 2)[:, None] * noisy
    keep = math.exp(-dt_s / NOISE_MEMORY_S)
    columns: list[list[Any]] = [[] for _ in range(5)]
    for _ in range(core.n_steps):
        kind, severity = truth(core)
        noise = keep * noise + math.sqrt(1.0 - keep * keep) * size * rng.normal(size=noise.shape)
        measured = core.measurement
        command = np.clip(driver.command(measured, core.task.goal(), state, dt_s) + noise, -limit, limit)
        given = getattr(driver, "command_given", None)
        if given is not None:
            given(command, state)
        now = (measured.joint_angle.copy(), measured.joint_rate.copy(), command, kind, severity)
        for column, values in zip(columns, now, strict=True):
            column.append(values)
        core.step(command / limit)
    return FaultLog(core.spec, *(np.array(column) for column in columns))


def random_gaits(spec: RobotSpec, n_worlds: int, rng: np.random.Generator) -> dict[str, FloatArray]:
    """Return parameters of CC (W,) with amplitudes, speeds up to beyond the servos' limit, and waves at random."""
    fastest = float(np.minimum(spec.joints("actuator.speed_limit_rad_s"), 2.0).min())
    amplitude = rng.uniform(0.15, min(0.9, 0.9 * spec.joint_limit_rad), n_worlds)
    return {
        "amplitude_rad": amplitude,
        "frequency_rad_s": np.clip(rng.uniform(0.2, 1.3, n_worlds) * fastest / amplitude, 0.3, 8.0),
        "phase_shift_rad": rng.uniform(0.25, 1.0, n_worlds),
        "coupling": rng.uniform(0.0, 0.6, n_worlds),
    }


def truth(core: SnakeCore) -> tuple[NDArray[np.int64], FloatArray]:
    """Return codes (W, J) of the faults that act now, of two on a joint the first, and their severities (W, J)."""
    robot, kind = core.robot, core.robot.acting_kind()
    is_first = robot.acting_kinds()[0] != HEALTHY
    share, offset = (
        np.where(is_first, getattr(robot.faults, name), getattr(robot.second_faults, name))
        for name in ("strength", "offset_rad")
    )
    has_share = (kind == WEAK) | (kind == SLOW)
    return kind, np.where(has_share, share, np.where(kind == OFFSET, offset, 0.0))
