"""The log of a run on the robot: one JSON object a line, written as it happens, readable after a crash.

Lines: ``start`` (robot, calibration, what the run imposes on the servos, policy, settings), then, in the order of
time, ``cycle`` (one reading of all servos at the bus's rate), ``step`` (one of the policy's), and at last ``end``.
While the run lasts the file is called ``NAME.partial``; at the end it is renamed, so ``NAME`` is always
whole. A partial file is read up to its last whole line.

Times are seconds since the start, on the machine's monotonic clock; angles are joint angles [rad], joint 1 at the tail.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, build, to_dict
from snake_gym.hardware.body import BodySample
from snake_gym.hardware.calibration import Calibration
from snake_gym.hardware.imposed import Imposed
from snake_gym.hardware.log_times import find_time_fault
from snake_gym.hardware.pose.source import PoseSample
from snake_gym.hardware.robot_loop import StepRecord
from snake_gym.robot.spec import FloatArray, RobotSpec

FORMAT = 2
"""1: without what the run imposed."""
PARTIAL = ".partial"


class RecordWriter:
    """Writes a log. Never raises once it is open: a full disk must not stop a robot that moves.

    Args:
        path: of the finished log; its folder is made.
        told: what the ``start`` line holds besides format, robot, calibration and what is imposed.
        imposed: on the servos by this run; None: nothing, they are limp.
    """

    def __init__(
        self,
        path: str | Path,
        spec: RobotSpec,
        calibration: Calibration | None,
        told: Mapping[str, Any],
        imposed: Imposed | None = None,
    ) -> None:
        self.path = Path(path)
        self.fault = ""
        """Why nothing is written any more."""
        self._begun_s: float | None = None
        self._partial = self.path.with_name(self.path.name + PARTIAL)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file: TextIO | None = self._partial.open("w", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--log {str(path)!r} cannot be written: {error.strerror or error}") from None
        robot = {"spec": to_dict(spec), "calibration": None if calibration is None else asdict(calibration)}
        limits = None if imposed is None else asdict(imposed)
        self._write({"kind": "start", "format": FORMAT, **robot, "imposed": limits, **told})
        self.flush()

    def cycle(self, sample: BodySample) -> None:
        """One reading of the servos."""
        health = sample.health
        series = {
            "angle": sample.joint_angle, "rate": sample.joint_rate, "sent": sample.reference, "load": health.load,
            "temperature": health.temperature_c, "voltage": health.voltage_v, "current": health.current_a,
        }  # fmt: skip
        row: dict[str, Any] = {"kind": "cycle", "t": self._time(sample.stamp_s)}
        row |= {name: _rounded(values) for name, values in series.items()}
        for name, flags in (("lost", sample.lost), ("clamped", sample.clamped), ("silent", ~health.answered)):
            if flags.any():
                row[name] = (np.flatnonzero(flags) + 1).tolist()
        self._write(row)

    def step(self, record: StepRecord, now_s: float, target: FloatArray, progress_m: float) -> None:
        """One step of the policy."""
        pose = record.pose
        row: dict[str, Any] = {
            "kind": "step", "t": self._time(now_s), "wanted": _rounded(record.wanted), "xy": _rounded(pose.xy_w, 6),
            "angle": _plain(pose.angle), "pose_t": self._time(pose.stamp_s), "pose_valid": bool(pose.valid),
            "target": _rounded(target), "progress": round(progress_m, 6), "late": round(record.late_s, 6),
            "age": round(record.sample_age_s, 6),
        }  # fmt: skip
        if record.held:
            row["held"] = True
        if record.news:
            row["news"] = list(record.news)
        self._write(row)
        self.flush()

    def pose(self, pose: PoseSample) -> None:
        """Where the robot is, outside of a step: before the first one, or where there are none."""
        row = {"kind": "pose", "xy": _rounded(pose.xy_w, 6), "angle": _plain(pose.angle)}
        self._write({**row, "pose_t": self._time(pose.stamp_s), "pose_valid": bool(pose.valid)})

    def note(self, line: str) -> None:
        """Something that happened outside of a step."""
        self._write({"kind": "note", "text": line})
        self.flush()

    def flush(self) -> None:
        """Hand everything to the operating system: it outlives this process then."""
        if self._file is not None:
            try:
                self._file.flush()
            except OSError as error:
                self._give_up(error)

    def close(self, reason: str, summary: Mapping[str, Any] | None = None) -> None:
        """Write the last line and give the log its name; may be called twice."""
        self._write({"kind": "end", "reason": reason, **(summary or {})})
        if self._file is not None:
            try:
                self._file.flush()
                os.fsync(self._file.fileno())
                self._file.close()
                self._partial.replace(self.path)
            except OSError as error:
                self._give_up(error)
            self._file = None

    def discard(self) -> None:
        """Leave no file: there was nothing to log."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()
                self._partial.unlink()

    def _time(self, stamp_s: float) -> float | None:
        if not math.isfinite(stamp_s):
            return None
        if self._begun_s is None:
            self._begun_s = stamp_s
        return round(stamp_s - self._begun_s, 6)

    def _write(self, row: Mapping[str, Any]) -> None:
        if self._file is not None:
            try:
                self._file.write(json.dumps(row, separators=(",", ":")) + "\n")
            except OSError as error:
                self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self.fault = f"the log is not written any more: {error.strerror or error}"
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()


@dataclass(frozen=True, eq=False)
class RunRecord:
    """A log as arrays: K cycles, S steps, P poses, J joints."""

    start: dict[str, Any]
    """The first line."""
    cycle_s: FloatArray
    """(K,) [s] increasing."""
    joint_angle: FloatArray
    """(K, J) [rad]; NaN where the servo did not answer."""
    joint_rate: FloatArray
    """(K, J) [rad/s]."""
    reference: FloatArray
    """(K, J) [rad] what the servos were last told before this cycle's reading."""
    load: FloatArray
    """(K, J) share of the stall torque."""
    step_s: FloatArray
    """(S,) [s]."""
    pose_s: FloatArray
    """(P,) [s] when the pose was true; NaN: there was none."""
    xy_w: FloatArray
    """(P, 2) [m] centre of the head link."""
    angle: FloatArray
    """(P,) [rad] of the head link."""
    pose_valid: NDArray[np.bool_]
    """(P,)."""
    progress_m: FloatArray
    """(S,)."""
    news: tuple[str, ...]
    end: dict[str, Any] | None
    """The last line; None: the run was cut off."""
    path: Path
    """Of the file."""
    time_fault: tuple[float, str] | None = None
    """From when on [s] the cycles' times are not those of one run, and a line about it."""

    @property
    def spec(self) -> RobotSpec:
        """The nominal robot of the run."""
        return build(RobotSpec, self.start["spec"], "log: spec")

    @property
    def imposed(self) -> Imposed | None:
        """What the run imposed on the servos; None: the log does not say."""
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
        """Whether the servos had no torque."""
        return bool(self.start.get("limp"))


def read_record(path: str | Path) -> RunRecord:
    """Read a log, finished or partial. Raises ConfigError for any other file."""
    path = Path(path)
    if not path.exists() and path.with_name(path.name + PARTIAL).exists():
        path = path.with_name(path.name + PARTIAL)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        raise ConfigError(f"log {path} does not exist") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no log that run or log wrote") from None
    except OSError as error:
        raise ConfigError(f"log {path} cannot be read: {error.strerror or error}") from None
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except ValueError:
            if number == 1:
                raise ConfigError(f"{path} is no log that run or log wrote") from None
            if number == len(lines):
                break  # the crash that it was written for
            raise ConfigError(f"log {path}: line {number} is damaged") from None
        if not isinstance(row, dict):
            raise ConfigError(f"{path} is no log that run or log wrote: line {number} is no record")
        rows.append(row)
    if not rows or rows[0].get("kind") != "start" or rows[0].get("format") not in (1, FORMAT):
        raise ConfigError(f"{path} is no log that run or log wrote (format {FORMAT})")
    try:
        return _arranged(rows, path)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"log {path} is damaged: {error!r}") from None


def _arranged(rows: list[dict[str, Any]], path: Path) -> RunRecord:
    steps = [row for row in rows if row["kind"] == "step"]
    poses = [row for row in rows if row["kind"] in ("step", "pose")]
    cycles: list[dict[str, Any]] = []
    for row in rows:
        if row["kind"] == "cycle" and row["t"] is not None and (not cycles or row["t"] > cycles[-1]["t"]):
            cycles.append(row)
    n_joints = int(rows[0]["spec"]["n_links"]) - 1

    def series(which: list[dict[str, Any]], name: str, width: int | None) -> FloatArray:
        shape = (len(which),) if width is None else (len(which), width)
        return np.array([row[name] for row in which], dtype=np.float64).reshape(shape)

    angle = series(cycles, "angle", n_joints)
    for k, row in enumerate(cycles):
        angle[k, np.array(row.get("silent", []), dtype=np.int64) - 1] = np.nan
    news = [line for row in rows for line in (row.get("news", []) if row["kind"] == "step" else [])]
    news += [row["text"] for row in rows if row["kind"] == "note"]
    valid = np.array([row["pose_valid"] for row in poses], dtype=bool)
    return RunRecord(
        rows[0], series(cycles, "t", None), angle, series(cycles, "rate", n_joints), series(cycles, "sent", n_joints),
        series(cycles, "load", n_joints), series(steps, "t", None), series(poses, "pose_t", None),
        series(poses, "xy", 2), series(poses, "angle", None), valid,
        series(steps, "progress", None), tuple(news), rows[-1] if rows[-1]["kind"] == "end" else None,
        path, find_time_fault(rows),
    )  # fmt: skip


def _rounded(values: FloatArray, digits: int = 5) -> list[float | None]:
    return [round(one, digits) if math.isfinite(one) else None for one in values.tolist()]


def _plain(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
