"""Drawing of a robot's joints, their numbers and their signs, as SVG, from the geometry that the code computes with.

``python -m snake_gym.render.joint_drawing > docs/images/joints.svg`` writes it; a test compares the file.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from snake_gym.render.palette import BLUE, BODY, INK, JOINT, PAPER
from snake_gym.robot.measurement import chain_angles
from snake_gym.robot.presets import RESILIENT_SERVO
from snake_gym.robot.spec import FloatArray

LINK_PX = 62.0
BEND_RAD = math.radians(40.0)


def joint_points(joint_angle: FloatArray, tail_xy: tuple[float, float]) -> FloatArray:
    """Return tail, joints and head (J + 2, 2) [link lengths] of a chain whose tail link lies along x."""
    theta = chain_angles(joint_angle[None], np.array([-joint_angle.sum()]))[0]  # theta_1 is 0 then
    steps = np.stack([np.cos(theta), np.sin(theta)], axis=1)
    return np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)]) + np.array(tail_xy) / LINK_PX


def draw_chain(joint_angle: FloatArray, tail_px: tuple[float, float], numbers: list[str]) -> list[str]:
    """Return the strokes of a chain with numbered joints; the picture's y points down, the world's up."""
    points = joint_points(joint_angle, (tail_px[0], -tail_px[1])) * LINK_PX * np.array([1.0, -1.0])
    lines = []
    for i, (a, b) in enumerate(pairwise(points)):
        colour = BLUE if i == len(points) - 2 else BODY
        ends = f'x1="{a[0]:.1f}" y1="{a[1]:.1f}" x2="{b[0]:.1f}" y2="{b[1]:.1f}"'
        lines.append(f'<line {ends} stroke="{colour}" stroke-width="18" stroke-linecap="round"/>')
    for (x, y), number in zip(points[1:-1], numbers, strict=True):
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="11" fill="{JOINT}" stroke="{INK}"/>')
        lines.append(text(x, y + 4.5, number, "middle"))
    return lines


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Return words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{INK}">{words}</text>'


def draw() -> str:
    """Return the whole picture."""
    n = RESILIENT_SERVO.n_joints
    straight = draw_chain(np.zeros(n), (40.0, 50.0), [str(i + 1) for i in range(n)])
    head_px = 40.0 + (n + 1) * LINK_PX
    lines = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 290" font-family="sans-serif" font-size="13">',
        f'<rect width="720" height="290" fill="{PAPER}"/>', *straight,
        text(40.0, 26.0, "tail (link 1)", "middle"), text(head_px - 30.0, 26.0, f"head (link {n + 1})", "middle"),
        text(40.0, 92.0, "entry 0 of an action is joint 1, at the tail; the robot crawls to the right"),
    ]  # fmt: skip
    for x, y, sign, symbol, side in ((40.0, 150.0, 1.0, "&gt;", "right"), (400.0, 230.0, -1.0, "&lt;", "left")):
        lines += draw_chain(np.array([0.0, sign * BEND_RAD, 0.0]), (x, y), ["i-1", "i", "i+1"])
        lines.append(text(x, 276.0, f"angle of joint i {symbol} 0: ahead of it, bent to the {side}"))
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    print(draw(), end="")
