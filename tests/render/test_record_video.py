"""Gymnasium's own recorders of videos take our envs; the files are read back by ffmpeg."""

from __future__ import annotations

import warnings
from pathlib import Path

import gymnasium as gym
import pytest
from gymnasium import wrappers
from gymnasium.wrappers import vector

import snake_gym  # noqa: F401

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # moviepy's source has escapes that Python warns of
    moviepy = pytest.importorskip("moviepy")
ENV_ID = "SnakeGym/Waypoints-v0"


def size_and_frames(folder: Path) -> tuple[int, int, int, float]:
    (file,) = folder.glob("*.mp4")
    with moviepy.VideoFileClip(str(file)) as clip:
        return (*clip.size, round(clip.duration * clip.fps), clip.fps)


def test_a_single_env_is_recorded(tmp_path: Path) -> None:
    env = wrappers.RecordVideo(gym.make(ENV_ID, render_mode="rgb_array"), str(tmp_path / "video"), video_length=6)
    env.reset(seed=1)
    for _ in range(8):
        env.step(env.action_space.sample())
    env.close()
    assert size_and_frames(tmp_path / "video") == (640, 480, 1 + 6, 5.0)  # with the first frame


def test_a_vector_env_is_recorded_side_by_side(tmp_path: Path) -> None:
    env = gym.make_vec(ENV_ID, num_envs=4, render_mode="rgb_array")
    recorder = vector.RecordVideo(env, str(tmp_path / "video"), video_aspect_ratio=(4, 3),
                                  step_trigger=lambda step: step == 0, video_length=3)  # fmt: skip
    recorder.reset(seed=1)
    for _ in range(6):
        recorder.step(recorder.action_space.sample())
    recorder.close()
    assert size_and_frames(tmp_path / "video") == (1280, 960, 1 + 3, 5.0)
