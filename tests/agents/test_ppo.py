"""Our PPO computes what Stable-Baselines3's does, and clips the gradients of actor and critic apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stable_baselines3
import torch
from gymnasium.vector import AutoresetMode
from snake_gym.agents import ppo
from snake_gym.agents.asymmetric import AsymmetricPolicy
from snake_gym.agents.ppo import PPO
from snake_gym.agents.sb3_vec_env import Sb3VecEnv

from tests.agents.copy_env import CopyEnv
from tests.agents.runs import PPO as SETTINGS
from tests.agents.runs import SNAKE, run_to_end, small_config
from tests.agents.test_asymmetric import LuckyCopyEnv

COMMON: dict[str, Any] = {"n_steps": 8, "batch_size": 16, "n_epochs": 3, "seed": 0, "device": "cpu", "ent_coef": 0.01}


def make_learner(cls: type[Any], env: type[CopyEnv] = CopyEnv, **settings: Any) -> Any:
    venv = Sb3VecEnv(env(8, mode=AutoresetMode.SAME_STEP))
    model = cls(AsymmetricPolicy if env is LuckyCopyEnv else "MlpPolicy", venv, **COMMON | settings)
    model.set_random_seed(0)
    return model


@pytest.mark.parametrize(
    ("settings", "env"),
    [
        pytest.param({}, CopyEnv, id="plain"),
        pytest.param({"learning_rate": 3e-2, "clip_range": 0.1, "clip_range_vf": 0.05}, CopyEnv, id="value-clipped"),
        pytest.param({"learning_rate": 3e-2, "target_kl": 0.02}, CopyEnv, id="stopped-early"),
        pytest.param({"normalize_advantage": False, "max_grad_norm": 0.05, "vf_coef": 0.9}, LuckyCopyEnv, id="parts"),
        pytest.param({"use_sde": True}, CopyEnv, id="sde"),
    ],
)
def test_updates_are_those_of_sb3(settings: dict[str, Any], env: type[CopyEnv]) -> None:
    theirs, ours = (make_learner(cls, env, **settings).learn(3 * 64) for cls in (stable_baselines3.PPO, PPO))
    assert ours._n_updates == theirs._n_updates
    for name, wanted in theirs.policy.state_dict().items():
        torch.testing.assert_close(ours.policy.state_dict()[name], wanted, rtol=0.0, atol=1e-5, msg=name)
    wanted = theirs.logger.name_to_value
    assert wanted.keys() == ours.logger.name_to_value.keys()
    for name in (name for name in wanted if name.startswith("train/")):
        assert ours.logger.name_to_value[name] == pytest.approx(wanted[name], rel=1e-3, abs=1e-5), name


def test_the_gradient_in_bfloat16_is_nearly_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight bits of mantissa: parts per hundred; weights, gradients and Adam's moments stay in float32."""
    monkeypatch.setattr(ppo, "multiplies_bfloat16", lambda device: True)
    gradients = []
    for bfloat16 in (False, True):
        model = make_learner(PPO, batch_size=64, n_epochs=1, max_grad_norm=1e9, bfloat16=bfloat16)
        model.learn(64)
        assert all(p.dtype == p.grad.dtype == torch.float32 for p in model.policy.parameters())
        gradients.append(torch.cat([p.grad.flatten() for p in model.policy.parameters()]))
    wanted, found = gradients
    assert 1e-5 < float((found - wanted).norm() / wanted.norm()) < 0.05


def test_a_processor_without_bfloat16_updates_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take ten times as long."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": False, "avx2": True})
    weights = []
    for bfloat16 in (False, True):
        model = make_learner(PPO, bfloat16=bfloat16)
        model.learn(64)
        weights.append(torch.cat([p.detach().flatten() for p in model.policy.parameters()]))
    assert torch.equal(*weights)


def test_gradients_are_clipped_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make_learner(PPO, max_grad_norm={"actor": 1e-3, "critic": 1e-2})
    norms: list[tuple[float, ...]] = []

    def note() -> None:
        groups: dict[bool, list[Any]] = {True: [], False: []}
        for name, parameter in model.policy.named_parameters():
            groups["value" in name].append(parameter.grad.flatten())
        norms.append(tuple(float(torch.cat(groups[critic]).norm()) for critic in (False, True)))

    monkeypatch.setattr(model.policy.optimizer, "step", note)
    model.learn(64)
    assert len(norms) == 12
    np.testing.assert_allclose(norms, np.tile([1e-3, 1e-2], (12, 1)), rtol=1e-3)


def test_sb3_saves_and_loads_a_model_while_an_update_runs(tmp_path: Path) -> None:
    model = make_learner(PPO, overlap=True)
    model.learn(128, callback=lambda *_: model.save(tmp_path / "model.zip") is None)
    learned = make_learner(PPO).learn(64).policy.state_dict()  # by the first rollout alone
    loaded = PPO.load(tmp_path / "model.zip").learner.state_dict()
    assert all(torch.allclose(loaded[name], values, atol=1e-6) for name, values in learned.items())


def test_ratios_begin_at_1_though_the_policy_before_has_acted(monkeypatch: pytest.MonkeyPatch) -> None:
    model, found = make_learner(PPO, overlap=True, n_epochs=1, batch_size=64), []
    update = PPO.backward
    monkeypatch.setattr(PPO, "backward", lambda *given: found.append(update(*given)) or found[-1])
    model.learn(256)
    assert len(found) == 4 and max(abs(float(terms.kl)) for terms in found) < 1e-6


# --- mirrored data ---------------------------------------------------------------------------------------------------

MIRRORED = {**SETTINGS, "mirror": 0.25}
PRIVILEGED = {"observation": {"columns": ["standard", "body_velocity"], "privileged": ["true_velocity", "fault_kind"]}}


def test_a_share_of_each_minibatch_is_mirrored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[np.ndarray] = []
    update = PPO.backward

    def note(self: PPO, batch: torch.Tensor, *rest: Any) -> Any:
        batches.append(batch.numpy())
        return update(self, batch, *rest)

    monkeypatch.setattr(PPO, "backward", note)
    run = run_to_end(small_config(algorithm=MIRRORED, total_steps=128, env={**SNAKE, **PRIVILEGED}), tmp_path)
    model: Any = run.model
    core = run.venv.env.core  # type: ignore[attr-defined]
    plain = model._tabulate()[:128].numpy()
    by_hand = plain.copy()
    places = core.layout.fields
    turned: list[int] = []
    for name in ("joint_angle", "joint_rate", "reference_error", "last_action", "phase"):
        turned += range(places[name].first, places[name].first + places[name].width)
    begin = core.layout.size
    turned += [places["heading_error"].first, places["body_velocity"].first + 1, begin + 1]  # what lies to the left
    n_seen = begin + core.privileged.size
    turned += range(n_seen, n_seen + core.decoder.size)
    by_hand[:, turned] *= -1.0
    assert np.abs(by_hand - plain).max() > 0.1
    assert len(batches) == 4
    known = {row.tobytes() for row in plain + 0.0}
    twins = {row.tobytes() for row in by_hand + 0.0}
    for batch in batches:
        mirrored = [row.tobytes() not in known for row in batch + 0.0]
        assert sum(mirrored) == 16
        assert all(row.tobytes() in twins for row in batch[mirrored] + 0.0)
