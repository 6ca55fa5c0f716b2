"""Estimator of slipped horns from measured joint angles and poses, for W worlds at once.

A horn that has slipped on its servo's shaft leaves the servo healthy and its readings wrong. It shows in the motion of
the body: a chain of another shape moves another way. Each control step, worlds of the nominal robot begin in the
measured pose, bend from one reading to the next, and come to a pose, which is compared with the next measured one. In
the first world joints stand where the servos read, plus the slips that are known; in each other one joint stands
``STEP_RAD`` further on; in the last, friction along the links is larger. The differences of their misses e are the
sensitivities G to slips s and to the logarithm of the friction. With a Student's t distribution of the misses, by which
pushes count little, the log likelihood of parameters is, up to terms of second order,

    score s - s information s / 2,   information = sum w G^T G / v,   score = -sum w G^T e / v,
    w = (nu + 3) / (nu + sum e^2 / v),

both fading over ``MEMORY_S``; v are the mean squares of the misses. While references hardly change, and without a pose,
nothing counts and nothing fades: readings of a robot at rest change by their noise alone. The gain of a joint is the
rise of the likelihood from a slip of at most ``NEGLIGIBLE_RAD``, as of a badly calibrated joint, to its best slip. The
best gain that passes ``alarm`` makes a slip known, and it is undone; known slips then follow the score. A lower gain
will do where the new slip takes the place of another. A slip that comes down to half of ``LEAST_RAD`` is forgotten.

Friction along the links, and how late the poses are, are followed too. Obstacles, slopes and links that touch are not
in the model: while links touch, and ``_FIRST`` measurements longer, nothing counts. It looks one step ahead: the less
way a robot makes, the later slips are found. It is loaded at the first step, and needs numba.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.controllers.base import ControllerState, make_model
from snake_gym.robot.actuator_spec import ActuatorSpec
from snake_gym.robot.measurement import Measurement, centre_weights
from snake_gym.robot.spec import FloatArray, RobotSpec

STEP_RAD = 0.3
"""Difference of a slip, or of the friction's logarithm, for sensitivities."""
NEGLIGIBLE_RAD, LEAST_RAD, LARGEST_RAD = 0.05, 0.2, 1.2
"""Slip or offset that a healthy joint may seem to have; the least (a tooth of a horn: 0.25) and largest looked for."""
MEMORY_S = 3.2
"""Time over which evidence fades."""
_FREEDOM, _PRIOR = 5.0, 3.0
"""Degrees of freedom nu of the misses' distribution; information that known slips are 0, against pairs that cancel."""
_SWAP_ALARM, _SWAP_RAD = 1.0, 0.3
"""Gain at which a new slip takes the place of another, and what may be left of that one."""
_FOLLOW, _FRICTION_FOLLOW, _FRICTION_RANGE = 0.3, 0.05, 1.0
"""Shares of a Gauss-Newton step by which slips and the friction follow the score; the friction's largest logarithm."""
_VELOCITY_SHARE, _LONG_S, _EARLIEST_S, _LATEST_S = 0.3, 20.0, -0.1, 0.25
"""Share of a miss that is an error of velocity; memory of lateness and mean squares; range of the poses' lateness,
which is at most a control step."""
_SPREAD_PER_S, _SPREAD_FLOOR = np.array([1.0, 1.0, 0.5]), np.array([7e-3, 7e-3, 3e-3])
"""First guess, per second, and floor of the misses: along and across the body [link lengths], head's angle [rad]."""
_REST_RAD_S = 0.05
"""Root mean square over the joints of the rates of their references, below which a robot is at rest."""
_FIRST, _PAUSE = 10.0, 5.0
"""Measurements before the first evidence, for which the first guess counts, and from one new slip to the next."""
_SLOW, _STIFF, _MOST_SUBSTEPS = 0.1, 10.0, 20
"""Rate of the model's servos [1 / control step], their damping [M L^2 / control step], and most physics steps."""


def best_shift(score: FloatArray, information: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the most likely shifts [rad], and the rise of log likelihood to them from ``NEGLIGIBLE_RAD`` at most."""
    best = np.copysign(np.clip(np.abs(score) / information, LEAST_RAD, LARGEST_RAD), score)
    little = np.clip(best, -NEGLIGIBLE_RAD, NEGLIGIBLE_RAD)
    return best, score * (best - little) - 0.5 * information * (best * best - little * little)


class SlipEstimator:
    """Estimator of the slips of J joints in W worlds; P = J + 1 parameters, and H = P + 1 worlds of the model for each.

    ``alarm``: see ``EstimatorConfig``. State: ``slip`` (W, J) [rad] the known ones, 0: none; ``gain`` (W, J) of the
    others, and ``leaning`` (W, J) [rad] the best slip where it has one; ``information`` (W, P, P), ``score`` (W, P);
    ``reference`` (W, J) [rad] the last, and ``moves`` (W,) 1: it had changed; ``spread`` (W, 3) mean squares of the
    misses; ``friction`` (W,) logarithm of its factor; ``late_s`` (W,) and its sums ``late_sums`` (W, 2); the last
    reading ``angle`` (W, J) and pose ``pose`` (W, 3), brought up to date; motion at that time, ``rate`` (W, H, N),
    ``velocity`` (W, H, 2) of the centre and ``head_velocity`` (W, 3); ``valid`` (W,) 1: there was a pose; ``n_seen``
    and ``n_since`` (W,) measurements since links touched and since the last new slip.
    """

    def __init__(self, alarm: float, spec: RobotSpec) -> None:
        self.alarm, self._spec, self._dt_s, n = alarm, spec, spec.control_dt_s, spec.n_joints
        self._steps = STEP_RAD * np.eye(n + 2, n, k=-1)
        self._fade = math.exp(-self._dt_s / MEMORY_S)
        mass, length = spec.links("link_mass_kg"), spec.length_m
        self._weights = centre_weights(spec.links("link_half_length_m"), mass)
        self._unit = np.array([length / spec.n_links] * 2 + [1.0])
        # Servos too stiff for any load, and so slow that joints turn at a constant rate from one reading to the next.
        kd = _STIFF * float(mass.sum()) * length**2 / self._dt_s
        servo = ActuatorSpec(kind="position", kp=_SLOW * kd / self._dt_s, kd=kd, torque_limit_nm=1e9)
        self._model_spec = replace(
            spec, actuator=servo, joint_stop_rad=math.inf, joint_friction_nm=0.0, links_touch=False,
            sim_dt_s=self._dt_s / min(spec.n_substeps, _MOST_SUBSTEPS),
        )  # fmt: skip
        self._models: dict[int, Any] = {}

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state with no slip known and nothing seen."""
        n = self._spec.n_joints
        shapes: dict[str, tuple[int, ...]] = {
            "slip": (n,), "gain": (n,), "leaning": (n,), "information": (n + 1, n + 1), "score": (n + 1,),
            "spread": (3,), "friction": (), "late_s": (), "late_sums": (2,), "angle": (n,), "pose": (3,), "valid": (),
            "reference": (n,), "moves": (), "rate": (n + 2, n + 1), "velocity": (n + 2, 2), "head_velocity": (3,),
            "n_seen": (), "n_since": (),
        }  # fmt: skip
        state = {name: np.zeros((n_worlds, *shape)) for name, shape in shapes.items()}
        state["spread"] += (_SPREAD_PER_S * self._dt_s * self._unit) ** 2
        return state

    def update(self, state: ControllerState, measurement: Measurement) -> None:
        """Take a measurement, a control step after the last, into ``state``."""
        angle, valid = measurement.joint_angle, measurement.pose_valid.astype(np.float64)
        seen = np.column_stack([measurement.head_xy_w, measurement.head_angle])
        begins = state["n_seen"] == 0.0
        for name, values in (("angle", angle), ("pose", seen)):
            state[name][begins] = values[begins]
        pose, head_velocity, mean, clear = self._predict(state, angle)
        miss = seen[:, None] + state["late_s"][:, None, None] * head_velocity - pose
        miss[..., 2] = np.remainder(miss[..., 2] + math.pi, 2.0 * math.pi) - math.pi
        miss *= valid[:, None, None]  # without a pose the model goes on alone, for which the next one is no evidence
        counts, state["valid"][:] = valid * state["valid"], valid
        state["velocity"] += _VELOCITY_SHARE / self._dt_s * miss[..., :2]
        state["pose"][:] = pose[:, 0] + miss[:, 0]
        state["angle"][:] = angle
        state["n_seen"][:] = np.where(clear, state["n_seen"], 0.0) + 1.0
        state["n_since"] += 1.0
        self._time_poses(state, miss[:, 0], head_velocity[:, 0], counts * (state["n_seen"] > 2.0))
        cos, sin, (x, y, turn) = np.cos(mean)[:, None], np.sin(mean)[:, None], np.moveaxis(miss, 2, 0)
        miss = np.stack([cos * x + sin * y, cos * y - sin * x, turn], axis=2)
        counts *= state["moves"] * (state["n_seen"] > 1.0)
        self._gather(state, miss[:, 0], (miss[:, 1:] - miss[:, :1]) / STEP_RAD, counts)
        self._judge(state, counts > 0.0)

    def command_given(self, state: ControllerState, reference: FloatArray) -> None:
        """Take the reference (W, J) [rad] of joints for the control step that follows into ``state``."""
        change = np.square(reference - state["reference"]).mean(axis=1)
        state["moves"][:], state["reference"][:] = change > (_REST_RAD_S * self._dt_s) ** 2, reference

    def correct(self, state: ControllerState, measurement: Measurement) -> Measurement:
        """Return the measurement with the joints where they stand by the known slips."""
        slipped = (state["slip"] != 0.0).any(axis=1)
        if not slipped.any():
            return measurement
        there = self._spec.locate(measurement._replace(joint_angle=measurement.joint_angle + state["slip"]))
        if (own := measurement.centre_xy_w) is not None and there.centre_xy_w is not None:
            there.centre_xy_w[~slipped] = own[~slipped]
        return there

    def _predict(self, state: ControllerState, angle: FloatArray) -> tuple[FloatArray, ...]:
        """Advance the model; return head poses and rates (W, H, 3), the first's mean angle and if it is clear (W,)."""
        shape = state["velocity"].shape[:2]
        model, n_worlds = self._model(shape[0]), math.prod(shape)
        stand = state["slip"][:, None] + self._steps
        begin, end = ((values[:, None] + stand).reshape(n_worlds, -1) for values in (state["angle"], angle))
        pose = np.repeat(state["pose"], shape[1], axis=0)
        model.set_shape(begin, pose[:, 2], pose[:, :2], "head")
        model.state.link_rate[:] = state["rate"].reshape(n_worlds, -1)
        model.state.centre_vel[:] = state["velocity"].reshape(n_worlds, 2)
        factor = np.repeat(np.exp(state["friction"]), shape[1])
        factor[shape[1] - 1 :: shape[1]] *= math.exp(STEP_RAD)
        for name in ("c_t", "coulomb_t"):
            getattr(model.params, name)[:] = self._friction[name] * factor[:, None]
        model.step(begin + (end - begin) / -math.expm1(-_SLOW))
        theta, omega, velocity = model.state.link_angle, model.state.link_rate, model.state.centre_vel
        turning = omega * self._weights
        velocity_x = velocity[:, 0] + (np.sin(theta) * turning).sum(axis=1)
        velocity_y = velocity[:, 1] - (np.cos(theta) * turning).sum(axis=1)
        head_velocity = np.stack([velocity_x, velocity_y, omega[:, -1]], axis=1).reshape(*shape, 3)
        state["rate"][:] = omega.reshape(*shape, -1)
        state["velocity"][:] = velocity.reshape(*shape, 2)
        mean, clear = theta[:: shape[1]].mean(axis=1), model.state.overlap_now_m[:: shape[1]] == 0.0
        return np.column_stack([model.state.head_xy, theta[:, -1]]).reshape(*shape, 3), head_velocity, mean, clear

    def _time_poses(self, state: ControllerState, miss: FloatArray, velocity: FloatArray, counts: FloatArray) -> None:
        """Follow the poses' lateness: a pose that is late by t misses by ``-t`` times the change of its rate."""
        change = (velocity - state["head_velocity"]) * counts[:, None]
        state["head_velocity"][:] = velocity
        weight = change / (_SPREAD_PER_S * self._dt_s * self._unit) ** 2
        sums = state["late_sums"]
        sums *= math.exp(-self._dt_s / _LONG_S)
        sums[:, 0] += (weight * change).sum(axis=1)
        sums[:, 1] += (weight * (state["late_s"][:, None] * change - miss)).sum(axis=1)
        earliest_s, latest_s = max(_EARLIEST_S, -self._dt_s), min(_LATEST_S, self._dt_s)  # beyond, velocities grow
        state["late_s"][:] = np.clip(sums[:, 1] / (sums[:, 0] + 1e-3), earliest_s, latest_s)

    def _gather(self, state: ControllerState, miss: FloatArray, sensitivity: FloatArray, counts: FloatArray) -> None:
        """Add the evidence of misses (W, 3) with sensitivities (W, P, 3), body frame, where it ``counts`` (W,) 1."""
        spread, score, information, friction = (state[name] for name in ("spread", "score", "information", "friction"))
        left = miss + (sensitivity[:, :-1] * state["leaning"][..., None]).sum(axis=1)
        weight = (_FREEDOM + 3.0) / (_FREEDOM + (left * left / spread).sum(axis=1))[:, None]
        evidence = (counts * (state["n_seen"] > _FIRST))[:, None]
        weighted = sensitivity * (evidence * weight / spread)[:, None]
        kept = np.where(evidence > 0.0, self._fade, 1.0)
        information *= kept[..., None]
        information += (weighted[:, :, None] * sensitivity[:, None]).sum(axis=3)
        score *= kept
        score -= (weighted * miss[:, None]).sum(axis=2)
        share = counts[:, None] / np.minimum(state["n_seen"] - 1.0 + _FIRST, _LONG_S / self._dt_s)[:, None]
        spread += share * (weight * left * left + (_SPREAD_FLOOR * self._unit) ** 2 - spread)
        step = counts * _FRICTION_FOLLOW * score[:, -1] / np.maximum(information[:, -1, -1], 1.0)
        step = np.clip(friction + step, -_FRICTION_RANGE, _FRICTION_RANGE) - friction
        friction += step
        score -= information[:, :, -1] * step[:, None]

    def _judge(self, state: ControllerState, counts: NDArray[np.bool_]) -> None:
        """Where a miss ``counts`` (W,): let known slips follow the score, make the best other known, end those over."""
        slip, rows = state["slip"], np.arange(len(state["slip"]))
        known = slip != 0.0
        score, information = state["score"][:, :-1], state["information"][:, :-1, :-1]
        # Gauss-Newton step of the known slips; what is left of score and information of each other joint after theirs
        both = known[:, :, None] & known[:, None]
        inverse = np.where(both, information, 0.0) + np.eye(slip.shape[1]) * np.where(known, _PRIOR, 1.0)[:, None]
        inverse = np.linalg.inv(inverse) * both
        step = (inverse * (score - _PRIOR * slip)[:, None]).sum(axis=2)
        shared = (information[..., None] * inverse[:, None]).sum(axis=2)
        own = np.diagonal(information, axis1=1, axis2=2) - (shared * information).sum(axis=2)
        own = np.maximum(own, 1e-6)
        pull = score - (information * step[:, None]).sum(axis=2)
        best, gain = best_shift(pull, own)
        gain = state["gain"][:] = np.where(known, 0.0, gain)
        joint = gain.argmax(axis=1)
        found, highest = best[rows, joint], gain[rows, joint]
        state["leaning"][:] = 0.0
        state["leaning"][rows, joint] = np.where(highest > 0.0, found, 0.0)
        with_new = step - shared[rows, joint] * found[:, None]
        swaps = (known & (np.abs(slip + with_new) < _SWAP_RAD)).any(axis=1)
        new = counts & (highest > np.where(swaps, _SWAP_ALARM, self.alarm)) & (state["n_since"] > _PAUSE)
        change = np.where(known & counts[:, None], np.where(new[:, None], with_new, _FOLLOW * step), 0.0)
        change[rows[new], joint[new]] = found[new]
        after = np.clip(slip + change, -LARGEST_RAD, LARGEST_RAD)
        state["n_since"][new] = 0.0
        over = known & (np.abs(after) < 0.5 * LEAST_RAD) & (counts & (state["n_since"] > _PAUSE))[:, None]
        after[over] = 0.0
        state["score"] -= (state["information"][:, :, :-1] * (after - slip)[:, None]).sum(axis=2)
        slip[:] = after

    def _model(self, n_worlds: int) -> Any:
        """Return the model for so many robots."""
        if n_worlds not in self._models:
            model = make_model(self._model_spec, n_worlds * (self._spec.n_joints + 2), "action.estimator")
            model.same_params = False
            self._friction = {name: getattr(model.params, name)[:1].copy() for name in ("c_t", "coulomb_t")}
            self._models[n_worlds] = model
        return self._models[n_worlds]
