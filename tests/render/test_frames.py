"""Frames: right size and type, the robot where it is, nothing needed that a server lacks."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from snake_gym.render.frames import NOWHERE, FrameRenderer, Picture, ends_of
from snake_gym.render.palette import BLUE, ORANGE, fault_colours, rgb
from snake_gym.robot.presets import RESILIENT_SERVO as SPEC

STRAIGHT = np.zeros(10)
TARGETS = np.array([[1.0, 0.5], [2.0, 0.0]])


def draw(
    renderer: FrameRenderer | None = None, link_angle: Any = STRAIGHT, head_xy: Any = (0.0, 0.0), **more: Any
) -> np.ndarray:
    given = {"targets_xy": TARGETS, **more}
    return (renderer or FrameRenderer(SPEC)).draw(Picture(ends_of(SPEC, link_angle, head_xy), **given))


def near(frame: np.ndarray, colour: str, tolerance: int = 12) -> np.ndarray:
    """(H, W) where a pixel has this colour."""
    return (np.abs(frame.astype(int) - rgb(colour)) <= tolerance).all(axis=-1)


def centre_of(mask: np.ndarray) -> np.ndarray:
    """Mean (column, row) of a mask."""
    return np.argwhere(mask).mean(axis=0)[::-1]


def test_a_frame_is_an_rgb_image_of_the_size_asked_for() -> None:
    frame = draw(FrameRenderer(SPEC, size=(100, 300)))
    assert frame.shape == (300, 100, 3)
    assert frame.dtype == np.uint8
    assert frame.flags.c_contiguous
    assert draw(targets_xy=NOWHERE, trail_xy=np.zeros((1, 2)), text=["one", ""], current=99).any()


def test_y_points_up_and_x_to_the_right() -> None:
    head, goal = near(draw(), BLUE), near(draw(), ORANGE)
    assert head.any()
    assert centre_of(goal)[0] > centre_of(head)[0]
    assert centre_of(goal)[1] < centre_of(head)[1]
    turned = near(draw(link_angle=np.full(10, np.pi / 2)), BLUE)
    below = near(draw(link_angle=np.full(10, np.pi / 2)), "#5F7486")
    assert centre_of(turned)[1] < centre_of(below)[1]


def test_lengths_agree_with_the_scale_of_the_targets() -> None:
    """The stretched robot is 1.4 m long: 0.7 times as long as the way between two targets 2 m apart."""
    frame = draw(head_xy=(0.63, -0.3), targets_xy=np.array([[-1.0, 0.0], [1.0, 0.0]]), current=2, radius_m=0.05)
    robot = (near(frame, "#5F7486") | near(frame, BLUE))[:400]  # letters of the scale's label have such edges, too
    columns = np.flatnonzero(robot.any(axis=0))
    green = near(frame, "#009E73", 4)
    left, right = (np.flatnonzero(green[:, part].any(axis=0)) for part in (slice(0, 320), slice(320, None)))
    apart = 320 + (right[0] + right[-1]) / 2 - (left[0] + left[-1]) / 2
    assert np.ptp(columns) / apart == pytest.approx(0.7 + 0.03, abs=0.04)  # and the round ends


@pytest.mark.parametrize("kind", sorted(fault_colours())[:2])
def test_a_failed_joint_shows_its_kind(kind: int) -> None:
    failed = np.zeros(9, int)
    healthy = near(draw(failed=failed), fault_colours()[kind], 4).sum()
    failed[4] = kind
    frame = draw(failed=failed)
    assert near(frame, fault_colours()[kind], 4).sum() > healthy + 60
    marked = near(frame[100:-100], fault_colours()[kind], 4)  # on the robot, not in the legend
    body = near(frame[100:-100], "#5F7486") | near(frame[100:-100], BLUE)
    assert np.abs(centre_of(marked) - centre_of(body)).max() < 12  # joint 5 of 9 is the middle


def test_the_camera_keeps_a_fast_robot_and_a_far_target_in_view() -> None:
    renderer = FrameRenderer(SPEC)
    for step in range(15):
        head = np.array([0.4 * step, 0.1 * step])
        frame = draw(renderer, head_xy=head, targets_xy=np.array([[300.0, 80.0]]), trail_xy=np.array([[0, 0], head]))
        blue = np.argwhere(near(frame, BLUE))
        assert len(blue) > 25
        assert blue[:, 0].min() > 3
        assert blue[:, 1].max() < 636
        assert near(frame, ORANGE)[:, 320:].sum() > 30  # the arrow


def test_a_window_shows_the_frame_and_may_be_closed_by_the_user() -> None:
    import pygame

    renderer = FrameRenderer(SPEC, "human")
    frame = draw(renderer)
    shown = np.swapaxes(pygame.surfarray.array3d(pygame.display.get_surface()), 0, 1)
    np.testing.assert_array_equal(shown, frame)
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    draw(renderer)
    assert not pygame.display.get_init()
    assert draw(renderer).any()
    renderer.close()
    renderer.close()


PROGRAM = """
import os, sys
from snake_gym.render.frames import FrameRenderer, Picture, ends_of
from snake_gym.robot.presets import RESILIENT_SERVO as spec
frame = FrameRenderer(spec).draw(Picture(ends_of(spec, [0.0] * 10, (0, 0))))
import pygame
assert frame.shape == (480, 640, 3) and not pygame.display.get_init() and "SDL_VIDEODRIVER" not in os.environ
print("drawn", file=sys.stderr)
os.environ.update(SDL_VIDEODRIVER="x11", DISPLAY=":987")
FrameRenderer(spec, "human")
"""


def test_arrays_need_no_display_and_a_window_without_one_is_one_clear_error() -> None:
    clean = {k: v for k, v in os.environ.items() if k not in ("SDL_VIDEODRIVER", "DISPLAY", "WAYLAND_DISPLAY")}
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean)
    assert done.stdout == ""
    first, *_, last = done.stderr.splitlines()
    assert first == "drawn"
    assert "ConfigError: no window can be opened" in last and "rgb_array" in last, done.stderr
