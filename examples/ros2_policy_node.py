"""A trained policy as a ROS 2 node: joint states and the head's pose in, joint references out.

    python examples/ros2_policy_node.py sts3215_chain_locked_joints --urdf ros2/snake.urdf --targets 2,0 3,1 --activate

Needs rclpy and the package without its simulation (docs/hardware.md, "On a small board"). A lifecycle node,
``snake_policy``: it moves nothing until it is active, and deactivation holds the joints where they are.

- in: ``joint_states`` (JointState), ``pose`` (PoseStamped: centre and direction of the head link, seen from above),
  ``goal_pose`` (PoseStamped: one new target, as RViz sends it)
- out: ``snake_controller/joint_trajectory`` (JointTrajectory, one point a control step ahead), or with ``--output
  position`` ``snake_controller/commands`` (Float64MultiArray)

References are clamped in range, speed and acceleration. Without new joint states nothing is sent; without a target, or
without a pose for 2 s, the joints are held. Torque is the driver's: keep a hardware stop within reach.
"""

from __future__ import annotations

import argparse
import math
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from snake_gym.config import ConfigError
from snake_gym.hardware.guard.checks import CommandGate, SafetyLimits
from snake_gym.hardware.robot.robot_loop import CourseConfig, MeasuredCourse
from snake_gym.interface.observer import Observer
from snake_gym.interface.policy_file import FilePolicy, load_policy
from snake_gym.robot.measurement import Measurement

STALE_S, LOST_S = 0.5, 2.0
"""Age of joint states at which nothing is sent any more, and of poses at which the joints are held [s]."""


class Pilot:
    """Policy with all that it remembers between control steps; no ROS."""

    def __init__(self, policy: FilePolicy, course: MeasuredCourse, limits: SafetyLimits) -> None:
        self.policy, self.course, self.limits, self.spec = policy, course, limits, policy.spec
        self.decoder = policy.make_decoder()
        self.reach = np.full(self.spec.n_joints, self.spec.joint_limit_rad)
        self.measurement: Measurement | None = None

    def begin(self, measurement: Measurement) -> None:
        self.observer = Observer(self.policy.make_layout(), 1)
        self.state, self.carried = self.decoder.initial_state(1), None
        self.gate = CommandGate(-self.reach, self.reach, self.limits, measurement.joint_angle[0])
        self.measurement, self.reference = measurement, measurement.joint_angle
        self.action = np.zeros((1, self.decoder.size))
        self.course.begin(measurement)
        self.observer.begin(measurement)

    def look(self, measurement: Measurement) -> None:
        """Take what is measured, once a control step."""
        if self.measurement is None:
            self.begin(measurement)
        else:
            self.measurement = self.decoder.perceive(measurement, self.state)
            self.observer.advance(self.measurement)
            self.course.advance(self.measurement, self.action)

    def step(self) -> np.ndarray:
        """Return the next references (J,) [rad]."""
        goal, phase = self.course.goal(), self.decoder.phase(self.state)
        signals = self.decoder.signals(self.state)
        seen = self.observer.look(self.measurement, goal, self.reference, self.action, phase, signals)
        self.action, self.carried = self.policy.predict(seen, self.carried)
        self.reference = self.decoder.decode(self.action, self.measurement, goal, self.state)
        self.gate.pass_on(self.decoder.to_servos(self.reference, self.state)[0], self.spec.control_dt_s)
        return self.gate.reference


class PolicyNode(LifecycleNode):
    """``axes``: name of each joint from the tail, and 1 or -1: the sense of its angle in ROS."""

    def __init__(self, pilot: Pilot, axes: dict[str, int], output: str = "trajectory") -> None:
        super().__init__("snake_policy")
        self.pilot, self.names, self.signs = pilot, list(axes), np.array(list(axes.values()))
        self.angle, self.rate = np.full((2, len(axes)), math.nan)
        self.pose = np.full(3, math.nan)
        self.joints_s = self.pose_s = -math.inf
        self.timer: Any = None
        self.create_subscription(JointState, "joint_states", self.take_joints, 10)
        self.create_subscription(PoseStamped, "pose", self.take_pose, 10)
        self.create_subscription(PoseStamped, "goal_pose", self.take_goal, 10)
        kind, topic = (
            (JointTrajectory, "joint_trajectory") if output == "trajectory" else (Float64MultiArray, "commands")
        )
        self.out = self.create_publisher(kind, f"snake_controller/{topic}", 10)

    def now_s(self) -> float:
        return self.get_clock().now().nanoseconds * 1e-9

    def take_joints(self, message: JointState) -> None:
        place = {name: k for k, name in enumerate(message.name)}
        if not all(name in place for name in self.names):
            return  # of another robot
        order, now = [place[name] for name in self.names], self.now_s()
        angle = self.signs * np.array(message.position)[order]
        if len(message.velocity):
            self.rate = self.signs * np.array(message.velocity)[order]
        elif now > self.joints_s:
            self.rate = np.nan_to_num((angle - self.angle) / (now - self.joints_s))
        self.angle, self.joints_s = angle, now

    def take_pose(self, message: PoseStamped) -> None:
        at, turn = message.pose.position, message.pose.orientation
        yaw = math.atan2(2.0 * (turn.w * turn.z + turn.x * turn.y), 1.0 - 2.0 * (turn.y**2 + turn.z**2))
        self.pose, self.pose_s = np.array([at.x, at.y, yaw]), self.now_s()

    def take_goal(self, message: PoseStamped) -> None:
        at, course = message.pose.position, self.pilot.course
        course.targets_xy, course.index = np.array([[at.x, at.y]]), 0

    def on_activate(self, state: Any) -> TransitionCallbackReturn:
        self.pilot.measurement = None  # the policy begins anew
        self.timer = self.create_timer(self.pilot.spec.control_dt_s, self.tick)
        return super().on_activate(state)

    def on_deactivate(self, state: Any) -> TransitionCallbackReturn:
        self.stop()
        return super().on_deactivate(state)

    def stop(self) -> None:
        """Hold the joints, and send nothing more."""
        if self.timer is not None:
            self.destroy_timer(self.timer)
            self.timer = None
            self.hold()

    def hold(self) -> None:
        if self.now_s() - self.joints_s < STALE_S:
            self.send(self.angle)

    def tick(self) -> None:
        now, pilot = self.now_s(), self.pilot
        if now - self.joints_s > STALE_S:
            self.get_logger().warning("no joint states: nothing is sent", throttle_duration_sec=2.0)
            return
        is_lost, valid = now - self.pose_s > LOST_S, np.array([now - self.pose_s < STALE_S])
        if not is_lost or pilot.measurement is not None:
            seen = Measurement(self.angle[None], self.rate[None], self.pose[None, :2], self.pose[2:], valid)
            pilot.look(pilot.spec.locate(seen))
        if is_lost:
            self.get_logger().warning("no pose: the joints are held", throttle_duration_sec=2.0)
            self.hold()
        elif pilot.course.complete or not len(pilot.course.targets_xy):
            self.get_logger().info("no target is left: the joints are held", throttle_duration_sec=10.0)
            self.hold()
        else:
            self.send(pilot.step())

    def send(self, reference: np.ndarray) -> None:
        positions = (self.signs * reference).tolist()
        if self.out.msg_type is Float64MultiArray:
            self.out.publish(Float64MultiArray(data=positions))
            return
        point = JointTrajectoryPoint(positions=positions)
        point.time_from_start.nanosec = round(self.pilot.spec.control_dt_s * 1e9) % 10**9
        point.time_from_start.sec = int(self.pilot.spec.control_dt_s)
        self.out.publish(JointTrajectory(joint_names=self.names, points=[point]))


def read_axes(urdf: Path, n_joints: int) -> dict[str, int]:
    """Return names and senses of the joints ``joint_1`` ... of a URDF that ``ros2_description.py`` wrote."""
    found = {}
    for name in (f"joint_{k + 1}" for k in range(n_joints)):
        axis = ElementTree.parse(urdf).find(f"joint[@name='{name}']/axis")
        if axis is None:
            raise ConfigError(f"{urdf} has no {name}; expected one of {n_joints} joints, joint_1 at the tail")
        found[name] = round(float(axis.attrib["xyz"].split()[2]))
    return found


def make_node(options: argparse.Namespace) -> PolicyNode:
    policy = load_policy(options.policy, options.robot)
    if policy.spec.in_space:
        raise ConfigError(f"{policy.name} is for a spatial robot; expected a planar one")
    point = policy.make_layout().point
    targets = tuple((float(x), float(y)) for x, y in (one.split(",") for one in options.targets))
    settings = CourseConfig(targets or CourseConfig.targets, options.radius, point)
    course = MeasuredCourse(settings, policy.spec, is_free=not targets)
    limits = SafetyLimits(max_speed_rad_s=options.max_speed)
    pilot = Pilot(policy, course, limits)
    return PolicyNode(pilot, read_axes(options.urdf, policy.spec.n_joints), options.output)


def parse(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A trained policy as a ROS 2 node.")
    add = parser.add_argument
    add("policy", help="policy file, its folder, or the name of a shipped policy")
    add("--urdf", type=Path, required=True, help="of ros2_description.py: names and senses of the joints")
    add("--robot", help="preset or YAML file, to be compared with that of the policy")
    add("--targets", nargs="*", default=(), metavar="X,Y", help="where to go [m], in order")
    add("--radius", type=float, default=0.1, help="of a target [m] (%(default)s)")
    add("--max-speed", type=float, default=10.0, help="of the references [rad/s] (%(default)s)")
    add("--output", choices=("trajectory", "position"), default="trajectory")
    add("--activate", action="store_true", help="configure and activate at once")
    return parser.parse_args(words)


def main() -> None:
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)  # which would end ROS before the last message
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    node = make_node(parse(remove_ros_args()[1:]))
    if "--activate" in remove_ros_args():
        node.trigger_configure()
        node.trigger_activate()
    try:
        rclpy.spin(node)
    except KeyboardInterrupt:
        pass
    finally:
        node.stop()
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == "__main__":
    main()
