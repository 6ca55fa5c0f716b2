"""Observations of W worlds over time: what a layout needs of earlier control steps, the same for every robot.

    observer = Observer(layout, n_worlds)
    observer.begin(measurement)      # when episodes begin
    obs = observer.look(measurement, goal, reference, last_action, phase)
    observer.advance(measurement)    # after each control step
    obs = observer.look(...)

A layout without history and velocity needs nothing of earlier steps: it then costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.interface.observations import ObservationLayout, Seen
from snake_gym.robot.chain import ChainSpec, FloatArray
from snake_gym.robot.measurement import Goal, Measurement, mean_angle, tracked_point


class BodyMotion:
    """Velocity of W robots, from the places at which they were measured: what a pose source gives a real robot.

    While the pose is lost it stays what it was; then it is the mean over the time without a pose.
    """

    def __init__(self, spec: ChainSpec, n_worlds: int) -> None:
        self._spec = spec
        self.velocity: FloatArray = np.zeros((n_worlds, 3))
        """(W, 3) [m/s, m/s, rad/s] of centre of mass and mean link angle, world frame."""
        self.place: FloatArray = np.zeros((n_worlds, 3))
        """(W, 3) [m, m, rad] where they were last seen."""
        self.unseen: NDArray[np.int64] = np.zeros(n_worlds, np.int64)
        """(W,) control steps until now from when they were last seen, that one included; 0: not seen yet."""

    def begin(self, measurement: Measurement, rows: Any) -> None:
        """Begin at rest in the worlds ``rows``; ``measurement`` is of all worlds."""
        self.velocity[rows] = 0.0
        self.place[rows] = self._place(measurement)[rows]
        self.unseen[rows] = measurement.pose_valid[rows]

    def advance(self, measurement: Measurement) -> None:
        """Take the measurement of one control step later."""
        here, valid = self._place(measurement), measurement.pose_valid
        moved = here - self.place
        moved[:, 2] = np.remainder(moved[:, 2] + math.pi, 2.0 * math.pi) - math.pi  # a pose source's angles may wrap
        steps = np.maximum(self.unseen, 1)[:, None]
        known = valid & (self.unseen > 0)
        np.copyto(self.velocity, moved / (steps * self._spec.control_dt_s), where=known[:, None])
        np.copyto(self.place, here, where=valid[:, None])
        self.unseen += self.unseen > 0
        self.unseen[valid] = 1

    def _place(self, measurement: Measurement) -> FloatArray:
        return np.array([*tracked_point(self._spec, measurement, "centre").T, mean_angle(measurement)]).T


class Observer:
    """Observations of W worlds with ``layout``."""

    def __init__(self, layout: ObservationLayout, n_worlds: int) -> None:
        self.layout = layout
        moves = {"body_velocity", "turning_rate"} & layout.fields.keys()
        self.motion = BodyMotion(layout.spec, n_worlds) if moves else None
        shape = (n_worlds, layout.history, layout.step_size)
        self.history = np.zeros(shape, np.float32) if layout.history > 1 else None
        """(W, k, step_size) the last control steps, newest first; None: k = 1."""
        self._fresh = np.ones(n_worlds, bool)

    def begin(self, measurement: Measurement, rows: Any = slice(None)) -> None:
        """Forget the earlier episodes of the worlds ``rows``; ``measurement`` is of all worlds."""
        self._fresh[rows] = True
        if self.motion is not None:
            self.motion.begin(measurement, rows)

    def advance(self, measurement: Measurement) -> None:
        """Take the measurement of one control step later."""
        if self.motion is not None:
            self.motion.advance(measurement)
        if self.history is not None:
            self.history[:, 1:] = self.history[:, :-1]
            self._fresh[:] = False

    def look(
        self,
        measurement: Measurement,
        goal: Goal,
        reference: FloatArray,
        last_action: FloatArray,
        phase: FloatArray | None,
        signals: Mapping[str, FloatArray] | None = None,
        remaining: FloatArray | None = None,
        rows: Any = slice(None),
    ) -> NDArray[np.float32]:
        """Return observations (M, D) of the M worlds ``rows``, a fresh array; arguments of these are as in ``Seen``."""
        layout, velocity = self.layout, None if self.motion is None else self.motion.velocity[rows]
        to_target = goal.target_xy_w - tracked_point(layout.spec, measurement, layout.point)
        seen = (measurement, goal, to_target, reference, last_action, phase, signals or {}, remaining, velocity)
        obs = layout.build(Seen(layout, *seen))
        if self.history is None:
            return obs
        history, fresh = self.history[rows], self._fresh[rows]
        history[fresh] = obs[fresh][:, None]
        history[:, 0] = obs
        self.history[rows] = history
        return history.reshape(len(obs), -1).copy()

    def state_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything that later observations depend on, by name: the arrays themselves."""
        arrays: dict[str, NDArray[Any]] = {}
        if self.history is not None:
            arrays |= {"observation/history": self.history, "observation/fresh": self._fresh}
        if self.motion is not None:
            arrays |= {f"observation/{name}": getattr(self.motion, name) for name in ("velocity", "place", "unseen")}
        return arrays
