"""Safety checks: limits on every command before it reaches the servos, and conditions that stop the robot.

A joint is *lost* if its servo is silent, or reports a broken encoder or a protection: the others go on, up
to ``max_lost_joints``; anything worse trips the emergency stop. docs/hardware.md lists what only a hardware stop
covers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import Settings
from snake_gym.config.settings import Count, Positive, PositiveShare
from snake_gym.hardware.bus.family import ServoError, describe_error, family_of_model
from snake_gym.robot.spec import FloatArray

BoolArray = NDArray[np.bool_]
_UNFIT = ServoError.ENCODER | ServoError.HEAT | ServoError.CURRENT | ServoError.OVERLOAD
"""Errors with which a servo cannot do its work."""
_BUSY_S = 0.01
"""Lateness of this computer that explains missing answers [s]."""
FREED = 4.0
"""Times that the time in which a joint moves counts off its stall."""


class StallLimits(Settings):
    """Conditions under which a joint counts as stalled."""

    load: PositiveShare = 0.9
    """Load beyond which a joint that hardly moves is stalled, as a share of the torque in use (``torque_limit``)."""
    rate_rad_s: Positive = 0.05
    """Rate below which a joint hardly moves."""
    time_s: Annotated[float, Field(gt=0.0, le=60.0)] = 1.5
    """Duration of a stall after which the robot stops. Time in which the joint hardly moves without that load counts
    off once, time in which it moves ``FREED`` times: a gait's reference passes a jammed joint's angle now and again."""


class SafetyLimits(Settings):
    """Limits of one run; the joints' ranges come with the calibration."""

    max_speed_rad_s: Positive = 10.0
    """Greatest speed of the references. The joints go no faster than the servos' own limit; a policy that was trained
    without these clamps needs room for its references to jump (docs/hardware.md has numbers)."""
    max_acceleration_rad_s2: Positive = 500.0
    """Greatest acceleration of the references."""
    max_temperature_c: Annotated[float, Field(ge=0.0, le=100.0)] = 65.0
    min_voltage_v: Positive | None = None
    """Least voltage; None: three quarters of the servos' nominal one."""
    max_voltage_v: Positive | None = None
    """Greatest voltage; None: what the servos' own register allows."""
    max_current_a: Positive | None = None
    """Greatest current of one servo; None: a tenth more than its stall current, a short circuit."""
    stall: StallLimits = field(default_factory=StallLimits)
    lost_after_s: Annotated[float, Field(gt=0.0, le=10.0)] = 0.3
    """Time without an answer after which a joint is lost."""
    max_lost_joints: Count = 2
    """Number of lost joints beyond which the robot stops; fewer than it has."""
    runaway_rad: Annotated[float, Field(gt=0.0, le=math.pi)] = 0.2
    """Largest distance of a joint outside its calibrated range. A joint further out does not follow, or at the
    start has another calibration."""
    command_timeout_s: Positive = 0.5
    """Time without a new command after which the torque goes off."""
    port_timeout_s: Positive = 3.0
    """Time without the port after which the robot counts as stopped."""
    torque_limit: PositiveShare = 1.0
    """Share of the servos' stall torque that is used."""
    ramp_time_s: Positive = 0.5
    """Time in which the torque is raised."""

    def check(self) -> None:
        low, high = self.min_voltage_v, self.max_voltage_v
        if low is not None and high is not None and low >= high:
            raise ValueError(f"min_voltage_v is {low:g} and max_voltage_v {high:g}; expected min < max")

    def of_model(self, name: str) -> SafetyLimits:
        """Return these limits, with those that are None taken from the data of the servo model of this name."""
        family, servo = family_of_model(name)
        most_v = servo.default(family.register("max_voltage")) * family.scale("max_voltage")
        return replace(
            self,
            min_voltage_v=0.75 * servo.nominal_voltage_v if self.min_voltage_v is None else self.min_voltage_v,
            max_voltage_v=most_v if self.max_voltage_v is None else self.max_voltage_v,
            max_current_a=1.1 * servo.stall_current_a if self.max_current_a is None else self.max_current_a,
        )


class CommandGate:
    """Gate that clamps references (J,) [rad] to the joints' range (``low``, ``high``), and their speed and acceleration
    from the last command, at first ``start``, the joints at rest."""

    def __init__(self, low: FloatArray, high: FloatArray, limits: SafetyLimits, start: FloatArray) -> None:
        self._low, self._high, self._limits = low, high, limits
        self.reference = np.array(start, dtype=np.float64)
        """(J,) [rad] last command. One that starts beyond its range comes back, at no more than the limits."""
        self._rate = np.zeros_like(self.reference)
        self.clamped = np.zeros(self.reference.size, bool)
        """(J,) True where the last command is not what was asked for."""

    def pass_on(self, wanted: FloatArray, dt_s: float) -> bool:
        """Move ``reference`` as near to ``wanted`` (J,) as the limits allow in a period of ``dt_s`` [s]. Return False
        if that is no number: the last command is kept."""
        wanted = np.asarray(wanted, dtype=np.float64)
        if wanted.shape != self.reference.shape or not np.isfinite(wanted).all():
            self._rate[:], self.clamped[:] = 0.0, True
            return False
        speed, gain = self._limits.max_speed_rad_s, self._limits.max_acceleration_rad_s2 * dt_s
        gap = np.clip(wanted, self._low, self._high) - self.reference
        # No faster than what the acceleration can still stop at the place wanted, step by step.
        top = np.minimum(speed, np.sqrt(0.25 * gain**2 + 2.0 * gain * np.abs(gap) / dt_s) - 0.5 * gain)
        rate = np.clip(np.clip(gap / dt_s, -top, top), self._rate - gain, self._rate + gain)
        reference = self.reference + rate * dt_s
        reference = np.clip(reference, np.minimum(self._low, self.reference), np.maximum(self._high, self.reference))
        self._rate = (reference - self.reference) / dt_s
        self.reference, self.clamped = reference, np.abs(reference - wanted) > 1e-9
        return True

    def rest_at(self, joint: int, angle_rad: float) -> None:
        """Restart joint ``joint`` (from 0) from ``angle_rad`` [rad], at rest."""
        self.reference[joint], self._rate[joint] = angle_rad, 0.0


class ServoHealth(NamedTuple):
    """One reading of all servos; NaN where a servo did not answer."""

    answered: BoolArray
    """(J,) True for servos that answered."""
    error: NDArray[np.uint8]
    """(J,) faults of each servo, bits as in ``family.ServoError``; 0 where it did not answer."""
    rate: FloatArray
    """(J,) [rad/s]."""
    load: FloatArray
    """(J,) share of the stall torque, with sign."""
    temperature_c: FloatArray
    voltage_v: FloatArray
    current_a: FloatArray

    @property
    def faults(self) -> tuple[str, ...]:
        """Faults that the servos report, such as "joint 3: overload"."""
        return tuple(
            f"joint {joint + 1}: {describe_error(int(self.error[joint]))}" for joint in self.error.nonzero()[0]
        )


class HealthMonitor:
    """Monitor of the servos of one robot; call ``check`` once a cycle."""

    def __init__(self, limits: SafetyLimits, n_joints: int) -> None:
        self.limits = limits
        self.lost = np.zeros(n_joints, bool)
        """(J,) True for joints with servos that are silent, or cannot do their work."""
        self.silent_s, self._unfit_s, self._stalled_s = np.zeros((3, n_joints))
        """(J,) times without an answer, unfit for work, and stalled [s]."""
        self.gap_s = np.zeros(n_joints)
        """(J,) duration of the last silence [s]; inf: since before the start."""
        self._faults: tuple[str, ...] = ()

    def miss(self, joints: Sequence[int]) -> None:
        """Mark these joints (from 0) as lost until they answer."""
        self.silent_s[list(joints)] = math.inf
        self.lost[list(joints)] = True

    def check(self, health: ServoHealth, dt_s: float, late_s: float = 0.0) -> tuple[list[str], str | None]:
        """Return news ``dt_s`` [s] after the last cycle, one line each, and a reason to stop the robot, or None.

        Args:
            late_s: lateness of this computer in this cycle [s].
        """
        limits, news = self.limits, []
        busy = f" (this computer was late by {1e3 * late_s:.0f} ms: it is too busy)" if late_s > _BUSY_S else ""
        # A long gap before the first missing answer is no silence of the servo: no reading was asked for in it.
        began = self.silent_s == 0.0
        silence_s = np.where(began, min(dt_s, 0.5 * limits.lost_after_s), dt_s)
        self.gap_s = np.where(began, self.gap_s, self.silent_s)
        self.silent_s = np.where(health.answered, 0.0, self.silent_s + silence_s)
        unfit = health.error & _UNFIT != 0
        self._unfit_s = np.where(unfit, self._unfit_s + dt_s, np.where(health.answered, 0.0, self._unfit_s))
        silent = self.silent_s > limits.lost_after_s
        lost = silent | (self._unfit_s > limits.lost_after_s)
        for joint in np.flatnonzero(lost != self.lost).tolist():
            silence = f"no answer for {self.silent_s[joint]:.2f} s{busy}"
            why = silence if silent[joint] else "its servo says so"
            news.append(f"joint {joint + 1} is lost: {why}" if lost[joint] else f"joint {joint + 1} answers again")
        self.lost = lost
        still = np.abs(health.rate) < limits.stall.rate_rad_s
        stalls = health.answered & still & (np.abs(health.load) > limits.stall.load * limits.torque_limit)
        eased_s = np.where(~health.answered | still, 1.0, FREED) * dt_s
        self._stalled_s = np.maximum(self._stalled_s + np.where(stalls, dt_s, -eased_s), 0.0)
        news += [line for line in health.faults if line not in self._faults]
        self._faults = health.faults
        return news, self._reason(health, busy if silent.any() else "")

    def _reason(self, health: ServoHealth, excuse: str) -> str | None:
        limits = self.limits
        if self.lost.sum() > limits.max_lost_joints:
            names = ", ".join(str(joint + 1) for joint in np.flatnonzero(self.lost))
            return f"joints {names} are lost; at most {limits.max_lost_joints} may be{excuse}"
        checks = (
            (self._stalled_s > limits.stall.time_s, "is stalled", 100.0 * health.load, " % load"),
            (health.temperature_c > limits.max_temperature_c, "is too hot", health.temperature_c, " C"),
            (health.voltage_v < (limits.min_voltage_v or 0.0), "has too low a voltage", health.voltage_v, " V"),
            (health.voltage_v > (limits.max_voltage_v or math.inf), "has too high a voltage", health.voltage_v, " V"),
            (np.abs(health.current_a) > (limits.max_current_a or math.inf), "draws too much", health.current_a, " A"),
        )
        for wrong, what, values, unit in checks:
            for joint in np.flatnonzero(wrong & health.answered):
                return f"joint {joint + 1} {what} ({values[joint]:.3g}{unit})"
        return None
