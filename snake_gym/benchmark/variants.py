"""Further rows of a benchmark: a controller that is shown the failed joints, or with noise; never a reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.benchmark.scenarios import BenchmarkConfig, Entrant, Variant, classical_entrant, zero_residual
from snake_gym.config import merge
from snake_gym.envs import SnakeVectorEnv
from snake_gym.interface.policy import Policy
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.streams import RandomStreams

WIDEST = 4.0
"""Largest dither, in standard deviations; more is cut off."""


class NoisePolicy:
    """Policy with actions ``draw(streams, size)`` (W, A) in every step, from each world's own streams ``purpose``."""

    def __init__(self, env: SnakeVectorEnv, purpose: str, draw: Callable[[RandomStreams, int], FloatArray]) -> None:
        self._core, self._streams, self._draw = env.core, RandomStreams(purpose, env.num_envs), draw

    def predict(
        self, observation: Any, state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[NDArray[np.float32], Any]:
        """Return actions (W, A), cut off at -1 and 1."""
        if state is None:
            self._streams.begin(self._core.seeds, self._core.episode)
        actions = self._draw(self._streams, self._core.decoder.size)
        return np.clip(actions, -1.0, 1.0).astype(np.float32), True


def dither(env: SnakeVectorEnv) -> Policy:
    """Return a residual of white noise with the standard deviation ``1 / WIDEST``."""
    return NoisePolicy(env, "dither", lambda streams, size: streams.normal(size) / WIDEST)


def variant_entrant(name: str, variant: Variant, config: BenchmarkConfig) -> Entrant:
    """Return the entrant of a row."""
    is_file = variant.controller.endswith((".yaml", ".yml"))
    entrant = classical_entrant(f"{name}={variant.controller}" if is_file else variant.controller, config)
    return varied(replace(entrant, name=name, kind="reference"), variant.reveal, variant.dither_rad)


def varied(entrant: Entrant, reveal: bool = False, dither_rad: float = 0.0) -> Entrant:
    """Return ``entrant`` with the faults shown to it, or with dither on its references."""
    settings: Mapping[str, Any] = entrant.env_settings
    if reveal:
        settings = merge(settings, {"faults": {"reveal": True}})
    if dither_rad > 0.0:
        settings = merge(settings, {"action": {"scale_rad": WIDEST * dither_rad}})
    identity = {**entrant.identity, "reveal": reveal, "dither_rad": dither_rad}
    make_policy = dither if dither_rad > 0.0 else zero_residual
    return replace(entrant, env_settings=settings, make_policy=make_policy, identity=identity)
