"""Search for the gait parameters of a classical controller, so that a learned policy is compared with its best.

The cross-entropy method (Rubinstein & Kroese 2004, ch. 4.2; diagonal Gaussian, smoothed updates) maximises the mean
score of an episode, the one by which the env's task compares policies (``objective``). The candidates of a generation
all play the same fresh scenarios, side by side as the worlds of one env. Then the distribution's mean after each late
generation, a finalist, plays new scenarios; the best is scored on scenarios that no decision has seen.

Seeds: ``SEED_BASE + SEED_SPAN * seed`` and up, disjoint ranges (search, choice, comparison, score), above those of
training and benchmarks (``seed_ranges``). Several searches differ in their seed; the best result in the comparison's
scenarios of the last one is kept (``best_of``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Annotated, Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from pydantic import Field
from rich.console import Console
from rich.progress import track

from snake_gym.benchmark.runner import roll
from snake_gym.benchmark.seed_ranges import TUNING
from snake_gym.benchmark.statistics import mean_interval, share_interval
from snake_gym.config import ConfigError, Settings, build, merge, to_dict
from snake_gym.config.settings import PositiveCount
from snake_gym.controllers import CONTROLLERS, make_controller, resolve_controller
from snake_gym.controllers.base import SearchRange, search_ranges
from snake_gym.envs import DEFAULT_ENV, SnakeVectorEnv
from snake_gym.interface.actions import ActionConfig
from snake_gym.interface.policy import ZeroResidual, controller_action
from snake_gym.robot.spec import FloatArray, RobotSpec
from snake_gym.tasks.task_settings import build_env

SEED_BASE = TUNING.first
SEED_SPAN = 1_000_000
CHOICE_START = 800_000
COMPARISON_START = 850_000
SCORE_START = 900_000
"""First seeds, within the span, of the choice among finalists, of that among searches, and of the final score."""

ELITE_SHARE = 0.25
SMOOTHING = 0.7
"""Weight of the new elite's mean and deviation in those of the next generation; the old ones have the rest."""
START_DEVIATION = 0.3
LEAST_DEVIATION = 0.02
"""Initial and smallest standard deviation, as shares of a parameter's range."""
MOST_FINALISTS = 8
TIME_WEIGHT = 1e-6
"""Weight of the time, as a share of its largest value; less than one part in the number of episodes."""


def value_at(share: FloatArray, within: SearchRange) -> FloatArray:
    """Return values at ``share`` (0 .. 1) of a range, same shape, rounded to five digits for readable files."""
    if within.log:
        raw = within.low * (within.high / within.low) ** share
    else:
        raw = within.low + (within.high - within.low) * share
    return np.vectorize(lambda x: float(f"{x:.5g}"), otypes=[np.float64])(raw)


def search_space(kind: str, spec: RobotSpec) -> dict[str, SearchRange]:
    """Return the searched parameters of a controller kind by name, with their ranges for this robot."""
    ranges = search_ranges(CONTROLLERS[kind].config_type)
    return {
        name: own if own.limit is None else replace(own, high=min(own.high, own.limit(spec)))
        for name, own in ranges.items()
    }


class TuningConfig(Settings):
    """Settings of a tuning: controller, robot, scenarios and effort."""

    robot: str | dict[str, Any] = "resilient_servo"
    """Preset name, path of a robot's YAML file, or its settings."""
    controller: dict[str, Any] = field(default_factory=lambda: {"kind": "sjc"})
    """Kind of the controller, and settings that stay as given."""
    env_id: str = DEFAULT_ENV
    """Registered name of the environment for tuning."""
    env: dict[str, Any] = field(default_factory=dict)
    """Settings of the training scenarios (course, faults, sensors, time_limit_s ...)."""
    generations: PositiveCount = 40
    population: Annotated[int, Field(ge=4)] = 32
    """Number of candidates in each generation."""
    worlds: int = 256
    """Number of episodes in each generation; each candidate plays worlds / population scenarios."""
    seed: Annotated[int, Field(ge=0, le=1999)] = 0

    def check(self) -> None:
        if self.worlds < self.population or self.worlds % self.population:
            near = max(1, round(self.worlds / self.population)) * self.population
            raise ValueError(
                f"worlds is {self.worlds}; expected a multiple of population {self.population}, such as {near}"
            )
        n_searched = self.generations * (self.worlds // self.population)
        if n_searched > CHOICE_START or self.worlds > SCORE_START - COMPARISON_START:
            raise ValueError(f"generations is {self.generations}, worlds {self.worlds}; too many for the seeds")


def objective(infos: Mapping[str, NDArray[Any]], score: str, time_limit_s: float) -> FloatArray:
    """Return the worth (W,) of episodes by the task's ``score``, from infos at their end, so that candidates differ.

    Progress is its own measure. Success is yes or no, and many candidates have the same share of it; among those, the
    one that needs less time is better. A success counts the time to the goal; a miss counts the time limit, longer by
    the share of the route that is left, so that among misses the one that gets further is ahead. The time has so
    little weight that it never outweighs one more successful episode, in any number of episodes that can be played.
    """
    values = np.asarray(infos[score], dtype=np.float64)
    if infos[score].dtype != np.bool_:
        return values
    succeeded = infos[score]
    taken = infos.get("time_to_goal_s", infos["episode_time_s"])
    left = np.ones(succeeded.size)
    if "route_m" in infos:
        left -= np.clip(infos["progress_m"] / infos["route_m"], 0.0, 1.0)
    time = np.where(succeeded, np.minimum(taken, time_limit_s), time_limit_s * (1.0 + left))
    return values + TIME_WEIGHT * (1.0 - time / (2.0 * time_limit_s))


def score_of(worth: FloatArray, score: str) -> dict[str, Any]:
    """Return the mean of the task's score over episodes, from their worth, with its 95 % interval, if it has one."""
    values = worth >= 1.0 if score == "is_success" else worth
    bounds = share_interval(values) if score == "is_success" else mean_interval(values)
    shown = None if bounds is None else [round(bound, 4) for bound in bounds]
    return {"mean": round(float(values.mean()), 4), "ci95": shown, "episodes": int(worth.size)}


class Search:
    """Search for parameters: ``advance`` plays a generation, ``report`` chooses and scores the result.

    Raises ConfigError for an unknown robot, controller or setting, or if no parameter is left to search.
    """

    def __init__(self, config: TuningConfig) -> None:
        self.config = config
        env_config = build_env(config.env_id, merge(config.env, {"robot": config.robot}))
        self.spec = env_config.load_robot()
        fixed = resolve_controller(config.controller, spec=self.spec)
        self.kind = str(fixed["kind"])
        space = search_space(self.kind, self.spec)
        self.space = {name: within for name, within in space.items() if name not in config.controller}
        if not self.space:
            raise ConfigError(
                f"controller {self.kind} has nothing to search, of {list(space)}; expected a number in its "
                "settings that is not fixed, with a range (snake_gym.controllers.base.searched)"
            )
        self.base = {**fixed, **{name: float(value_at(np.array(0.5), within)) for name, within in self.space.items()}}
        make_controller(self.base, self.spec)
        self.env_config = replace(env_config, action=build(ActionConfig, controller_action(self.base), "action"))
        self.env = SnakeVectorEnv(config.env_id, config.worlds, AutoresetMode.DISABLED, config=self.env_config)
        self.first_seed = SEED_BASE + SEED_SPAN * config.seed
        self.generation = 0
        self.mean = np.full(len(self.space), 0.5)
        self.deviation = np.full(len(self.space), START_DEVIATION)
        self.trail: list[list[float]] = []
        """Mean of the distribution after each generation."""
        self.score = self.env.core.task.score
        """Name of the maximised score."""

    def advance(self) -> None:
        """Play one generation, and move the distribution to its elite."""
        config = self.config
        rng = np.random.default_rng([config.seed, self.generation])
        noise = rng.standard_normal((config.population, len(self.space)))
        noise[0] = 0.0  # the mean itself takes part
        shares = np.clip(self.mean + self.deviation * noise, 0.0, 1.0)
        n_scenarios = config.worlds // config.population
        first = self.first_seed + self.generation * n_scenarios
        worth = self.play(shares, np.arange(first, first + n_scenarios)).mean(axis=1)
        elite = shares[np.argsort(-worth, kind="stable")[: max(2, round(ELITE_SHARE * config.population))]]
        self.mean = SMOOTHING * elite.mean(axis=0) + (1.0 - SMOOTHING) * self.mean
        self.deviation = SMOOTHING * elite.std(axis=0) + (1.0 - SMOOTHING) * self.deviation
        self.deviation = np.maximum(self.deviation, LEAST_DEVIATION)
        self.generation += 1
        self.trail.append(self.mean.tolist())

    def parameters(self, shares: FloatArray) -> dict[str, FloatArray]:
        """Return parameter values (K,) by name, for shares of the ranges (K, P)."""
        return {name: value_at(shares[:, i], within) for i, (name, within) in enumerate(self.space.items())}

    def play(self, shares: FloatArray, seeds: NDArray[np.int64]) -> FloatArray:
        """Return the objective (K, S) of K candidates, shares (K, P), on the S scenarios ``seeds``; K * S = worlds."""
        return self.play_values(self.parameters(shares), seeds)

    def play_values(self, values: Mapping[str, FloatArray], seeds: NDArray[np.int64]) -> FloatArray:
        """Return the objective (K, S) of K candidates with parameters ``values`` (K,), as ``play`` does."""
        n_scenarios, n_candidates = seeds.size, next(iter(values.values())).size
        per_world = {name: np.repeat(of_candidate, n_scenarios) for name, of_candidate in values.items()}
        self.env.core.use_controller(make_controller(self.base, self.spec, per_world))
        alone = ZeroResidual(self.env.core.decoder.size)
        *_, (_, _, infos) = roll(alone, self.env, np.tile(seeds, n_candidates).tolist())
        worth = objective(infos, self.score, self.env_config.time_limit_s)
        return worth.reshape(n_candidates, n_scenarios)

    def report(self) -> dict[str, Any]:
        """Choose among the finalists, score the winner, and return plain data for the result file."""
        config = self.config
        finalists = np.array(self.trail[-MOST_FINALISTS:])
        while config.worlds % len(finalists):
            finalists = finalists[1:]
        n_scenarios = config.worlds // len(finalists)
        choice = self.first_seed + CHOICE_START
        winner = int(self.play(finalists, np.arange(choice, choice + n_scenarios)).mean(axis=1).argmax())
        score = self.first_seed + SCORE_START
        worth = self.play(finalists[winner : winner + 1], np.arange(score, score + config.worlds)).ravel()
        found = {name: float(values[winner]) for name, values in self.parameters(finalists).items()}
        searched, env = self.generation * (config.worlds // config.population), to_dict(self.env_config)
        return {
            "controller": resolve_controller({**self.base, **found}),
            "tuning": {
                "robot": to_dict(self.spec),
                "env_id": config.env_id,
                "env": {name: env[name] for name in env if name not in ("robot", "action", "n_threads")},
                "score": self.score,
                self.score: score_of(worth, self.score),
                "searched": {name: value_at(np.array([0.0, 1.0]), of).tolist() for name, of in self.space.items()},
                "seeds": {
                    "search": [self.first_seed, self.first_seed + searched - 1],
                    "choice": [choice, choice + n_scenarios - 1],
                    "score": [score, score + config.worlds - 1],
                },
                "generations": self.generation,
                "population": config.population,
                "worlds": config.worlds,
                "seed": config.seed,
            },
        }


def run_search(config: TuningConfig) -> dict[str, Any]:
    """Search with a progress bar on stderr, and return the report."""
    search = Search(config)
    for _ in track(range(config.generations), f"tuning {search.kind}", console=Console(stderr=True)):
        search.advance()
    return search.report()


def best_of(config: TuningConfig, reports: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
    """Return the report, each under its search's seed, with the best controller in the same scenarios.

    They play the comparison's scenarios of ``config.seed``, the largest of the seeds, ``config.worlds`` of them; the
    means stand in the report as ``of_seeds``. Its score is that of its own search, on scenarios of no decision.
    """
    search = Search(config)
    first = search.first_seed + COMPARISON_START
    seeds = np.arange(first, first + config.worlds)
    worth = {
        seed: search.play_values({name: np.array([report["controller"][name]]) for name in search.space}, seeds).mean()
        for seed, report in reports.items()
    }
    best = reports[max(worth, key=lambda seed: worth[seed])]
    means = {seed: {"mean": round(float(mean), 4)} for seed, mean in worth.items()}
    of_seeds = {"seeds": [first, int(seeds[-1])], "searches": means}
    return {**best, "tuning": {**best["tuning"], "of_seeds": of_seeds}}
