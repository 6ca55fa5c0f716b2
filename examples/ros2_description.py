"""Describe a robot to ROS 2: URDF with a ``<ros2_control>`` block, and controllers, for drivers that others keep.

    python examples/ros2_description.py sts3215_chain.yaml --driver sts --calibration snake.json --out ros2
    ros2 run robot_state_publisher robot_state_publisher ros2/snake.urdf
    ros2 run controller_manager ros2_control_node --ros-args --params-file ros2/controllers.yaml
    ros2 run controller_manager spawner joint_state_broadcaster snake_controller --param-file ros2/controllers.yaml

Drivers, with the version that was read:

- mock: mock_components/GenericSystem of ros2_control; no servos, joints are where they are sent.
- feetech: feetech_ros2_driver 0.2.2 (JafarAbdi, BSD). At 1 Mbaud; every goal has speed 2400 and acceleration 50.
- sts: sts_hardware_interface 0.3.0 (adityakamath, Apache 2.0). Goals have no speed limit.
- dynamixel: dynamixel_hardware_interface 1.5.1 (ROBOTIS, Apache 2.0), for servos of protocol 2.

All switch the torque off when ros2_control deactivates them; none does when its process is killed. A joint with a servo
that counts against the joint has the axis 0 0 -1: ROS sees the angle with the other sign, and ``ros2_policy_node.py``
turns it back. The range of each joint is that of the calibration, else the robot's.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

from snake_gym.config import ConfigError, dump_yaml
from snake_gym.robot.catalogue import load_any_robot
from snake_gym.spatial.urdf import write_urdf

Element = ElementTree.Element
STEP_RAD = 2.0 * math.pi / 4096


class Servo(NamedTuple):
    """One joint's servo; ``sense`` 1: it counts as the joint does."""

    name: str
    number: int
    zero_steps: int = 2048
    sense: int = 1
    low_rad: float = -math.pi
    high_rad: float = math.pi


def add_params(parent: Element, **params: object) -> None:
    for name, value in params.items():
        ElementTree.SubElement(parent, "param", name=name.replace("__", " ")).text = str(value)


def add_mock(system: Element, hardware: Element, joint: Element, servo: Servo) -> None:
    add_params(joint.findall("state_interface")[0], initial_value=0.0)


def add_feetech(system: Element, hardware: Element, joint: Element, servo: Servo) -> None:
    add_params(joint, id=servo.number, offset=servo.zero_steps)


def add_sts(system: Element, hardware: Element, joint: Element, servo: Servo) -> None:
    add_params(joint, motor_id=servo.number, operating_mode=0, position_center_steps=servo.zero_steps)
    low, high = sorted(-servo.sense * end for end in (servo.low_rad, servo.high_rad))  # this driver's angles
    add_params(joint, min_position=low, max_position=high)


def add_dynamixel(system: Element, hardware: Element, joint: Element, servo: Servo) -> None:
    gpio = ElementTree.SubElement(system, "gpio", name=f"dxl{servo.number}")
    zero = f"{STEP_RAD}, rad, signed, {-servo.zero_steps * STEP_RAD}"
    add_params(gpio, type="dxl", ID=servo.number, Operating__Mode=3)
    ElementTree.SubElement(gpio, "param", name="[unit info]").text = "; ".join(
        f"{name} Position, {zero}" for name in ("Present", "Goal")
    )
    ElementTree.SubElement(gpio, "command_interface", name="Goal Position")
    for name in ("Present Position", "Present Velocity"):
        ElementTree.SubElement(gpio, "state_interface", name=name)


class Driver(NamedTuple):
    plugin: str
    add: Callable[[Element, Element, Element, Servo], None]
    """Adds what one joint needs: to the system, its hardware, and the joint."""
    port: str = ""
    """Parameter that names the serial port; empty: it has none."""
    sense: int = 1
    """Sense of the driver's angles: 1 as the servo counts."""
    params: dict[str, object] = {}  # noqa: RUF012


DRIVERS = {
    "mock": Driver("mock_components/GenericSystem", add_mock),
    "feetech": Driver("feetech_ros2_driver/FeetechHardwareInterface", add_feetech, "usb_port"),
    "sts": Driver(
        "sts_hardware_interface/STSHardwareInterface", add_sts, "serial_port", -1,
        {"baud_rate": 1_000_000, "reset_states_on_activate": "false", "hold_position_on_activate": "true"},
    ),
    "dynamixel": Driver(
        "dynamixel_hardware_interface/DynamixelHardware", add_dynamixel, "port_name", 1,
        {"baud_rate": 1_000_000, "error_timeout_ms": 500, "dynamixel_model_folder": "/param/dxl_model",
         "disable_torque_at_init": "true"},
    ),
}  # fmt: skip


def list_servos(robot: object, calibration: str | None, driver: Driver) -> list[Servo]:
    """Return the servos, from the tail; without a calibration 1, 2, ... in mid-range, in the driver's own sense."""
    limit = robot.joint_limit_rad  # type: ignore[attr-defined]
    names = [f"joint_{k + 1}" for k in range(robot.n_joints)]  # type: ignore[attr-defined]
    if calibration is None:
        return [Servo(name, k + 1, 2048, driver.sense, -limit, limit) for k, name in enumerate(names)]
    from snake_gym.hardware.calibration.calibration import load_calibration

    joints = load_calibration(calibration).within(limit).joints
    if len(joints) != len(names):
        raise ConfigError(f"{calibration} has {len(joints)} joints; expected {len(names)}")
    return [
        Servo(name, one.servo_id, one.zero_steps, one.direction, one.low_rad, one.high_rad)
        for name, one in zip(names, joints, strict=True)
    ]


def describe(robot: object, servos: Iterable[Servo], driver: Driver, port: str) -> str:
    """Return the URDF with ``<ros2_control>``."""
    root, servos = ElementTree.fromstring(write_urdf(robot)), list(servos)  # type: ignore[arg-type]
    system = ElementTree.SubElement(root, "ros2_control", name="snake", type="system")
    hardware = ElementTree.SubElement(system, "hardware")
    ElementTree.SubElement(hardware, "plugin").text = driver.plugin
    add_params(hardware, **({driver.port: port} if driver.port else {}), **driver.params)
    if driver.add is add_dynamixel:
        add_params(hardware, number_of_joints=len(servos), number_of_transmissions=len(servos))
    for servo in servos:
        sign = servo.sense * driver.sense
        body = root.find(f"joint[@name='{servo.name}']")
        assert body is not None
        body.set("type", "revolute")
        body.find("axis").set("xyz", f"0 0 {sign}")  # type: ignore[union-attr]
        low, high = sorted((sign * servo.low_rad, sign * servo.high_rad))
        body.find("limit").attrib.update(lower=str(low), upper=str(high))  # type: ignore[union-attr]
        joint = ElementTree.SubElement(system, "joint", name=servo.name)
        ElementTree.SubElement(joint, "command_interface", name="position")
        for name in ("position", "velocity"):
            ElementTree.SubElement(joint, "state_interface", name=name)
        driver.add(system, hardware, joint, servo)
    ElementTree.indent(root)
    return '<?xml version="1.0"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def controllers(names: list[str], kind: str) -> dict[str, object]:
    """Return the parameters of ros2_control's manager and of the controllers."""
    common = {"joints": names}
    types = {
        "trajectory": ("joint_trajectory_controller/JointTrajectoryController",
                       {"command_interfaces": ["position"], "state_interfaces": ["position", "velocity"]}),
        "position": ("forward_command_controller/ForwardCommandController", {"interface_name": "position"}),
    }  # fmt: skip
    plugin, more = types[kind]
    manager = {
        "update_rate": 50,
        "joint_state_broadcaster": {"type": "joint_state_broadcaster/JointStateBroadcaster"},
        "snake_controller": {"type": plugin},
    }
    return {
        "controller_manager": {"ros__parameters": manager},
        "snake_controller": {"ros__parameters": common | more},
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Describe a robot to ROS 2.")
    parser.add_argument("robot", help="preset or YAML file")
    parser.add_argument("--driver", choices=DRIVERS, default="mock")
    parser.add_argument("--port", default="/dev/ttyUSB0")
    parser.add_argument("--calibration", metavar="FILE", help="of python -m snake_gym.hardware calibrate")
    parser.add_argument("--controller", choices=("trajectory", "position"), default="trajectory")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    options = parser.parse_args(argv)
    try:
        robot, driver = load_any_robot(options.robot), DRIVERS[options.driver]
        servos = list_servos(robot, options.calibration, driver)
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "snake.urdf").write_text(describe(robot, servos, driver, options.port))
        dump_yaml(controllers([one.name for one in servos], options.controller), options.out / "controllers.yaml")
    except ConfigError as error:
        parser.error(str(error))
    print(f"wrote {options.out}/snake.urdf and controllers.yaml: {len(servos)} joints, {driver.plugin}")


if __name__ == "__main__":
    main()
