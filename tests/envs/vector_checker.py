"""Checker for vector envs (Gymnasium has one for single envs only): run it on a new env before training on it.

``check_vector_env(make)`` raises AssertionError with one line at the first rule that the env breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from snake_gym.envs.core import StepResult
from snake_gym.envs.vector_env import SnakeVectorEnv

MakeEnv = Callable[[int, AutoresetMode], Any]


def check_vector_env(make: MakeEnv, n_worlds: int = 4, n_steps: int = 24) -> None:
    """Check spaces, shapes, determinism, independence of worlds, and saved states in every mode of autoreset.

    Args:
        make: ``make(num_envs, autoreset_mode)`` builds the env; some episodes should end within ``n_steps`` steps, and
            not all at once, as those of ``spread_ends_at_reset`` do.
    """
    _check_spaces(make(n_worlds, AutoresetMode.SAME_STEP), n_worlds)
    _check_determinism(make, AutoresetMode.SAME_STEP, n_worlds, n_steps)
    for mode in AutoresetMode:
        _check_saved_state(make, mode, n_worlds, n_steps)
    _check_worlds_alone(make, n_worlds, n_steps)


def spread_ends_at_reset(env: SnakeVectorEnv) -> SnakeVectorEnv:
    """Return one of our envs changed so that its worlds do not end all at once; one world keeps its time limit."""
    if env.num_envs == 1 or env.autoreset_mode is AutoresetMode.DISABLED:
        return env
    reset = env.reset

    def reset_and_spread(*, seed: Any = None, options: Any = None) -> Any:
        begun = reset(seed=seed, options=options)
        if seed is not None and options is None:
            env.core.spread_ends()
        return begun

    env.reset = reset_and_spread  # type: ignore[method-assign]
    return env


def draw_actions(env: VectorEnv[Any, Any, Any], n_steps: int, seed: int = 0) -> NDArray[np.float32]:
    """Return random actions (n_steps, W, A) over the whole action space."""
    space = env.single_action_space
    rng = np.random.default_rng(seed)
    shape = (n_steps, env.num_envs, *space.shape)  # type: ignore[misc]
    return np.asarray(rng.uniform(space.low, space.high, shape), np.float32)  # type: ignore[attr-defined]


def assert_same(a: Any, b: Any, what: str) -> None:
    """Raise AssertionError unless two observations, arrays, dicts or tuples are equal bit for bit."""
    if isinstance(a, dict):
        assert a.keys() == b.keys(), f"{what}: keys differ: {sorted(a.keys() ^ b.keys())}"
        for key in a:
            assert_same(a[key], b[key], f"{what}[{key!r}]")
    elif isinstance(a, tuple):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            assert_same(x, y, f"{what}[{i}]")
    elif isinstance(a, np.ndarray) and a.dtype == object:
        assert_same(tuple(a), tuple(b), what)
    else:
        assert_array_equal(a, b, err_msg=what)


def _check_spaces(env: Any, n: int) -> None:
    obs, infos = env.reset(seed=1)
    assert env.num_envs == n, f"num_envs is {env.num_envs}, asked for {n}"
    assert isinstance(env.metadata.get("autoreset_mode"), AutoresetMode), "metadata['autoreset_mode'] is missing"
    assert env.observation_space.contains(obs), "reset: observation lies outside the observation space"
    assert all(np.shape(v)[:1] == (n,) for v in infos.values()), "reset: an info is not an array (W, ...)"
    action = draw_actions(env, 1)[0]
    assert env.action_space.contains(action), "action space does not hold a sample of its bounds"
    obs, reward, terminated, truncated, infos = env.step(action)
    assert env.observation_space.contains(obs), "step: observation lies outside the observation space"
    for name, values, kind in (
        ("reward", reward, np.floating), ("terminated", terminated, np.bool_), ("truncated", truncated, np.bool_)
    ):  # fmt: skip
        assert values.shape == (n,), f"{name} has shape {values.shape}, expected {(n,)}"
        assert np.issubdtype(values.dtype, kind), f"{name} has dtype {values.dtype}"
    obs_2, *rest, infos_2 = env.step(action)
    assert obs_2 is not obs and not np.shares_memory(obs, obs_2), "observations of two steps share memory"
    assert rest[0] is not reward and not np.shares_memory(rest[0], reward), "rewards of two steps share memory"
    for name in infos.keys() & infos_2.keys():
        assert not np.shares_memory(infos[name], infos_2[name]), f"the infos {name} of two steps share memory"
    env.close()
    env.close()


def _roll(env: Any, actions: NDArray[np.float32]) -> list[StepResult]:
    return [env.step(action) for action in actions]


def _roll_with_resets(env: Any, mode: AutoresetMode, actions: NDArray[np.float32]) -> list[StepResult]:
    results: list[StepResult] = []
    ended = np.zeros(env.num_envs, bool)
    for action in actions:
        if mode is AutoresetMode.DISABLED and ended.any():
            env.reset(options={"reset_mask": ended})
        results.append(env.step(action))
        ended = results[-1][2] | results[-1][3]
    return results


def _check_determinism(make: MakeEnv, mode: AutoresetMode, n: int, n_steps: int) -> None:
    runs = []
    for _ in range(2):
        env = make(n, mode)
        first = env.reset(seed=7)
        runs.append([first, *_roll_with_resets(env, mode, draw_actions(env, n_steps))])
    for i, (a, b) in enumerate(zip(*runs, strict=True)):
        assert_same(a, b, f"{mode.name}: two runs with one seed differ at step {i}")
    env = make(n, mode)
    other, _ = env.reset(seed=8_000)
    assert not np.array_equal(other, runs[0][0][0]), "another seed begins with the same observations"
    listed, _ = env.reset(seed=[7 + i for i in range(n)])
    assert_same(listed, runs[0][0][0], "seed=[s, s+1, ...] differs from seed=s")


def _check_worlds_alone(make: MakeEnv, n: int, n_steps: int) -> None:
    together = make(n, AutoresetMode.DISABLED)
    obs, _ = together.reset(seed=20)
    actions = draw_actions(together, n_steps)
    steps = _roll(together, actions)
    for world in range(n):
        alone = make(1, AutoresetMode.DISABLED)
        assert_same(alone.reset(seed=20 + world)[0][0], obs[world], f"world {world} begins differently alone")
        for i, action in enumerate(actions):
            mine: tuple[Any, ...] = alone.step(action[world : world + 1])
            theirs: tuple[Any, ...] = steps[i]
            for own, other in zip(mine[:4], theirs[:4], strict=True):
                assert_same(own[0], other[world], f"world {world} alone differs at step {i}")


def _check_saved_state(make: MakeEnv, mode: AutoresetMode, n: int, n_steps: int) -> None:
    env = make(n, mode)
    env.reset(seed=3)
    actions = draw_actions(env, 2 * n_steps)
    _roll_with_resets(env, mode, actions[:n_steps])
    saved = env.get_state()
    went_on = _roll_with_resets(env, mode, actions[n_steps:])
    fresh = make(n, mode)
    fresh.reset(seed=99)
    for target in (env, fresh):
        target.set_state(saved)
        again = _roll_with_resets(target, mode, actions[n_steps:])
        for i, (a, b) in enumerate(zip(went_on, again, strict=True)):
            assert_same(a, b, f"{mode.name}: restored state goes on differently at step {i}")
