"""RLlib in our envs; it demands another Gymnasium than the rest, so it has an environment of its own."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray.rllib", reason="ray[rllib], which is in no extra: see docs/clients.md")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize("env_id", ["SnakeGym/Waypoints-v0", "SnakeGym/Velocity-v0"])
def test_rllib(env_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # Ray writes a token there
    path = Path(__file__).parents[2] / "examples" / "rllib_ppo.py"
    spec = importlib.util.spec_from_file_location("rllib_ppo", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sizes = ["--iterations", "2", "--batch-steps", "256", "--episode-steps", "30"]
    found = module.main(["--env-id", env_id, *sizes])
    assert np.isfinite(found["losses"]).all() and len(found["losses"]) == 2
    assert np.isfinite(found["returns"]).all()
    assert min(found["changed"]) > 0.0, "weights that no update moved"
