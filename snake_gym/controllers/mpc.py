"""Model-predictive control by sampling: plans played in the simulation of the nominal robot (see ``plans``).

Each control step, the model gets the measured joint angles, rates and pose, the faults that ``FaultDetector`` estimates
(or that the env reveals), and velocities of the head and the centre of mass: those to which the model came in the last
step, by the references that were sent. Obstacles, slopes of the real ground and varied parameters are not in it. It is
loaded when the first plan is made, and needs numba.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from snake_gym.config.settings import Angle
from snake_gym.controllers.base import ControllerState, Gait, PerWorld, Swing, make_model, register_controller, searched
from snake_gym.controllers.fault_detection import (
    KIND_NAMES,
    FaultDetector,
    FaultDetectorConfig,
    as_part,
    known_kind,
    part_of,
)
from snake_gym.controllers.guidance import TrackedPoint
from snake_gym.controllers.noise import begin_noise, initial_noise
from snake_gym.controllers.plans import PlanConfig, Planner, Plans, Worth
from snake_gym.controllers.serpenoid import GaitConfig
from snake_gym.controllers.speed_hold import pace_of
from snake_gym.robot.measurement import Goal, Measurement, chain_angles, link_angles, tracked_point
from snake_gym.robot.spec import FloatArray, RobotSpec

_FOLDED_M = 0.005  # overlap of links from which on a plan makes no way
_WEAK_STRENGTH = 0.3
"""Share of its torque that the model gives a weak joint."""


class MpcConfig(GaitConfig, PlanConfig):
    """Settings of model-predictive control; the gait is the plan that it begins with."""

    amplitude_rad: Swing = searched(0.52, 0.05, 1.2, limit=lambda spec: spec.joint_limit_rad)
    frequency_rad_s: Annotated[float, Field(ge=-1e3, le=1e3)] = 5.1
    phase_shift_rad: Angle = 0.44
    tracked_point: TrackedPoint = "centre"
    """Point of the robot that goes to the target."""
    substeps: Annotated[int, Field(ge=1, le=10_000)] = 10
    """Most physics steps of the model in a control step."""
    links_touch: bool = False
    """Let the model's links stop where they meet, at six times the time; else plans that fold make no way."""
    detector: FaultDetectorConfig = field(default_factory=FaultDetectorConfig)
    """Settings of the detector of failed joints."""


@register_controller("mpc", MpcConfig)
class Mpc(Gait):
    """Controller that compares plans in a simulation of the nominal robot.

    State: that of ``Planner``, of ``noise`` and of the detector; ``model_angle`` and ``model_rate`` (W, N) and
    ``model_velocity`` (W, 2), the motion from which the next step will be predicted; ``n_seen`` samples (W,).
    """

    def __init__(self, config: MpcConfig, spec: RobotSpec, per_world: PerWorld | None = None) -> None:
        super().__init__(config, spec, per_world)
        self.planner = Planner(config, spec, self.parameter)
        self.detector = FaultDetector(config.detector, spec)
        n_substeps = min(spec.n_substeps, config.substeps)
        dt_s = spec.control_dt_s / n_substeps if n_substeps < spec.n_substeps else spec.sim_dt_s
        self._model_spec = replace(spec, sim_dt_s=dt_s, links_touch=spec.links_touch and config.links_touch)
        self._models: dict[int, Any] = {}

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Return the state at the start of an episode: the gait of the settings, all joints healthy, at rest."""
        gait = (self.parameter[name] for name in ("amplitude_rad", "frequency_rad_s", "phase_shift_rad"))
        links = (n_worlds, self.spec.n_links)
        return {
            **self.planner.initial_state(n_worlds, *gait), **initial_noise(n_worlds),
            **as_part(self.detector.initial_state(n_worlds)),
            "model_angle": np.zeros(links), "model_rate": np.zeros(links), "model_velocity": np.zeros((n_worlds, 2)),
            "n_seen": np.zeros(n_worlds),
        }  # fmt: skip

    def command(self, measurement: Measurement, goal: Goal, state: ControllerState, dt_s: float) -> FloatArray:
        """Return joint references (W, J) [rad] within the robot's joint limit: the first of the best plan."""
        begin_noise(state, measurement, goal)
        watched = part_of(state)
        kind = known_kind(self.detector.update(watched, measurement, dt_s), measurement)
        self._estimate(measurement, state, watched["reference"], kind)
        plans = self.planner.draw(state)
        worth = self._play(plans, measurement, goal, state, watched["reference"], kind)
        self.planner.improve(state, plans, worth)
        reference = self.planner.follow(state, pace_of(state))
        self.detector.command_given(watched, reference)
        return reference

    def command_given(self, reference: FloatArray, state: ControllerState) -> None:
        """Note the references really sent (W, J) [rad]: a policy may have added to ``command``."""
        self.detector.command_given(part_of(state), reference)

    def _estimate(
        self, measurement: Measurement, state: ControllerState, reference: FloatArray, kind: FloatArray
    ) -> None:
        """Set the model's motion to the measured one; what is not measured, to that which the model comes to."""
        model = self._model(len(kind))
        self._begin(model, state["model_angle"], state["model_rate"], state["model_velocity"], reference, kind)
        model.step(reference)
        moving = state["n_seen"] > 0.0
        head_rate = np.where(moving, model.state.link_rate[:, -1], 0.0)
        state["model_velocity"][:] = np.where(moving[:, None], model.state.centre_vel, 0.0)
        state["model_angle"][:] = link_angles(measurement)
        state["model_rate"][:] = chain_angles(measurement.joint_rate, head_rate)
        state["n_seen"] += 1.0

    def _play(
        self, plans: Plans, measurement: Measurement, goal: Goal, state: ControllerState, reference: FloatArray,
        kind: FloatArray,
    ) -> FloatArray:  # fmt: skip
        """Return what the plans are worth (W, K) by the model, at the pace that the clock is held to.

        Where the caller makes it run backwards, plans are judged as if it ran forwards, so that they do not undo it.
        """
        n_worlds, n_plans = plans.frequency.shape
        motion = (state["model_angle"], state["model_rate"], state["model_velocity"], reference, kind)
        model = self._model(n_worlds * n_plans)
        self._begin(model, *(np.repeat(values, n_plans, axis=0) for values in motion))
        point = self.config.tracked_point
        way = goal.target_xy_w - tracked_point(self.spec, measurement, point)
        now = model.state.head_xy if point == "head" else model.state.centre_xy
        target = now + np.repeat(way, n_plans, axis=0)
        worth, pace = Worth(self.planner, plans), np.abs(pace_of(state))
        distance = np.repeat(np.hypot(way[:, 0], way[:, 1]), n_plans)
        folded = np.zeros(distance.size, bool)
        for step in range(self.planner.n_steps):
            model.step(self.planner.reference(plans, state, step, pace).reshape(-1, self.n_joints))
            now = model.state.head_xy if point == "head" else model.state.centre_xy
            left = target - now
            before, distance = distance, np.hypot(left[:, 0], left[:, 1])
            folded |= model.state.overlap_now_m > _FOLDED_M
            reached = (distance <= self.config.radius_m) & ~folded
            worth.add(np.where(folded, 0.0, before - distance), reached, next_is_hidden=True)
        return worth.total(model.state.link_angle.mean(axis=1), left)

    def _begin(
        self, model: Any, angle: FloatArray, rate: FloatArray, velocity: FloatArray, reference: FloatArray,
        kind: FloatArray,
    ) -> None:  # fmt: skip
        """Bring the worlds of the model into a state of motion, with joints that have failed."""
        joint_angle = angle[:, :-1] - angle[:, 1:]
        model.set_shape(joint_angle, angle[:, -1], np.zeros((len(angle), 2)), self.config.tracked_point)
        model.state.link_rate[:] = rate
        model.state.centre_vel[:] = velocity
        if model.delay is not None:
            model.delay.begin(reference, slice(None))
        model.faults.kind[:] = self._codes[kind.astype(np.int64)]
        model.faults.strength[:] = _WEAK_STRENGTH

    def _model(self, n_worlds: int) -> Any:
        """Return the model of so many robots."""
        if n_worlds not in self._models:
            model = make_model(self._model_spec, n_worlds, "the controller mpc")
            from snake_gym.simulation.fault_kinds import FAULT_KINDS

            self._codes = np.array([0, *(FAULT_KINDS[name].code for name in KIND_NAMES[1:])])
            model.allow_faults(set(KIND_NAMES[1:]))
            model.faults.onset_s[:], model.faults.end_s[:] = 0.0, np.inf
            self._models[n_worlds] = model
        return self._models[n_worlds]
