"""Log of a run on the robot: one JSON object a line, written as it happens, readable after a crash.

Lines: ``start`` (robot, calibration, what the run imposes on the servos, policy, settings), then, in the order of
time, ``cycle`` (one reading of all servos at the bus's rate), ``step`` (one of the policy's), and at last ``end``.
While the run lasts the file is called ``NAME.partial``; at the end it is renamed, so ``NAME`` is always
whole. A partial file is read up to its last whole line.

Times are seconds since the start, on the machine's monotonic clock; angles are joint angles [rad], joint 1 at the tail.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, build, to_dict
from snake_gym.config.files import LARGEST_RECORD_BYTES, read_file
from snake_gym.hardware.calibration.calibration import Calibration, straight_chain
from snake_gym.hardware.pose.source import PoseSample
from snake_gym.hardware.run.robot_loop import StepRecord
from snake_gym.hardware.safety.body import PORT_AWAY, BodySample
from snake_gym.hardware.safety.checks import SafetyLimits
from snake_gym.robot.spatial_spec import load_any_robot
from snake_gym.robot.spec import FloatArray


@dataclass(frozen=True)
class Imposed:
    """Limits that a run imposes on its robot (J joints) besides the references; a replay in simulation needs them."""

    torque_limit: float = 1.0
    """Share of the servos' stall torque."""
    servo_speed_rad_s: tuple[float | None, ...] | None = None
    """(J,) greatest speeds that the servos were given with their goals; None, for one or for all: their own."""
    max_speed_rad_s: float | None = None
    """Clamp on the references' speed; those logged as sent have passed it."""
    max_acceleration_rad_s2: float | None = None
    """Clamp on the references' acceleration, likewise."""


def imposed_by(safety: SafetyLimits, spec: Any, calibration: Calibration | None) -> Imposed:
    """Return the limits that a run with these settings imposes."""
    chain = calibration or straight_chain(range(spec.n_joints), spec.joint_limit_rad)
    counts = chain.goal_speeds(spec.joints("actuator.speed_limit_rad_s"))
    speeds = tuple(count * chain.family.scale("goal_speed") if count else None for count in counts)
    return Imposed(safety.torque_limit, speeds, safety.max_speed_rad_s, safety.max_acceleration_rad_s2)


_GAP_PERIODS = 6.0
"""Longest gap that needs no explanation, in periods."""
_TOLD_SHARE = 0.5
"""Share of a gap beyond which a step's lateness, or the age of its data, explains the gap."""
_TOLD_STEPS = 3
"""Number of steps after the last reading within which a run reports that the port went away."""


Row = dict[str, Any]


def find_time_fault(rows: Sequence[Row]) -> tuple[float, str] | None:
    """Return the start [s] of the first fault in the times of a log's cycles and steps, and a line about it, or None.

    A run misses single cycles, and a stalled host or port costs it many; its steps then report that they or their data
    were late. If no servo answers or the port is away, the last reading is written again. A gap or a repeated reading
    that no step reports, a repeated step, or a time that runs backwards: the log was changed.
    """
    faults = [fault for fault in (_cycle_fault(rows), _step_fault(rows)) if fault is not None]
    return None if not faults else min(faults)[1:]


def _step_fault(rows: Sequence[Row]) -> tuple[int, float, str] | None:
    """Return line, time and description of the first step that comes twice or too early."""
    for (line, last), (number, row) in itertools.pairwise(_timed(rows, "step")):
        before, now = float(last["t"]), float(row["t"])
        if now <= before:
            how = f"repeats line {line}" if row == last else f"is a step at {now:.3f} s after one at {before:.3f} s"
            return number, min(now, before), f"line {number} {how}; expected times that increase"
    return None


def _cycle_fault(rows: Sequence[Row]) -> tuple[int, float, str] | None:
    cycles, steps = _timed(rows, "cycle"), [row for _, row in _timed(rows, "step")]
    if len(cycles) < 2:
        return None
    differences = np.diff([row["t"] for _, row in cycles])
    period = rows[0].get("config", {}).get("connection", {}).get("period_s") or float(np.median(differences))
    patience = 2.0 * float(rows[0]["spec"].get("control_dt_s", 0.0)) + 2.0 * period
    first = cycles[0][0]
    for (line, last), (number, row) in itertools.pairwise(cycles):
        before, now = float(last["t"]), float(row["t"])
        if now == before and row["angle"] == last["angle"]:
            if len(row.get("silent", [])) == len(row["angle"]) or _port_was_away(rows, first):
                continue  # the last reading, written again
            told = f"line {number} repeats the reading of line {line}, at {now:.3f} s, and no step says that the port"
            return number, now, f"{told} was away; expected a new one"
        first = number
        told = f"line {number}: the cycle at {now:.3f} s follows the one at {before:.3f} s"
        if now <= before:
            return number, min(now, before), f"{told}; expected times that increase"
        gap = now - before
        if gap > _GAP_PERIODS * period:
            near = [one for one in steps if before <= one["t"] <= now + patience]
            if not any(max(one.get("late", 0.0), one.get("age", 0.0)) > _TOLD_SHARE * gap for one in near):
                told += f", and no step says that it was late; expected one every {1e3 * period:g} ms"
                return number, before, told
    return None


def _port_was_away(rows: Sequence[Row], number: int) -> bool:
    """Return True if the steps after line ``number``, or notes at the end, report a lost port, or if the log was cut
    off before they could."""
    later = rows[number:]
    steps = [row for row in later if row["kind"] == "step"][:_TOLD_STEPS]
    said = [line for row in steps for line in row.get("news", [])]
    said += [row["text"] for row in later if row["kind"] == "note"]
    is_cut = len(steps) < _TOLD_STEPS and rows[-1]["kind"] != "end"
    return PORT_AWAY in said or is_cut


def _timed(rows: Sequence[Row], kind: str) -> list[tuple[int, Row]]:
    """Return the lines of a kind that have a time, with their numbers."""
    return [(number, row) for number, row in enumerate(rows, 1) if row["kind"] == kind and row["t"] is not None]


FORMAT = 2
"""Version of the format; version 1 was without what the run imposed."""
PARTIAL = ".partial"


class RecordWriter:
    """Writer of a log, which never raises once it is open: a full disk must not stop a robot that moves.

    Args:
        path: path of the finished log; its folder is made.
        told: entries of the ``start`` line besides format, robot, calibration and what is imposed.
        imposed: limits imposed on the servos by this run; None: none, they are limp.
    """

    def __init__(
        self, path: str | Path, spec: Any, calibration: Calibration | None, told: Mapping[str, Any],
        imposed: Imposed | None = None,
    ) -> None:  # fmt: skip
        self.path = Path(path)
        self.fault = ""
        """Reason why nothing is written any more."""
        self._begun_s: float | None = None
        self._partial = self.path.with_name(self.path.name + PARTIAL)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file: TextIO | None = self._partial.open("x", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--log {str(path)!r} cannot be written: {error.strerror or error}") from None
        parts = {"calibration": calibration, "imposed": imposed}
        robot = {name: None if one is None else asdict(one) for name, one in parts.items()}
        self._write({"kind": "start", "format": FORMAT, "spec": to_dict(spec), **robot, **told})
        self.flush()

    def cycle(self, sample: BodySample) -> None:
        """Write one reading of the servos."""
        health = sample.health
        series = {
            "angle": sample.joint_angle, "rate": sample.joint_rate, "sent": sample.reference, "load": health.load,
            "temperature": health.temperature_c, "voltage": health.voltage_v, "current": health.current_a,
        }  # fmt: skip
        row: Row = {"kind": "cycle", "t": self._time(sample.stamp_s)}
        row |= {name: _rounded(values) for name, values in series.items()}
        for name, flags in (("lost", sample.lost), ("clamped", sample.clamped), ("silent", ~health.answered)):
            if flags.any():
                row[name] = (np.flatnonzero(flags) + 1).tolist()
        self._write(row)

    def step(self, record: StepRecord, now_s: float, target: FloatArray, progress_m: float) -> None:
        """Write one step of the policy."""
        self._write({
            "kind": "step", "t": self._time(now_s), "wanted": _rounded(record.wanted), **self._pose(record.pose),
            "target": _rounded(target), "progress": round(progress_m, 6), "late": round(record.late_s, 6),
            "age": round(record.sample_age_s, 6), **({"held": True} if record.held else {}),
            **({"news": list(record.news)} if record.news else {}),
        })  # fmt: skip
        self.flush()

    def pose(self, pose: PoseSample) -> None:
        """Write the robot's pose outside of a step: before the first one, or where there are none."""
        self._write({"kind": "pose", **self._pose(pose)})

    def note(self, line: str) -> None:
        """Write an event that happened outside of a step."""
        self._write({"kind": "note", "text": line})
        self.flush()

    def flush(self) -> None:
        """Hand everything to the operating system, so that it outlives this process."""
        self._attempt(lambda file: file.flush())

    def close(self, reason: str, summary: Mapping[str, Any] | None = None) -> None:
        """Write the last line and give the log its name; may be called twice."""
        self._write({"kind": "end", "reason": reason, **(summary or {})})

        def finish(file: TextIO) -> None:
            file.flush()
            os.fsync(file.fileno())
            file.close()
            self._partial.replace(self.path)

        self._attempt(finish)
        self._file = None

    def discard(self) -> None:
        """Delete the file: there was nothing to log."""
        file, self._file = self._file, None
        with contextlib.suppress(OSError):
            if file is not None:
                file.close()
                self._partial.unlink()

    def _pose(self, pose: PoseSample) -> Row:
        (angle,) = _rounded(np.array([pose.angle]), 6)
        stamp = self._time(pose.stamp_s)
        return {"xy": _rounded(pose.xy_w, 6), "angle": angle, "pose_t": stamp, "pose_valid": bool(pose.valid)}

    def _time(self, stamp_s: float) -> float | None:
        if not math.isfinite(stamp_s):
            return None
        if self._begun_s is None:
            self._begun_s = stamp_s
        return round(stamp_s - self._begun_s, 6)

    def _write(self, row: Mapping[str, Any]) -> None:
        self._attempt(lambda file: file.write(json.dumps(row, separators=(",", ":")) + "\n"))

    def _attempt(self, act: Callable[[TextIO], object]) -> None:
        """Call ``act`` on the file, if there is one still; the first error ends the log."""
        try:
            if self._file is not None:
                act(self._file)
        except OSError as error:
            self.fault = f"the log is not written any more: {error.strerror or error}"
            file, self._file = self._file, None
            with contextlib.suppress(OSError):
                file.close()  # type: ignore[union-attr]


@dataclass(frozen=True, eq=False)
class RunRecord:
    """Log as arrays: K cycles, S steps, P poses, J joints."""

    start: dict[str, Any]
    """First line of the log."""
    cycle_s: FloatArray
    """(K,) [s] increasing."""
    joint_angle: FloatArray
    """(K, J) [rad]; NaN where the servo did not answer."""
    reference: FloatArray
    """(K, J) [rad] references last sent to the servos before this cycle's reading."""
    step_s: FloatArray
    """(S,) [s] times of the steps."""
    pose_s: FloatArray
    """(P,) [s] times at which the poses were true; NaN: there was none."""
    xy_w: FloatArray
    """(P, 2) [m] centre of the head link."""
    angle: FloatArray
    """(P,) [rad] direction of the head link."""
    pose_valid: NDArray[np.bool_]
    """(P,) True for valid poses."""
    progress_m: FloatArray
    """(S,) [m] progress at each step."""
    news: tuple[str, ...]
    end: dict[str, Any] | None
    """Last line of the log; None: the run was cut off."""
    path: Path
    time_fault: tuple[float, str] | None = None
    """Time from which on the log's times are not those of one run [s], and a line about it; None: no fault."""

    @property
    def spec(self) -> Any:
        """Nominal robot of the run, planar or spatial."""
        return load_any_robot(self.start["spec"], where="log: spec")

    @property
    def imposed(self) -> Imposed | None:
        """Limits that the run imposed on the servos; None: the log does not say."""
        if self.start["format"] == FORMAT:
            told = self.start["imposed"]
            return None if told is None else build(Imposed, told, "log: imposed")
        share = self.start.get("config", {}).get("safety", {}).get("torque_limit")
        if share is None:
            return None
        speeds = self.spec.joints("actuator.speed_limit_rad_s").tolist()
        return Imposed(share, tuple(one if math.isfinite(one) else None for one in speeds))

    @property
    def is_limp(self) -> bool:
        """True if the servos had no torque."""
        return bool(self.start.get("limp"))


def read_record(path: str | Path) -> RunRecord:
    """Read a log, finished or partial. Raises ConfigError for any other file."""
    path = Path(path)
    if not path.exists() and path.with_name(path.name + PARTIAL).exists():
        path = path.with_name(path.name + PARTIAL)
    no_log = f"{path} is no log that run or log wrote"
    try:
        lines = read_file(path, LARGEST_RECORD_BYTES).decode().splitlines()
    except FileNotFoundError:
        raise ConfigError(f"log {path} does not exist") from None
    except UnicodeDecodeError:
        raise ConfigError(no_log) from None
    except OSError as error:
        raise ConfigError(f"log {path} cannot be read: {error.strerror or error}") from None
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError:
            if number == 1:
                raise ConfigError(no_log) from None
            if number == len(lines):
                break  # cut off by a crash
            raise ConfigError(f"log {path}: line {number} is damaged") from None
        if not isinstance(row, dict):
            raise ConfigError(f"{no_log}: line {number} is no record")
        rows.append(row)
    if not rows or rows[0].get("kind") != "start" or rows[0].get("format") not in (1, FORMAT):
        raise ConfigError(f"{no_log} (format {FORMAT})")
    try:
        return _arranged(rows, path)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"log {path} is damaged: {error!r}") from None


def _arranged(rows: list[Row], path: Path) -> RunRecord:
    steps = [row for row in rows if row["kind"] == "step"]
    poses = [row for row in rows if row["kind"] in ("step", "pose")]
    cycles: list[Row] = []
    for _, row in _timed(rows, "cycle"):
        if not cycles or row["t"] > cycles[-1]["t"]:
            cycles.append(row)
    spec = rows[0]["spec"]
    n_joints = int(spec["n_joints"]) if spec.get("chain") == "spatial" else int(spec["n_links"]) - 1

    def series(which: list[Row], name: str, *width: int) -> FloatArray:
        return np.array([row[name] for row in which], dtype=np.float64).reshape(len(which), *width)

    angle = series(cycles, "angle", n_joints)
    for k, row in enumerate(cycles):
        angle[k, np.array(row.get("silent", []), dtype=np.int64) - 1] = np.nan
    news = [line for row in steps for line in row.get("news", [])]
    news += [row["text"] for row in rows if row["kind"] == "note"]
    return RunRecord(
        rows[0], series(cycles, "t"), angle, series(cycles, "sent", n_joints), series(steps, "t"),
        series(poses, "pose_t"), series(poses, "xy", 2), series(poses, "angle"),
        np.array([row["pose_valid"] for row in poses], dtype=bool), series(steps, "progress"), tuple(news),
        rows[-1] if rows[-1]["kind"] == "end" else None, path, find_time_fault(rows),
    )  # fmt: skip


def _rounded(values: FloatArray, digits: int = 5) -> list[float | None]:
    return [round(one, digits) if math.isfinite(one) else None for one in values.tolist()]
