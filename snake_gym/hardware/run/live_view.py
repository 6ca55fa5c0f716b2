"""What a person sees of a run: a table that renews itself on a terminal, or a line a second anywhere else.

``rich`` is loaded when the table is shown and not before.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TextIO

import numpy as np

from snake_gym.hardware.pose.source import PoseSample
from snake_gym.hardware.safety.body import BodySample
from snake_gym.robot.spec import FloatArray

_REDRAW_S = 0.25
_LINE_S = 1.0


@dataclass
class Timing:
    """How even the bus cycles and the policy's steps are."""

    period_s: float
    """Of the bus cycles as asked for [s]."""
    n_cycles: int = 0
    n_missed: int = 0
    """Cycles that never came."""
    worst_s: float = 0.0
    """Largest distance of a period from what was asked for."""
    latest_s: float = 0.0
    """Largest delay of a step of the policy."""
    _off: deque[float] = field(default_factory=lambda: deque(maxlen=100_000))
    _last_s: float | None = None

    def begin(self) -> None:
        """Count from now on: coming up takes its time."""
        self.n_cycles = self.n_missed = 0
        self.worst_s = self.latest_s = 0.0
        self._off.clear()
        self._last_s = None

    def cycle(self, begin_s: float) -> None:
        """A cycle that began at ``begin_s``."""
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
        """Distance of a period from what was asked for [s] that ``share`` per cent of the cycles keep."""
        return float(np.percentile(np.array(self._off), share)) if self._off else 0.0

    def summary(self) -> dict[str, float]:
        """For the log's last line."""
        return {
            "cycles": self.n_cycles, "missed_cycles": self.n_missed, "jitter_p50_s": self.percentile(50.0),
            "jitter_p999_s": self.percentile(99.9), "jitter_max_s": self.worst_s, "latest_step_s": self.latest_s,
        }  # fmt: skip


class Moment(NamedTuple):
    """The state of a run, for people."""

    time_s: float
    sample: BodySample
    pose: PoseSample
    target: FloatArray
    """(2,) [m]."""
    distance_m: float
    """From the point that counts for it (of the whole robot, or the head); NaN: not known."""
    reached: int
    n_targets: int
    progress_m: float
    held: bool


def make_view(title: str, stream: TextIO | None = None, plain: bool = False) -> LineView:
    """The table on a terminal, else lines."""
    out = sys.stdout if stream is None else stream
    return TableView(title, out) if not plain and out.isatty() else LineView(title, out)


class LineView:
    """Shows a run by one line a second."""

    def __init__(self, title: str, stream: TextIO) -> None:
        self._stream, self._next_s = stream, -math.inf
        self.say(title)

    def show(self, moment: Moment, timing: Timing) -> None:
        if moment.time_s < self._next_s:
            return
        self._next_s = moment.time_s + _LINE_S
        self.say(describe(moment, timing))

    def say(self, line: str) -> None:
        """Show a line that stays."""
        print(line, file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing is held."""


def describe(moment: Moment, timing: Timing) -> str:
    """A moment in one line."""
    sample, pose = moment.sample, moment.pose
    parts = [f"{moment.time_s:7.1f} s", _pose_text(moment)]
    arrived = moment.reached >= moment.n_targets
    parts.append("arrived" if arrived else f"target {moment.reached + 1}/{moment.n_targets}{_away(moment)}")
    parts.append(f"progress {moment.progress_m:.2f} m")
    load, hot = np.abs(sample.health.load), sample.health.temperature_c
    if np.isfinite(load).any():
        worst = int(np.nanargmax(load))
        parts.append(f"load {100 * load[worst]:.0f} % (joint {worst + 1})")
    if np.isfinite(hot).any():
        parts.append(f"{np.nanmax(hot):.0f} C")
    if sample.lost.any():
        parts.append("lost " + ", ".join(str(joint + 1) for joint in np.flatnonzero(sample.lost)))
    parts.append(f"jitter {1e3 * timing.percentile(99.9):.1f} ms")
    if moment.held or not pose.valid:
        parts.append("holding its shape: no pose" if moment.held else "no pose")
    return "  ".join(parts)


def _pose_text(moment: Moment) -> str:
    xy, angle = moment.pose.xy_w, math.degrees(moment.pose.angle)
    return f"head x {xy[0]:+.2f} y {xy[1]:+.2f} m {math.remainder(angle, 360.0):+4.0f} deg"


def _away(moment: Moment) -> str:
    return f", {moment.distance_m:.2f} m away" if math.isfinite(moment.distance_m) else ""


class TableView(LineView):
    """A table of the joints and the pose, drawn in place; news scroll by above it."""

    def __init__(self, title: str, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._title, self._next_s = title, -math.inf
        self._live: Any = Live(console=Console(file=stream), auto_refresh=False, transient=False)
        self._live.start()

    def show(self, moment: Moment, timing: Timing) -> None:
        if moment.time_s < self._next_s:
            return
        self._next_s = moment.time_s + _REDRAW_S
        self._live.update(self._draw(moment, timing), refresh=True)

    def say(self, line: str) -> None:
        self._live.console.print(line, markup=False, highlight=False, style="yellow")  # above the table

    def close(self) -> None:
        self._live.stop()

    def _draw(self, moment: Moment, timing: Timing) -> Any:
        from rich.console import Group
        from rich.markup import escape
        from rich.table import Table
        from rich.text import Text

        sample, health = moment.sample, moment.sample.health
        table = Table(title=escape(self._title), caption="space or q: emergency stop", expand=False)
        for name in ("joint", "angle [deg]", "reference [deg]", "load [%]", "[C]", "[V]", "[A]", ""):
            table.add_column(escape(name), justify="right" if name else "left")
        for joint in range(sample.joint_angle.size):
            lost = bool(sample.lost[joint])
            note = "lost" if lost else ("clamped" if sample.clamped[joint] else "")
            numbers = (
                (math.degrees(sample.joint_angle[joint]), "+.1f"), (math.degrees(sample.reference[joint]), "+.1f"),
                (100.0 * health.load[joint], "+.0f"), (health.temperature_c[joint], ".0f"),
                (health.voltage_v[joint], ".1f"), (health.current_a[joint], "+.2f"),
            )  # fmt: skip
            cells = [f"{value:{form}}" if math.isfinite(value) else "-" for value, form in numbers]
            table.add_row(str(joint + 1), *cells, note, style="red" if lost else None)
        target = f"({moment.target[0]:.2f}, {moment.target[1]:.2f}) m"
        where = f"{moment.time_s:.1f} s   {_pose_text(moment)}" + ("" if moment.pose.valid else "   NO POSE")
        where += "   holding its shape" if moment.held else ""
        way = f"target {min(moment.reached + 1, moment.n_targets)} of {moment.n_targets} {target}{_away(moment)}   "
        way += f"progress {moment.progress_m:.2f} m"
        bus = f"bus: {timing.n_cycles} cycles, {timing.n_missed} missed, jitter 99.9 % "
        bus += f"{1e3 * timing.percentile(99.9):.2f} ms, worst {1e3 * timing.worst_s:.2f} ms; "
        bus += f"latest policy step began {1e3 * timing.latest_s:.0f} ms late"
        return Group(table, Text(where), Text(way), Text(bus))
