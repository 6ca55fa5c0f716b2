"""A joint between two links with a pneumatic muscle on each side, by vectors and virtual work.

Geometry from the attachment points (haghshenas2022, eq. 1-3), levers as cross products, the force of a muscle from the
volume of its braid: ``F = -p dV/dL`` (Chou, Hannaford 1996, eq. 1), V that of a cylinder wrapped by n turns of thread.
Joint angle phi = theta_i - theta_{i+1}: positive bends the head-side link to the right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class MusclePair:
    attachment_m: float
    half_width_m: float
    rest_length_m: float
    radius_m: float
    braid_angle_rad: float

    def points(self, phi: float, side: int) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the left (side +1) or right (-1) muscle, the joint at the origin, tail-side link along x."""
        behind = np.array([-self.attachment_m, side * self.half_width_m])
        turn = np.array([[math.cos(phi), math.sin(phi)], [-math.sin(phi), math.cos(phi)]])  # by -phi
        return behind, turn @ np.array([self.attachment_m, side * self.half_width_m])

    def length(self, phi: float, side: int) -> float:
        behind, ahead = self.points(phi, side)
        return float(np.linalg.norm(ahead - behind))

    def lever(self, phi: float, side: int) -> float:
        """Torque on phi per newton of tension: that on the tail-side link, counter-clockwise."""
        behind, ahead = self.points(phi, side)
        pull = (ahead - behind) / np.linalg.norm(ahead - behind)
        return float(behind[0] * pull[1] - behind[1] * pull[0])

    def volume(self, length: float) -> float:
        """Of the cylinder within the braid: thread of length b around it n times, both fixed."""
        thread = self.rest_length_m / math.cos(self.braid_angle_rad)
        turns = thread * math.sin(self.braid_angle_rad) / (2.0 * math.pi * self.radius_m)
        circumference = math.sqrt(thread**2 - length**2) / turns
        return length * circumference**2 / (4.0 * math.pi)

    def force(self, length: float, pressure: float) -> float:
        """Tension [N]; never negative."""
        step = 1e-6 * self.rest_length_m
        slope = (self.volume(length + step) - self.volume(length - step)) / (2.0 * step)
        return max(-pressure * slope, 0.0)

    def torque(self, phi: float, left_pa: float, right_pa: float) -> float:
        """On phi [N m]."""
        return sum(
            self.force(self.length(phi, side), pressure) * self.lever(phi, side)
            for side, pressure in ((1, left_pa), (-1, right_pa))
        )
