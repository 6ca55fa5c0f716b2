"""The log of a run on the robot: one JSON object a line, written as it happens, readable after a crash.

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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from snake_gym.config import ConfigError, build, to_dict
from snake_gym.hardware.calibration.calibration import Calibration, straight_chain
from snake_gym.hardware.pose.source import PoseSample
from snake_gym.hardware.run.robot_loop import StepRecord
from snake_gym.hardware.safety.body import PORT_AWAY, BodySample
from snake_gym.hardware.safety.checks import SafetyLimits
from snake_gym.robot.spec import FloatArray, RobotSpec


@dataclass(frozen=True)
class Imposed:
    """What a run imposes on its robot with J joints besides the references.

    A model that is to move as the robot did needs it: a joint with a third of its torque follows as one with a softer
    servo and less friction would.
    """

    torque_limit: float = 1.0
    """Share of the servos' stall torque."""
    servo_speed_rad_s: tuple[float | None, ...] | None = None
    """(J,) greatest speeds that the servos were given with their goals; None, for one or for all: their own."""
    max_speed_rad_s: float | None = None
    """Clamp of the references' speed; those logged as sent have passed it."""
    max_acceleration_rad_s2: float | None = None
    """Clamp of the references' acceleration, likewise."""


def imposed_by(safety: SafetyLimits, spec: RobotSpec, calibration: Calibration | None) -> Imposed:
    """What a run with these settings imposes."""
    chain = calibration or straight_chain(range(spec.n_joints), spec.joint_limit_rad)
    counts = chain.goal_speeds(spec.joints("actuator.speed_limit_rad_s"))
    speeds = tuple(count * chain.family.scale("goal_speed") if count else None for count in counts)
    return Imposed(safety.torque_limit, speeds, safety.max_speed_rad_s, safety.max_acceleration_rad_s2)


def speed_limits(imposed: Imposed, n_joints: int) -> tuple[float, ...]:
    """(J,) [rad/s] greatest speeds of the servos; inf: their own."""
    told = imposed.servo_speed_rad_s or (None,) * n_joints
    return tuple(math.inf if one is None else one for one in told)


_GAP_PERIODS = 6.0
"""Longest gap that needs no explanation, in periods."""
_TOLD_SHARE = 0.5
"""Share of a gap: a step that was so late, or saw something so old, explains it."""
_TOLD_STEPS = 3
"""Steps after the last reading by which a run has told that the port went away."""


class _Fault(NamedTuple):
    line: int
    begin_s: float
    told: str


def find_time_fault(rows: Sequence[dict[str, Any]]) -> tuple[float, str] | None:
    """When the first fault in the times of a log's cycles and steps begins [s], and a line about it; None: no fault.

    A run misses single cycles, and a stalled host or port costs it many; its steps then tell that they were late, or
    that what they saw was old. Where nobody answers or the port is away, the last reading is written again. A gap or a
    repeated reading that no step tells of, a repeated step, or a time that runs backwards: the log was changed.
    """
    faults = [fault for fault in (_cycle_fault(rows), _step_fault(rows)) if fault is not None]
    return None if not faults else min(faults)[1:]


def _step_fault(rows: Sequence[dict[str, Any]]) -> _Fault | None:
    for (line, last), (number, row) in itertools.pairwise(_timed(rows, "step")):
        before, now = float(last["t"]), float(row["t"])
        if now <= before:
            how = f"repeats line {line}" if row == last else f"is a step at {now:.3f} s after one at {before:.3f} s"
            return _Fault(number, min(now, before), f"line {number} {how}; expected times that increase")
    return None


def _cycle_fault(rows: Sequence[dict[str, Any]]) -> _Fault | None:
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
                continue  # the last reading again
            told = f"line {number} repeats the reading of line {line}, at {now:.3f} s, and no step says that the port"
            return _Fault(number, now, f"{told} was away; expected a new one")
        first = number
        told = f"line {number}: the cycle at {now:.3f} s follows the one at {before:.3f} s"
        if now <= before:
            return _Fault(number, min(now, before), f"{told}; expected times that increase")
        gap = now - before
        if gap > _GAP_PERIODS * period:
            near = [one for one in steps if before <= one["t"] <= now + patience]
            if not any(max(one.get("late", 0.0), one.get("age", 0.0)) > _TOLD_SHARE * gap for one in near):
                told += f", and no step says that it was late; expected one every {1e3 * period:g} ms"
                return _Fault(number, before, told)
    return None


def _port_was_away(rows: Sequence[dict[str, Any]], number: int) -> bool:
    """Whether the steps that follow line ``number``, or what was noted at the end, say so; a log that was cut off
    before them could not."""
    later = rows[number:]
    steps = [row for row in later if row["kind"] == "step"][:_TOLD_STEPS]
    said = [line for row in steps for line in row.get("news", [])]
    said += [row["text"] for row in later if row["kind"] == "note"]
    is_cut = len(steps) < _TOLD_STEPS and rows[-1]["kind"] != "end"
    return PORT_AWAY in said or is_cut


def _timed(rows: Sequence[dict[str, Any]], kind: str) -> list[tuple[int, dict[str, Any]]]:
    """The lines of a kind that have a time, with their numbers."""
    return [(number, row) for number, row in enumerate(rows, 1) if row["kind"] == kind and row["t"] is not None]


FORMAT = 2
"""Version of the format; 1 was without what the run imposed."""
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


_START_POSE_S = 0.3
"""Latest time of a first pose that counts for the start [s]: the robot lay still."""


class ResampledLog(NamedTuple):
    """T periods of a run with J joints on an even grid; the fields of ``simulation.identification.RunLog``."""

    period_s: float
    reference_rad: FloatArray
    """(T, J) held from sample k to sample k + 1."""
    joint_angle_rad: FloatArray
    """(T + 1, J); NaN where an encoder said nothing."""
    head_xy_m: FloatArray
    """(T + 1, 2); NaN without a pose."""
    head_angle_rad: FloatArray
    """(T + 1,)."""
    free_joints: tuple[int, ...]
    """Joints that were lost most of the time, from 1 at the tail."""
    torque_share: float
    """Share of the servos' stall torque that the run used; 1 where the log does not say."""
    speed_limit_rad_s: tuple[float, ...]
    """(J,) greatest speeds that the servos were given; inf: their own."""


def resample(record: RunRecord, from_s: float = 0.0, to_s: float = math.inf) -> ResampledLog:
    """The log on an even grid of the bus's period. Raises ConfigError: limp, too short, or no pose at its start.

    References are those that were sent to the servos, after all safety clamps, in whole steps of their encoders.
    """
    if record.is_limp:
        raise ConfigError(f"{record.path} is of a limp robot, without references; expected a run under a policy")
    inside = (record.cycle_s >= from_s) & (record.cycle_s <= to_s)
    cycle_s = record.cycle_s[inside]
    if cycle_s.size < 10:
        raise ConfigError(f"{record.path} has {cycle_s.size} bus cycles; expected at least 10")
    joint, sent = record.joint_angle[inside], record.reference[inside]
    period = float(np.median(np.diff(cycle_s)))
    period = float(record.start.get("config", {}).get("connection", {}).get("period_s", period))
    n = round((cycle_s[-1] - cycle_s[0]) / period)
    grid: FloatArray = cycle_s[0] + period * np.arange(n + 1, dtype=np.float64)
    angle = np.stack([_resampled(grid, cycle_s, column, period) for column in joint.T], axis=1)
    # Held until the next sample: what that sample says was sent last.
    following = np.minimum(np.searchsorted(cycle_s, grid[1:] - 0.5 * period), cycle_s.size - 1)
    xy, heading = np.full((n + 1, 2), np.nan), np.full(n + 1, np.nan)
    known = record.pose_valid & np.isfinite(record.pose_s)
    for at, place, direction in zip(record.pose_s[known], record.xy_w[known], record.angle[known], strict=True):
        k = round((at - grid[0]) / period)
        k = 0 if 0 <= k * period <= _START_POSE_S and np.isnan(heading[0]) and from_s <= 0.0 else k
        if 0 <= k <= n:
            xy[k], heading[k] = place, direction
    if np.isnan(heading[0]):
        first = np.flatnonzero(np.isfinite(heading))
        if not first.size:
            raise ConfigError(f"{record.path} has no pose of the head; expected one to start from")
        return resample(record, float(grid[first[0]]) - 1e-6, to_s)
    free = tuple((np.flatnonzero(np.isnan(joint).mean(axis=0) > 0.5) + 1).tolist())
    step_rad = 2.0 * math.pi / (record.start["calibration"] or {}).get("steps_per_turn", 4096)
    sent = step_rad * np.rint(sent / step_rad)
    imposed = record.imposed or Imposed()
    speed = speed_limits(imposed, joint.shape[1])
    return ResampledLog(period, sent[following], angle, xy, heading, free, imposed.torque_limit, speed)


def _resampled(grid: FloatArray, stamps: FloatArray, values: FloatArray, period: float) -> FloatArray:
    """``values`` at the grid's times, NaN in gaps of more than two periods."""
    known = np.isfinite(values)
    if known.sum() < 2:
        return np.full(grid.size, np.nan)
    at, here = stamps[known], values[known]
    found = np.interp(grid, at, here)
    after = np.clip(np.searchsorted(at, grid), 1, at.size - 1)
    found[at[after] - at[after - 1] > 2.5 * period] = np.nan
    return np.asarray(found)
