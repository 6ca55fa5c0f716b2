"""The way up of a servo chain: every servo is looked at, then the torque comes in steps, each goal where the joint is.

A servo may move the robot when it answers, is of the calibrated model, runs in position mode, has limits that leave
the joint its calibrated range, and does not have to drive across its encoder's zero, which no servo does within one
turn. The same looks are taken at a servo that comes back in mid-run (``check_servo``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from snake_gym.hardware.body import BringUpError
from snake_gym.hardware.calibration import Calibration
from snake_gym.hardware.clock import Clock
from snake_gym.hardware.protocol import ServoError
from snake_gym.hardware.registers import model
from snake_gym.hardware.safety import HealthMonitor, SafetyLimits, ServoHealth
from snake_gym.hardware.servo_bus import ServoBus

_FULL_TORQUE = 1000
"""Counts of the torque limit's register."""
_RAMP_STEPS = 5
_LOOK_S = 0.02
"""Time between two questions whether to go on."""
_SETTINGS = ("min_angle_limit", "mode")
_POSITION_MODE = 0

Interrupted = Callable[[], str | None]
"""Asked during the way up: why it shall end, None to go on."""


def check_servo(bus: ServoBus, calibration: Calibration, joint: int) -> bool:
    """Whether the servo of ``joint`` (from 0) answers. Raises BringUpError where it answers and may not move."""
    one = calibration.joints[joint]
    name = f"joint {joint + 1} (servo {one.servo_id})"
    info = bus.ping(one.servo_id)
    if info is None:
        return False
    expected = model(calibration.model).number
    if expected is not None and info.model != expected:
        raise BringUpError(f"{name} says it is model {info.model}; expected {expected} ({calibration.model})")
    found = bus.read_block([one.servo_id], *_SETTINGS).values[one.servo_id]
    if found is None:
        return False
    if found["mode"] != _POSITION_MODE:
        raise BringUpError(f"{name} is in mode {found['mode']}; expected {_POSITION_MODE}, position")
    low, high = found["min_angle_limit"], found["max_angle_limit"]
    if low == high == 0:  # it counts whole turns: no limits, and no place where its counts jump
        return True
    ends = [one.zero_steps + one.direction * angle / calibration.rad_per_step for angle in (one.low_rad, one.high_rad)]
    if min(ends) < -0.5 or max(ends) > calibration.steps_per_turn - 0.5:
        raise BringUpError(
            f"{name}: its range passes the encoder's zero, across which it does not drive; expected a calibration "
            "made with --recentre"
        )
    if low > min(ends) + 1.0 or high < max(ends) - 1.0:
        raise BringUpError(
            f"{name} has angle limits {low} to {high}; expected at least {min(ends):.0f} to {max(ends):.0f}, the "
            "joint's calibrated range"
        )
    return True


def find_missing(bus: ServoBus, calibration: Calibration, n_allowed: int, interrupted: Interrupted) -> list[int]:
    """Joints (from 0) whose servos do not answer. Raises BringUpError: too many, one may not move, or interrupted."""
    missing = []
    for joint in range(len(calibration.joints)):
        reason = interrupted()
        if reason is not None:
            raise BringUpError(reason)
        if not check_servo(bus, calibration, joint):
            missing.append(joint)
    if len(missing) == len(calibration.joints):
        raise BringUpError(
            "no servo answers at this baud rate; look at power and cable, and who answers to scan --all-bauds"
        )
    if len(missing) > min(n_allowed, len(calibration.joints) - 1):
        names = ", ".join(f"{joint + 1} (servo {calibration.ids[joint]})" for joint in missing)
        raise BringUpError(f"joints {names} do not answer; at most {n_allowed} may be missing")
    return missing


def check_health(health: ServoHealth, calibration: Calibration, limits: SafetyLimits, joints: Sequence[int]) -> None:
    """Raise BringUpError where a servo of ``joints`` (from 0) is silent, blind, or beyond a limit."""
    _, reason = HealthMonitor(limits, health.answered.size).check(health, 0.0)
    if reason is not None:
        raise BringUpError(reason)
    for joint in joints:
        name = f"joint {joint + 1} (servo {calibration.ids[joint]})"
        if not health.answered[joint]:
            raise BringUpError(f"{name} answers a ping but no reading; look at the wiring")
        if health.error[joint] & ServoError.ENCODER:
            raise BringUpError(f"{name} says that its encoder is broken")


def let_follow(bus: ServoBus, calibration: Calibration, joint: int, torque_limit: float) -> bool:
    """Whether the servo of ``joint`` (from 0), which was away, may have goals again, with this share of its torque.

    Raises:
        BringUpError: it is there and may not move.
    """
    if not check_servo(bus, calibration, joint):
        return False
    return bus.write_register(calibration.ids[joint], "torque_limit", round(_FULL_TORQUE * torque_limit))


class TorqueRamp:
    """Raises the torque of servos whose joints rest at their goals.

    Args:
        bus, clock: of the servos.
        torque_limit: share of the stall torque at the end.
        ramp_time_s: how long it takes [s].
        interrupted: asked every 20 ms.
    """

    def __init__(
        self, bus: ServoBus, clock: Clock, torque_limit: float, ramp_time_s: float, interrupted: Interrupted
    ) -> None:
        self._bus, self._clock, self._interrupted = bus, clock, interrupted
        self._torque_limit, self._ramp_time_s = torque_limit, ramp_time_s

    def run(self, ids: Sequence[int], steps: Sequence[int], speed: Sequence[int]) -> None:
        """Hold ``steps`` with more and more torque. Raises BringUpError: a servo does not obey, or interrupted."""
        for part in range(_RAMP_STEPS):
            share = self._torque_limit * (part + 1) / _RAMP_STEPS
            for servo_id in ids:
                self._ask()
                if not self._bus.write_register(servo_id, "torque_limit", round(_FULL_TORQUE * share)):
                    raise BringUpError(f"servo {servo_id} does not take a torque limit")
            if part == 0:
                # The goal is where it is, and switches the torque on.
                self._bus.write_targets(ids, steps, speed)
                on = self._bus.torque(ids, True)
                if not all(on.values()):
                    silent = ", ".join(str(one) for one, known in on.items() if not known)
                    raise BringUpError(f"servos {silent} do not switch their torque on")
            self._wait(self._ramp_time_s / _RAMP_STEPS)

    def _wait(self, duration_s: float) -> None:
        end_s = self._clock.now() + duration_s
        while (left_s := end_s - self._clock.now()) > 0.0:
            self._ask()
            self._clock.sleep(min(left_s, _LOOK_S))

    def _ask(self) -> None:
        reason = self._interrupted()
        if reason is not None:
            raise BringUpError(reason)
