"""Robot that a person drives: what a driver has to be, and gaits in place of a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, cast

from snake_gym.config import ConfigError, choose
from snake_gym.controllers import Controller, make_controller
from snake_gym.controllers.driving import DrivenGaits, DrivenModes
from snake_gym.controllers.tuned import tuned_kinds
from snake_gym.hardware.guard.body import BodySample
from snake_gym.hardware.guard.emergency_stop import EmergencyStop
from snake_gym.hardware.robot.robot_loop import RobotLoop
from snake_gym.hardware.robot.run_config import Plan, RunConfig, action_contract, plan_run, robot_of
from snake_gym.interface.actions import ActionConfig
from snake_gym.interface.policy import ZeroResidual
from snake_gym.robot.spec import RobotSpec
from snake_gym.spatial.gaits import MODES, Mode, Multimodal
from snake_gym.spatial.spec import SpatialSpec


class LetGo(Exception):
    """The driver has let go: the run ends, torque off, for the reason ``str(error)`` and with this exit code."""

    def __init__(self, reason: str, code: int) -> None:
        super().__init__(reason)
        self.code = code


class Driver(Protocol):
    """Somebody who drives a robot."""

    def take(self, loop: RobotLoop, stop: EmergencyStop) -> None:
        """Begin, before the robot is brought up."""
        ...

    def look(self, sample: BodySample) -> None:
        """Look at the robot, and at keys, in every bus cycle. Raises LetGo."""
        ...

    def steer(self) -> None:
        """Write into ``loop.state`` what the next step shall do."""
        ...


def plan_driving(config: RunConfig, names: Sequence[str]) -> tuple[Plan, DrivenGaits | DrivenModes]:
    """Return a plan in which the named gaits are driven, without names those tuned for the robot.

    Those of a spatial robot are the modes of its network, all five without names. Raises ConfigError.
    """
    if config.policy is not None:
        raise ConfigError(f"policy is {config.policy!r}; expected none: name the gaits to drive on the command line")
    robot, notes = robot_of(config), list[str]()
    action = ActionConfig(kind="residual")
    driven: DrivenGaits | DrivenModes
    if isinstance(robot, SpatialSpec):
        action = ActionConfig(kind="residual", controller={"kind": "multimodal"})
        driven = _modes(config, robot, names)
    else:
        driven = _gaits(config, list(dict.fromkeys(names)) or tuned_kinds(robot) or ["cc"], robot, notes)
    contract = action_contract(action, robot, config.course)
    contract.decoder.controller = driven
    return Plan(ZeroResidual(contract.decoder.size), contract, "by hand", tuple(notes)), driven


def _gaits(config: RunConfig, names: Sequence[str], robot: RobotSpec, notes: list[str]) -> DrivenGaits:
    if config.controller and len(names) != 1:
        raise ConfigError(
            f"controller is set, and there are {len(names)} gaits to drive; expected one, as in: drive cc"
        )
    gaits: dict[str, Controller] = {}
    for name in names:
        plan = plan_run(replace(config, policy=name))
        controller = plan.contract.decoder.controller
        if controller is None or not isinstance(plan.policy, ZeroResidual):
            raise ConfigError(f"gait {name!r} is a policy file; expected classical controllers, or their YAML")
        gaits[plan.name] = controller
        notes += [f"{name}: {note}" for note in plan.notes]
    return DrivenGaits(gaits, robot)


def _modes(config: RunConfig, robot: SpatialSpec, names: Sequence[str]) -> DrivenModes:
    modes = [cast(Mode, choose(name.upper(), MODES, "gait")) for name in dict.fromkeys(names)]
    settings = {"kind": "multimodal", "mode": modes[0] if modes else "SWL", **config.controller}
    network = make_controller(settings, cast(Any, robot))
    if not isinstance(network, Multimodal) or network.config.guided:
        raise ConfigError("controller is not what can be driven; expected settings of multimodal without guided")
    return DrivenModes(network, modes)
