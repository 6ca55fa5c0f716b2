"""What a policy sees, built from measurements alone: the same code for the simulated and the real robot.

Every entry is ``clip(value * scale, -bound, bound)`` as float32; the bound is its field's, ``BOUND`` for most.
Directions are relative to the robot, so what it sees does not depend on where in the world it is: ``heading_error`` is
the robot's mean link angle minus the bearing of the target as seen from the tracked point (sibilska2022, eq. 34-36),
``distance`` the distance to it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from snake_gym.robot.measurement import Goal, Measurement, centre_offset, link_angles, mean_angle, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec

BOUND = 10.0
NEAR_M = 2.0
"""From here on, [m], a target is far: ``distance`` grows no more, so that a long leg looks like any leg."""
FULL_SCALE = 5.0
"""What the largest force that a sensor can tell becomes: forces in use are small beside it."""


class Field(NamedTuple):
    """A named part of the observation."""

    name: str
    columns: slice
    scale: float
    unit: str
    meaning: str
    bound: float = BOUND
    """Scaled values are clipped to plus and minus this."""


class ObservationLayout:
    """Names, places and scales of the observation's entries for one robot and action space.

    Args:
        spec: the robot.
        n_actions: A.
        has_phase: whether a gait clock runs below the policy.
        point: "centre" or "head", from where the target is seen.
        reveal_faults: whether the failed joints are shown.
        contact_limit_n: largest force that the links' sensors tell; None: no such sensors.
        n_beams: B of the head's scanner; 0: no scanner.
        max_range_m: its reach.
    """

    def __init__(
        self,
        spec: RobotSpec,
        n_actions: int,
        has_phase: bool,
        point: str,
        reveal_faults: bool = False,
        contact_limit_n: float | None = None,
        n_beams: int = 0,
        max_range_m: float = 1.0,
    ) -> None:
        self.spec = spec
        self.point = point
        self.max_range_m = max_range_m
        fastest = spec.joints("actuator.speed_limit_rad_s")
        rate_scale = 1.0 / float(fastest.max()) if np.isfinite(fastest).all() else 0.5
        rows = [
            ("joint_angle", spec.n_joints, 1.0, "rad", "measured joint angle"),
            ("joint_rate", spec.n_joints, rate_scale, "rad/s", "measured joint rate"),
            ("reference_error", spec.n_joints, 1.0, "rad", "last joint reference minus measured angle"),
            ("last_action", n_actions, 1.0, "1", "action of the previous step"),
            ("phase", 2 if has_phase else 0, 1.0, "1", "sine and cosine of the gait's phase"),
            ("heading_error", 2, 1.0, "1", "sine and cosine of mean link angle minus bearing of the target"),
            ("distance", 1, 1.0 / NEAR_M, "m", f"distance from the tracked point to the target, at most {NEAR_M:g} m"),
            ("failed", spec.n_joints if reveal_faults else 0, 1.0, "1", "1 where the joint is failed now"),
        ]
        if contact_limit_n is not None:
            meaning = "contact force on each link from the tail, along the link and to its left"
            rows.append(("contact_force", 2 * spec.n_links, FULL_SCALE / contact_limit_n, "N", meaning))
        rows.append(("range", n_beams, 1.0 / max_range_m, "m", "free way along each beam of the head's scanner"))
        self.fields: dict[str, Field] = {}
        start = 0
        for name, width, scale, unit, meaning in rows:
            if width:
                bound = 1.0 if name == "distance" else BOUND
                self.fields[name] = Field(name, slice(start, start + width), scale, unit, meaning, bound)
                start += width
        self.size = start
        self._bound = np.concatenate(
            [np.full(f.columns.stop - f.columns.start, f.bound, np.float32) for f in self.fields.values()]
        )

    def build(
        self,
        measurement: Measurement,
        goal: Goal,
        reference: FloatArray,
        last_action: FloatArray,
        phase: FloatArray | None,
        failed: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.float32]:
        """The observation (W, D) float32, a fresh array.

        Args:
            reference: (W, J) [rad] the joint references commanded last.
            last_action: (W, A).
            phase: (W,) [rad], where the layout has it.
            failed: (W, J), where the layout has it.

        Where the robot lacks a sensor that the layout has, no force is felt and every beam is free.
        """
        obs = np.empty((last_action.shape[0], self.size), np.float32)
        to_target = goal.target_xy_w - tracked_point(self.spec, measurement, self.point)
        error = mean_angle(measurement) - np.arctan2(to_target[:, 1], to_target[:, 0])
        self._put(obs, "joint_angle", measurement.joint_angle)
        self._put(obs, "joint_rate", measurement.joint_rate)
        self._put(obs, "reference_error", reference - measurement.joint_angle)
        self._put(obs, "last_action", last_action)
        if phase is not None and "phase" in self.fields:
            self._put_angle(obs, "phase", phase)
        self._put_angle(obs, "heading_error", error)
        self._put(obs, "distance", np.hypot(to_target[:, :1], to_target[:, 1:]))
        if failed is not None and "failed" in self.fields:
            self._put(obs, "failed", failed)
        if "contact_force" in self.fields:
            force = measurement.contact_force_l
            self._put(obs, "contact_force", np.zeros(1) if force is None else force.reshape(obs.shape[0], -1))
        if "range" in self.fields:
            reach = measurement.range_m
            self._put(obs, "range", np.array([self.max_range_m]) if reach is None else reach)
        return np.clip(obs, -self._bound, self._bound, out=obs)

    def read(self, obs: NDArray[np.float32], name: str) -> FloatArray:
        """The part ``name`` of observations (W, D), unscaled: (W, width)."""
        part = self.fields[name]
        return obs[:, part.columns].astype(np.float64) / part.scale

    def restore(self, obs: NDArray[np.float32]) -> tuple[Measurement, Goal]:
        """Measurement and goal that look like ``obs`` (W, D), in a frame that starts at the robot.

        The tracked point is put at the origin with mean link angle 0. A target that is farther away than the
        observation tells is put where the observation's bound is.
        """
        angle = self.read(obs, "joint_angle")
        n_worlds = angle.shape[0]
        sin_cos = self.read(obs, "heading_error")
        bearing = -np.arctan2(sin_cos[:, 0], sin_cos[:, 1])
        distance = self.read(obs, "distance")
        zero = np.zeros((n_worlds, 2))
        pose = (zero, np.zeros(n_worlds), np.ones(n_worlds, bool), zero)
        sample = Measurement(angle, self.read(obs, "joint_rate"), *pose)
        sample = sample._replace(head_angle=-mean_angle(sample))
        centre = centre_offset(self.spec, link_angles(sample))
        if self.point == "head":
            sample = sample._replace(centre_xy_w=centre)
        else:
            sample = sample._replace(head_xy_w=-centre)
        target = distance * np.stack([np.cos(bearing), np.sin(bearing)], axis=1)
        if "contact_force" in self.fields:
            force = self.read(obs, "contact_force").reshape(n_worlds, self.spec.n_links, 2)
            sample = sample._replace(contact_force_l=force)
        if "range" in self.fields:
            sample = sample._replace(range_m=self.read(obs, "range"))
        if "failed" in self.fields:
            sample = sample._replace(joint_failed=self.read(obs, "failed") > 0.5)
        return sample, Goal(target, np.ones(n_worlds, bool))

    def _put(self, obs: NDArray[np.float32], name: str, values: FloatArray | NDArray[np.bool_]) -> None:
        part = self.fields[name]
        if part.scale == 1.0:
            obs[:, part.columns] = values
        else:
            np.multiply(values, part.scale, out=obs[:, part.columns], casting="same_kind")

    def _put_angle(self, obs: NDArray[np.float32], name: str, angle: FloatArray) -> None:
        first = self.fields[name].columns.start
        obs[:, first] = np.sin(angle)
        obs[:, first + 1] = np.cos(angle)
