"""View of a run: a line on a step, and the regularity of its cycles."""

from __future__ import annotations

import math
from array import array

import numpy as np

from snake_gym.hardware.robot.robot_loop import MeasuredCourse, StepRecord


class Timing:
    """Regularity of the bus cycles and of the policy's steps; ``period_s`` [s]: requested period of the cycles."""

    def __init__(self, period_s: float) -> None:
        self.period_s = period_s
        self.begin()

    def begin(self) -> None:
        """Count from now on, which leaves out the time of bring-up."""
        self.latest_s = 0.0
        """Largest delay of a step of the policy [s]."""
        self._begun_s = array("d")

    def cycle(self, begin_s: float) -> None:
        """Count a cycle that began at ``begin_s`` [s]."""
        self._begun_s.append(begin_s)

    def step(self, late_s: float) -> None:
        self.latest_s = max(self.latest_s, late_s)

    def off_s(self, share: float) -> float:
        """Return the deviation from the requested period [s] that ``share`` per cent of the cycles do not exceed."""
        gaps = np.diff(self._begun_s)
        return float(np.percentile(np.abs(gaps - self.period_s), share)) if gaps.size else 0.0

    def summary(self) -> dict[str, float]:
        """Return the figures for the log's last line."""
        missed = np.maximum(0.0, np.rint(np.diff(self._begun_s) / self.period_s) - 1.0)
        return {
            "cycles": len(self._begun_s), "missed_cycles": int(missed.sum()), "jitter_p50_s": self.off_s(50.0),
            "jitter_p999_s": self.off_s(99.9), "jitter_max_s": self.off_s(100.0), "latest_step_s": self.latest_s,
        }  # fmt: skip

    def __str__(self) -> str:
        cycles, missed, *off, _ = self.summary().values()
        median, most, worst = (f"{1e3 * value:.2f} ms" for value in off)
        return (
            f"bus: {cycles} cycles, {missed} missed, period off by {median} (median), {most} (99.9 %), {worst} (worst)"
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
    parts.append(f"jitter {1e3 * timing.off_s(99.9):.1f} ms")
    if step.held or not step.pose.valid:
        parts.append("holding its shape: no pose" if step.held else "no pose")
    return "  ".join(parts)
