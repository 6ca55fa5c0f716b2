"""What is compared, and on what: the settings of a benchmark, its scenarios and its classical entrants.

A scenario is one world seed: targets or obstacles, faults and start follow from it alone, whatever the action space.
World i of every policy has seed ``seed + i``, so that row i of any two policies is a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from snake_gym.benchmark.policy_fit import column_fault, layout_in, robot_note, scale_note
from snake_gym.benchmark.seed_ranges import BENCHMARK
from snake_gym.config import ConfigError, build, choose, merge, to_dict
from snake_gym.controllers import CONTROLLERS, make_controller, resolve_controller
from snake_gym.envs import DEFAULT_ENV, EnvConfig, SnakeVectorEnv, choose_env
from snake_gym.interface.policy import ControllerPolicy
from snake_gym.robot.catalogue import load_robot
from snake_gym.robot.spec import RobotSpec

EntrantKind = Literal["learned", "classical"]
MOST_EPISODES = 100_000
"""About 1 GB: a world takes some 10 kB."""


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


class TrainedPolicy(Policy, Protocol):
    """A policy that knows where it comes from."""

    @property
    def env_config(self) -> Mapping[str, Any]:
        """Settings of the env it was trained in, complete."""
        ...

    @property
    def digest(self) -> str:
        """Changes whenever the policy would act differently."""
        ...

    @property
    def observation_space(self) -> Space[Any]:
        """Of one world, as the next."""
        ...

    @property
    def action_space(self) -> Space[Any]: ...


@dataclass(frozen=True)
class Axis:
    """Settings that a sweep varies together."""

    keys: tuple[str, ...]
    """Settings of the benchmark, as in ``env.field.difficulty``; each of them gets the same value."""
    values: tuple[float | int | bool | str, ...]

    def __post_init__(self) -> None:
        if not self.keys or not self.values:
            raise ValueError(f"keys are {list(self.keys)}, values {list(self.values)}; expected at least one of each")


@dataclass(frozen=True)
class BenchmarkConfig:
    """Settings of a benchmark."""

    env_id: str = DEFAULT_ENV
    """The environment that the scenarios are of."""
    robot: str | dict[str, Any] = "resilient_servo"
    """A preset's name, the path of a robot's YAML file, or its settings."""
    episodes: int = 512
    """How many scenarios each policy plays, one episode each."""
    seed: int = BENCHMARK.first
    """Seed of the first scenario; ``seed_ranges`` says which seeds training and tuning use."""
    env: dict[str, Any] = field(default_factory=dict)
    """Settings of the env (faults, sensors, time_limit_s ...); robot and action are not set here."""
    controllers: tuple[str, ...] = ("sjc", "cc", "cpg")
    """Classical entrants: a kind, played with its tuned parameters, or ``name=file.yaml``."""
    policies: dict[str, str] = field(default_factory=dict)
    """Learned entrants: name and path of a run folder, checkpoint or policy file."""
    resamples: int = 10_000
    """Bootstrap resamples."""
    replays: int = 4
    """Scenarios shown in the replay."""
    sweep: dict[str, Axis] = field(default_factory=dict)
    """What ``evaluate.py --sweep`` varies, by the name of the axis."""

    def __post_init__(self) -> None:
        choose_env(self.env_id)
        for name, least in (("episodes", 1), ("seed", 0), ("resamples", 100), ("replays", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} is {getattr(self, name)}; expected >= {least}")
        if self.episodes > MOST_EPISODES:
            raise ValueError(f"episodes is {self.episodes}; expected <= {MOST_EPISODES}: all are played at once")
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
    connect: Callable[[SnakeVectorEnv], Policy]
    """Makes the policy for an env that has these settings."""
    identity: Mapping[str, Any]
    """Plain data that changes whenever the policy would act differently."""
    notes: tuple[str, ...] = ()
    """What to know beside its results."""


@dataclass(frozen=True)
class Scenarios:
    """The worlds that every entrant plays."""

    env: EnvConfig
    spec: RobotSpec
    seed: int
    episodes: int
    env_id: str = DEFAULT_ENV

    def make_env(self, entrant: Entrant, n_worlds: int | None = None) -> SnakeVectorEnv:
        """All scenarios (or the first ones) at once, with the entrant's action space, ended worlds standing still."""
        settings = merge(to_dict(self.env), entrant.env_settings)
        settings["action"] = to_dict(entrant.env_settings.get("action", {}))  # replaces, never mixes, action spaces
        make = choose_env(self.env_id)
        config = build(make.config_type, settings, f"{entrant.name}: env")
        return make(n_worlds or self.episodes, AutoresetMode.DISABLED, config=config)

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
                    f"{here.shape}; it was trained for another robot or env than {self.env_id}"
                )

    def identity(self) -> dict[str, Any]:
        """Plain data that changes whenever a scenario would."""
        settings = to_dict(self.env)
        for irrelevant in ("action", "n_threads"):
            settings.pop(irrelevant, None)
        return {
            "env_id": self.env_id, "env": settings, "robot": to_dict(self.spec), "seed": self.seed,
            "episodes": self.episodes,
        }  # fmt: skip


def make_scenarios(config: BenchmarkConfig) -> Scenarios:
    """The scenarios of a benchmark. Raises ConfigError for env settings that are wrong."""
    settings = merge(config.env, {"robot": config.robot})
    env = build(choose_env(config.env_id).config_type, settings, "env")
    spec = env.load_robot()
    env.n_steps(spec)
    return Scenarios(env, spec, config.seed, config.episodes, config.env_id)


def tuned_file(robot: str, kind: str) -> Path:
    """Where a controller's tuned parameters for a robot of that name are, or belong, in ``configs/controllers``.

    That folder lies beside the package; where there is none (an installed package), below the working directory.
    """
    folder = Path("configs", "controllers")
    beside = Path(__file__).parents[2] / folder
    return (beside if beside.is_dir() else folder) / robot / f"{kind}.yaml"


def classical_entrant(entry: str, config: BenchmarkConfig) -> Entrant:
    """A classical controller.

    Args:
        entry: a controller kind, whose tuned parameters are in ``tuned_file``, or ``name=file``.
        config: the benchmark that it takes part in.

    Raises:
        ConfigError: unknown kind, no tuned parameters, or a file that is none of a controller.
    """
    spec = load_robot(config.robot)
    name, given, file = entry.partition("=")
    if given:
        path = Path(file)
    else:
        path = tuned_file(spec.name, choose(name, CONTROLLERS, "controller"))
        if not path.is_file():
            raise ConfigError(
                f"controller {name} has no tuned parameters for robot {spec.name} ({path} does not exist): make them "
                f"with `{_tuning_command(config, name)}`, where ENV.yaml holds settings like those of env here, faults "
                "included (as configs/env/locked_joints.yaml does)"
            )
    settings = resolve_controller({"file": str(path)}, name)
    make_controller(settings, spec, where=str(path))  # says now whether it fits the robot

    def connect(env: SnakeVectorEnv) -> Policy:
        core = env.core
        return ControllerPolicy(make_controller(settings, core.spec), core.layout, core.decoder)

    env_settings = {"action": {"kind": "joint_reference"}}
    return Entrant(name, "classical", env_settings, connect, {"controller": settings})


def _tuning_command(config: BenchmarkConfig, kind: str) -> str:
    """Tunes a controller on scenarios like those of the benchmark."""
    robot = config.robot if isinstance(config.robot, str) else "ROBOT.yaml"
    env_id = "" if config.env_id == DEFAULT_ENV else f" --env-id {config.env_id}"
    return f"python -m snake_gym.controllers.tune --robot {robot} --controller {kind}{env_id} --env ENV.yaml"


def named_policies(given: Sequence[str]) -> dict[str, str]:
    """Paths by name for texts ``NAME=PATH``, or a path alone, which is called after its last part.

    Raises ConfigError for an empty part, or a name that is given twice.
    """
    policies: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals:
            name, path = Path(text).stem, text
        if not name or not path:
            raise ConfigError(f"--policy is {text!r}; expected NAME=PATH")
        if name in policies:
            raise ConfigError(f"--policy: two policies are called {name!r}; give one of them another name, NAME=PATH")
        policies[name] = path
    return policies


def learned_entrant(name: str, policy: TrainedPolicy, scenarios: Scenarios) -> Entrant:
    """A trained policy. Raises ConfigError unless its observations and actions are those of the scenarios.

    Another robot or scale than it was trained with is noted.
    """
    settings = policy_settings(policy.env_config)
    entrant = Entrant(name, "learned", settings, lambda env: policy, {"policy": policy.digest})
    scenarios.check_spaces(entrant, policy.observation_space, policy.action_space)
    own, here = layout_in(policy.env_config), scenarios.make_env(entrant, 1).core.layout
    if own is None:
        return replace(entrant, notes=(f"{name}: the env it was trained in is not known to this version",))
    if (fault := column_fault(own, here)) is not None:
        raise ConfigError(f"policy {name} was trained on other observations: {fault}")
    notes = (robot_note(own.spec, here.spec), scale_note(own, here))
    return replace(entrant, notes=tuple(f"{name}: {note}" for note in notes if note is not None))


def policy_settings(trained_in: Mapping[str, Any]) -> dict[str, Any]:
    """What a learned policy needs of an env, from the settings of the one it was trained in.

    Its action space, whether it is shown the faults, and the geometry and scale of what it senses; noise is a matter of
    the scenarios.
    """
    wanted = {
        "faults": ("reveal",),
        "contact_sensor": ("limit_n",),
        "range_scan": ("n_beams", "field_of_view_rad", "max_range_m"),
    }
    groups = {group: {k: trained_in[group][k] for k in keys} for group, keys in wanted.items() if group in trained_in}
    return {"action": trained_in["action"], **groups}
