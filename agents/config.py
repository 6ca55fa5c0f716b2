"""Settings of a training run: frozen dataclasses hold the defaults, YAML files hold only overrides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from snake_gym.benchmark.policy_fit import tuning_notes
from snake_gym.benchmark.seed_ranges import TRAINING
from snake_gym.config import ConfigError, Settings, apply_overrides, build_over, differences, load_yaml, to_dict
from snake_gym.config.settings import Count, PositiveCount, PositiveShare, Share
from snake_gym.controllers import resolve_controller, tuning_of
from snake_gym.envs import DEFAULT_ENV
from snake_gym.envs.observation_columns import check_columns
from snake_gym.plugins import take_plugins
from snake_gym.registry import find_task
from snake_gym.tasks.task_settings import build_env, laid_over

from .algorithms import find_algorithm

MAX_WORLDS = TRAINING.end // 2
MAX_TOTAL_STEPS = 10**12
"""Largest number of steps of a run: a year at 30,000 steps a second."""


class EvaluationConfig(Settings):
    """Evaluation on held-out scenarios during training; the model with the largest mean return is kept as the best."""

    every_steps: PositiveCount | None = 250_000
    """Env steps between two evaluations, of which the first is at step 0; None: only one at the end."""
    episodes: Annotated[int, Field(ge=1, le=MAX_WORLDS)] = 128
    """Number of scenarios, played at once, one episode each."""


class CheckpointConfig(Settings):
    """Checkpoints from which a run can be resumed."""

    every_steps: Count = 250_000
    """Env steps between two checkpoints; 0: only at the end and when stopped."""
    keep: PositiveCount = 2
    """Number of checkpoints kept, the newest ones."""


class CurriculumConfig(Settings):
    """Difficulty of the training episodes, linear in the steps: a world's next episode has that of its beginning.

    Evaluations have the difficulty of the env's settings.
    """

    start: Share = 0.0
    """Difficulty of the first episodes; see ``difficulty`` of the env."""
    end: Share = 1.0
    """Difficulty of the last episodes."""
    share: PositiveShare = 0.5
    """Share of the run's steps after which the end is reached."""

    def difficulty(self, done: float) -> float:
        """Return the difficulty, to three decimals, after the share ``done`` of the run."""
        return round(self.start + min(done / self.share, 1.0) * (self.end - self.start), 3)


class TrainConfig(Settings):
    """All settings of a run."""

    plugins: tuple[str, ...] = ()
    """Modules of the user that register tasks, columns, fault kinds and more for the run."""
    env_id: str = DEFAULT_ENV
    """Registered name of the environment."""
    env_file: str | None = None
    """YAML file with settings of the env; those of ``env`` are laid over it."""
    env: dict[str, Any] = field(default_factory=dict)
    """Settings of the env; see ``snake_gym.tasks.task``."""
    algorithm: dict[str, Any] = field(default_factory=lambda: {"name": "PPO"})
    """{name: class in stable_baselines3 or sb3_contrib, network: {...}, and the class's own parameters}; PPO has
    three more: ``mirror``, the mirrored share of each minibatch; ``bfloat16``: updates multiply matrices with
    less precision where the processor has instructions for that; ``overlap``: update while the next rollout is
    collected."""
    n_envs: Annotated[int, Field(ge=1, le=MAX_WORLDS)] = 256
    """Number of worlds simulated at once."""
    stagger: bool = False
    """True to end first episodes at up to 32 times spread over the time limit, so that worlds are never all in step."""
    curriculum: CurriculumConfig | None = None
    """Difficulty of the episodes {start, end, share of the run}; None: that of the env's settings."""
    total_steps: Annotated[int, Field(ge=1, le=MAX_TOTAL_STEPS)] = 3_000_000
    """Env steps of all worlds together; the run ends with the first rollout that reaches it."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Seed of networks, noise and worlds."""
    eval: EvaluationConfig = field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    log_every_steps: PositiveCount = 8192
    """Env steps between two points in TensorBoard (at least one rollout)."""
    log_window: PositiveCount = 256
    """Number of newest episodes over which the logged means are taken."""
    if_exists: Literal["refuse", "continue"] = "refuse"
    """refuse: an error if the folder already holds a run; continue: go on with that run (with the same settings)."""
    torch_threads: Annotated[int, Field(ge=1, le=256)] = 1
    """Threads of the learner. Small networks gain nothing from more if waiting threads sleep; two threads that spin
    lose most of their speed to one busy neighbour. Another number rounds sums differently, so exact resuming needs the
    same number."""
    device: str = "cpu"
    """Device of the learner, by its name in torch. Resuming is exact on the CPU."""

    def check(self) -> None:
        find_task(self.env_id)

    @property
    def world_seed(self) -> int:
        """Seed of the first training world; no training world has a seed of an evaluation.

        Runs with different seeds share no world up to ``TRAINING.end / n_envs - 1`` (1952 for 256 worlds).
        Larger seeds wrap around: their worlds are those of smaller seeds, with another initial policy.
        """
        return self.seed * self.n_envs % (TRAINING.end - self.n_envs)


_BASE = "env.action.controller"

MAY_CHANGE = (
    "total_steps", "eval", "checkpoint", "log_every_steps", "torch_threads", "device", "env.n_threads",
    "if_exists", "plugins",
)  # fmt: skip
"""Settings that a resumed run may change; any other would make it another run."""


def read_settings(
    file: Path, assignments: Sequence[str] = (), plugins: Sequence[str] = ()
) -> tuple[TrainConfig, tuple[str, ...]]:
    """Return the complete settings of a new run from a file, and notes on them. Raises ConfigError."""
    in_file = load_yaml(file)
    settings = take_plugins(apply_overrides(in_file, assignments), file, plugins)
    config, notes = complete(build_over(TrainConfig, in_file, settings, str(file)))
    find_algorithm(config.algorithm)  # says before there is a folder what is wrong
    return config, notes


def complete(config: TrainConfig) -> tuple[TrainConfig, tuple[str, ...]]:
    """Return the run with every setting of the env written out, files included, so that later edits do not change it.

    With it come notes on a coarse physics step, and on a base gait tuned on another robot or in other scenarios. Raises
    ConfigError for wrong env settings.
    """
    env = build_env(config.env_id, laid_over(config.env_id, config.env_file, config.env))
    spec = env.load_robot()
    env.n_steps(spec)
    coarse = spec.step_note()
    notes = [] if coarse is None else [coarse]
    if env.action.kind == "residual":
        tuning = tuning_notes(tuning_of(env.action.controller, spec, _BASE), spec, config.env_id, env)
        notes += [f"{_BASE}: {note}" for note in tuning]
        controller = resolve_controller(env.action.controller, _BASE, spec)
        env = replace(env, action=replace(env.action, controller=controller))
    check_columns(env)
    robot = env.robot if env.robot == spec.name else to_dict(spec)
    return replace(config, env_file=None, env={**to_dict(env), "robot": robot}), tuple(notes)


def check_same_run(stored: TrainConfig, wanted: TrainConfig, run: str) -> None:
    """Raise ConfigError if ``wanted`` differs from ``stored`` in more than a resumed run may change."""
    paths = differences(to_dict(stored), to_dict(wanted))
    changed = [path for path in paths if not any(f"{path}.".startswith(f"{ok}.") for ok in MAY_CHANGE)]
    if changed:
        raise ConfigError(
            f"{run} was trained with another {', '.join(changed[:4])}; a resumed run may change only "
            f"{', '.join(MAY_CHANGE[:-2])}: choose another --run-dir for a new run"
        )
