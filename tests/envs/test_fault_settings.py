"""Faults of joints and encoders as settings of the env: what is hidden and what is shown."""

from __future__ import annotations

from typing import Any

import numpy as np

from snake_gym.config import build
from snake_gym.envs import WaypointsConfig
from snake_gym.envs.core import SnakeCore


def make(n_worlds: int = 4, **settings: Any) -> SnakeCore:
    core = SnakeCore(build(WaypointsConfig, settings, "env"), n_worlds)
    core.reset(np.arange(n_worlds))
    return core


def act(core: SnakeCore, n_steps: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.array([core.step(rng.uniform(-1.0, 1.0, core.action.shape))[0] for _ in range(n_steps)])


def test_bursts_show_in_the_observation_only_when_revealed_and_only_while_they_act() -> None:
    events = [{"joint": 3, "kind": "weak", "onset_s": 1.0, "duration_s": 2.0, "period_s": 0.8, "duty": 0.5}]
    hidden, shown = make(faults={"events": events}), make(faults={"events": events, "reveal": True})
    columns = shown.layout.fields["failed"].columns
    assert "failed" not in hidden.layout.fields or hidden.layout.fields["failed"].columns != columns
    seen = act(shown, 20)[:, 0, columns]
    assert np.flatnonzero(seen.any(axis=0)).tolist() == [2]
    # Observed every 0.2 s from 0.2 s on: bursts at 1.0-1.4, 1.8-2.2 and 2.6-3.0 s.
    assert [round(0.2 * (k + 1), 1) for k in np.flatnonzero(seen[:, 2])] == [1.0, 1.2, 1.8, 2.0, 2.6, 2.8]


def test_revealed_faults_reach_controllers_through_measurement_and_observation() -> None:
    core = make(faults={"events": [{"joint": 3, "onset_s": 0.5}], "reveal": True})
    assert core.measurement.joint_failed is not None
    assert not core.measurement.joint_failed.any()
    act(core, 4)
    assert core.measurement.joint_failed is not None
    assert np.argwhere(core.measurement.joint_failed)[:, 1].tolist() == [2] * 4
    restored, _ = core.layout.restore(core.observe())
    np.testing.assert_array_equal(restored.joint_failed, core.measurement.joint_failed)
    core.reset(mask=np.array([True, False, True, False]))
    np.testing.assert_array_equal(core.measurement.joint_failed[:, 2], [False, True, False, True])
    hidden = make(faults={"events": [{"joint": 3}]})
    assert hidden.measurement.joint_failed is None
    assert hidden.layout.restore(hidden.observe())[0].joint_failed is None
