"""View of a run: a line a second, and the regularity of its cycles."""

from __future__ import annotations

import math
import sys
from collections import deque
from dataclasses import dataclass, field
from typing import TextIO

import numpy as np

from snake_gym.hardware.pose.source import PoseSample
from snake_gym.hardware.robot.robot_loop import MeasuredCourse, StepRecord


@dataclass
class Timing:
    """Regularity of the bus cycles and of the policy's steps."""

    period_s: float
    """Requested period of the bus cycles [s]."""
    n_cycles: int = 0
    n_missed: int = 0
    """Number of cycles that never came."""
    worst_s: float = 0.0
    """Largest deviation of a period from the requested one [s]."""
    latest_s: float = 0.0
    """Largest delay of a step of the policy [s]."""
    _off: deque[float] = field(default_factory=lambda: deque(maxlen=100_000))
    _last_s: float | None = None

    def begin(self) -> None:
        """Count from now on, which leaves out the time of bring-up."""
        self.n_cycles = self.n_missed = 0
        self.worst_s = self.latest_s = 0.0
        self._off.clear()
        self._last_s = None

    def cycle(self, begin_s: float) -> None:
        """Count a cycle that began at ``begin_s`` [s]."""
        if self._last_s is not None:
            gap = begin_s - self._last_s
            off = abs(gap - self.period_s)
            self.n_missed += max(0, round(gap / self.period_s) - 1)
            self.worst_s = max(self.worst_s, off)
            self._off.append(off)
        self._last_s = begin_s
        self.n_cycles += 1

    def step(self, late_s: float) -> None:
        self.latest_s = max(self.latest_s, late_s)

    def percentile(self, share: float) -> float:
        """Return the deviation from the requested period [s] that ``share`` per cent of the cycles do not exceed."""
        return float(np.percentile(np.array(self._off), share)) if self._off else 0.0

    def summary(self) -> dict[str, float]:
        """Return the figures for the log's last line."""
        return {
            "cycles": self.n_cycles, "missed_cycles": self.n_missed, "jitter_p50_s": self.percentile(50.0),
            "jitter_p999_s": self.percentile(99.9), "jitter_max_s": self.worst_s, "latest_step_s": self.latest_s,
        }  # fmt: skip


class LineView:
    """View of a run by one line a second on ``stream``; None: standard output."""

    every_s = 1.0

    def __init__(self, title: str, stream: TextIO | None = None) -> None:
        self._stream, self._next_s = stream or sys.stdout, -math.inf
        self.say(title)

    def show(self, time_s: float, step: StepRecord, course: MeasuredCourse, timing: Timing) -> None:
        """Show a step ``time_s`` [s] into the run, if it is time to."""
        if time_s >= self._next_s:
            self._next_s = time_s + self.every_s
            self._draw(time_s, step, course, timing)

    def say(self, line: str) -> None:
        """Show a line that stays."""
        print(line, file=self._stream, flush=True)

    def _draw(self, time_s: float, step: StepRecord, course: MeasuredCourse, timing: Timing) -> None:
        health, n_targets = step.body.health, len(course.targets_xy)
        parts = [f"{time_s:7.1f} s", _pose_text(step.pose)]
        if n_targets:
            parts.append("arrived" if course.complete else f"target {course.index + 1}/{n_targets}{_away(course)}")
        parts.append(f"progress {course.progress_m:.2f} m")
        load, hot = np.abs(health.load), health.temperature_c
        if np.isfinite(load).any():
            worst = int(np.nanargmax(load))
            parts.append(f"load {100 * load[worst]:.0f} % (joint {worst + 1})")
        if np.isfinite(hot).any():
            parts.append(f"{np.nanmax(hot):.0f} C")
        if step.body.lost.any():
            parts.append("lost " + ", ".join(str(joint + 1) for joint in np.flatnonzero(step.body.lost)))
        parts.append(f"jitter {1e3 * timing.percentile(99.9):.1f} ms")
        if step.held or not step.pose.valid:
            parts.append("holding its shape: no pose" if step.held else "no pose")
        self.say("  ".join(parts))


def _pose_text(pose: PoseSample) -> str:
    degrees = math.remainder(math.degrees(pose.angle), 360.0)
    return f"head x {pose.xy_w[0]:+.2f} y {pose.xy_w[1]:+.2f} m {degrees:+4.0f} deg"


def _away(course: MeasuredCourse) -> str:
    return f", {course.distance_m:.2f} m away" if math.isfinite(course.distance_m) else ""
