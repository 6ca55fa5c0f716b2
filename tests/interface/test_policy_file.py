"""Policy files with numpy alone: the shipped one acts as its learner did; what does not fit is refused."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import snake_gym
from snake_gym.config import ConfigError
from snake_gym.interface.actor_network import ActorNetwork, Layer
from snake_gym.interface.policy_file import fallback_note, load_policy, shipped_policies
from snake_gym.robot.presets import RESILIENT_SERVO

SHIPPED = Path(__file__).parents[2] / "agents" / "pretrained" / "resilient_servo_locked_joints"
POLICY = load_policy(SHIPPED)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the shipped policy that may be damaged."""
    shutil.copytree(SHIPPED, tmp_path / "policy")
    return tmp_path / "policy"


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the contract by hand."""
    content = json.loads((folder / "policy.json").read_text())
    change(content)
    (folder / "policy.json").write_text(json.dumps(content))


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_policy(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_shipped_policy_loads_by_its_file_or_folder() -> None:
    by_file = load_policy(SHIPPED / "policy.json", robot="resilient_servo")
    assert by_file.digest == POLICY.digest
    assert (POLICY.name, POLICY.spec.name, POLICY.contract.control_dt_s) == (SHIPPED.name, "resilient_servo", 0.2)
    assert POLICY.contract.action.settings.kind == "residual"
    assert POLICY.contract.action.settings.controller["kind"] == "fault_aware"


def test_shipped_policies_load_by_name_from_the_package_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    for name in shipped_policies():
        assert snake_gym.load_policy(name).name == name
    assert SHIPPED.name in shipped_policies()
    assert "did you mean 'resilient_servo_locked_joints'?" in refusal(Path("resilient_servo_locked_joint"))


def test_single_observations_and_batches_give_the_same_actions() -> None:
    obs = np.random.default_rng(0).normal(size=(7, 45)).astype(np.float32)
    actions, state = POLICY.predict(obs, state="kept")
    assert actions.shape == (7, 10) and actions.dtype == np.float32 and state == "kept"
    assert np.abs(actions).max() <= 1.0
    assert (np.abs(actions) < 0.999).mean() > 0.5  # or bounds would hide differences
    for row, action in zip(obs, actions, strict=True):
        single, _ = POLICY.predict(row)
        assert single.shape == (10,)
        np.testing.assert_allclose(single, action, rtol=0, atol=1e-7)
    np.testing.assert_array_equal(POLICY.predict(obs, deterministic=False)[0], actions)
    with pytest.raises(ValueError, match=r"expected \(45,\) or \(W, 45\)"):
        POLICY.predict(np.zeros((3, 42)))
    for space, size, bound in ((POLICY.observation_space, 45, 10.0), (POLICY.action_space, 10, 1.0)):
        assert (space.shape, space.low.min(), space.high.max()) == ((size,), -bound, bound)


def test_a_robot_with_other_joints_or_another_timing_is_refused() -> None:
    load_policy(SHIPPED, replace(RESILIENT_SERVO, link_mass_kg=2.0))
    with pytest.raises(ConfigError, match=r"for n_links 10 .*; robot short has 6"):
        load_policy(SHIPPED, {"preset": "resilient_servo", "name": "short", "n_links": 6})
    with pytest.raises(ConfigError, match=r"for control_dt_s 0\.2 .* has 0\.1"):
        load_policy(SHIPPED, replace(RESILIENT_SERVO, control_dt_s=0.1))


# --- what is refused -------------------------------------------------------------------------------------------------


def test_a_run_gives_its_best_policy_or_its_last_and_a_checkpoint_its_own(folder: Path) -> None:
    run = folder.parent / "run"
    best, final, older, newer = (
        run / name
        for name in ("policy/best", "policy/final", "checkpoints/step_01/policy", "checkpoints/step_02/policy")
    )
    for place in (best, final, older, newer):
        shutil.copytree(folder, place)
    for place in (best, final, newer, older):
        assert load_policy(run).path == place / "policy.json"
        assert (fallback_note(run) is None) is (place == best)
        shutil.rmtree(place)
    shutil.copytree(folder, older)
    assert load_policy(older.parent).path == older / "policy.json"


def test_changed_weights_are_refused(folder: Path) -> None:
    path = folder / "policy.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    assert "policy.safetensors was changed or damaged: its sha256 is" in refusal(folder)


def swap_layers(content: dict[str, Any]) -> None:
    for layer in content["network"]:
        if layer["kind"] == "relu":
            layer["kind"] = "tanh"


CHANGED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "other activation": (swap_layers, "golden actions are missed by"),
    "other controller gain": (
        lambda c: c["action"]["settings"]["controller"].update(heading_gain=0.5), "golden joint references are missed",
    ),
    "other robot": (lambda c: c["robot"].update(n_links=9), "cannot be played"),
    "other timing": (lambda c: c.update(control_dt_s=0.1), "control_dt_s is 0.1; expected the robot's, 0.2"),
    "other observation scale": (
        lambda c: c["observation"]["fields"][1].update(scale=2.0),
        "joint_rate (first 9, width 9, scale 2.0, bound 10) is joint_rate (first 9, width 9, scale 0.5,",
    ),
    "no golden pairs": (
        lambda c: c["golden"].update(observations=[], actions=[], references=[[], []]), "golden actions have shape",
    ),
    "lax tolerance": (lambda c: c["golden"].update(action_tolerance=10.0), "is 10; expected <= 0.0001"),
    "layers in another order": (lambda c: c["network"].reverse(), "has shape (10, 128); expected (10, 45)"),
    "unused weights": (lambda c: c.update(network=c["network"][:2]), "it holds the tensors ['layer0.bias'"),
    "weights elsewhere": (lambda c: c["weights"].update(file="../policy.safetensors"), "expected text of the form"),
    "env of a module": (lambda c: c["env"].update(id="evil:SnakeGym/X-v0"), "expected the plain name of an env"),
    "another format": (lambda c: c.update(format="snake_gym policy file 9"), "format is 'snake_gym policy file 9'"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGED)
def test_a_contract_that_does_not_fit_is_refused(name: str, folder: Path) -> None:
    change, message = CHANGED[name]
    edit(folder, change)
    complaint = refusal(folder)
    assert message in complaint and "policy.json" in complaint


def test_weights_of_another_policy_are_refused_even_with_their_hash(folder: Path) -> None:
    """Swapped columns keep every shape: only the golden pairs can tell."""
    path = folder / "policy.safetensors"
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    body = np.frombuffer(content[start:], np.float32).copy()
    other = content[:start] + np.roll(body, 1).tobytes()
    path.write_bytes(other)
    edit(folder, lambda c: c["weights"].update(sha256=hashlib.sha256(other).hexdigest()))
    assert "golden actions are missed by" in refusal(folder)
    body[0] = np.nan
    broken = content[:start] + body.tobytes()
    path.write_bytes(broken)
    edit(folder, lambda c: c["weights"].update(sha256=hashlib.sha256(broken).hexdigest()))
    assert "is not finite" in refusal(folder)


# --- the network -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("relu", [0.0, 0.0, 0.0, 2.0, 800.0]),
        ("tanh", [-1.0, -np.tanh(0.5), 0.0, np.tanh(2.0), 1.0]),
        ("elu", [-1.0, np.exp(-0.5) - 1.0, 0.0, 2.0, 800.0]),
        ("silu", [0.0, -0.5 / (1.0 + np.exp(0.5)), 0.0, 2.0 / (1.0 + np.exp(-2.0)), 800.0]),
        ("clip", [-1.0, -0.5, 0.0, 1.0, 1.0]),
    ],
)
def test_layers_are_their_formulas(kind: Any, expected: list[float]) -> None:
    network = ActorNetwork([Layer(kind)], {}, 5, 5)
    np.testing.assert_allclose(network.play(np.array([[-800.0, -0.5, 0.0, 2.0, 800.0]]))[0], expected, atol=1e-7)
