"""Runner: every policy plays all scenarios in one batch, with one row of results for each episode."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from snake_gym.benchmark.recovery import FIRST, LAST, RECOVERY, onset_speeds, recovery_times
from snake_gym.benchmark.scenarios import BOUND, Entrant, EntrantKind, Scenarios
from snake_gym.config import digest
from snake_gym.envs import SnakeVectorEnv
from snake_gym.interface.policy import Policy
from snake_gym.physics.faults import HEALTHY, LEAK_LEFT, OFFSET, SLIPPED, SLOW, WEAK, WEAK_RIGHT
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.fault_kinds import name_of_code

INFO_COLUMNS = (
    "progress_m", "targets_reached", "time_to_first_target_s", "last_target_time_s", "is_success", "energy_j",
    "n_faults", "n_failed_joints", "episode_time_s", "route_m", "time_to_goal_s", "contact_time_s",
    "contact_impulse_ns", "penetration_m", "self_overlap_m", "stood_still", "passed_m", "fell", "n_changes",
    "change_loss_m", "mean_cross_track_m", "rms_cross_track_m", "mean_schedule_error_m", "tracking", "commanded_m",
    "mean_speed_error_m_s", "mean_heading_error_rad",
)  # fmt: skip
"""Infos kept at the end of an episode, if the env reports them, with the score."""
MAX_SAMPLES = 240
"""Largest number of samples over time of the progress that are kept of each episode."""


@dataclass(frozen=True)
class Episodes:
    """Results of one policy in the scenarios; row i of every array is scenario i.

    Of several trainings, the column ``training`` counts them, and row i is scenario i % n_scenarios: see ``shape``.
    """

    name: str
    kind: EntrantKind
    columns: dict[str, NDArray[Any]]
    """Arrays (W,): seed, faults (text such as "3:locked 5:free") and their onsets, ``fault_size`` (strength, or shift
    [rad], of an episode's one fault), speeds around the onsets, return and the reported ones of ``INFO_COLUMNS``."""
    sample_time_s: FloatArray
    """(T,) times of the samples, from 0 to the time limit [s]."""
    sample_progress_m: NDArray[np.float32]
    """(T, W) progress at those times [m]."""
    scenario: str
    """Digest of the targets or obstacles, faults and start poses that the env really had."""
    score: str = "progress_m"
    """Column by which policies are compared, named by the env's task."""

    @property
    def n(self) -> int:
        return int(self.columns["seed"].size)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of trainings and scenarios; rows are in this order, the last one changing fastest."""
        n_trainings = int(self.columns["training"].max()) + 1 if "training" in self.columns else 1
        return n_trainings, self.n // n_trainings

    def plays(self, column: str, chosen: Any = slice(None)) -> FloatArray:
        """Return a column by training and scenario (T, n), for the rows ``chosen`` in each alike."""
        return np.asarray(self.columns[column], dtype=np.float64)[chosen].reshape(self.shape[0], -1)


def play(entrant: Entrant, scenarios: Scenarios, rows: Sequence[int] | None = None) -> Episodes:
    """Play all scenarios with one policy, or those of ``rows``."""
    seeds = scenarios.seed + np.arange(scenarios.episodes)
    seeds = seeds if rows is None else seeds[np.asarray(rows)]
    with closing(scenarios.make_env(entrant, seeds.size)) as env:
        n_steps, every = env.core.n_steps, -(-env.core.n_steps // MAX_SAMPLES)
        sampled = [*range(0, n_steps, every), n_steps]
        samples: list[FloatArray] = []
        total = np.zeros(seeds.size)
        infos: dict[str, Any] = {}
        scenario, faults = "", dict[str, NDArray[Any]]()
        for done, (reward, _, infos) in enumerate(roll(entrant.make_policy(env), env, seeds.tolist())):
            if done == 0:
                scenario, faults = _digest(env), _fault_columns(env)
            total += reward
            if done == sampled[len(samples)]:
                samples.append(infos["progress_m"])
    samples += [infos["progress_m"]] * (len(sampled) - len(samples))  # where all episodes ended early
    score = env.core.task.score
    columns = {name: infos[name] for name in dict.fromkeys((*INFO_COLUMNS, score)) if name in infos}
    columns |= {"seed": seeds, **faults, "return": total}
    times = np.array(sampled) * env.core.spec.control_dt_s
    progress = np.array(samples, dtype=np.float32)
    columns |= onset_speeds(columns, times, progress)
    return Episodes(entrant.name, entrant.kind, columns, times, progress, scenario, score)


def roll(
    policy: Policy, env: VectorEnv[Any, Any, Any], seed: int | list[int]
) -> Iterator[tuple[FloatArray, NDArray[np.bool_], dict[str, NDArray[Any]]]]:
    """Play one deterministic episode of every world, of seed ``seed + i`` or ``seed[i]``; autoreset mode DISABLED.

    Yields rewards (W,), flags (W,) of worlds that have ended, and infos, from the reset on, until all have ended.
    """
    if env.metadata.get("autoreset_mode") is not AutoresetMode.DISABLED:
        raise ValueError(f"the env's autoreset mode is {env.metadata.get('autoreset_mode')}; expected DISABLED")
    obs, infos = env.reset(seed=seed)  # type: ignore[arg-type]  # our envs take a list too
    carried: Any = None
    start, ended = np.ones(env.num_envs, bool), np.zeros(env.num_envs, bool)
    yield np.zeros(env.num_envs), ended, infos
    while not ended.all():
        action, carried = policy.predict(obs, carried, start, deterministic=True)
        start = np.zeros_like(start)
        obs, reward, terminated, truncated, infos = env.step(action)
        ended = ended | terminated | truncated
        yield reward, ended, infos


def play_all(
    entrants: Sequence[Entrant],
    scenarios: Scenarios,
    progress: Console | None = None,
    bound_m_s: FloatArray | None = None,
) -> list[Episodes]:
    """Play every entrant; entrants of one name are trainings of one recipe, and their rows become one result.

    ``progress``: console for a bar. ``bound_m_s`` (W,): speed ``after_m_s`` of the bound, where that does not play.
    Raises RuntimeError if two policies did not get the same scenarios, so that they cannot be compared.
    """
    played: dict[str, list[Episodes]] = {}
    for entrant in track(entrants, "policies", console=progress, disable=progress is None):
        played.setdefault(entrant.name, []).append(play(entrant, scenarios))
    if len({episodes.scenario for trainings in played.values() for episodes in trainings}) > 1:
        raise RuntimeError("the policies did not play the same scenarios; their episodes cannot be paired")
    if BOUND in played:
        bound_m_s = played[BOUND][0].columns["after_m_s"]
    if bound_m_s is not None and np.isfinite(bound_m_s).any():
        for each in itertools.chain.from_iterable(played.values()):
            each.columns[RECOVERY] = recovery_times(each.columns, each.sample_time_s, each.sample_progress_m, bound_m_s)
    return [join_plays(trainings) for trainings in played.values()]


def join_plays(played: Sequence[Episodes]) -> Episodes:
    """Return the episodes of one policy together, from those of each training."""
    if len(played) == 1:
        return played[0]
    first = played[0]
    columns = {name: np.concatenate([each.columns[name] for each in played]) for name in first.columns}
    columns["training"] = np.repeat(np.arange(len(played)), first.n)
    progress = np.concatenate([each.sample_progress_m for each in played], axis=1)
    return replace(first, columns=columns, sample_progress_m=progress)


def _digest(env: SnakeVectorEnv) -> str:
    scenario: Mapping[str, NDArray[Any]] = env.core.scenario()
    pairs = ((name, np.ascontiguousarray(scenario[name]).tobytes()) for name in sorted(scenario))
    return digest(*itertools.chain.from_iterable(pairs))


def _fault_columns(env: SnakeVectorEnv) -> dict[str, NDArray[Any]]:
    """Return the joints (from 1) that fail in each world and how ("3:locked 5:free 5:weak"), onsets and the size."""
    slots = env.core.robot.faults, env.core.robot.second_faults
    kind, onset, strength, shift = (
        np.stack([getattr(faults, name) for faults in slots], axis=2)
        for name in ("kind", "onset_s", "strength", "offset_rad")
    )
    texts = [
        " ".join(
            f"{joint + 1}:{name_of_code(kinds[slot])}" for joint, kinds in enumerate(own) for slot in kinds.nonzero()[0]
        )
        for own in kind
    ]
    fails, has_size = kind != HEALTHY, np.isin(kind, (WEAK, SLOW, OFFSET, SLIPPED, *range(LEAK_LEFT, WEAK_RIGHT + 1)))
    size = np.where(np.isin(kind, (OFFSET, SLIPPED)), np.abs(shift), strength).sum(axis=(1, 2), where=has_size)
    is_one = (fails.sum(axis=(1, 2)) == 1) & has_size.any(axis=(1, 2))
    first = onset.min(axis=(1, 2), where=fails, initial=np.inf)
    last = onset.max(axis=(1, 2), where=fails, initial=-np.inf)
    return {
        "faults": np.array(texts), FIRST: np.where(np.isfinite(first), first, np.nan),
        LAST: np.where(np.isfinite(last), last, np.nan), "fault_size": np.where(is_one, size, np.nan),
    }  # fmt: skip
