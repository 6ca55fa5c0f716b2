"""Coupled control (CC): each joint also acts on the error of the joint behind it (sibilska2022, eq. 37).

The paper adds half of the neighbour's *uncoupled* control signal, ``u_mod_i = u_i + c u_{i-1}`` for i >= 2, with
``u_i = k_p (phi_ref_i - phi_i) - k_d phi_dot_i`` and c = 0.5: a fault in joint i-1 leaves an error there, which joint i
takes up. On a robot that accepts joint references the same signal comes from the reference

    phi_ref'_i = phi_ref_i + c (k_p_{i-1} / k_p_i) [(phi_ref_{i-1} - phi_{i-1}) - (k_d / k_p)_{i-1} phi_dot_{i-1}],

exactly so where the actuator is the PD law with these gains and measurements are fresh; between two commands the
neighbour's error is held. A servo with a rate limit realises it approximately, and the references are kept within the
joint limit.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field

from snake_gym.controllers.base import ControllerState, Gain, PerWorld, register_controller, searched
from snake_gym.controllers.sjc import Sjc, SjcConfig
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec


class CcConfig(SjcConfig):
    """Settings of a steered serpenoid gait with coupled joints."""

    coupling: Annotated[float, Field(ge=-1.0, le=1.0)] = searched(0.5, 0.0, 1.0)
    """Share c of the neighbour's control signal (eq. 37)."""
    gain_ratio_s: Gain | None = searched(None, 0.01, 3.0, log=True)
    """Ratio k_d / k_p [s] of the joint loop; None: the robot's own gains (2.0 s for ``resilient``, as in the paper)."""


class NeighbourGains(NamedTuple):
    """Gains of joints 2 to J for the errors of the joints behind them, (J-1, 1) or (J-1, W), or one for all."""

    coupling: FloatArray
    """Gain c k_p_{i-1} / k_p_i of the error [1]."""
    damping_s: FloatArray
    """Ratio (k_d / k_p)_{i-1} of the joint behind [s]."""

    def signal(self, missing: FloatArray, rate: FloatArray) -> FloatArray:
        """Return the part (J-1, W) [rad] that the joints behind add to uncoupled references (J, W).

        ``missing`` [rad] is such references minus joint angles, ``rate`` [rad/s] the joints' (J, W).
        """
        behind = missing[:-1] - self.damping_s * rate[:-1]
        behind *= self.coupling
        return behind


def neighbour_gains(
    config: CcConfig, spec: RobotSpec, parameter: dict[str, FloatArray], from_head: bool = False
) -> NeighbourGains:
    """Return the gains of the coupling for the nominal robot; ``from_head``: with joints counted from the head.

    Raises ValueError where the ratio of the gains is the robot's own and its kp is 0.
    """
    kp, kd = spec.joints("actuator.kp"), spec.joints("actuator.kd")
    if from_head:
        kp, kd = kp[::-1], kd[::-1]
    if config.gain_ratio_s is not None:
        kp, damping = np.ones_like(kp), parameter["gain_ratio_s"]
    elif (kp > 0.0).all():
        damping = (kd / kp)[:-1, None]
    else:
        raise ValueError(f"gain_ratio_s is null and robot.actuator.kp {kp.tolist()}; expected kp > 0, or a ratio")
    return NeighbourGains(parameter["coupling"] * (kp[:-1] / kp[1:])[:, None], damping)


@register_controller("cc", CcConfig)
class Cc(Sjc):
    """Controller of a steered serpenoid gait with coupled joints. State: ``phase`` (W,) [rad] in [0, 2 pi)."""

    def __init__(self, config: CcConfig, spec: RobotSpec, per_world: PerWorld | None = None) -> None:
        super().__init__(config, spec, per_world)
        self._gains = neighbour_gains(config, spec, self.parameter)

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad] within the robot's joint limit; advance the phase by ``dt_s`` [s]."""
        reference = self.steered(measurement, goal, state, dt_s)
        reference[1:] += self._gains.signal(reference - measurement.joint_angle.T, measurement.joint_rate.T)
        return self.limited(reference)
