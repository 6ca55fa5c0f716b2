"""How a servo moves its reference to a goal: at once, or along a trapezoid of speed with limited acceleration."""

from __future__ import annotations

import math


class GoalFollower:
    """The reference of one servo's position loop [steps], and its rate [steps/s]."""

    def __init__(self) -> None:
        self.reference = 0.0
        self.rate = 0.0

    def rest_at(self, position: float) -> None:
        """Begin anew from ``position``, at rest."""
        self.reference, self.rate = float(position), 0.0

    def follow(self, goal: float, dt_s: float, speed: float, ramp: float) -> float:
        """Move towards ``goal`` for ``dt_s``; the new reference.

        Args:
            speed: limit [steps/s].
            ramp: acceleration and deceleration [steps/s^2]; 0: the reference is the goal.
        """
        if ramp <= 0.0:
            self.rest_at(goal)
            return self.reference
        error = goal - self.reference
        # From this speed it can just stop within the distance left; half a step of time early, not to overshoot.
        half_step = 0.5 * ramp * dt_s
        brake = math.hypot(math.sqrt(2.0 * ramp * abs(error)), half_step) - half_step
        change = math.copysign(min(brake, speed), error) - self.rate
        self.rate += min(max(change, -ramp * dt_s), ramp * dt_s)
        if abs(error) <= abs(self.rate) * dt_s and abs(self.rate) <= 2.0 * ramp * dt_s:
            self.rest_at(goal)
        else:
            self.reference += self.rate * dt_s
        return self.reference
