"""Estimator of servos with a shifted reference, from references and readings, for W worlds at once.

In a control step a nominal servo (``nominal_joint``) would turn by ``asked`` from one reading to the next; it turns by

    done = share (asked + offset reach),    reach = d asked / d reference,

where the share is what loads leave of it, and the offset the shift of its reference; both by least squares that fade
over ``MEMORY_S``. An offset is known from the gain ``alarm`` (``best_shift``) on, while the joint makes a quarter of
the asked motion: one that is locked has none. It is forgotten at a third of that gain, where one of ``LEAST_RAD`` would
show: at rest none does.
"""

from __future__ import annotations

import math

import numpy as np

from snake_gym.controllers.base import ControllerState
from snake_gym.controllers.nominal_joint import NominalJoints
from snake_gym.controllers.slip_estimator import LARGEST_RAD, LEAST_RAD, MEMORY_S, best_shift
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import RobotSpec

_REACH_RAD, _NOISE_RAD = 0.1, 0.02
"""Change of the reference on either side for the reach; least spread of what joints do."""
_FOLLOWS, _FIRST = 0.25, 15.0
"""Least share of the asked motion that joints make, and measurements before the first alarm."""


class OffsetEstimator:
    """Estimator of the offsets of J joints in W worlds.

    ``alarm``: see ``EstimatorConfig``. State, (W, J) each: ``offset`` [rad] the known ones, 0: none; ``gain``; the last
    ``angle``, ``rate`` and ``sent`` reference; fading sums of products of ``a`` asked motion, ``r`` reach and ``e``
    error, and ``n`` their number; (W,): ``n_seen`` measurements.
    """

    def __init__(self, alarm: float, spec: RobotSpec) -> None:
        self.alarm, self._spec = alarm, spec
        self._nominal = NominalJoints(spec)
        self._fade = math.exp(-spec.control_dt_s / MEMORY_S)

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state with no offset known and nothing seen."""
        names = ("offset", "gain", "angle", "rate", "sent", "aa", "ar", "rr", "ae", "re", "ee", "n")
        state = {name: np.zeros((n_worlds, self._spec.n_joints)) for name in names}
        return {**state, "n_seen": np.zeros(n_worlds)}

    def update(self, state: ControllerState, measurement: Measurement) -> None:
        """Take the servos' readings after a control step with the reference ``sent`` into ``state``."""
        before, sent = state["angle"], state["sent"]
        asked, more, less = (before.copy() for _ in range(3))
        for angle, change in ((asked, 0.0), (more, _REACH_RAD), (less, -_REACH_RAD)):
            self._nominal.advance(angle, state["rate"].copy(), sent + change, self._spec.control_dt_s)
        reach, error = (more - less) / (2.0 * _REACH_RAD), measurement.joint_angle - asked
        asked -= before
        counts = (state["n_seen"] > 0.0)[:, None]
        products = {
            "aa": asked * asked, "ar": asked * reach, "rr": reach * reach, "ae": asked * error, "re": reach * error,
            "ee": error * error, "n": np.ones_like(error),
        }  # fmt: skip
        for name, product in products.items():
            state[name] *= self._fade
            state[name] += product * counts
        before[:], state["rate"][:] = measurement.joint_angle, measurement.joint_rate
        state["n_seen"] += 1.0
        self._judge(state)

    def _judge(self, state: ControllerState) -> None:
        aa, ar, rr, ae, re, ee = (state[name] for name in ("aa", "ar", "rr", "ae", "re", "ee"))
        determinant = aa * rr - ar * ar + 1e-9
        slope, lag = (aa * re - ar * ae) / determinant, (rr * ae - ar * re) / determinant
        spread = np.maximum(ee - lag * ae - slope * re, 0.0) / np.maximum(state["n"] - 2.0, 1.0) + _NOISE_RAD**2
        follows = (1.0 + lag > _FOLLOWS) & (state["n_seen"] > _FIRST)[:, None]
        share = np.maximum(1.0 + lag, _FOLLOWS)
        own = share * share * determinant / ((aa + 1e-9) * spread)
        best, gain = best_shift(own * np.clip(slope / share, -LARGEST_RAD, LARGEST_RAD), own)
        state["gain"][:] = np.where(follows, gain, 0.0)
        enough = np.where(state["offset"] == 0.0, self.alarm, self.alarm / 3.0)
        shows = 0.5 * own * LEAST_RAD**2 > self.alarm / 3.0
        state["offset"][:] = np.where(state["gain"] > enough, best, np.where(shows, 0.0, state["offset"]))
