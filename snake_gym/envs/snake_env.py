"""Single environments for Gymnasium: a vector env of one world."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from snake_gym.config.errors import check_options
from snake_gym.envs.arguments import check_action, check_seed
from snake_gym.envs.core import Observations, SnakeCore, pick
from snake_gym.envs.vector_env import SnakeVectorEnv
from snake_gym.registry import DEFAULT_ENV
from snake_gym.tasks.task import EnvConfig

RenderMode = Literal["rgb_array", "human"]


class SnakeEnv(gym.Env[Any, Any]):
    """A planar snake robot with a task.

    Actions:
        ``Box(-1, 1, (A,), float32)``; what they mean is ``action.kind``: joint references (A = J), a residual on a
        classical controller (A = J, one more with ``action.pace_range``), or the parameters of a gait (A = 4).

    Observations:
        ``Box(-10, 10, (D,), float32)``: joint angles and rates, error of the last references, last action, phase of a
        gait below the policy, direction and distance of the target, columns of the task. ``observation`` names other
        columns, stacks control steps, and adds truth for critics: ``Dict(policy=Box, privileged=Box)``.

    Rewards:
        Weighted sum of the task's terms (``reward.*``); each is in the info, raw (``reward_raw/<term>``) and weighted
        (``reward/<term>``).

    Costs:
        Not part of the reward, as in Safety-Gymnasium: each threshold of ``costs.*`` adds a cost in [0, 1] per step
        (``info["cost/<name>"]``); ``info["cost"]`` is their sum. None is on by default.

    Start:
        At rest, bent like a serpenoid wave of random phase and heading, tracked point at the origin unless the task
        says otherwise. Start, targets, obstacles and faults depend only on the seed and the episode's number.

    End:
        Terminated when the task is complete; truncated after ``time_limit_s``. ``max_episode_steps`` of
        ``gymnasium.make`` can only shorten that.

    Arguments:
        env_id: registered name of the task.
        render_mode: None, "rgb_array" or "human".
        config: settings as an object or mapping; further keyword arguments are settings too, laid over it.
        plugin: a module of the user, or several, to be imported first: for processes that have not done so.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"], "render_fps": 5}  # noqa: RUF012

    def __init__(
        self,
        env_id: str = DEFAULT_ENV,
        render_mode: RenderMode | None = None,
        config: EnvConfig | Mapping[str, Any] | None = None,
        plugin: str | Sequence[str] | None = None,
        **settings: Any,
    ) -> None:
        self.worlds = SnakeVectorEnv(env_id, 1, AutoresetMode.DISABLED, render_mode, config, plugin=plugin, **settings)
        """The vector env of one world, which does everything."""
        self.core: SnakeCore = self.worlds.core
        self.metadata = {**type(self).metadata, "render_fps": self.worlds.metadata["render_fps"]}
        self.render_mode: RenderMode | None = render_mode
        self.observation_space = self.worlds.single_observation_space
        self.action_space = self.worlds.single_action_space

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observations, dict[str, Any]]:
        """Begin a new episode: that of ``seed``, or the next one of the present seed.

        The first episode without a seed gets that of ``np_random_seed``, or, if ``np_random`` was set from outside,
        one that it draws. Raises ValueError for a seed that is no integer from 0 to 2**63 - 1, and for other envs'
        ``options``.
        """
        check_options(options)
        obs, infos = self.worlds.reset(seed=None if seed is None else check_seed(seed))
        if self.render_mode == "human":
            self.render()
        return pick(obs, 0), pick(infos, 0)

    def step(self, action: NDArray[np.float32]) -> tuple[Observations, float, bool, bool, dict[str, Any]]:
        """Advance one control step. Raises ValueError for an action of the wrong shape or with a non-finite entry."""
        checked = check_action(action, (self.core.decoder.size,))
        obs, reward, terminated, truncated, infos = self.worlds.step(checked[None])
        if self.render_mode == "human":
            self.render()
        return pick(obs, 0), float(reward[0]), bool(terminated[0]), bool(truncated[0]), pick(infos, 0)

    def set_difficulty(self, difficulty: float) -> None:
        """Let the next episodes have this share, in [0, 1], of what makes them hard. Raises ConfigError."""
        self.worlds.set_difficulty(difficulty)

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return the whole state that later steps depend on; ``set_state`` continues from it bit for bit."""
        return self.worlds.get_state()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``get_state``. Raises ValueError, with the env unchanged, if it is no valid state."""
        self.worlds.set_state(state)

    def render(self) -> Any:
        """Return the present frame (H, W, 3) uint8 for "rgb_array"; None for "human", which shows it in a window."""
        frames = self.worlds.render()
        return None if frames is None or self.render_mode == "human" else frames[0]

    def close(self) -> None:
        """Free the resources of rendering; may be called twice."""
        self.worlds.close_extras()

    @property
    def np_random(self) -> np.random.Generator:
        """Generator of the env; if it has none yet, one with a seed drawn for the first episode."""
        return self.worlds.np_random

    @np_random.setter
    def np_random(self, generator: np.random.Generator) -> None:
        self.worlds.np_random = generator

    _np_random = np_random  # Gymnasium's checker reads it

    @property
    def np_random_seed(self) -> Any:
        """Seed that ``reset`` was given, or that was drawn; -1 if ``np_random`` was set from outside."""
        return self.worlds.np_random_seed
