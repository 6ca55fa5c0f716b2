"""Seed that an env reports: Gymnasium's ``np_random_seed``, which has to be that of the episodes.

Gymnasium draws a generator, and a seed of its own kind, if ``np_random`` or ``np_random_seed`` is read before the
first reset. The first episode must have that seed, so the env draws one that its episodes accept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.utils import seeding
from numpy.typing import NDArray

from snake_gym.envs.arguments import SEED_END

UNKNOWN_SEED = -1
"""Value of Gymnasium's ``np_random_seed`` for a generator that was set from outside."""


class TellsItsSeed:
    """Env whose ``np_random_seed`` is the seed in use, even if read before the first reset."""

    _np_random: np.random.Generator | None = None
    _np_random_seed: Any = None

    @property
    def np_random(self) -> np.random.Generator:
        """Generator of the env; if it has none yet, one with a seed drawn for the first episode."""
        if self._np_random is None:
            self._np_random, self._np_random_seed = seeding.np_random(int(np.random.default_rng().integers(SEED_END)))
        return self._np_random

    @np_random.setter
    def np_random(self, generator: np.random.Generator) -> None:
        self._np_random, self._np_random_seed = generator, UNKNOWN_SEED

    def tell_seeds(self, seeds: NDArray[np.int64]) -> None:
        """Set ``np_random_seed`` to the first of the worlds' ``seeds`` if they count up from it, else to all.

        The generator stays, if there is one.
        """
        first = int(seeds[0])
        if self._np_random is None:
            self._np_random, _ = seeding.np_random(first)
        counts_up = (seeds == first + np.arange(seeds.size)).all()
        self._np_random_seed = first if counts_up else tuple(seeds.tolist())

    @property
    def np_random_seed(self) -> Any:
        """Seed that ``reset`` was given, or that was drawn; -1 if ``np_random`` was set from outside."""
        _ = self.np_random
        return self._np_random_seed
