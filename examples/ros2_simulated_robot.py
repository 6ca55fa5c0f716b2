"""The simulated robot as a ROS 2 node, in place of ros2_control and servos: to try a policy before there is a robot.

    python examples/ros2_description.py sts3215_chain.yaml --out ros2
    python examples/ros2_simulated_robot.py sts3215_chain.yaml --urdf ros2/snake.urdf
    python examples/ros2_policy_node.py sts3215_chain_locked_joints --urdf ros2/snake.urdf --targets 2,0 --activate

Publishes ``joint_states`` and ``pose``; takes ``snake_controller/joint_trajectory``, whose points it aims at along a
straight line as the trajectory controller does, and ``snake_controller/commands``, at once; in real time.
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.utilities import remove_ros_args
from ros2_policy_node import read_axes
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from snake_gym.robot.catalogue import load_any_robot
from snake_gym.simulation.servo_plant import RobotPlant

PERIOD_S = 0.02


class RobotNode(Node):
    def __init__(self, plant: Any, axes: dict[str, int]) -> None:
        super().__init__("simulated_snake")
        self.plant, self.names, self.signs = plant, list(axes), np.array(list(axes.values()))
        self.begin = self.end = plant.joint_angle().copy()
        self.passed_s, self.lasts_s = 0.0, PERIOD_S
        self.states = self.create_publisher(JointState, "joint_states", 10)
        self.poses = self.create_publisher(PoseStamped, "pose", 10)
        self.create_subscription(JointTrajectory, "snake_controller/joint_trajectory", self.take_trajectory, 10)
        self.create_subscription(Float64MultiArray, "snake_controller/commands", self.take_commands, 10)
        self.create_timer(PERIOD_S, self.tick)

    def take_trajectory(self, message: JointTrajectory) -> None:
        point = message.points[-1]
        self.aim(point.positions, point.time_from_start.sec + point.time_from_start.nanosec * 1e-9)

    def take_commands(self, message: Float64MultiArray) -> None:
        self.aim(message.data, PERIOD_S)

    def aim(self, positions: Any, lasts_s: float) -> None:
        self.begin, self.end = self.target(), self.signs * np.array(positions)
        self.passed_s, self.lasts_s = 0.0, max(lasts_s, PERIOD_S)

    def target(self) -> np.ndarray:
        return self.begin + min(1.0, self.passed_s / self.lasts_s) * (self.end - self.begin)

    def tick(self) -> None:
        self.passed_s += PERIOD_S
        one = np.ones(len(self.names))
        self.plant.advance(PERIOD_S, self.target(), one > 0.0, one, 100.0 * one)
        angle, rate = self.signs * self.plant.joint_angle(), self.signs * self.plant.joint_rate()
        self.states.publish(JointState(name=self.names, position=angle.tolist(), velocity=rate.tolist()))
        x, y, direction = self.plant.head_pose()
        pose = PoseStamped()
        pose.pose.position.x, pose.pose.position.y = x, y
        pose.pose.orientation.z, pose.pose.orientation.w = math.sin(0.5 * direction), math.cos(0.5 * direction)
        self.poses.publish(pose)


def main() -> None:
    parser = argparse.ArgumentParser(description="The simulated robot as a ROS 2 node.")
    parser.add_argument("robot", help="preset or YAML file")
    parser.add_argument("--urdf", required=True, help="of ros2_description.py")
    rclpy.init()
    options = parser.parse_args(remove_ros_args()[1:])
    robot: Any = load_any_robot(options.robot)
    plant = RobotPlant(robot)
    one = np.ones(robot.n_joints)
    plant.advance(PERIOD_S, plant.joint_angle().copy(), one > 0.0, one, one)  # compiles the physics
    node = RobotNode(plant, read_axes(options.urdf, robot.n_joints))
    print("ready", flush=True)
    rclpy.spin(node)


if __name__ == "__main__":
    main()
