"""Speed hold: the pace of a gait by which the robot makes the commanded speed.

Where a goal has a speed, the gait's clock runs ``pace`` times as fast as its settings say, with

    pace_dot = GAIN (v_d - v) / robot's length,   pace within 0 and 1

v is the speed of the tracked point towards the target, from the last two poses. The integral needs no filter against
the ripple within a gait cycle. Where v grows as ``kappa pace``, it approaches v_d with the time constant
``length / (GAIN kappa)``. The gait's own frequency is the fastest; without an active goal v_d is 0.
"""

from __future__ import annotations

import numpy as np

from snake_gym.controllers.base import ControllerState
from snake_gym.robot.measurement import Goal, Measurement, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec

GAIN = 2.0
"""Growth of the pace for each body length that is missing."""
START = 0.5
"""Pace at the start of an episode."""
PACE, _LAST = "pace", "pace_xy"


class SpeedHold:
    """Pace of W gaits, kept in the state of their controller."""

    def __init__(self, spec: RobotSpec, point: str) -> None:
        self._spec, self._point = spec, point

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return ``pace`` (W,) and ``pace_xy`` (W, 2) [m], the last measured position, NaN before the first one."""
        return {PACE: np.full(n_worlds, START), _LAST: np.full((n_worlds, 2), np.nan)}

    def update(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> None:
        """Bring the pace to the commanded speed, in place; it is 1 where no speed is commanded."""
        pace, last = state[PACE], state[_LAST]
        if goal.speed_m_s is None:
            pace[:] = 1.0
            return
        here = tracked_point(self._spec, measurement, self._point)
        way, ahead = here - last, goal.target_xy_w - here
        towards = way[:, 0] * ahead[:, 0] + way[:, 1] * ahead[:, 1]
        made = towards / np.maximum(np.hypot(ahead[:, 0], ahead[:, 1]), 1e-9)
        missing = np.where(goal.active, goal.speed_m_s, 0.0) * dt_s - made
        missing[np.isnan(last[:, 0])] = 0.0
        pace[:] = np.clip(pace + GAIN / self._spec.length_m * missing, 0.0, 1.0)
        last[:] = here


def pace_of(state: ControllerState) -> FloatArray | float:
    """Return how fast the gait's clock is to run: the pace (W,) of a controller whose speed is held, else 1."""
    return state.get(PACE, 1.0)
