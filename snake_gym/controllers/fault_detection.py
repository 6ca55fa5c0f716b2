"""Estimator of failed joints and their faults from references and measured motion, for W worlds at once.

Model. A healthy joint follows its own loop. From the angle phi (and rate) measured at the begin of an interval and the
references phi_ref given since, the nominal actuator predicts its motion (``nominal_joint``). An interval is long enough
for a healthy joint to make a good part of the asked motion (``INTERVAL``). The measured motion is judged under three
hypotheses, each a normal distribution (HEALTHY about ``g`` times the prediction, with a spread that grows with it;
LOCKED about zero, as narrow as the sensors allow; LOOSE about zero, as wide as the robot's own motion shakes a joint),
by the cumulated log likelihood ratio against HEALTHY (Page 1954), with bounded steps because a servo at its torque
limit is not normally distributed. A ratio that passes ``alarm`` names the fault; the reverse ratio makes the joint
healthy again. The correlation of asked and done motion tells *free* from *weak* loose joints. A joint that is not asked
to move gives no information.

Limits. A joint at a mechanical stop, or held by an obstacle, looks locked, and for the gait it is. So does a healthy
servo that is too weak for the ground: without a measured load or current the two cannot be told apart.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import Settings
from snake_gym.config.settings import Share
from snake_gym.controllers.base import ControllerState
from snake_gym.controllers.nominal_joint import NominalJoints
from snake_gym.robot.measurement import Measurement
from snake_gym.robot.spec import FloatArray, RobotSpec

HEALTHY, LOCKED, FREE, WEAK = 0.0, 1.0, 2.0, 3.0
"""Codes of the estimate; floats, like all of a controller's state."""
KIND_NAMES = ("healthy", "locked", "free", "weak")
"""Their names, in the order of the codes."""

_JUDGED = ("kind", "locked_ratio", "loose_ratio", "healthy_ratio", "asked2", "done2", "product")
"""Arrays of the state that are written where an interval ends."""
BoolArray = NDArray[np.bool_]

_PREFIX = "fault_"
"""Prefix of a detector's arrays in the state of a controller that has one."""

INTERVAL = 1.2
"""Least length of an interval, in time constants of the joint's loop."""
_FOLLOW_SHARE, _FOLLOW_SPREAD, _LOCKED, _LOOSE = 0.9, 0.35, 0.2, 8.0
"""Share g of the predicted motion that a loaded healthy joint makes, and the spread of its motion as a share of that;
spreads of a locked and of a loose joint's motion, as multiples of the floor of a healthy one's."""
_MEMORY_S, _WEAK_CORRELATION = 2.0, 0.5
"""Time over which asked and done motion are correlated; correlation above which a loose joint is weak, else free."""


class FaultDetectorConfig(Settings):
    """Settings of the fault detector that compares each joint with the nominal servo."""

    alarm: Annotated[float, Field(ge=1.0, le=1e3)] = 9.0
    """Log likelihood ratio at which a joint counts as failed; a larger one is later and has fewer false alarms."""
    angle_noise_rad: Share = 0.01
    """Standard deviation of a joint angle's measurement, resolution included [rad]. Too large costs little; too small
    takes noise for failed joints."""


class Interval(NamedTuple):
    """Intervals that have ended with a measurement, in M worlds."""

    worlds: NDArray[np.int64] | slice
    """The worlds (M,); all of them as a slice."""
    asked: FloatArray
    """Motion (M, J) [rad] that nominal joints would have made."""
    done: FloatArray
    """Motion (M, J) [rad] that was made."""
    length_s: FloatArray
    """(M, 1), or (1, 1) where all are as long: numpy is faster with one number."""


class FaultDetector:
    """Estimator of the faults of J joints in W worlds.

    State, (W, J) each: ``start`` the angle at the interval's begin, ``model_angle`` and ``model_rate`` of the nominal
    joint that started there, the last ``reference``; ``kind`` the estimate (see ``HEALTHY`` and below), the log
    likelihood ratios ``locked_ratio``, ``loose_ratio`` and ``healthy_ratio``, and the leaky sums ``asked2``, ``done2``,
    ``product`` of asked and done motion; (W,): ``elapsed_s`` of the interval, ``n_seen`` measurements.
    """

    def __init__(self, config: FaultDetectorConfig, spec: RobotSpec) -> None:
        self.config = config
        self.nominal = nominal = NominalJoints(spec)
        self._floor = 0.02 if nominal.kind == "acceleration" else 0.15  # loads do not disturb accelerations
        self._length_s = INTERVAL * nominal.time_constant_s

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state with all joints healthy and nothing seen."""
        names = ("start", "model_angle", "model_rate", "reference", "elapsed_s", "n_seen", *_JUDGED)
        shapes = [n_worlds if name in ("elapsed_s", "n_seen") else (n_worlds, self.nominal.kp.size) for name in names]
        return {name: np.zeros(shape) for name, shape in zip(names, shapes, strict=True)}

    def update(self, state: ControllerState, measurement: Measurement, dt_s: float) -> FloatArray:
        """Judge the joints' motion in the last ``dt_s`` [s]; return the estimate (W, J) and advance ``state``.

        After it, the caller gives its next command to ``command_given``.
        """
        ended = self._end_intervals(state, measurement, dt_s)
        if ended.asked.size:
            judged = {name: state[name][ended.worlds] for name in _JUDGED}
            self._correlate(judged, ended)
            self._judge(judged, ended)
            for name, values in judged.items():
                state[name][ended.worlds] = values
        return state["kind"]

    def command_given(self, state: ControllerState, reference: FloatArray) -> None:
        """Note the joint references (W, J) [rad] that were sent after ``update``."""
        state["reference"][:] = reference

    def _end_intervals(self, state: ControllerState, measurement: Measurement, dt_s: float) -> Interval:
        """Take the measurement after ``dt_s`` [s] into ``state``; begin anew where an interval ends, and say so."""
        angle, first = measurement.joint_angle, state["n_seen"] == 0.0
        self.nominal.advance(state["model_angle"], state["model_rate"], state["reference"], dt_s)
        state["elapsed_s"] += dt_s
        due = ~first & (state["elapsed_s"] >= self._length_s - 1e-9)
        worlds, begin = (slice(None) if mask.all() else np.flatnonzero(mask) for mask in (due, due | first))
        start = state["start"][worlds]
        asked, done = state["model_angle"][worlds] - start, angle[worlds] - start
        length_s = state["elapsed_s"][worlds][:, None]
        length_s = (length_s[:1] if (length_s == length_s[:1]).all() else length_s).copy()
        for name, values in (("start", angle), ("model_angle", angle), ("model_rate", measurement.joint_rate)):
            state[name][begin] = values[begin]
        state["elapsed_s"][begin] = 0.0
        state["n_seen"] += 1.0
        return Interval(worlds, asked, done, length_s)

    def _correlate(self, state: ControllerState, ended: Interval) -> None:
        asked, done = ended.asked, ended.done
        keep = np.exp(-ended.length_s / _MEMORY_S)
        for name, product in (("asked2", asked * asked), ("done2", done * done), ("product", asked * done)):
            state[name] *= keep
            state[name] += product

    def _judge(self, state: ControllerState, ended: Interval) -> None:
        config, done, time_s = self.config, ended.done, ended.length_s
        noise2 = 2.0 * config.angle_noise_rad**2  # of a difference of two measurements
        asked = np.abs(ended.asked)
        healthy = _FOLLOW_SPREAD * asked + self._floor * time_s
        likely = {
            "healthy": _log_normal(done - _FOLLOW_SHARE * ended.asked, healthy * healthy + noise2),
            "locked": _log_normal(done, (_LOCKED * self._floor * time_s) ** 2 + noise2),
            "loose": _log_normal(done, (_LOOSE * self._floor * time_s) ** 2 + noise2),
        }
        # Where no motion was asked for, healthy and locked look the same.
        counts = (_FOLLOW_SHARE * asked > 2.0 * np.sqrt(noise2) + self._floor * time_s).astype(np.float64)
        failed = (state["kind"] != HEALTHY).astype(np.float64)
        for name in ("locked", "loose"):
            self._add(state[f"{name}_ratio"], likely[name] - likely["healthy"], counts)
        self._add(
            state["healthy_ratio"], likely["healthy"] - np.maximum(likely["locked"], likely["loose"]), counts * failed
        )
        self._name({name: values.reshape(-1) for name, values in state.items()}, failed.reshape(-1) > 0.0)

    def _add(self, ratio: FloatArray, gain: FloatArray, counts: FloatArray) -> None:
        """Add a bounded gain to a likelihood ratio where it ``counts`` (1, else 0), in place."""
        bound = self.config.alarm / 3.0
        ratio += gain.clip(-bound, bound, out=gain) * counts
        ratio.clip(0.0, 2.0 * self.config.alarm, out=ratio)

    def _name(self, state: ControllerState, failed: BoolArray) -> None:
        """Set the estimate where a ratio passes the alarm: kind of failure, or recovered; all arrays are flat."""
        alarm = self.config.alarm
        locked, loose, healthy = (state[f"{name}_ratio"] for name in ("locked", "loose", "healthy"))
        is_alarmed = np.maximum(locked, loose) >= alarm
        well, alarmed = np.flatnonzero(failed & (healthy >= alarm) & ~is_alarmed), np.flatnonzero(is_alarmed)
        spread = np.sqrt(state["asked2"][alarmed] * state["done2"][alarmed])
        correlation = np.divide(state["product"][alarmed], spread, out=np.zeros_like(spread), where=spread > 0.0)
        kind = np.where(correlation > _WEAK_CORRELATION, WEAK, FREE)
        state["kind"][alarmed] = np.where(locked[alarmed] >= loose[alarmed], LOCKED, kind)
        state["kind"][well] = HEALTHY
        locked[well], loose[well], healthy[well] = 0.0, 0.0, 0.0
        healthy *= failed


def _log_normal(deviation: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the logarithm of a normal density, without its constant."""
    likely = deviation * deviation
    likely /= variance
    likely += np.log(variance)
    likely *= -0.5
    return likely


def known_kind(kind: FloatArray, measurement: Measurement) -> FloatArray:
    """Return the estimate ``kind`` (W, J), put right where the env tells which joints have failed.

    It does not tell how: a joint of which motion does not tell that either counts as weak.
    """
    if measurement.joint_failed is None:
        return kind
    return np.where(measurement.joint_failed, np.where(kind == HEALTHY, WEAK, kind), HEALTHY)


def as_part(watched: ControllerState, prefix: str = _PREFIX) -> ControllerState:
    """Return an estimator's state (by default a detector's) under the names that it has within a controller's."""
    return {prefix + name: values for name, values in watched.items()}


def part_of(state: ControllerState, prefix: str = _PREFIX) -> ControllerState:
    """Return an estimator's part (by default a detector's) of a controller's state: the same arrays, by its names."""
    return {name.removeprefix(prefix): values for name, values in state.items() if name.startswith(prefix)}
