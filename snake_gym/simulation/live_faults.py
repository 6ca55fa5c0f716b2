"""Faults of joints that begin or end while an episode runs, as somebody breaks and mends them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.physics.faults import HEALTHY
from snake_gym.robot.protocol import Robot
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.fault_kinds import FAULT_KINDS
from snake_gym.simulation.faults import FaultConfig, JointFault


def break_joint(robot: Robot, world: int, fault: JointFault, command: FloatArray) -> None:
    """Give a joint of one world this fault instead of those it has; ranges give their middle.

    ``command`` (J,) [rad]: what the world's servos were commanded last, which is not kept without registered faults.
    Raises ConfigError, with nothing changed, for what the robot cannot have.
    """
    try:
        FaultConfig(events=(fault,)).check_robot(robot.spec)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    robot.allow_faults({fault.kind})
    at = (world, fault.joint - 1)
    values = {f.name: float(np.mean(getattr(fault, f.name))) for f in fields(fault)[2:]}
    values |= {"kind": FAULT_KINDS[fault.kind].code, "memory": 0.0}
    values["end_s"] = values["onset_s"] + values.pop("duration_s")
    if not robot.has_registered_faults():
        robot.servos.command[world] = command
    robot.servos.misread_rad[at], robot.servos.silent[at] = 0.0, False
    robot.second_faults.kind[at] = HEALTHY
    for name, value in values.items():
        getattr(robot.faults, name)[at] = value


def end_faults(robot: Robot, world: int, joints: slice) -> None:
    """End the faults of these joints of one world now; those that are to come do not come."""
    for faults in (robot.faults, robot.second_faults):
        now = robot.state.time_s[world]
        faults.onset_s[world, joints] = np.minimum(faults.onset_s[world, joints], now)
        faults.end_s[world, joints] = np.minimum(faults.end_s[world, joints], now)
