"""Calibrations of LeRobot as ours, and ours as LeRobot's: one chain of Feetech servos in both worlds.

    python examples/lerobot_calibration.py read mine.json snake.json     # a file of LeRobot's calibration folder
    python examples/lerobot_calibration.py write snake.json mine.json

LeRobot's zero (in degrees) is the middle of a joint's range, ours is the straight joint. So ``write`` gives each joint
the largest range that has the straight joint in its middle, and ``read`` takes the middle as straight. LeRobot writes
its ranges into the servos as angle limits; after that, ``read`` its file again, as ``run`` compares what servos hold.
Motors are from the tail to the head, in the order of the file.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

from snake_gym.config import ConfigError
from snake_gym.hardware.calibration.calibration import Calibration, JointCalibration, load_calibration

STEPS = 4096


def read_lerobot(motors: dict[str, dict[str, Any]], model: str) -> Calibration:
    """Return our calibration for LeRobot's: name of a motor -> id, drive_mode, homing_offset, range_min, range_max."""
    joints = []
    for one in motors.values():
        low, high = one["range_min"], one["range_max"]
        half_rad = math.pi * (high - low) / STEPS
        held = {"homing_offset": one["homing_offset"], "min_angle_limit": low, "max_angle_limit": high}
        sense = -1 if one["drive_mode"] else 1
        joints.append(JointCalibration(one["id"], sense, round((low + high) / 2), -half_rad, half_rad, held))
    return Calibration(tuple(joints), model, STEPS)


def write_lerobot(calibration: Calibration) -> dict[str, dict[str, int]]:
    """Return LeRobot's calibration for ours."""
    motors = {}
    for k, joint in enumerate(calibration.joints):
        half = math.floor(min(-joint.low_rad, joint.high_rad) / calibration.rad_per_step)
        half = min(half, joint.zero_steps, calibration.steps_per_turn - 1 - joint.zero_steps)
        motors[f"joint_{k + 1}"] = {
            "id": joint.servo_id,
            "drive_mode": int(joint.direction < 0),
            "homing_offset": (joint.held or {}).get("homing_offset", 0),
            "range_min": joint.zero_steps - half,
            "range_max": joint.zero_steps + half,
        }
    return motors


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Calibrations of LeRobot as ours, and ours as LeRobot's.")
    parser.add_argument("what", choices=("read", "write"), help="LeRobot's file, or one for LeRobot")
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--model", default="STS3215", help="of the servos (%(default)s)")
    args = parser.parse_args(argv)
    try:
        if args.what == "read":
            read_lerobot(json.loads(args.source.read_text()), args.model).save(args.out)
        else:
            motors = write_lerobot(load_calibration(args.source))
            args.out.write_text(json.dumps(motors, indent=4) + "\n")
    except (ConfigError, OSError, KeyError) as error:
        parser.error(str(error))
    print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
