"""Pose of an emulated robot, as a sensor sees it: late, and off by noise."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from snake_gym.emulator.bus import EmulatedBus
from snake_gym.hardware.bus.clock import VirtualClock
from snake_gym.hardware.pose.source import NO_POSE, PoseSample, PoseSource
from snake_gym.hardware.robot.connection import EmulatedConfig
from snake_gym.robot.spec import FloatArray


class EmulatedPose(PoseSource):
    """Source of the pose of the robot behind the servos of ``bus``; between two looks it moves evenly."""

    def __init__(self, bus: EmulatedBus, config: EmulatedConfig) -> None:
        self._bus, self._delay_s = bus, config.pose_delay_s
        self._spread = np.array([config.position_noise_m, config.position_noise_m, config.heading_noise_rad])
        self._rng = np.random.default_rng(config.seed)
        self.lost = False
        """True makes the source lose the robot."""
        self._last = NO_POSE._replace(stamp_s=0.0)
        self._seen: deque[tuple[float, FloatArray]] = deque()

    def read(self, now_s: float) -> PoseSample:
        if self.lost:
            self._last = self._last._replace(valid=False)
            return self._last
        self._seen.append((now_s, self._look()))
        at_s = max(now_s - self._delay_s, self._seen[0][0])
        while len(self._seen) > 1 and self._seen[1][0] <= at_s:
            self._seen.popleft()
        begin_s, pose = self._seen[0]
        if len(self._seen) > 1:
            end_s, following = self._seen[1]
            way = following - pose
            way[2] = math.remainder(way[2], 2.0 * math.pi)
            pose = pose + way * ((at_s - begin_s) / (end_s - begin_s))
        if self._spread.any():
            pose = pose.copy()
            pose[:3] += self._spread * self._rng.standard_normal(3)
        in_space = (float(pose[3]), pose[4:7] / np.linalg.norm(pose[4:7])) if pose.size > 3 else ()
        self._last = PoseSample(pose[:2].copy(), float(pose[2]), at_s, True, *in_space)
        return self._last

    def _look(self) -> FloatArray:
        with self._bus.lock:
            if isinstance(self._bus.clock, VirtualClock):  # in real time the port's thread does it
                self._bus.advance_to(self._bus.clock.now())
            return np.array(self._bus.plant.head_pose())
