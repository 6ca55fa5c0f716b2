"""Comparison of the head's turns with those that the joints should cause, which shows a robot that is mirrored.

Whoever looks at a robot from the wrong end calibrates all its joints mirrored. Their readings then agree with what is
commanded, and only the pose shows it: the head turns to the other side. Of single mirrored joints it shows little, as
the others outvote them.
"""

from __future__ import annotations

import numpy as np

from snake_gym.hardware.guard.body import BodySample
from snake_gym.hardware.pose.dead_reckoning import DeadReckoning
from snake_gym.hardware.pose.source import PoseSample
from snake_gym.robot.spec import RobotSpec

_SECONDS = 5.0
"""Time at the start that is looked at."""
_LEAST_RAD = 0.02
"""Expected turn in a step (rms) without which there is no answer."""
_AGAINST = -0.3
"""Share of the expected turns below which the robot is mirrored: 1 if all is right, -1 if all is mirrored."""


class HeadingCheck:
    """Check of one run of the robot ``spec``."""

    def __init__(self, spec: RobotSpec) -> None:
        self._model = DeadReckoning(spec)
        self._headings: list[tuple[float, float]] = []
        self._n_steps = round(_SECONDS / spec.control_dt_s)

    def look(self, sample: BodySample, pose: PoseSample) -> str | None:
        """Look at the robot after a step. Return a warning, once, if it is mirrored."""
        if len(self._headings) >= self._n_steps or not pose.valid:
            return None
        self._model.follow(sample.joint_angle, sample.joint_rate, sample.stamp_s)
        self._headings.append((self._model.read(sample.stamp_s).angle, pose.angle))
        if len(self._headings) < self._n_steps:
            return None
        expected, seen = np.diff(np.unwrap(self._headings, axis=0), axis=0).T
        share = float(expected @ seen / (expected @ expected + 1e-9))
        if expected.std() < _LEAST_RAD or share > _AGAINST:
            return None
        return (
            f"the head turns against its joints ({share:+.1f} of what they should do): was the robot calibrated from "
            "the wrong end, or is the frame of the pose mirrored?"
        )
