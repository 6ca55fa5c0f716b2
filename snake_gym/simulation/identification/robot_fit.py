"""A robot from its logs: which numbers of its model are worth identifying, the fit that finds them, and its proof.

Friction as far as the nominal robot has any, servo gains, and the delay by which references act. What the nominal robot
may lack comes after that, one law at a time, and counts only where it explains clearly more: motors that lose torque
with speed, dry joints, and at last backlash, which makes the residuals rough.

All is found twice: from the first three quarters of each run, to be tried on the last, replayed from the run's start,
and then from whole runs. How far the second moves from the first is part of the standard deviations. A robot that
explains its logs worse than the one that the fit began with is none: the model lacks something, or the logs are not of
this robot.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.identification.coefficients import Coefficient, Place
from snake_gym.simulation.identification.fit import (
    Identification,
    Residuals,
    SensorNoise,
    bounds,
    identify,
    with_delay,
)
from snake_gym.simulation.identification.replay import Replay
from snake_gym.simulation.identification.robot_replay import BACKLASH_STEP_S, fine, unchanged
from snake_gym.simulation.identification.run_log import RunLog

_SEEN_SHARE = 0.75
"""Share of each run, from its start, that the first fit sees."""
_WORSE = 1.1
"""A miss that grows by less than this factor has not grown."""
_NOISE = SensorNoise(position_m=0.004, heading_rad=0.01, joint_rad=0.002)
"""How well a usual pose source and a 12-bit encoder tell."""
_AT_BEST, _AT_BEST_S = 0.003, 0.0005
"""No value is known better than this share of it, and no delay better than this: encoders answer one after the other
within some milliseconds of their common time stamp, in steps, and so move."""
_BACKLASH_STARTS = (0.01, 0.04)
_NEIGHBOURS, _SPREADS = 48, (0.1, 0.1, 0.05, 0.05, 0.02, 0.02)
"""A fit with backlash goes on from the best of so many neighbours, whose logarithms are spread by so much in turn."""
_CLEARLY = 0.9
"""Share of the misfit without a law, below which that law has to bring it."""
_EXPLAINED = 2.0
"""Misfit, 1 for noise alone, up to which neither the motors' speed nor dry joints are looked for."""
_SEEN_RAD = 1e-3
"""Least backlash that an encoder can see."""
_GROUPS = 3
"""A field with more different numbers than this is not identified."""


@dataclass(frozen=True)
class Miss:
    """How far a robot is from what was measured, root mean square over all runs."""

    head_m: float
    """Miss of the head's position, after the best move and turn of each path; NaN: no pose."""
    joint_rad: float


@dataclass(frozen=True)
class Proof:
    """Misses of the robot that the fit began with, and of the one found."""

    held_out: tuple[Miss, Miss]
    """On the last quarter, before and after a fit to the rest."""
    whole: tuple[Miss, Miss]
    """On whole runs, before and after the fit to them."""
    runs: tuple[tuple[Miss, Miss], ...] = ()
    """On each whole run by itself, before and after the fit to all of them."""

    def objection(self, names: Sequence[str] = ()) -> str | None:
        """Why the robot found must not be used; None: it may be. ``names`` of the runs; default: their numbers."""
        for where, (before, after) in (("the last quarter of the runs", self.held_out), ("the runs", self.whole)):
            if after.head_m > _WORSE * before.head_m + _NOISE.position_m:
                return (
                    f"it misses the head on {where} by {100.0 * after.head_m:.1f} cm, "
                    f"the robot given by {100.0 * before.head_m:.1f} cm"
                )
            if after.joint_rad > _WORSE * before.joint_rad + _NOISE.joint_rad:
                return (
                    f"it misses the joints on {where} by {math.degrees(after.joint_rad):.2f} deg, "
                    f"the robot given by {math.degrees(before.joint_rad):.2f} deg"
                )
        for number, (before, after) in enumerate(self.runs):
            name = names[number] if names else f"run {number + 1}"
            if after.head_m > math.hypot(_WORSE * before.head_m, _NOISE.position_m):
                return f"{name} gets worse by it: head {100.0 * before.head_m:.1f} -> {100.0 * after.head_m:.1f} cm rms"
            if after.joint_rad > math.hypot(_WORSE * before.joint_rad, _NOISE.joint_rad):
                old, new = math.degrees(before.joint_rad), math.degrees(after.joint_rad)
                return f"{name} gets worse by it: joints {old:.2f} -> {new:.2f} deg rms"
        return None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""

        def both(pair: tuple[Miss, Miss]) -> dict[str, Any]:
            return dict(zip(("before", "after"), map(asdict, pair), strict=True))

        return {"held_out": both(self.held_out), "whole": both(self.whole), "runs": [both(pair) for pair in self.runs]}


def usual_coefficients(spec: RobotSpec) -> list[Coefficient]:
    """What is worth identifying of ``spec``: its friction as far as it has any, and servo gains."""
    found: list[Coefficient] = []
    for name in ("tangential_ns_m", "normal_ns_m", "tangential_coulomb", "normal_coulomb"):
        found += _grouped(spec, f"friction.{name}", name, spec.n_links)
    for name in ("kp", "kd"):
        found += _grouped(spec, f"actuator.{name}", name, spec.n_joints)
    return found


def further_laws(spec: RobotSpec) -> list[Coefficient]:
    """Return what servos may have that ``spec`` has not: torque that falls with speed, and dry friction in joints.

    Both are sought where the torque is limited, or nobody could say what a large torque is.
    """
    limit, speed = spec.joints("actuator.torque_limit_nm"), spec.joints("actuator.speed_limit_rad_s")
    found: list[Coefficient] = []
    if not (np.isfinite(limit).all() and np.isfinite(speed).all()):
        return found
    if "no_load_speed_rad_s" not in spec.actuator.imperfections:
        fast = float(speed.max())
        place = (Place("actuator.no_load_speed_rad_s"),)
        found.append(Coefficient("no_load_speed_rad_s", 1.5 * fast, 0.3 * fast, 30.0 * fast, place))
    if not spec.joints("joint_friction_nm").any():
        much = float(limit.max())
        found.append(
            Coefficient("joint_friction_nm", 0.02 * much, 1e-4 * much, 0.5 * much, (Place("joint_friction_nm"),))
        )
    return found


def _grouped(spec: RobotSpec, path: str, name: str, n: int) -> list[Coefficient]:
    """One coefficient for each different number > 0 in a field."""
    values = spec.links(path) if n == spec.n_links else spec.joints(path)
    groups = [value for value in np.unique(values).tolist() if value > 0.0]
    if len(groups) > _GROUPS:
        return []
    found = []
    for value in groups:
        members = None if len(np.unique(values)) == 1 else tuple((np.flatnonzero(values == value) + 1).tolist())
        label = name if members is None else f"{name}[{','.join(map(str, members))}]"
        found.append(Coefficient(label, value, value / 8.0, 8.0 * value, (Place(path, members),)))
    return found


@dataclass(frozen=True, eq=False)
class FoundRobot:
    """What identification made of the logs."""

    spec: RobotSpec
    """Named and with its source; its timing is that of the nominal robot."""
    values: dict[str, float]
    relative_std: dict[str, float] | None
    delay_std_s: float
    """Standard deviation of ``actuator.delay_s`` [s]; NaN where it was not identified."""
    seconds: float
    proof: Proof
    """What it and the robot given make of the logs; ask for its ``objection`` before use."""

    @property
    def delay_s(self) -> float:
        """Time by which references act late [s]."""
        return self.spec.actuator.delay_s

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "values": self.values, "relative_std": self.relative_std, "delay_s": self.delay_s,
            "delay_std_s": self.delay_std_s, "seconds": self.seconds, "proof": self.proof.as_dict(),
        }  # fmt: skip


def identify_robot(
    logs: Sequence[RunLog], spec: RobotSpec, method: str = "least_squares", backlash: bool = True, said: str = ""
) -> FoundRobot:
    """Friction, servo gains, backlash and delay with which ``spec`` moves as logged. Raises ConfigError.

    Args:
        method: least_squares finds all of them on whole paths; avs (irani2015) finds the friction on the head's last
            position, with the other numbers, the delay among them, as they are.
        said: where the logs are from, for the specification's source.
    """
    begin = time.perf_counter()
    coefficients = usual_coefficients(spec)
    seen = [log.first(max(1, round(_SEEN_SHARE * log.n_periods))) for log in logs]
    if method == "avs":
        only = [one for one in coefficients if one.places[0].path.startswith("friction.")]
        step = fine(spec, logs[0].period_s)
        part = identify(seen, step, only, "avs", n_threads=1)
        found = identify(logs, step, _started(only, part), "avs", n_threads=1)
        tried, std, delay_std = part.spec, None, math.nan
    else:
        laws = further_laws(spec)
        first, laws = _fitted(seen, spec, coefficients, laws, backlash)
        found, _ = _fitted(logs, spec, coefficients, laws, "backlash_rad" in first.values)
        tried = first.spec
        moved = {name: math.log(value / first.values.get(name, value)) for name, value in found.values.items()}
        std = {name: math.hypot(own, moved[name], _AT_BEST) for name, own in (found.relative_std or {}).items()}
        delay_std = math.hypot(found.delay_std_s, found.delay_s - first.delay_s, _AT_BEST_S)
    pairs = ((spec, tried, _SEEN_SHARE), (spec, found.spec, 0.0))
    held_out, whole = ((_miss(logs, old, share), _miss(logs, new, share)) for old, new, share in pairs)
    runs = tuple((_miss([log], spec), _miss([log], found.spec)) for log in logs)
    source = f"{spec.name} with friction and servos identified from {said or 'logged runs'} ({method})"
    named = replace(in_steps_of(found.spec, spec), name=f"{spec.name}_identified", source=source)
    seconds, proof = time.perf_counter() - begin, Proof(held_out, whole, runs)
    return FoundRobot(named, found.values, std, delay_std, seconds, proof)


def _started(coefficients: Sequence[Coefficient], found: Identification) -> list[Coefficient]:
    return [replace(one, start=found.values[one.name]) for one in coefficients]


def _shaken(
    logs: Sequence[RunLog], spec: RobotSpec, coefficients: Sequence[Coefficient], best: Identification
) -> Identification:
    """The fit, gone on from the best of many neighbours, drawn nearer and nearer: rough residuals make it stall."""
    residuals, draws = Residuals(logs, _NOISE), np.random.default_rng(0)
    _, low, high = bounds(coefficients)
    replayed = Replay(logs, with_delay(spec, best.delay_s), coefficients, 1)
    values, misfit = np.array([best.values[one.name] for one in coefficients]), best.misfit
    for spread in _SPREADS:
        shift = spread * draws.standard_normal((_NEIGHBOURS, values.size))
        near = np.clip(values * np.exp(shift), low, high)
        misfits = (residuals.of(replayed.predict(near)) ** 2).mean(axis=1)
        if misfits.min() < misfit:
            values, misfit = near[int(np.argmin(misfits))], float(misfits.min())
    again = [replace(one, start=float(value)) for one, value in zip(coefficients, values, strict=True)]
    trial = _fit(logs, spec, again, best.delay_s, 12)
    return trial if trial.misfit < best.misfit else best


def in_steps_of(found: RobotSpec, spec: RobotSpec) -> RobotSpec:
    """``found`` with the control step and the method of ``spec``, and its physics step or, where ``found`` has
    imperfections, one that goes into that control step and is no longer than the one it was identified with."""
    if not found.actuator.imperfections:
        return replace(found, control_dt_s=spec.control_dt_s, sim_dt_s=spec.sim_dt_s, integrator=spec.integrator)
    n_substeps = math.ceil(spec.control_dt_s / min(found.step_s, spec.step_s) - 1e-9)
    step_s = spec.control_dt_s / n_substeps
    return replace(found, control_dt_s=spec.control_dt_s, sim_dt_s=step_s, integrator="implicit")


def _fit(
    logs: Sequence[RunLog], spec: RobotSpec, coefficients: Sequence[Coefficient], delay_s: float, most: int,
    noise: SensorNoise = _NOISE,
) -> Identification:  # fmt: skip
    return identify(logs, spec, coefficients, "least_squares", noise, 1, most, delay_s)


def _fitted(
    logs: Sequence[RunLog], spec: RobotSpec, coefficients: Sequence[Coefficient], laws: Sequence[Coefficient],
    backlash: bool,
) -> tuple[Identification, list[Coefficient]]:  # fmt: skip
    """Return the fit from the robot given on, and those of ``laws`` that explain clearly more."""
    step, kept = fine(spec, logs[0].period_s), list[Coefficient]()
    found = _fit(logs, step, coefficients, 0.01, 30)
    for law in laws:
        if found.misfit <= _EXPLAINED:
            break
        trial = _fit(logs, step, [*_started([*coefficients, *kept], found), law], found.delay_s, 20)
        if trial.misfit < _CLEARLY * found.misfit:
            found, kept = trial, [*kept, law]
    sought = [*coefficients, *kept]
    if backlash:
        found = _with_backlash(logs, spec, sought, found)
        if "backlash_rad" in found.values:
            step, sought = fine(spec, logs[0].period_s, BACKLASH_STEP_S), [*sought, _lash(0.01)]
    if found.misfit > _EXPLAINED:
        found = _fit(logs, step, _started(sought, found), found.delay_s, 20, _shares(logs, spec))
    return found, kept


def _shares(logs: Sequence[RunLog], spec: RobotSpec) -> SensorNoise:
    """Return what the robot given misses of each kind of measurement, as noise with which the kinds count alike.

    Where the model lacks something, weights of the sensors' noise let the kind decide that has most of it, the joints,
    at the cost of the way.
    """
    same, step = unchanged(spec), fine(spec, logs[0].period_s)
    seen = Replay(logs, step, [same], 1).predict(np.array([[same.start]]))
    missed = [math.sqrt(np.nanmean(off**2)) for off in Residuals(logs, _NOISE).misses(seen)]
    least = (_NOISE.position_m, _NOISE.heading_rad, _NOISE.joint_rad)
    numbers = np.sqrt([2.0, 1.0, spec.n_joints])
    return SensorNoise(*(numbers * np.maximum(missed, least)).tolist())


def _lash(start: float) -> Coefficient:
    return Coefficient("backlash_rad", start, 1e-4, 0.3, (Place("actuator.backlash_rad"),))


def _with_backlash(
    logs: Sequence[RunLog], spec: RobotSpec, coefficients: Sequence[Coefficient], without: Identification
) -> Identification:
    """The fit with backlash, where it explains clearly more; its residuals are rough, so it starts from the other's."""
    started = _started(coefficients, without)
    step = fine(spec, logs[0].period_s, BACKLASH_STEP_S)
    best = without
    for start in _BACKLASH_STARTS:
        trial = _fit(logs, step, [*started, _lash(start)], without.delay_s, 12)
        if trial.misfit < best.misfit:
            best = trial
    if "backlash_rad" in best.values:
        best = _shaken(logs, step, [*started, _lash(_BACKLASH_STARTS[-1])], best)
    clearly = best.misfit < _CLEARLY * without.misfit and best.values.get("backlash_rad", 0.0) > _SEEN_RAD
    return best if clearly else without


def _miss(logs: Sequence[RunLog], spec: RobotSpec, from_share: float = 0.0) -> Miss:
    """How far ``spec``, replayed from the start, is from what was measured after ``from_share`` of each run."""
    same = unchanged(spec)
    seen = Replay(logs, fine(spec, logs[0].period_s), [same], 1).predict(np.array([[same.start]]))
    position, _, joint = Residuals(logs, _NOISE, from_share).misses(seen)
    return Miss(math.sqrt(2.0 * np.nanmean(position**2)), math.sqrt(np.nanmean(joint**2)))
