"""Settings of a run on the robot, and the control loop and policy made from them.

The groups are those of ``SnakeGym/Real-v0``, without Gymnasium: this runs on a small board. A classical controller runs
as a residual policy that adds nothing, so it gets the measurements themselves.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from snake_gym.config import ConfigError, Settings, build
from snake_gym.config.errors import hint
from snake_gym.config.settings import Positive
from snake_gym.controllers import CONTROLLERS, resolve_controller, tuning_of
from snake_gym.controllers.tuned import tuned_file
from snake_gym.hardware.guard.checks import SafetyLimits
from snake_gym.hardware.robot.connection import Connected, ConnectionConfig, connect
from snake_gym.hardware.robot.robot_loop import Contract, CourseConfig, LoopConfig, MeasuredCourse, RobotLoop
from snake_gym.interface.actions import ActionConfig, ActionDecoder
from snake_gym.interface.observations import OWN, ObservationConfig, ObservationLayout
from snake_gym.interface.policy import Policy, ZeroResidual, controller_action
from snake_gym.interface.policy_file import (
    FilePolicy,
    describe_missing,
    find_policy_file,
    load_policy,
    shipped_policies,
)
from snake_gym.robot.catalogue import load_any_robot
from snake_gym.robot.difference import robot_note

_TASK = "SnakeGym/Waypoints-v0"
_NO_SENSOR = ("failed", "contact_force", "range")
"""Columns of sensors that a real robot does not have."""


class LoopSettings(Settings, kw_only=True):
    """Settings of a control loop on a robot."""

    robot: str | dict[str, Any] | None = None
    """Nominal robot: a preset's name, a YAML file, or settings; None: the policy's, or resilient_servo."""
    course: CourseConfig = field(default_factory=CourseConfig)
    connection: ConnectionConfig = field(default_factory=ConnectionConfig)
    """Port, servos and pose source; by default an emulated robot."""
    safety: SafetyLimits = field(default_factory=SafetyLimits)
    loop: LoopConfig = field(default_factory=LoopConfig)
    time_limit_s: Positive = 60.0
    policy: str | None = None
    """Policy file, or name of a shipped one; ``run`` takes controllers too, by name (as tuned for the robot, where they
    were) or tuned YAML file; None: there is none."""


class RunConfig(LoopSettings, kw_only=True):
    """Settings of a run."""

    controller: dict[str, Any] = field(default_factory=dict)
    """Settings of the classical controller; {tuned: cc} takes those that were tuned for the robot."""


class Plan(NamedTuple):
    """Policy, and the parts of the loop that belong to it, before any port is opened."""

    policy: Policy
    contract: Contract
    name: str
    """Name of the policy or controller, for people."""
    notes: tuple[str, ...] = ()
    """Notes for people, such as another robot or task than it was trained or tuned for."""


def robot_of(config: LoopSettings) -> Any:
    """Return the nominal robot. Raises ConfigError."""
    if config.robot is None and config.policy is not None and find_policy_file(config.policy) is not None:
        return load_policy(config.policy).spec
    return load_any_robot("resilient_servo" if config.robot is None else config.robot)


def plan_run(config: RunConfig) -> Plan:
    """Load the policy that the settings name. Raises ConfigError."""
    policy, source = config.policy, dict[str, str]()
    if policy is not None and find_policy_file(policy) is not None:
        loaded = load_policy(policy, None if config.robot is None else load_any_robot(config.robot))
        contract = file_contract(loaded, config.robot, config.course.tracked_point)
        notes = robot_note(loaded.spec, contract.robot), _task_note("trained", loaded.contract.env.id)
        return Plan(loaded, contract, loaded.name, tuple(filter(None, notes)))
    if policy in CONTROLLERS:
        source = {"tuned" if _is_tuned(policy, robot_of(config)) else "kind": policy}
    elif policy is not None and policy.endswith((".yaml", ".yml")):
        source = {"file": policy}
    elif policy is not None and (os.sep in policy or os.path.exists(policy)):
        raise ConfigError(f"policy: {describe_missing(policy)}")
    elif policy is not None or not config.controller:
        names = f"a name in `snake-gym list policies`, or one of {', '.join(CONTROLLERS)}"
        nearest = "" if policy is None else hint(policy, [*CONTROLLERS, *shipped_policies()])
        raise ConfigError(f"policy is {policy!r}; expected a policy file, a tuned YAML file, {names}{nearest}")
    return _plan_controller(config, {**config.controller, **source})


def _plan_controller(config: RunConfig, controller: dict[str, Any]) -> Plan:
    robot = robot_of(config)
    settings = resolve_controller(controller, "controller", robot)
    kind, tuning = str(settings["kind"]), tuning_of(controller, robot)
    notes: tuple[str | None, ...] = ()
    if tuning is not None:
        notes = tuning.robot_note(robot), _task_note("tuned", tuning.env_id)
    elif "kind" in controller:
        notes = (f"{kind} plays without settings tuned for {robot.name} ({tuned_file(robot.name, kind)})",)
    action = build(ActionConfig, controller_action(settings), "action")
    contract = action_contract(action, robot, MeasuredCourse(config.course, robot))
    return Plan(ZeroResidual(contract.decoder.size), contract, config.policy or kind, tuple(filter(None, notes)))


def _is_tuned(kind: str, robot: Any) -> bool:
    """Return True if there are readable settings tuned for the robot: a small board may be without PyYAML."""
    try:
        importlib.import_module("snake_gym.config.yaml_text")
    except ImportError:
        return False
    return tuned_file(robot.name, kind).is_file()


def _task_note(made: str, env_id: str | None) -> str | None:
    """Return a note on a policy or gait made for another task than the robot's, which is to visit targets, or None."""
    return None if env_id in (None, _TASK) else f"{made} in {env_id}; here it visits targets, as in {_TASK}"


def file_contract(policy: FilePolicy, robot: str | dict[str, Any] | None, tracked_point: str) -> Contract:
    """Return the contract of a policy file; ``robot`` None: the one it was trained on. Raises ConfigError."""
    layout = policy.make_layout()
    if layout.point != tracked_point:
        raise ConfigError(f"tracked_point is {tracked_point!r}; expected {layout.point!r}, as the policy was trained")
    return Contract(policy.make_decoder(), layout, policy.spec if robot is None else load_any_robot(robot))


def action_contract(
    action: ActionConfig, robot: Any, course: MeasuredCourse, observation: ObservationConfig | None = None
) -> Contract:
    """Return the contract of an action without policy file, with its observation. Raises ConfigError."""
    decoder, shown = ActionDecoder(action, robot, course.holds_speed), observation or ObservationConfig()
    if shown.privileged:
        raise ConfigError(
            f"observation.privileged is [{', '.join(shown.privileged)}]; expected none: nobody knows the truth about a "
            "real robot"
        )
    layout = ObservationLayout(
        robot, decoder.size, decoder.has_phase, course.config.tracked_point, columns=shown.columns,
        history=shown.history, controller_signals=decoder.signal_names, **course.layout_settings,
    )  # fmt: skip
    return Contract(decoder, layout, robot)


def open_loop(
    contract: Contract, settings: LoopSettings, course: MeasuredCourse | None = None
) -> tuple[RobotLoop, Connected]:
    """Open port and pose source. Return the loop on them; ``course`` None: the targets of the settings. Raises
    ConfigError, and leaves nothing open then."""
    course = MeasuredCourse(settings.course, contract.decoder.spec) if course is None else course
    _check_columns(contract.layout, course.columns)
    connected = connect(settings.connection, settings.safety, contract.robot)
    try:
        limit_s = settings.time_limit_s
        return RobotLoop(contract, connected.body, connected.pose, course, settings.loop, limit_s), connected
    except BaseException:
        connected.close()
        raise


def _check_columns(layout: ObservationLayout, task_columns: Collection[str]) -> None:
    """Raise ConfigError for columns of sensors that are not built in, or of other tasks than the robot's, which has
    ``task_columns``."""
    by_decoder = {name: np.zeros(1) for name in layout.controller_signals}
    lacking = [
        name for name in layout.fields
        if name not in task_columns
        and (name in _NO_SENSOR or (name not in OWN and layout.lacks_signal(name, by_decoder, 1)))
    ]  # fmt: skip
    if lacking:
        known = ", ".join([name for name in OWN if name not in _NO_SENSOR] + list(task_columns))
        of = "" if task_columns else f"columns of {_TASK} without course.lookahead: "
        raise ConfigError(
            f"the observation shows {', '.join(lacking)}, which a real robot does not tell; expected {of}{known}"
        )
