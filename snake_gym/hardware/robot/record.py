"""Log of a run on the robot: one JSON object a line, written as it happens, readable after a crash.

Lines: ``start`` (robot, calibration, policy, settings), then, in the order of time, ``cycle`` (one reading of all
servos, at the bus's rate), ``step`` (one of the policy's), and at last ``end``. While the run lasts the file is called
``NAME.partial``; at the end it is renamed, so ``NAME`` is always whole. A partial file is read up to its last whole
line.

Times are seconds since the start, on the machine's monotonic clock; angles are joint angles [rad], joint 1 at the tail.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, to_dict
from snake_gym.config.files import LARGEST_RECORD_BYTES, read_file
from snake_gym.hardware.calibration.calibration import Calibration
from snake_gym.hardware.guard.body import BodySample
from snake_gym.hardware.pose.source import PoseSample
from snake_gym.hardware.robot.robot_loop import StepRecord
from snake_gym.robot.catalogue import load_any_robot
from snake_gym.robot.spec import FloatArray

Row = dict[str, Any]
FORMAT = 2
PARTIAL = ".partial"


class RecordWriter:
    """Writer of a log. Once it is open it never raises: a full disk must not stop a robot that moves. The first error
    ends the log, and is said at once on standard error.

    Args:
        path: path of the finished log, which is to be new; its folder is made. None: nothing is written.
        start: further entries of the ``start`` line.

    Raises ConfigError: there is such a log, or it cannot be written.
    """

    def __init__(
        self, path: str | Path | None, spec: Any, calibration: Calibration | None, start: Mapping[str, Any]
    ) -> None:
        self.fault = ""
        """Reason why nothing is written any more."""
        self._begun_s: float | None = None
        self._file: TextIO | None = None
        if path is None:
            return
        self.path = Path(path)
        self._partial = self.path.with_name(self.path.name + PARTIAL)
        for taken in (self.path, self._partial):
            if taken.exists():  # a run on the robot is not repeated easily
                raise ConfigError(f"--log is {str(path)!r}: {taken} exists already; name another file, or delete it")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._partial.open("x", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--log {str(path)!r} cannot be written: {error.strerror or error}") from None
        held = None if calibration is None else asdict(calibration)
        self._write({"kind": "start", "format": FORMAT, "spec": to_dict(spec), "calibration": held, **start}, True)

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
        row: Row = {
            "kind": "step", "t": self._time(now_s), "wanted": _rounded(record.wanted), **self._pose(record.pose),
            "target": _rounded(target), "progress": round(progress_m, 6), "late": round(record.late_s, 6),
            "age": round(record.sample_age_s, 6), **({"held": True} if record.held else {}),
            **({"news": list(record.news)} if record.news else {}),
        }  # fmt: skip
        self._write(row, True)

    def pose(self, pose: PoseSample) -> None:
        """Write the robot's pose outside of a step: before the first one, or where there are none."""
        self._write({"kind": "pose", **self._pose(pose)})

    def close(self, reason: str, summary: Mapping[str, Any]) -> None:
        """Write the last line and give the log its name."""
        self._write({"kind": "end", "reason": reason, **summary}, True, last=True)

    def discard(self) -> None:
        """Delete a log that is not closed: there was nothing to log."""
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            self._file.close()
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

    def _write(self, row: Row, flush: bool = False, last: bool = False) -> None:
        """Write a line, unless an error has ended the log; ``flush``: hand all lines to the operating system, so that
        they outlive this process."""
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(row, separators=(",", ":")) + "\n")
            if flush:
                self._file.flush()
            if last:
                os.fsync(self._file.fileno())
                self._file.close()
                self._file = None
                self._partial.replace(self.path)
        except OSError as error:
            self.fault = f"the log is not written any more: {error.strerror or error}"
            print(self.fault, file=sys.stderr, flush=True)
            file, self._file = self._file, None
            with contextlib.suppress(OSError):
                if file is not None:
                    file.close()


@dataclass(frozen=True, eq=False)
class RunRecord:
    """Log as arrays: K cycles, P poses, J joints."""

    start: Row
    """First line of the log."""
    cycle_s: FloatArray
    """(K,) [s] increasing."""
    joint_angle: FloatArray
    """(K, J) [rad]; NaN where the servo did not answer."""
    reference: FloatArray
    """(K, J) [rad] references last sent to the servos before this cycle's reading."""
    pose_s: FloatArray
    """(P,) [s] times at which the poses were true; NaN: there was none."""
    xy_w: FloatArray
    """(P, 2) [m] centre of the head link."""
    angle: FloatArray
    """(P,) [rad] direction of the head link."""
    pose_valid: NDArray[np.bool_]
    """(P,) True for valid poses."""
    end: Row | None
    """Last line of the log; None: the run was cut off."""
    path: Path

    @property
    def spec(self) -> Any:
        """Nominal robot of the run, planar or spatial."""
        return load_any_robot(self.start["spec"], where="log: spec")

    @property
    def torque_share(self) -> float:
        """Share of the servos' torque that the run used."""
        return float(self.start.get("config", {}).get("safety", {}).get("torque_limit", 1.0))


def read_record(path: str | Path) -> RunRecord:
    """Read a log, finished or partial. Raises ConfigError for any other file."""
    path = Path(path)
    if not path.exists() and path.with_name(path.name + PARTIAL).exists():
        path = path.with_name(path.name + PARTIAL)
    try:
        *lines, last = read_file(path, LARGEST_RECORD_BYTES).decode().splitlines()
        rows = [json.loads(line) for line in lines]
        with contextlib.suppress(json.JSONDecodeError):  # cut off by a crash
            rows.append(json.loads(last))
        return _arranged(rows, path)
    except OSError as error:
        raise ConfigError(f"log {path}: {error.strerror or error}") from None
    except (LookupError, TypeError, ValueError) as error:
        raise ConfigError(f"{path} is no log of format {FORMAT}, or it is damaged: {error!r}") from None


def _arranged(rows: list[Row], path: Path) -> RunRecord:
    start = rows[0]
    if start["format"] != FORMAT:
        raise ValueError(f"format {start['format']}")
    poses = [row for row in rows if row["kind"] in ("step", "pose")]
    cycles: list[Row] = []
    for row in rows:
        if row["kind"] == "cycle" and row["t"] is not None and (not cycles or row["t"] > cycles[-1]["t"]):
            cycles.append(row)

    def series(which: list[Row], name: str, *width: int) -> FloatArray:
        return np.array([row[name] for row in which], dtype=np.float64).reshape(len(which), *width)

    n_joints = len(cycles[0]["angle"]) if cycles else 0
    angle = series(cycles, "angle", n_joints)
    for k, row in enumerate(cycles):
        angle[k, np.array(row.get("silent", []), dtype=np.int64) - 1] = np.nan
    return RunRecord(
        start, series(cycles, "t"), angle, series(cycles, "sent", n_joints), series(poses, "pose_t"),
        series(poses, "xy", 2), series(poses, "angle"), np.array([row["pose_valid"] for row in poses], dtype=bool),
        rows[-1] if rows[-1]["kind"] == "end" else None, path,
    )  # fmt: skip


def _rounded(values: FloatArray, digits: int = 5) -> list[float | None]:
    return [round(one, digits) if math.isfinite(one) else None for one in values.tolist()]
