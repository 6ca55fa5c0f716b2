"""View of a run: a line on a step, and the regularity of its cycles."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from snake_gym.hardware.robot.robot_loop import MeasuredCourse, StepRecord

_MOST_CYCLES = 100_000


class Timing:
    """Regularity of the bus cycles and of the policy's steps; ``period_s`` [s]: requested period of the cycles."""

    def __init__(self, period_s: float) -> None:
        self.period_s = period_s
        self.begin()

    def begin(self) -> None:
        """Count from now on, which leaves out the time of bring-up."""
        self.n_cycles = self.n_missed = 0
        """Numbers of cycles, and of those that never came."""
        self.worst_s = self.latest_s = 0.0
        """Largest deviation of a period from the requested one, and largest delay of a step of the policy [s]."""
        self._off: deque[float] = deque(maxlen=_MOST_CYCLES)
        self._last_s: float | None = None

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
        return float(np.percentile(self._off, share)) if self._off else 0.0

    def summary(self) -> dict[str, float]:
        """Return the figures for the log's last line."""
        return {
            "cycles": self.n_cycles, "missed_cycles": self.n_missed, "jitter_p50_s": self.percentile(50.0),
            "jitter_p999_s": self.percentile(99.9), "jitter_max_s": self.worst_s, "latest_step_s": self.latest_s,
        }  # fmt: skip

    def __str__(self) -> str:
        off = [f"{1e3 * value:.2f} ms" for value in (self.percentile(50.0), self.percentile(99.9), self.worst_s)]
        return (
            f"bus: {self.n_cycles} cycles, {self.n_missed} missed, "
            f"period off by {off[0]} (median), {off[1]} (99.9 %), {off[2]} (worst)"
        )


def describe_step(time_s: float, step: StepRecord, course: MeasuredCourse, timing: Timing) -> str:
    """Return a line on a step ``time_s`` [s] into the run."""
    (x, y), degrees = step.pose.xy_w, math.remainder(math.degrees(step.pose.angle), 360.0)
    parts = [f"{time_s:7.1f} s", f"head x {x:+.2f} y {y:+.2f} m {degrees:+4.0f} deg"]
    if len(course.targets_xy):
        away = f", {course.distance_m:.2f} m away" if math.isfinite(course.distance_m) else ""
        parts.append("arrived" if course.complete else f"target {course.index + 1}/{len(course.targets_xy)}{away}")
    parts.append(f"progress {course.progress_m:.2f} m")
    load, hot = np.abs(step.body.health.load), step.body.health.temperature_c
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
    return "  ".join(parts)
