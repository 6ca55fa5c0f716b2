"""Robot that a person drives: what a driver has to be, and gaits in place of a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

from snake_gym.config import ConfigError, choose
from snake_gym.controllers import CONTROLLERS, Controller, make_controller
from snake_gym.controllers.driving import DrivenGaits, DrivenModes
from snake_gym.controllers.tuned import tuned_kinds
from snake_gym.hardware.guard.body import BodySample
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.robot.robot_loop import MeasuredCourse, RobotLoop
from snake_gym.hardware.robot.run_config import Plan, RunConfig, action_contract, plan_run, robot_of
from snake_gym.interface.actions import ActionConfig
from snake_gym.interface.policy import ZeroResidual


class LetGo(Exception):
    """The driver has let go: the run ends, torque off, for the reason ``str(error)`` and with this exit code."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code


class Driver(Protocol):
    """Somebody who drives a robot."""

    def take(self, loop: RobotLoop, stop: EmergencyStop) -> None:
        """Begin, before the robot is brought up."""

    def look(self, sample: BodySample) -> None:
        """Look at the robot, and at keys, in every bus cycle. Raises LetGo."""

    def steer(self) -> None:
        """Write into ``loop.state`` what the next step shall do."""


def plan_driving(config: RunConfig, names: Sequence[str]) -> tuple[Plan, DrivenGaits | DrivenModes]:
    """Return a plan in which the named gaits are driven, without names those tuned for the robot.

    With a default controller of several modes these are its modes, all of them without names. Raises ConfigError.
    """
    if config.policy is not None:
        raise ConfigError(f"policy is {config.policy!r}; expected none: name the gaits to drive on the command line")
    driven: DrivenGaits | DrivenModes
    robot, notes = robot_of(config), list[str]()
    if hasattr(CONTROLLERS[robot.default_controller["kind"]], "modes"):
        driven = _drive_modes(config, robot, names)
    else:
        driven = _drive_gaits(config, robot, names, notes)
    action = ActionConfig(kind="residual", controller={"kind": robot.default_controller["kind"]})
    contract = action_contract(action, robot, MeasuredCourse(config.course, robot, is_free=True))
    contract.decoder.controller = driven
    return Plan(ZeroResidual(contract.decoder.size), contract, "by hand", tuple(notes)), driven


def _drive_gaits(config: RunConfig, robot: Any, names: Sequence[str], notes: list[str]) -> DrivenGaits:
    names = list(dict.fromkeys(names)) or tuned_kinds(robot)
    if config.controller and len(names) != 1:
        raise ConfigError(f"controller is set, and there are {len(names)} gaits to drive; expected one, as in: play cc")
    gaits: dict[str, Controller] = {}
    for name in names or ["cc"]:
        plan = plan_run(replace(config, policy=name))
        controller = plan.contract.decoder.controller
        if controller is None or not isinstance(plan.policy, ZeroResidual):
            raise ConfigError(f"gait {name!r} is a policy file; expected classical controllers, or their YAML")
        gaits[plan.name] = controller
        notes += [f"{name}: {note}" for note in plan.notes]
    return DrivenGaits(gaits, robot)


def _drive_modes(config: RunConfig, robot: Any, names: Sequence[str]) -> DrivenModes:
    kind, mode = (robot.default_controller[name] for name in ("kind", "mode"))
    modes = [choose(name.upper(), CONTROLLERS[kind].modes, "gait") for name in dict.fromkeys(names)]
    settings = {"kind": kind, "mode": modes[0] if modes else mode, **config.controller}
    network: Any = make_controller(settings, robot)
    if not hasattr(network, "modes") or network.config.guided:
        raise ConfigError(f"controller is not what can be driven; expected settings of {kind} without guided")
    return DrivenModes(network, modes)
