"""Estimator of what broke, from references and measurements alone, and what undoes it where it can be undone.

It stands between a robot and all that controls it. Slipped horns (``slip_estimator``) are undone in readings and
references, shifted references (``offset_estimator``) in references, so that gaits, detectors and policies see and ask
for joints where they stand. Joints that are locked, free or weak cannot be undone: ``fault_detection`` finds them.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from snake_gym.config import ConfigError, Settings
from snake_gym.controllers.base import Controller, ControllerState
from snake_gym.controllers.fault_detection import FREE, WEAK, FaultDetector, FaultDetectorConfig, as_part, part_of
from snake_gym.controllers.offset_estimator import OffsetEstimator
from snake_gym.controllers.slip_estimator import SlipEstimator
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec

FAULT_PROBABILITY = "fault_probability"
"""Signal (W, J, 5): how likely each joint is locked, free, weak, slipped, offset."""
_SLIPS, _OFFSETS = "slips/", "offsets/"
"""Prefixes of the parts' arrays in the state."""
_OFFSET_ALARM = 0.8
"""Alarm of offsets, as a share of that of slips: healthy joints seem to have smaller ones."""


class EstimatorConfig(Settings):
    """Settings of the estimator of slipped horns and shifted references, which undoes both."""

    on: bool = False
    """Use it."""
    alarm: Annotated[float, Field(ge=0.1, le=1e3)] = 5.5
    """Gain of log likelihood from which on a fault is known; a larger one is later and has fewer false alarms."""


class FaultEstimator:
    """Estimator for W planar robots (ConfigError for others), with the state of its parts.

    It has a detector of failed joints of its own where the ``controller`` below the policy, if any, has none.
    """

    def __init__(self, config: EstimatorConfig, spec: Any, controller: Controller | None) -> None:
        if not isinstance(spec, RobotSpec):
            raise ConfigError(f"env.action.estimator.on is True for {spec.name}; expected a planar robot, or False")
        self._spec, self.slips = spec, SlipEstimator(config.alarm, spec)
        self.offsets = OffsetEstimator(_OFFSET_ALARM * config.alarm, spec)
        detects = controller is not None and "fault_kind" in controller.initial_state(1)
        self.detector = None if detects else FaultDetector(FaultDetectorConfig(), spec)
        below = getattr(getattr(controller, "controller", controller), "detector", self.detector)  # below a reflex too
        self._alarm = (below.config if isinstance(below, FaultDetector) else FaultDetectorConfig()).alarm

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state with all joints healthy and nothing seen."""
        state = as_part(self.slips.initial_state(n_worlds), _SLIPS)
        state |= as_part(self.offsets.initial_state(n_worlds), _OFFSETS)
        return state if self.detector is None else state | as_part(self.detector.initial_state(n_worlds))

    def perceive(self, measurement: Measurement, state: ControllerState) -> Measurement:
        """Take a measurement, a control step after the last, and return it with joints where they stand."""
        slips = part_of(state, _SLIPS)
        self.offsets.update(part_of(state, _OFFSETS), measurement)
        self.slips.update(slips, measurement)
        measurement = self.slips.correct(slips, measurement)
        if self.detector is not None:
            self.detector.update(part_of(state), measurement, self._spec.control_dt_s)
        return measurement

    def to_servos(self, reference: FloatArray, state: ControllerState) -> FloatArray:
        """Return what servos have to be sent (W, J) [rad] for joints to aim at ``reference``, within their limit."""
        shift, limit = state[_SLIPS + "slip"] + state[_OFFSETS + "offset"], self._spec.joint_limit_rad
        sent = np.where(shift == 0.0, reference, np.clip(reference - shift, -limit, limit))
        state[_OFFSETS + "sent"][:] = sent
        self.slips.command_given(part_of(state, _SLIPS), reference)
        if self.detector is not None:
            self.detector.command_given(part_of(state), reference)
        return sent

    def signals(self, state: ControllerState) -> dict[str, FloatArray]:
        """Return what policies may see of the estimate; a probability is 0.5 where the fault becomes known."""
        watched = part_of(state)
        odds = [watched[f"{name}_ratio"] - self._alarm for name in ("locked", "loose")]
        for part, prefix, known in ((self.slips, _SLIPS, "slip"), (self.offsets, _OFFSETS, "offset")):
            odds.append(np.where(state[prefix + known] != 0.0, np.inf, state[prefix + "gain"] - part.alarm))
        locked, loose, slipped, shifted = (0.5 + 0.5 * np.tanh(0.5 * each) for each in odds)
        loose = loose * (1.0 - locked)  # a joint that is held does not follow either
        free = np.where(watched["kind"] == FREE, 1.0, np.where(watched["kind"] == WEAK, 0.0, 0.5))
        return {FAULT_PROBABILITY: np.stack([locked, loose * free, loose * (1.0 - free), slipped, shifted], axis=2)}
