"""What ``emulate`` says of a wiggle: the side, while the joint is on its way, for every robot that can be emulated."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from snake_gym.emulator.emulate import WiggleWatch, mounted_at_random
from snake_gym.emulator.robot import emulate
from snake_gym.hardware.calibration.calibration import straight_chain
from snake_gym.hardware.calibration.procedures import wiggle
from snake_gym.hardware.robot.connection import ConnectionConfig
from snake_gym.robot.catalogue import load_robot
from tests.hardware.rig import Movable

ROBOTS = ["resilient_servo", *sorted(Path(__file__).parents[2].glob("configs/robot/*.yaml"))]


@pytest.mark.parametrize("robot", ROBOTS, ids=lambda robot: Path(robot).stem)
def test_the_side_is_told_before_the_joint_is_at_its_far_end(robot: str | Path) -> None:
    spec = load_robot(str(robot))
    if spec.actuator.kind != "position":
        pytest.skip("no servos")
    mounting = mounted_at_random(straight_chain(range(1, spec.n_links), spec.joint_limit_rad), 5)
    bus = emulate(ConnectionConfig(), spec, mounting, None)
    driver, watch = Movable(bus.host_transport(), clock=bus.clock), WiggleWatch(spec)
    told: list[str] = []

    def look() -> None:
        seen = watch.see(bus.plant.joint_angle(), [servo.torque_on for servo in bus.servos])
        told.extend([] if seen is None else [seen])

    turned, together = bus.plant.joint_angle() + 0.2, np.arange(spec.n_joints) < 2
    assert watch.see(turned, together) is None, "joints that move together are a run, which nobody wants told"
    for joint in (0, spec.n_joints // 2, spec.n_joints - 1):
        look()
        told.clear()
        at_end: list[str] = []
        driver.interrupted = look  # type: ignore[method-assign]
        done = wiggle(driver, joint + 1, at_the_end=partial(at_end.extend, told))
        assert at_end == told and len(told) == 1, (robot, joint, told)
        side = done.moved_rad * mounting.joints[joint].direction > 0.0
        assert told[0].startswith(f"joint {joint + 1} bends")
        assert told[0].split()[-1] == (("right", "left") if "to the" in told[0] else ("lower", "higher"))[not side]
