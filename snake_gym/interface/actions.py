"""From a policy's action to joint references: the same code for the simulated and the real robot.

Kinds of action, all in [-1, 1]:

* ``joint_reference``: one number per joint, times the robot's joint limit.
* ``residual``: ``clip(controller command + scale_rad * action)``, one clip, last; the controller runs underneath. With
  ``pace_range`` there is one action more, the last: the gait runs ``1 + pace_range * action`` times as fast, below 0
  backwards.
* ``gait``: amplitude, frequency, phase shift and offset of a serpenoid wave (Hirose; sibilska2022, eq. 33). Its phase
  runs on continuously, so that changing the gait does not jump in phase. With a controller that has actions of its own
  (``gait_actions``), such as the five gaits of spatial robots, it is those.
* ``pressure``: for robots with muscles, the pressures of each joint's left and right muscle, from 0 to the supply's; no
  loop follows joint references then. ``residual`` has such actions too, with ``pressure_range``: they are added to the
  pressures with which joints follow their references.
* ``torque``: one number per joint, times ``torque_max``; no loop follows joint references (u of sibilska2022).

With ``estimator.on``, an estimator of what broke stands between the robot and all of this: measurements pass
``perceive`` and references ``to_servos``, so that policy and controller see joints where they stand.
"""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any, Literal

import numpy as np

from snake_gym.config import ConfigError
from snake_gym.config.settings import NonNegative, Positive, Settings, Share
from snake_gym.controllers import check_unused, make_controller
from snake_gym.controllers.base import CONTROLLERS, Controller, ControllerState, check_mirror
from snake_gym.controllers.fault_estimator import EstimatorConfig, FaultEstimator
from snake_gym.controllers.serpenoid import serpenoid_reference
from snake_gym.controllers.speed_hold import PACE, SpeedHold
from snake_gym.interface.mirror import SAME, TURNED, Reflection, find_reflection
from snake_gym.plugins import check_numbers
from snake_gym.robot.measurement import Goal, Measurement
from snake_gym.robot.spec import FloatArray

ActionKind = Literal["joint_reference", "residual", "gait", "pressure", "torque"]
CONTROLLER_SIGNALS = ("reverse", "fault_kind", "mode")
"""State of a controller underneath that policies may see, if it has it: 1 where the tail leads (W,), the codes of the
faults that it suspects (W, J), and the number of its mode (W,)."""


class ActionConfig(Settings):
    """What an action means."""

    kind: ActionKind = "joint_reference"
    """joint_reference: actions are joint references, 1 is ``joint_limit_rad``; residual: they are added to what a
    controller commands; gait: they are amplitude, frequency, phase shift and offset of a wave; pressure: those of
    muscles, left and right of each joint, -1 is none, 1 the supply's; torque: those of joints with a ``kp`` of 0."""
    controller: dict[str, Any] = field(default_factory=lambda: {"kind": "sjc"})
    """Base of ``residual``: {kind: a controller of ``snake_gym.controllers``, and that controller's settings}, or
    {tuned: a controller}, with the settings that were tuned for the robot. With ``gait``, multimodal has actions of its
    own: preference of each mode, pace and steering."""
    scale_rad: Positive = 0.35
    """``residual``: reference change [rad] for an action of 1."""
    pace_range: NonNegative = 0.0
    """`residual`: change of the gait's pace, as a share of it, for a further action of 1, the last one; above 1 the
    gait can run backwards. 0: there is no such action."""
    pressure_range: Share = 0.0
    """`residual` of a robot with muscles: change of a muscle's pressure, as a share of the supply's, for two further
    actions of 1 for each joint, before that of the pace. 0: there are no such actions."""
    torque_max: Positive = 1.0
    """``torque``: torque [N m] for an action of 1; angular acceleration [rad/s^2] of joints that are driven by it."""
    amplitude_max_rad: Positive = math.pi / 3.0
    """``gait``: amplitude for an action of 1; -1 gives 0."""
    frequency_max_rad_s: Positive = 8.0
    """``gait``: frequency for an action of 1; -1 gives 0."""
    phase_shift_max_rad: Positive = math.pi / 2.0
    """``gait``: phase shift for an action of 1; -1 gives its negative."""
    offset_max_rad: Positive = math.pi * 2.0 / 9.0
    """``gait``: offset for an action of 1 (40 degrees); -1 gives its negative."""
    estimator: EstimatorConfig = field(default_factory=EstimatorConfig)
    """Settings of the estimator of slipped horns and shifted references, which undoes both."""

    def check(self) -> None:
        if self.kind != "residual":
            check_unused(self.controller, "action.controller")
            for name in ("pace_range", "pressure_range"):
                if (given := getattr(self, name)) > 0.0:
                    raise ValueError(f"{name} is {given:g} with kind {self.kind}; expected 0, or residual")


class ActionDecoder:
    """Turns actions (W, A) into joint references (W, J) [rad] for one robot, planar or spatial.

    ``holds_speed``: goals have a speed, at which the gait of the controller underneath is kept.
    """

    def __init__(self, config: ActionConfig, spec: Any, holds_speed: bool = False) -> None:
        self.config = config
        self.spec = spec
        self.controller: Controller | None = None
        kind, default = config.controller.get("kind"), spec.default_controller["kind"]
        if config.kind == "residual" or (config.kind == "gait" and hasattr(CONTROLLERS.get(str(kind)), "gait_actions")):
            self.controller = make_controller(config.controller, spec, where="env.action.controller")
        elif config.kind == "gait" and hasattr(CONTROLLERS[default], "gait_actions"):
            raise ConfigError(f"env.action.controller is {kind} with kind gait; expected {default} for {spec.name}")
        self.own_actions = getattr(self.controller, "gait_actions", ()) if config.kind == "gait" else ()
        """Names of the actions of a controller that has its own; none: the actions are ours."""
        self.has_phase = config.kind in ("residual", "gait")
        """Whether a gait clock runs below the policy (and belongs into its observation)."""
        self.speed_hold: SpeedHold | None = None
        if holds_speed and self.controller is not None:
            settings = getattr(self.controller, "config", None)
            self.speed_hold = SpeedHold(spec, getattr(settings, "tracked_point", "centre"))
        self.has_pace = config.kind == "residual" and config.pace_range > 0.0
        self.n_pressures = 2 * spec.n_joints if config.kind == "pressure" or config.pressure_range > 0.0 else 0
        if self.n_pressures and spec.actuator.kind != "muscle":
            what = "kind is 'pressure'" if config.kind == "pressure" else f"pressure_range is {config.pressure_range:g}"
            raise ConfigError(f"env.action.{what}, but {spec.name} has no muscles; expected a robot that has")
        follows = spec.in_space or spec.actuator.kind == "muscle" or bool(np.any(spec.joints("actuator.kp")))
        if follows == (config.kind == "torque"):
            what = "follows references; expected kp 0" if follows else "follows none with kp 0; expected 'torque'"
            raise ConfigError(f"env.action.kind is {config.kind!r}, but {spec.name} {what}")
        self.has_references = config.kind not in ("pressure", "torque")
        """Whether joints are commanded angles."""
        if config.estimator.on and not self.has_references:
            raise ConfigError(f"env.action.estimator.on is True, but {config.kind} actions have no references")
        self.estimator = FaultEstimator(config.estimator, spec, self.controller) if config.estimator.on else None
        self.size = (0 if config.kind == "pressure" else spec.n_joints) + self.n_pressures + self.has_pace
        if config.kind == "gait":
            self.size = len(self.own_actions) or 4
        self.signal_names = tuple(self.signals(self.initial_state(1)))
        """Names of ``signals``."""

    def reflection(self) -> Reflection:
        """Return how actions look in a mirror, where gaits run half a period later.

        Raises ConfigError where the controller underneath does not look the same there, or does not say so.
        """
        signs: tuple[int, ...] = (TURNED,) * self.spec.n_joints + (SAME,) * self.has_pace
        if self.own_actions:
            raise ConfigError("env.action.kind is 'gait' with a controller's own actions, which have no mirror image")
        if self.n_pressures:
            raise ConfigError("env.action has pressures of muscles, of which no mirror image is known")
        if self.config.kind == "gait":
            signs = (SAME, SAME, SAME, TURNED)
        if self.controller is not None:
            check_mirror(self.controller, "env.action.controller")
        return find_reflection(signs, self.size, "the action")

    def initial_state(self, n_worlds: int) -> ControllerState:
        """Arrays (W, ...) that the decoder carries from step to step."""
        estimate = {} if self.estimator is None else self.estimator.initial_state(n_worlds)
        if self.controller is not None:
            held = {} if self.speed_hold is None else self.speed_hold.initial_state(n_worlds)
            paced = {PACE: np.ones(n_worlds)} if self.has_pace else {}
            return {**self.controller.initial_state(n_worlds), **paced, **held, **estimate}
        return {"phase": np.zeros(n_worlds), **estimate} if self.config.kind == "gait" else estimate

    def signals(self, state: ControllerState) -> dict[str, FloatArray]:
        """Return what policies may see of the controller underneath (``CONTROLLER_SIGNALS``) and of the estimator."""
        signals = {name: state[name] for name in CONTROLLER_SIGNALS if name in state}
        return signals if self.estimator is None else signals | self.estimator.signals(state)

    def perceive(self, measurement: Measurement, state: ControllerState) -> Measurement:
        """Return a measurement as ``decode`` and observations get it; advances ``state`` in place."""
        return measurement if self.estimator is None else self.estimator.perceive(measurement, state)

    def to_servos(self, reference: FloatArray, state: ControllerState) -> FloatArray:
        """Return what servos have to be sent (W, J) [rad] for the joint references of ``decode``."""
        return reference if self.estimator is None else self.estimator.to_servos(reference, state)

    def phase(self, state: ControllerState) -> FloatArray | None:
        """Gait phase (W,) [rad] that the next command will use; None: no gait runs below the policy."""
        return state.get("phase") if self.controller is None else self.controller.phase(state)

    def decode(self, action: FloatArray, measurement: Measurement, goal: Goal, state: ControllerState) -> FloatArray:
        """Joint references (W, J) [rad] for the next control step; advances ``state`` in place."""
        limit, config = self.spec.joint_limit_rad, self.config
        if not self.has_references:
            return measurement.joint_angle.copy()  # nothing is off it
        if self.controller is None:
            return np.clip(self._wave(action, state), -limit, limit) if config.kind == "gait" else action * limit
        if self.speed_hold is not None:
            self.speed_hold.update(measurement, goal, state, self.spec.control_dt_s)
        if self.own_actions:
            self.controller.take_action(action, state)  # type: ignore[attr-defined]
        base = self._command(action, measurement, goal, state)
        base = check_numbers(base, measurement.joint_angle.shape, f"the command of {type(self.controller).__name__}")
        if not self.own_actions:
            base = base + config.scale_rad * action[:, : self.spec.n_joints]
        reference = np.clip(base, -limit, limit)
        if hasattr(self.controller, "command_given"):
            self.controller.command_given(reference, state)
        return reference

    def pressures(self, action: FloatArray) -> FloatArray | None:
        """Return the pressures (W, J, 2) [Pa] that the action commands the left and right muscles; None: none."""
        if not self.n_pressures:
            return None
        most, first = self.spec.actuator.muscle.max_pressure_pa, self.size - self.n_pressures - self.has_pace
        own = action[:, first : first + self.n_pressures].reshape(len(action), -1, 2)
        return most * (0.5 * (own + 1.0) if self.config.kind == "pressure" else self.config.pressure_range * own)

    def torques(self, action: FloatArray) -> FloatArray | None:
        """Return the torques (W, J) [N m], or accelerations [rad/s^2], that the action commands; None: none."""
        return self.config.torque_max * action if self.config.kind == "torque" else None

    def _command(self, action: FloatArray, measurement: Measurement, goal: Goal, state: ControllerState) -> FloatArray:
        """Return what the controller commands at the pace that the action asks for; a held speed's pace stays."""
        assert self.controller is not None
        if not self.has_pace:
            return self.controller.command(measurement, goal, state, self.spec.control_dt_s)
        held = state[PACE].copy()
        state[PACE] *= 1.0 + self.config.pace_range * action[:, -1]
        base = self.controller.command(measurement, goal, state, self.spec.control_dt_s)
        state[PACE][:] = held
        return base

    def _wave(self, action: FloatArray, state: ControllerState) -> FloatArray:
        config, phase = self.config, state["phase"]
        amplitude = 0.5 * (action[:, 0] + 1.0) * config.amplitude_max_rad
        rate = 0.5 * (action[:, 1] + 1.0) * config.frequency_max_rad_s
        shift, offset = action[:, 2] * config.phase_shift_max_rad, action[:, 3] * config.offset_max_rad
        reference = serpenoid_reference(phase, amplitude, shift, self.spec.n_joints, offset)
        phase[:] = np.mod(phase + rate * self.spec.control_dt_s, 2.0 * math.pi)
        return reference


def describe_action(decoder: ActionDecoder) -> list[dict[str, str]]:
    """One row for each action: name, meaning, unit and range, for the env's documentation."""
    config, rows = decoder.config, []
    if decoder.own_actions:
        rows = [(name, -1.0, 1.0, "1") for name in decoder.own_actions]
    elif config.kind == "gait":
        rows = [
            ("amplitude", 0.0, config.amplitude_max_rad, "rad"),
            ("frequency", 0.0, config.frequency_max_rad_s, "rad/s"),
            ("phase_shift", -config.phase_shift_max_rad, config.phase_shift_max_rad, "rad"),
            ("offset", -config.offset_max_rad, config.offset_max_rad, "rad"),
        ]
    else:
        is_residual = config.kind == "residual"
        what, most = ("residual", config.scale_rad) if is_residual else ("reference", decoder.spec.joint_limit_rad)
        names = [f"joint {i + 1}" for i in range(decoder.spec.n_joints)]
        rows = [(f"{name} {what}", -most, most, "rad") for name in names] if decoder.has_references else []
        if config.kind == "torque":
            unit = "rad/s^2" if decoder.spec.actuator.kind == "acceleration" else "N m"
            rows = [(f"{name} torque", -config.torque_max, config.torque_max, unit) for name in names]
        if decoder.n_pressures:
            most = decoder.spec.actuator.muscle.max_pressure_pa * (config.pressure_range or 1.0)
            least, what = (-most, "residual pressure") if is_residual else (0.0, "pressure")
            rows += [(f"{name} {side} {what}", least, most, "Pa") for name in names for side in ("left", "right")]
        rows += [("pace", 1.0 - config.pace_range, 1.0 + config.pace_range, "1")] if decoder.has_pace else []
    return [{"name": name, "low": f"{low:.3g}", "high": f"{high:.3g}", "unit": unit} for name, low, high, unit in rows]
