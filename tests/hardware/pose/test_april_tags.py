"""Poses from rendered pictures: lens, height, tilt, blur, noise, things in the way, and a camera that fails."""

from __future__ import annotations

import math
import time
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from snake_gym.hardware.pose.april_tags import CameraConfig, CameraPose, FloorTag, HeadTag, TagReader
from snake_gym.hardware.pose.source import PoseSample
from tests.hardware.pose.rendered_floor import Lens, render, spoil

FLOOR = tuple(
    FloorTag(k + 1, x, y, angle, 0.12)
    for k, (x, y, angle) in enumerate([(-0.2, -0.5, 0.0), (1.2, -0.5, 0.5), (1.2, 0.5, 3.0), (-0.2, 0.5, -1.0)])
)
HEAD = HeadTag(0, 0.08, height_m=0.09, forward_m=0.02, left_m=0.005, angle_rad=0.1)
ABOVE = Lens(k1=-0.15, k2=0.03)
ASLANT = replace(ABOVE, tilt_rad=math.radians(30.0), position=(0.5, -0.95, 1.7), turn_rad=0.1)
PLACES = [((0.1, -0.3), -2.0), ((0.7, 0.25), 0.6)]
MAX_M, MAX_RAD = 0.005, math.radians(1.0)


def configured(lens: Lens) -> CameraConfig:
    return CameraConfig(FLOOR, HEAD, matrix=lens.matrix, distortion=(lens.k1, lens.k2, 0.0, 0.0, 0.0))


def errors(config: CameraConfig, picture: np.ndarray, xy: tuple[float, float], angle: float) -> tuple[float, float]:
    reader = TagReader(config)
    found = reader.read(picture, 0.0)
    assert found is not None, reader.trouble
    return math.hypot(*(found.xy_w - np.array(xy))), abs(math.remainder(found.angle - angle, 2.0 * math.pi))


@pytest.mark.parametrize(
    "spoilt", [{}, {"blur": 1.2, "noise": 8.0}, {"smear": 4, "noise": 5.0}], ids=["clean", "blurred", "moving"]
)
def test_the_pose_is_right_within_5_mm_and_1_degree(spoilt: dict[str, Any]) -> None:
    config = configured(ASLANT)
    for k, (xy, angle) in enumerate(PLACES):
        away, turned = errors(config, spoil(render(config, ASLANT, xy, angle), seed=k, **spoilt), xy, angle)
        assert away < MAX_M
        assert turned < MAX_RAD


def test_half_of_the_floor_tags_may_be_covered() -> None:
    config = configured(ASLANT)
    picture = spoil(render(config, ASLANT, *PLACES[0], hidden=(1, 3)), blur=0.8, noise=5.0)
    away, turned = errors(config, picture, *PLACES[0])
    assert away < MAX_M
    assert turned < MAX_RAD


def test_without_the_head_or_the_floor_there_is_no_pose_and_a_reason() -> None:
    config = configured(ABOVE)
    reader = TagReader(config)
    blank = np.full((ABOVE.height, ABOVE.width), 180, np.uint8)
    assert reader.read(blank, 0.0) is None
    assert reader.trouble == "no floor tag in sight"
    picture = render(config, ABOVE, *PLACES[0], hidden=(0,))
    assert reader.read(picture, 0.1) is None
    assert reader.trouble == "the head's tag is not in sight"
    # The camera does not move: the floor seen a moment ago is still there when something covers its tags.
    seen = render(config, ABOVE, *PLACES[0])
    only_head = render(replace(config, floor=(FloorTag(9, 90.0, 90.0),)), ABOVE, *PLACES[0])
    assert reader.read(seen, 0.2) is not None
    assert reader.read(only_head, 0.3) is not None


class Screen:
    """A camera that shows a picture until it is told to show another, or to fail."""

    def __init__(self, shown: Any) -> None:
        self.shown = shown
        self.released = False

    def read(self) -> tuple[bool, Any]:
        time.sleep(0.01)
        if isinstance(self.shown, Exception):
            raise self.shown
        return self.shown is not None, self.shown

    def release(self) -> None:
        self.released = True


def wait_for(pose: CameraPose, valid: bool) -> PoseSample:
    give_up = time.monotonic() + 10.0
    while time.monotonic() < give_up:
        sample = pose.read(time.monotonic())
        if sample.valid == valid:
            return sample
        time.sleep(0.01)
    raise AssertionError(f"not {valid} within 10 s: {pose.trouble}")


def test_a_camera_that_loses_the_tag_and_fails_makes_the_pose_invalid_and_comes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = configured(ABOVE)
    good, blank = render(config, ABOVE, *PLACES[0]), np.full((ABOVE.height, ABOVE.width), 180, np.uint8)
    first = Screen(good)
    after = [Screen(np.zeros((0, 0), np.uint8)), Screen(None), Screen(good)]
    waiting = [first, *after]
    monkeypatch.setattr("snake_gym.hardware.pose.april_tags._REOPEN_S", 0.05)
    monkeypatch.setattr("snake_gym.hardware.pose.april_tags.open_device", lambda _: waiting.pop(0))
    with closing(CameraPose(config, stale_s=0.5)) as pose:
        seen = wait_for(pose, True)
        np.testing.assert_allclose(seen.xy_w, PLACES[0][0], atol=MAX_M)
        first.shown = blank
        lost = wait_for(pose, False)
        np.testing.assert_allclose(lost.xy_w, seen.xy_w, atol=1e-3)
        first.shown = RuntimeError("cable")
        wait_for(pose, True)
        assert pose.n_failures == 3
        assert [screen.released for screen in (first, *after)] == [True, True, True, False]
    assert after[-1].released
