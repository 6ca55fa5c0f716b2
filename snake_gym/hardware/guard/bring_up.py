"""Bring-up of a servo chain: every servo is checked, then the torque rises in steps, with goals where the joints are.

A servo may move the robot if it answers, has the settings of its calibration, runs in position mode, has limits that
leave the joint its calibrated range, and does not have to drive across its encoder's zero, which no servo does within
one turn. A servo that comes back during a run is checked in the same way (``servo_faults``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from snake_gym.hardware.bus.bus import Bus, say_twins
from snake_gym.hardware.bus.family import ServoError
from snake_gym.hardware.calibration.calibration import Calibration, changes, faults, read_held
from snake_gym.hardware.guard.body import BringUpError
from snake_gym.hardware.guard.checks import HealthMonitor, SafetyLimits, ServoHealth

_RAMP_STEPS = 5
PATIENCE_S = 0.5
"""Time for which silent servos are asked again on the way up [s]."""
_LOOK_S = 0.02
"""Time between two calls of ``look`` [s]."""

_BEND_BACK = (
    "bend it back by hand; where the robot does not look like that, calibrate again "
    "(python -m snake_gym.hardware calibrate)"
)

Look = Callable[[], None]
"""Function called all the time during bring-up; it raises BringUpError to end it."""


def _name(calibration: Calibration, joint: int) -> str:
    return f"joint {joint + 1} (servo {calibration.ids[joint]})"


def servo_faults(bus: Bus, calibration: Calibration, joint: int) -> list[str] | None:
    """Return why the servo of ``joint`` (from 0) may not move, one line each, or None if it does not answer."""
    one, name = calibration.joints[joint], _name(calibration, joint)
    info = bus.ping(one.servo_id)
    if info is None:
        return None
    if info.ambiguous:
        return [f"{name}: {say_twins(one.servo_id)}"]
    found = read_held(bus, [one.servo_id])[one.servo_id]
    if found is None:
        return None
    changed = [] if one.held is None else changes(one.held, found, one.servo_id)
    ends = [one.zero_steps + one.direction * angle / calibration.rad_per_step for angle in (one.low_rad, one.high_rad)]
    return [f"{name}: {line}" for line in changed] or faults(found, name, (ends[0], ends[1]), calibration.family)


def find_missing(bus: Bus, calibration: Calibration, n_allowed: int, look: Look) -> list[int]:
    """Return joints (from 0) with silent servos. Raises BringUpError: too many, unfit ones, or interrupted."""
    missing, wrong, give_up_s = list(range(len(calibration.joints))), [], math.inf
    while missing and bus.clock.now() < give_up_s:
        for joint in list(missing):
            look()
            found = servo_faults(bus, calibration, joint)
            if found is not None:
                missing.remove(joint)
                wrong += found
        give_up_s = min(give_up_s, bus.clock.now() + PATIENCE_S)
    silent = [f"{_name(calibration, joint)} does not answer" for joint in missing]
    if wrong:
        raise BringUpError("\n".join([*wrong, *silent]))
    if len(missing) == len(calibration.joints):
        raise BringUpError(
            "no servo answers at this baud rate; look at power and cable, and who answers to scan --all-bauds"
        )
    if len(missing) > n_allowed:
        raise BringUpError("\n".join([*silent, f"at most {n_allowed} joints may be missing"]))
    return missing


def check_reading(
    health: ServoHealth, outside: Mapping[int, str], calibration: Calibration, limits: SafetyLimits,
    joints: Sequence[int],
) -> None:  # fmt: skip
    """Raise BringUpError if a servo of ``joints`` (from 0) is silent, beyond a limit, or has a broken encoder, or a
    joint is ``outside`` its range (``beyond_range``): its servo takes the range to be elsewhere, and would drive it
    there."""
    _, reason = HealthMonitor(limits, health.answered.size).check(health, 0.0)
    wrong = [] if reason is None else [reason]
    for joint in joints:
        name = _name(calibration, joint)
        if not health.answered[joint]:
            wrong.append(f"{name} answers a ping but no reading; look at the wiring")
        elif health.error[joint] & ServoError.ENCODER:
            wrong.append(f"{name} says that its encoder is broken")
        elif joint in outside:
            wrong.append(f"{name}: it {outside[joint]}: {_BEND_BACK}")
    if wrong:
        raise BringUpError("\n".join(wrong))


def set_torque_limit(bus: Bus, servo_id: int, share: float) -> bool:
    """Let a servo use this share of its stall torque. Return True if it is known to obey."""
    return bus.write_register(servo_id, "torque_limit", round(share * bus.family.full_count("torque_limit")))


def raise_torque(
    bus: Bus, goals: Sequence[tuple[int, int, int]], torque_limit: float, ramp_time_s: float, look: Look
) -> None:
    """Raise the torque of servos with joints at rest at their goals: ID, position [steps] and speed of each.

    Args:
        torque_limit: share of the stall torque at the end.
        ramp_time_s: duration of the ramp [s].

    Raises BringUpError: a servo does not obey, or ``look``, called every 20 ms, ends it.
    """
    ids, steps, speeds = zip(*goals, strict=True)
    for part in range(_RAMP_STEPS):
        for servo_id in ids:
            look()
            give_up_s = bus.clock.now() + PATIENCE_S
            while not set_torque_limit(bus, servo_id, torque_limit * (part + 1) / _RAMP_STEPS):
                look()
                if bus.clock.now() > give_up_s:
                    raise BringUpError(f"servo {servo_id} does not take a torque limit")
        if part == 0:  # the goal is the present position, and switches the torque on
            bus.write_targets(ids, steps, speeds)
            silent = [str(one) for one, known in bus.torque(ids, True).items() if not known]
            if silent:
                raise BringUpError(f"servos {', '.join(silent)} do not switch their torque on")
        end_s = bus.clock.now() + ramp_time_s / _RAMP_STEPS
        while (left_s := end_s - bus.clock.now()) > 0.0:
            look()
            bus.clock.sleep(min(left_s, _LOOK_S))
