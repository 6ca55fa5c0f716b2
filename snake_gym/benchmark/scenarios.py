"""What is compared, and on what: the settings of a benchmark, its scenarios and its classical entrants.

A scenario is one world seed: targets, faults and start follow from it alone, whatever the action space. World i of
every policy has seed ``seed + i``, so that row i of any two policies is a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from snake_gym.config import ConfigError, build, choose, merge, to_dict
from snake_gym.controllers import CONTROLLERS, make_controller, resolve_controller
from snake_gym.envs import WaypointsConfig, WaypointsVectorEnv, make_waypoints
from snake_gym.interface.policy import ControllerPolicy
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.spec import RobotSpec

EntrantKind = Literal["learned", "classical"]


class Policy(Protocol):
    """Anything with SB3's ``predict``."""

    def predict(
        self,
        observation: NDArray[np.float32],
        state: Any = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], Any]:
        """Actions (W, A) for observations (W, D), and the state to pass to the next call."""
        ...


@dataclass(frozen=True)
class BenchmarkConfig:
    """Settings of a benchmark."""

    robot: str | dict[str, Any] = "resilient_servo"
    """A preset's name, the path of a robot's YAML file, or its settings."""
    episodes: int = 512
    """How many scenarios each policy plays, one episode each."""
    seed: int = 1_000_000
    """Seed of the first scenario; far from the seeds of training and tuning, which start at 0."""
    env: dict[str, Any] = field(default_factory=dict)
    """Settings of the env (course, faults, sensors, time_limit_s ...); robot and action are not set here."""
    controllers: tuple[str, ...] = ("sjc", "cc", "cpg")
    """Classical entrants: a kind, played with its tuned parameters, or ``name=file.yaml``."""
    policies: dict[str, str] = field(default_factory=dict)
    """Learned entrants: name and path of a run folder or checkpoint."""
    resamples: int = 10_000
    """Bootstrap resamples."""
    replays: int = 4
    """Scenarios shown in the replay."""

    def __post_init__(self) -> None:
        for name, least in (("episodes", 1), ("seed", 0), ("resamples", 100), ("replays", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; expected >= {least}")
        if self.seed + self.episodes > 2**31:
            raise ValueError(f"seed is {self.seed}; expected seed + episodes <= 2^31")
        for key, instead in (("robot", "robot"), ("action", "controllers and policies")):
            if key in self.env:
                raise ValueError(f"env.{key} is not set here; it follows from {instead}")


@dataclass(frozen=True)
class Entrant:
    """One policy that takes part."""

    name: str
    kind: EntrantKind
    env_settings: Mapping[str, Any]
    """What its env needs besides the scenario: its action space, and whether it is shown the faults."""
    connect: Callable[[WaypointsVectorEnv], Policy]
    """Makes the policy for an env that has these settings."""
    identity: Mapping[str, Any]
    """Plain data that changes whenever the policy would act differently."""


@dataclass(frozen=True)
class Scenarios:
    """The worlds that every entrant plays."""

    env: WaypointsConfig
    spec: RobotSpec
    seed: int
    episodes: int

    def make_env(self, entrant: Entrant, n_worlds: int | None = None) -> WaypointsVectorEnv:
        """All scenarios (or the first ones) at once, with the entrant's action space, ended worlds standing still."""
        settings = merge(to_dict(self.env), entrant.env_settings)
        settings["action"] = to_dict(entrant.env_settings.get("action", {}))  # replaces, never mixes, action spaces
        config = build(WaypointsConfig, settings, f"{entrant.name}: env")
        return make_waypoints(n_worlds or self.episodes, config, AutoresetMode.DISABLED)

    def check_spaces(self, entrant: Entrant, observation: Space[Any], action: Space[Any]) -> None:
        """Raise ConfigError unless a policy with these spaces of one world fits the robot and env of the scenarios."""
        env = self.make_env(entrant, 1)
        pairs = {
            "observations": (observation, env.single_observation_space),
            "actions": (action, env.single_action_space),
        }
        for what, (own, here) in pairs.items():
            if own.shape != here.shape:
                raise ConfigError(
                    f"policy {entrant.name} has {own.shape} {what}, these scenarios on robot {self.spec.name} have "
                    f"{here.shape}; it was trained for another robot"
                )

    def identity(self) -> dict[str, Any]:
        """Plain data that changes whenever a scenario would."""
        settings = to_dict(self.env)
        for irrelevant in ("action", "n_threads", "stagger"):
            settings.pop(irrelevant, None)
        return {"env": settings, "robot": to_dict(self.spec), "seed": self.seed, "episodes": self.episodes}


def make_scenarios(config: BenchmarkConfig) -> Scenarios:
    """The scenarios of a benchmark. Raises ConfigError for env settings that are wrong."""
    settings = merge(config.env, {"robot": config.robot, "stagger": False})
    env = build(WaypointsConfig, settings, "env")
    spec = env.load_robot()
    env.n_steps(spec)
    return Scenarios(env, spec, config.seed, config.episodes)


def classical_entrant(entry: str, robot: str | Mapping[str, Any], folder: Path) -> Entrant:
    """A classical controller.

    Args:
        entry: a controller kind, whose tuned parameters are in ``folder/<robot name>/<kind>.yaml``, or ``name=file``.
        robot: the robot it controls.
        folder: where tuned parameters are.

    Raises:
        ConfigError: unknown kind, no tuned parameters, or a file that is none of a controller.
    """
    spec = load_robot(robot)
    name, given, file = entry.partition("=")
    if given:
        path = Path(file)
    else:
        path = folder / spec.name / f"{choose(name, CONTROLLERS, 'controller')}.yaml"
        if not path.is_file():
            raise ConfigError(
                f"controller {name} has no tuned parameters for robot {spec.name} ({path} does not exist): make them "
                f"with `python -m snake_gym.controllers.tune --robot {spec.name} --controller {name}`"
            )
    settings = resolve_controller({"file": str(path)}, name)
    make_controller(settings, spec, where=str(path))  # says now whether it fits the robot

    def connect(env: WaypointsVectorEnv) -> Policy:
        core = env.core
        return ControllerPolicy(make_controller(settings, core.spec), core.layout, core.decoder)

    env_settings = {"action": {"kind": "joint_reference"}}
    return Entrant(name, "classical", env_settings, connect, {"controller": settings})
