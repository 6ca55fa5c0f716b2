"""Subject of a comparison: the settings of a benchmark, its scenarios and its entrants.

A scenario is one world seed: targets or obstacles, faults and start follow from it alone, whatever the action space.
World i of every policy has seed ``seed + i``, so that row i of any two policies is a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from snake_gym.benchmark.own_policy import OwnPolicy
from snake_gym.benchmark.policies import TrainedPolicy
from snake_gym.benchmark.policy_fit import column_fault, env_note, tuning_notes
from snake_gym.benchmark.seed_ranges import BENCHMARK
from snake_gym.config import ConfigError, Settings, build, digest, merge, to_dict
from snake_gym.config.settings import Count, PositiveCount
from snake_gym.controllers import CONTROLLERS, make_controller, resolve_controller, tuning_of
from snake_gym.controllers.tuned import find_tuned
from snake_gym.envs import DEFAULT_ENV, EnvConfig, SnakeEnv, SnakeVectorEnv
from snake_gym.envs.core import SnakeCore
from snake_gym.envs.observation_columns import check_columns
from snake_gym.interface.policy import Policy, ZeroResidual, controller_action
from snake_gym.plugins import choose_registered
from snake_gym.registry import find_task
from snake_gym.robot.difference import robot_note
from snake_gym.robot.spec import RobotSpec
from snake_gym.simulation.streams import RandomStreams
from snake_gym.tasks.task_settings import build_env, laid_over, scenario_settings

EntrantKind = Literal["learned", "classical", "oracle", "reference"]
"""Kinds of entrants. Shares are measured to oracles, and nothing to references."""

BOUND = "oracle_now"
"""Oracle that knows no more than a policy can find out."""
ORACLES: dict[str, tuple[str, ...]] = {"oracle": ("targets", "faults"), "oracle_next": ("faults",), BOUND: ()}
"""Names of oracles (``oracle``), and what each knows of what is to come."""


class BenchmarkConfig(Settings):
    """Settings of a benchmark."""

    scenarios: str | None = None
    """Hash of the scenarios that this file stands for (``evaluate --freeze``); None: they may change."""

    env_id: str = DEFAULT_ENV
    """Registered name of the environment of the scenarios."""
    robot: str | dict[str, Any] | None = None
    """Preset name, path of a robot's YAML file, or its settings; None: that of env_file, or resilient_servo."""
    episodes: PositiveCount = 512
    """Number of scenarios, all played at once (10 kB each), one episode of each policy."""
    seed: Count = BENCHMARK.first
    """Seed of the first scenario; ``seed_ranges`` lists the seeds of training and tuning."""
    env_file: str | None = None
    """YAML file with settings of the env; those of ``env`` are laid over it."""
    env: dict[str, Any] = field(default_factory=dict)
    """Settings of the env (faults, sensors, time_limit_s ...); robot and action are not set here."""
    controllers: tuple[str, ...] = ("sjc", "cc", "cpg")
    """Classical entrants: a kind, played with its tuned parameters, or ``name=file.yaml``; ``oracle``,
    ``oracle_next`` and ``oracle_now``, which see the truth, are bounds to compare with."""
    policies: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    """Learned entrants: name and path of a run folder, checkpoint, policy file, or a policy of another kind. A list of
    paths, a glob (``runs/ppo/seed_*``) or a folder of runs: trainings of one recipe, which are one row."""
    revealed: dict[str, str] = field(default_factory=dict)
    """Further rows, never opponents: controllers (a kind or a file) that are shown the failed joints, by name."""
    action: dict[str, Any] | None = None
    """Action space of policies that do not say in which env they were trained; None: that of env_file."""
    estimator: bool = False
    """Find slips and offsets and undo them, for every entrant but oracles (``action.estimator``)."""
    resamples: PositiveCount = 10_000
    """Number of bootstrap resamples."""
    references: tuple[str, ...] = ()
    """Names of entrants that every other one is compared with, as with the best classical one."""

    def check(self) -> None:
        find_task(self.env_id)
        if self.seed + self.episodes > 2**31:
            raise ValueError(f"seed is {self.seed}; expected seed + episodes <= 2^31")


@dataclass(frozen=True)
class Entrant:
    """One policy in a comparison."""

    name: str
    kind: EntrantKind
    env_settings: Mapping[str, Any]
    """Settings of its env that are no part of the scenario: action space, and whether it is shown the faults."""
    make_policy: Callable[[SnakeVectorEnv], Policy]
    """Maker of the policy for an env that has these settings."""
    identity: Mapping[str, Any]
    """Plain data about the policy for ``results.json``, such as its digest or settings."""
    notes: tuple[str, ...] = ()
    """Notes on its results, without its name."""
    training: int = 0
    """Number of the training, from 0 on; trainings of one recipe share a name."""
    training_name: str = ""


@dataclass(frozen=True)
class Scenarios:
    """Worlds of a comparison, the same for every entrant."""

    env: EnvConfig
    spec: RobotSpec
    seed: int
    episodes: int
    env_id: str = DEFAULT_ENV
    estimator: bool = False

    def make_env(self, entrant: Entrant, n_worlds: int | None = None) -> SnakeVectorEnv:
        """Make an env of all scenarios, or the first, with the entrant's action space; ended worlds stay still."""
        settings = merge(to_dict(self.env), entrant.env_settings)
        settings["action"] = to_dict(entrant.env_settings.get("action", {}))  # replaces, never mixes, action spaces
        if self.estimator and entrant.kind != "oracle":
            settings["action"] = merge(settings["action"], {"estimator": {"on": True}})
        config = build(find_task(self.env_id), settings, f"{entrant.name}: env")
        return SnakeVectorEnv(self.env_id, n_worlds or self.episodes, AutoresetMode.DISABLED, config=config)

    def title(self) -> str:
        """Return their number and length for people."""
        return f"{self.episodes} scenario{'' if self.episodes == 1 else 's'} of {self.env.time_limit_s:g} s"

    def hash(self) -> str:
        """Return a text by which results of several people are known to be of the same scenarios, on any machine."""
        robot = {name: value for name, value in to_dict(self.spec).items() if name not in ("name", "source")}
        return digest(self.env_id, scenario_settings(self.env), robot, self.seed, self.episodes)


def resolve_benchmark(config: BenchmarkConfig) -> BenchmarkConfig:
    """Return the benchmark with the settings of its ``env_file`` and its robot written out. Raises ConfigError."""
    settings = laid_over(config.env_id, config.env_file, config.env)
    robot = settings.pop("robot", "resilient_servo")
    action = settings.pop("action", {})
    return replace(
        config, env_file=None, env=settings, robot=robot if config.robot is None else config.robot,
        action=action if config.action is None else config.action,
    )  # fmt: skip


def make_scenarios(config: BenchmarkConfig) -> Scenarios:
    """Return the scenarios of a benchmark, without privileged observations. Raises ConfigError for wrong settings."""
    config = resolve_benchmark(config)
    settings = merge(config.env, {"robot": config.robot, "action": config.action})
    env = build_env(config.env_id, settings).without_privileged()
    spec = env.load_robot()
    env.n_steps(spec)
    check_columns(env)
    return Scenarios(env, spec, config.seed, config.episodes, config.env_id, config.estimator)


def classical_entrant(entry: str, config: BenchmarkConfig) -> Entrant:
    """Return a classical controller: a kind, with the parameters that were tuned for the robot, or ``name=file``.

    A gait that was tuned on another robot or in other scenarios than those of ``config`` gets a note. Raises
    ConfigError for an unknown kind, missing tuned parameters, or a file of something else.
    """
    scenarios = make_scenarios(config)
    spec, env = scenarios.spec, scenarios.env
    name, given, file = entry.partition("=")
    if not given:
        kind = choose_registered(name, CONTROLLERS, "controller")
        file = str(find_tuned(kind, spec))
    settings = resolve_controller({"file": file}, name, spec)
    make_controller(settings, spec, where=file)  # says now whether it fits the robot
    notes = tuning_notes(tuning_of({"file": file}, spec), spec, config.env_id, env)
    action = {"action": controller_action(settings)}
    return Entrant(name, "classical", action, zero_residual, {"controller": settings}, notes)


def revealed_entrant(name: str, controller: str, config: BenchmarkConfig) -> Entrant:
    """Return a row of ``config.revealed``."""
    is_file = controller.endswith((".yaml", ".yml"))
    entrant = classical_entrant(f"{name}={controller}" if is_file else controller, config)
    return reveal_faults(replace(entrant, name=name, kind="reference"))


def reveal_faults(entrant: Entrant) -> Entrant:
    """Return ``entrant`` with the failed joints shown to it."""
    settings = merge(entrant.env_settings, {"faults": {"reveal": True}})
    return replace(entrant, env_settings=settings, identity={**entrant.identity, "reveal": True})


def zero_residual(env: SnakeVectorEnv) -> Policy:
    """Return a policy of zeros: the controller underneath acts alone."""
    return ZeroResidual(env.core.decoder.size)


class RandomPolicy:
    """Policy of uniform actions (W, A), from each world's own stream."""

    def __init__(self, env: SnakeVectorEnv) -> None:
        self._core, self._streams = env.core, RandomStreams("random", env.num_envs)

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[NDArray[np.float32], Any]:
        """Return actions (W, A)."""
        if state is None:
            self._streams.begin(self._core.seeds, self._core.episode)
        return (2.0 * self._streams.uniform(self._core.decoder.size) - 1.0).astype(np.float32), True


def learned_entrant(name: str, policy: TrainedPolicy, scenarios: Scenarios) -> Entrant:
    """Return a trained policy. Raises ConfigError unless its observations and actions are those of the scenarios and
    an imported module registers the task that it was trained in.

    Another robot, scale or kind of scenario than in its training gets a note. One that does not say where it was
    trained plays in the env of the scenarios, with its action space.
    """
    trained_in, settings = None, {"action": to_dict(scenarios.env.action)}
    if policy.env_id is not None:
        task = find_task(policy.env_id, f"policy {name}: env_id")
        trained_in = build(task, policy.env_config or {}, f"policy {name}: env")
        settings = policy_settings(policy.env_config or {})
    for group in ("course", "follow"):
        if not hasattr(scenarios.env, group):  # another task, which does not show this
            settings.pop(group, None)
    entrant = Entrant(name, "learned", settings, lambda env: policy, {"policy": policy.digest})
    env_here = scenarios.make_env(entrant, 1)
    core, spaces = env_here.core, (env_here.single_observation_space, env_here.single_action_space)
    assert isinstance(spaces[1], Box)
    if isinstance(policy, OwnPolicy):
        policy = policy.in_env(lambda: SnakeEnv(scenarios.env_id, config=core.config), spaces[1])
        entrant = replace(entrant, identity={"policy": policy.digest})
    for what, own_space, here_space in zip(
        ("observations", "actions"), (policy.observation_space, policy.action_space), spaces, strict=True
    ):
        if own_space is not None and own_space.shape != here_space.shape:
            raise ConfigError(
                f"policy {name} has {own_space.shape} {what}, these scenarios on robot {scenarios.spec.name} have "
                f"{here_space.shape}; it was trained for another robot or env than {scenarios.env_id}"
            )
    notes: list[str | None] = []
    if (box := policy.action_space) is not None and (box.low.min(), box.high.max()) != (-1.0, 1.0):
        notes.append(f"its actions are in [{box.low.min():g}, {box.high.max():g}]; here they are clipped to [-1, 1]")
    if trained_in is not None:
        own = SnakeCore(trained_in, 1).layout
        if (fault := column_fault(own, core.layout)) is not None:
            raise ConfigError(f"policy {name} was trained on other observations: {fault}")
        notes.append(robot_note(own.spec, core.spec))
        notes.append(env_note(str(policy.env_id), trained_in, scenarios.env_id, core.config))
    return replace(entrant, notes=tuple(note for note in notes if note is not None))


def policy_settings(trained_in: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a learned policy needs of an env, from those of its training env.

    They are its action space, the flag that shows it the faults, the geometry and scale of its sensors, and how much it
    is shown of a course or path; noise belongs to the scenarios.
    """
    wanted = {
        "faults": ("reveal",),
        "contact_sensor": ("limit_n",),
        "range_scan": ("n_beams", "field_of_view_rad", "max_range_m"),
        "course": ("lookahead",),
        "follow": ("lookahead_m", "preview_m"),
    }
    groups = {
        group: {k: trained_in[group][k] for k in keys if k in trained_in[group]}
        for group, keys in wanted.items()
        if group in trained_in
    }
    seen = {"observation": {**trained_in["observation"], "privileged": []}} if "observation" in trained_in else {}
    return {"action": trained_in["action"], **groups, **seen}
