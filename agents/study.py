"""Optuna study of a search: trials and their evaluations in an SQLite file, which holds JSON and nothing executable.

The sampler is made anew for each trial, from the search's seed and the trial's number. So a search that is killed and
continued suggests what it would have suggested, if its trials end in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from snake_gym.config import ConfigError, differences, read_json, to_json

from .search_space import Choices, NumberRange

FILE = "study.db"
_NAME, _IDENTITY = "search", "search"
_UNPRUNED_TRIALS = 5
"""Number of trials before the first that may be pruned."""


class Study:
    """Trials of the search in ``folder``, the largest value wanted, or the smallest to ``minimise``.

    ``identity``: plain data that all trials share. Raises ConfigError if the folder holds another search, or a file
    that is no study.
    """

    def __init__(
        self,
        folder: Path,
        space: Mapping[str, NumberRange | Choices],
        identity: Mapping[str, Any],
        seed: int,
        minimise: bool = False,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._distributions = {name: _distribution(each) for name, each in space.items()}
        self._seed = seed
        try:
            self._study = optuna.create_study(
                storage=f"sqlite:///{(folder / FILE).absolute()}", study_name=_NAME, load_if_exists=True,
                direction="minimize" if minimise else "maximize", pruner=optuna.pruners.MedianPruner(_UNPRUNED_TRIALS),
            )  # fmt: skip
        except (SQLAlchemyError, RuntimeError) as error:
            reason = str(error).split("\n")[0]
            raise ConfigError(f"{folder / FILE} is no study that this Optuna can read ({reason})") from None
        wanted = read_json(to_json(identity), "identity")
        stored = self._study.user_attrs.get(_IDENTITY)
        if stored is None or (
            (changed := list(differences(stored, wanted))) == ["objective"]
            and not any(trial.intermediate_values for trial in self.trials())
        ):
            self._study.set_user_attr(_IDENTITY, wanted)
        elif changed:
            raise ConfigError(
                f"{folder} holds a search with another {', '.join(changed[:4])}; choose another --out for a new one"
            )

    def trials(self, *states: TrialState) -> list[FrozenTrial]:
        """Return the trials in these states, or all, the first one first."""
        return self._study.get_trials(deepcopy=False, states=states or None)

    def suggest(self) -> FrozenTrial:
        """Return a new trial."""
        number = len(self.trials())
        seed = int(np.random.default_rng([self._seed, number]).integers(2**31))
        self._study.sampler = optuna.samplers.TPESampler(seed=seed)
        self._study.ask(self._distributions)
        return self.trials()[number]

    def values(self, trial: FrozenTrial) -> dict[str, Any]:
        """Return the settings of a trial by name."""
        return {
            name: read_json(value, name) if isinstance(self._distributions[name], CategoricalDistribution) else value
            for name, value in trial.params.items()
        }

    def is_hopeless(self, trial: FrozenTrial, at: int, value: float) -> bool:
        """Note the value of the trial's evaluation number ``at``; True if others were better at it than it ever was."""
        live = Trial(self._study, trial._trial_id)
        if at not in self.trials()[trial.number].intermediate_values:
            live.report(value, at)
        return bool(live.should_prune())

    def complete(self, trial: FrozenTrial, value: float) -> None:
        self._study.tell(trial.number, value)

    def prune(self, trial: FrozenTrial) -> None:
        self._study.tell(trial.number, state=TrialState.PRUNED)

    def fail(self, trial: FrozenTrial, reason: str) -> None:
        self._study._storage.set_trial_user_attr(trial._trial_id, "reason", reason)
        self._study.tell(trial.number, state=TrialState.FAIL)


def _distribution(each: NumberRange | Choices) -> BaseDistribution:
    if isinstance(each, Choices):
        return CategoricalDistribution([to_json(choice, indent=None) for choice in each.choices])
    if isinstance(each.low, int) and isinstance(each.high, int):
        return IntDistribution(each.low, each.high, log=each.log)
    return FloatDistribution(each.low, each.high, log=each.log)
