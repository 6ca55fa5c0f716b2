"""Fault-aware control: coupled control (CC) that detects failed joints, and changes direction and wave.

A ``FaultDetector`` watches the joints (or the env reveals the failed ones, ``Measurement.joint_failed``). With its
estimate the controller does four things; with the strengths of all of them at zero it is CC (sibilska2022, eq. 37):

* *Driving in reverse*. A failed joint hurts more the nearer it is to the end that leads. The robot leads with its tail
  where, beyond ``hysteresis_rad``,

      sum_failed weight_i (2 i - J - 1) / (J - 1)  +  turn_back (2 |heading error| - pi)

  is positive (i from 1 at the tail). The first term is the moment of the failed joints about the middle, weighted by
  ``front_weight_rad`` where they are locked and by ``free_front_weight_rad`` where they are free or weak; the second
  favours the end that is nearer to the target's direction.
* *Spreading*. The missing angle of a failed joint, ``phi_ref - phi``, is taken up by the next healthy joints on either
  side, in the shares ``spread_ahead`` and ``spread_behind`` of a locked joint, whose missing angle is exact, and
  ``free_ahead`` and ``free_behind`` of a free one, which the ground moves.
* *Scaling the wave*: amplitude and frequency by ``amplitude_per_fault`` and ``frequency_per_fault`` for each failed
  joint.
* *Trimming*. What is left of a joint's following error in the mean, as of a servo that was calibrated wrongly, is added
  to its reference, at the rate ``trim_hz``.

None of the papers has such a controller. A weak or slow joint still follows; it counts for ``weak_counts`` of a failed
one in the direction and the wave, and spreads as in CC. So does a joint with an offset, which counts for none.

A robot seen from its other end is again a robot: number the links from the head and let every link point the other way,
and the link angles are theta'_i = theta_{N+1-i} + pi, the joint angles phi'_i = -phi_{N-i}. A gait that drives this
mirrored robot forwards drives the real one backwards, and guidance, its mean heading turned by pi, brings the tail
round. The mirror is its own inverse; positions stay. Where the gait is ``alpha sin(phase + (i-1) delta)``, the shape at
the moment of the change is the same for the phase ``-phase - (J-1) delta``.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config.settings import Share
from snake_gym.controllers.base import ControllerState, PerWorld, register_controller, searched, wrap_phase
from snake_gym.controllers.cc import Cc, CcConfig, NeighbourGains, neighbour_gains
from snake_gym.controllers.fault_detection import (
    FREE,
    LOCKED,
    WEAK,
    FaultDetector,
    FaultDetectorConfig,
    as_part,
    known_kind,
    part_of,
)
from snake_gym.robot.measurement import Goal, Measurement, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec

Weight = Annotated[float, Field(ge=-100.0, le=100.0)]
Spread = Annotated[float, Field(ge=-1.0, le=2.0)]
Change = Annotated[float, Field(ge=-1.0, le=1.0)]
Rate = Annotated[float, Field(ge=0.0, le=10.0)]


class FaultAwareConfig(CcConfig):
    """Settings of coupled control with a detector of failed joints."""

    front_weight_rad: Weight = searched(0.0, 0.0, 5.0)
    """Heading error that equals a locked joint at the leading end; 0: locked joints do not choose the direction."""
    free_front_weight_rad: Weight = 6.0
    """Heading error that equals a free joint at the leading end; links in front of it are not led."""
    turn_back: Share = searched(0.0, 0.0, 1.0)
    """Weight of the heading error in the choice of direction; 0: targets behind do not choose it."""
    hysteresis_rad: Annotated[float, Field(ge=0.0, le=2.0 * math.pi)] = searched(0.5, 0.05, 1.5)
    """Lead that the other direction needs before the choice changes."""
    spread_ahead: Spread = searched(0.5, 0.0, 1.2)
    """Share of a locked joint's missing angle that the next healthy joint towards the leading end takes up."""
    spread_behind: Spread = searched(0.0, 0.0, 1.2)
    """Share of it that the next healthy joint on the other side takes up."""
    free_ahead: Spread = 0.0
    """Share of a free joint's missing angle that the next healthy joint towards the leading end takes up."""
    free_behind: Spread = 0.0
    """Share of it that the next healthy joint on the other side takes up."""
    amplitude_per_fault: Change = searched(0.0, -0.2, 0.2)
    """Relative change of amplitude for each failed joint."""
    frequency_per_fault: Change = searched(0.0, -0.2, 0.2)
    """Relative change of frequency for each failed joint."""
    trim_hz: Rate = searched(0.0, 0.0, 1.0)
    """Rate at which the lasting error of a healthy joint is averaged and taken off its reference; 0: never."""
    weak_counts: Share = 0.5
    """Share of a failed joint that a weak one counts for."""
    detector: FaultDetectorConfig = field(default_factory=FaultDetectorConfig)
    """Settings of the detector of failed joints."""


@register_controller("fault_aware", FaultAwareConfig)
class FaultAware(Cc):
    """Controller with coupled joints, fault detection, reverse driving and a re-planned wave.

    State: ``phase`` (W,) [rad] in [0, 2 pi), ``reverse`` (W,) 1 where the tail leads, ``trim`` (W, J) [rad], and the
    detector's, whose names begin with ``fault_``.
    """

    def __init__(self, config: FaultAwareConfig, spec: RobotSpec, per_world: PerWorld | None = None) -> None:
        super().__init__(config, spec, per_world)
        self.detector = FaultDetector(config.detector, spec)
        self._nominal = self.detector.nominal
        # Moment of each joint about the middle of the robot, -1 at the tail to 1 at the head
        self._lever = np.linspace(-1.0, 1.0, spec.n_joints) if spec.n_joints > 1 else np.zeros(1)
        self._gains_reverse = neighbour_gains(config, spec, self.parameter, from_head=True)
        self._is_symmetric = all(map(np.array_equal, self._gains, self._gains_reverse))

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state at the start of an episode: phase zero, head first, all joints healthy."""
        state = {**super().initial_state(n_worlds), "reverse": np.zeros(n_worlds)}
        state |= {name: np.zeros((n_worlds, self.n_joints)) for name in ("trim", "nominal_angle", "nominal_rate")}
        return {**state, **as_part(self.detector.initial_state(n_worlds))}

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad] within the robot's joint limit; advance the phase by ``dt_s`` [s]."""
        watched = part_of(state)
        begins = watched["n_seen"] == 0.0
        kind = known_kind(self.detector.update(watched, measurement, dt_s), measurement)
        if measurement.centre_xy_w is None:
            measurement = measurement._replace(centre_xy_w=tracked_point(self.spec, measurement, "centre"))
        weak = kind == WEAK
        if (self.parameter["trim_hz"] > 0.0).any():
            self._average_error(state, watched["reference"], measurement, dt_s, begins)
        locked, loose = kind == LOCKED, (kind == FREE) + self.parameter["weak_counts"][..., None] * weak
        reverse = self._choose_direction(measurement, goal, state, locked, loose)
        seen = mirror_measurement(measurement, reverse)
        n_failed = (locked + loose).sum(axis=1)
        pace = np.maximum(1.0 + self.parameter["frequency_per_fault"] * n_failed, 0.0)
        reference = self._wave.advance(state, dt_s, pace)
        reference *= np.maximum(1.0 + self.parameter["amplitude_per_fault"] * n_failed, 0.0)
        reference += self._guidance.offset(seen, goal, self.parameter)
        self._spread(reference, seen, np.abs(mirror_joints(kind, reverse)), reverse)
        if (self.parameter["trim_hz"] > 0.0).any():
            trim = np.where((kind == LOCKED) | (kind == FREE), 0.0, state["trim"])
            reference += mirror_joints(trim, reverse).T
        command = mirror_joints(self.limited(reference), reverse)
        self.detector.command_given(watched, command)
        return command

    def command_given(self, reference: FloatArray, state: ControllerState) -> None:
        """Note the references really sent (W, J) [rad]: a policy may have added to ``command``."""
        self.detector.command_given(part_of(state), reference)

    def _average_error(
        self, state: ControllerState, sent: FloatArray, measurement: Measurement, dt_s: float, begins: NDArray[np.bool_]
    ) -> None:
        """Average the joints' distance from nominal servos that get the references ``sent`` (W, J) [rad]."""
        self._nominal.advance(state["nominal_angle"], state["nominal_rate"], sent, dt_s)
        state["nominal_angle"][begins] = measurement.joint_angle[begins]
        state["nominal_rate"][begins] = measurement.joint_rate[begins]
        share = -np.expm1(-self.parameter["trim_hz"] * dt_s)
        state["trim"] += share[..., None] * (state["nominal_angle"] - measurement.joint_angle - state["trim"])

    def _choose_direction(
        self,
        measurement: Measurement,
        goal: Goal,
        state: ControllerState,
        locked: NDArray[np.bool_],
        loose: FloatArray,
    ) -> NDArray[np.bool_]:
        """Return a mask (W,) of worlds in which the tail leads; where that changes, the phase keeps the shape."""
        parameter = self.parameter
        score = parameter["front_weight_rad"] * (locked * self._lever).sum(axis=1)
        score += parameter["free_front_weight_rad"] * (loose * self._lever).sum(axis=1)
        if (parameter["turn_back"] > 0.0).any():
            error = self._guidance.heading_error(measurement, goal)
            score += np.where(goal.active, parameter["turn_back"] * (2.0 * np.abs(error) - math.pi), 0.0)
        was = state["reverse"] > 0.0
        margin = parameter["hysteresis_rad"]
        now = np.where(was, score > -margin, score > margin)
        changed = now != was
        if changed.any():
            shift = np.broadcast_to(parameter["phase_shift_rad"], now.shape)
            phase = state["phase"]
            phase[changed] = (-phase - (self.n_joints - 1) * shift)[changed]  # the mirrored gait's, in the same shape
            wrap_phase(phase)
            state["reverse"][:] = now
        return now

    def _spread(self, reference: FloatArray, seen: Measurement, kind: FloatArray, reverse: NDArray[np.bool_]) -> None:
        """Add the neighbours' missing angles to ``reference`` (J, W), joint after joint, in place.

        Between healthy joints this is CC's share of the control signal of the joint behind.
        """
        parameter, gains = self.parameter, self._gains
        if not self._is_symmetric:
            pairs = zip(self._gains_reverse, self._gains, strict=True)
            gains = NeighbourGains(*(np.where(reverse, mirrored, plain) for mirrored, plain in pairs))
        # worlds along the rows: numpy is faster on long ones, and in place
        angle, rate, kind = (values.T.copy() for values in (seen.joint_angle, seen.joint_rate, kind))
        locked, free = (kind == LOCKED).astype(np.float64), (kind == FREE).astype(np.float64)
        failed = locked + free
        healthy = 1.0 - failed
        missing = reference - angle
        reference[1:] += gains.signal(missing, rate) * healthy[:-1]
        if failed.any():
            tail_first = range(self.n_joints)
            for part, order in (("ahead", tail_first), ("behind", reversed(tail_first))):
                share = parameter[f"spread_{part}"] * locked + parameter[f"free_{part}"] * free
                share *= missing
                carried = np.zeros(reference.shape[1])
                for joint in order:
                    reference[joint] += carried * healthy[joint]
                    carried += share[joint]
                    carried *= failed[joint]


def mirror_joints(values: FloatArray, mirrored: NDArray[np.bool_]) -> FloatArray:
    """Return joint angles, rates or references (W, J) as seen from the other end, in the worlds ``mirrored`` (W,)."""
    seen, rows = values.copy(), np.flatnonzero(mirrored)
    seen[rows] = -values[rows, ::-1]
    return seen


def mirror_measurement(measurement: Measurement, mirrored: NDArray[np.bool_]) -> Measurement:
    """Return joints and heading of the robot as seen from its other end in the worlds ``mirrored`` (W,).

    Positions do not change, so ``centre_xy_w`` has to be known where the centre of mass is guided. Forces and ranges
    belong to the real head and are left out.
    """
    head_angle, rows = measurement.head_angle.copy(), np.flatnonzero(mirrored)
    head_angle[rows] = head_angle[rows] + measurement.joint_angle[rows].sum(axis=1) + math.pi
    return Measurement(
        mirror_joints(measurement.joint_angle, mirrored),
        mirror_joints(measurement.joint_rate, mirrored),
        measurement.head_xy_w,
        head_angle,
        measurement.pose_valid,
        measurement.centre_xy_w,
    )
