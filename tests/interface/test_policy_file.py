"""Policy files with numpy alone: the shipped one acts as its learner did; tampered and foreign ones are refused."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import shutil
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

import snake_gym
from snake_gym.benchmark import evaluate
from snake_gym.config import ConfigError, build
from snake_gym.interface.actor_network import ActorNetwork, FrozenNormaliser, Layer
from snake_gym.interface.policy_contract import SEAL, parse_contract, seal
from snake_gym.interface.policy_file import (
    MAX_HEADER_BYTES,
    FilePolicy,
    fallback_note,
    load_policy,
    read_tensors,
    shipped_policies,
)
from snake_gym.registry import find_task
from snake_gym.robot.presets import RESILIENT_SERVO
from tests.interface.policy_steps import play

SHIPPED = Path(__file__).parents[2] / "agents" / "pretrained" / "resilient_servo_locked_joints"
POLICY = load_policy(SHIPPED)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the shipped policy that may be damaged."""
    shutil.copytree(SHIPPED, tmp_path / "policy")
    return tmp_path / "policy"


def edit(folder: Path, change: Callable[[dict[str, Any]], object], resealed: bool = True) -> None:
    """Change the contract by hand, and give it a seal that fits."""
    content = json.loads((folder / "policy.json").read_text())
    change(content)
    if resealed:
        content[SEAL] = seal(content)
    (folder / "policy.json").write_text(json.dumps(content))


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        load_policy(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_of_an_earlier_version_loads_and_plays_the_same(folder: Path) -> None:
    """Before columns could be chosen, and with ``stagger``, which concerns the training alone, among the settings."""

    def as_before(content: dict[str, Any]) -> None:
        content["observation"] |= {"columns": []}
        content["env"]["settings"] |= {"columns": [], "stagger": True}

    edit(folder, as_before)
    before = load_policy(folder)
    np.testing.assert_array_equal(play(before), play(POLICY))
    assert before.env_config == POLICY.env_config
    build(find_task(before.env_id), before.env_config)
    edit(folder, lambda content: content["env"]["settings"].update(columns=["distance"]))
    assert load_policy(folder).env_config["observation"] == {"columns": ["standard", "distance"]}


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


def test_missing_files_are_named(folder: Path) -> None:
    assert "nowhere does not exist" in refusal(folder / "nowhere")
    (folder / "policy.safetensors").rename(folder / "weights")
    assert "policy.safetensors cannot be read: No such file" in refusal(folder)
    assert "is no policy file; expected a policy.json" in refusal(folder / "weights")
    (folder / "policy.json").unlink()
    assert "policy holds no policy; expected a policy.json" in refusal(folder)


def test_what_was_probably_meant_is_offered(folder: Path) -> None:
    runs = folder.parent
    folder = folder.rename(runs / "mine")
    expected = f"{runs} holds no policy.json; did you mean {str(folder)!r}?"
    assert refusal(runs) == expected
    near = folder.with_name(folder.name + "x")
    assert refusal(near) == f"{near} does not exist; did you mean {str(folder)!r}?"


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


def test_a_run_whose_best_policy_is_half_there_is_refused_and_one_without_it_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = folder.parent / "run"
    for name in ("best", "final"):
        shutil.copytree(folder, run / "policy" / name)
    (run / "policy" / "best" / "policy.json").unlink()
    assert refusal(run) == (
        f"{run}/policy/best holds policy.safetensors but no policy.json; to take another policy of the run, name it, "
        f"as {run}/policy/final"
    )
    shutil.rmtree(run / "policy" / "best")
    told = f"{run} has no best policy (policy/best); {run}/policy/final is taken"
    assert fallback_note(run) == told
    evaluate.read_config(evaluate.parse(["--policy", f"mine={run}", "--controllers", "none"]))
    assert capsys.readouterr().err == f"note: policy mine: {told}\n"
    assert fallback_note(run / "policy" / "final") is None


@pytest.mark.parametrize("place", ["policy/best.npz", "checkpoints/step_01/policy.npz"])
def test_a_run_of_an_earlier_version_is_refused_in_one_line(place: str, tmp_path: Path) -> None:
    (tmp_path / place).parent.mkdir(parents=True)
    (tmp_path / place).touch()
    assert refusal(tmp_path).endswith("of an earlier version of snake_gym, which this one does not read: train again")
    assert "earlier version" in refusal(tmp_path / place)


def test_changed_weights_are_refused(folder: Path) -> None:
    path = folder / "policy.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    assert "policy.safetensors was changed or damaged: its sha256 is" in refusal(folder)
    path.write_bytes(content[:-100])
    assert f"has {len(content) - 100} bytes; expected {len(content)}" in refusal(folder)


def test_a_changed_contract_is_refused(folder: Path) -> None:
    edit(folder, lambda content: content["action"]["settings"].update(scale_rad=2.0), resealed=False)
    assert "policy.json was changed or damaged after it was written" in refusal(folder)
    text = (SHIPPED / "policy.json").read_text()
    (folder / "policy.json").write_text(text[: len(text) // 2])
    assert "policy.json is no policy file: " in refusal(folder)


def test_spacing_and_order_do_not_break_the_seal(folder: Path) -> None:
    content = json.loads((folder / "policy.json").read_text())
    (folder / "policy.json").write_text(json.dumps(dict(reversed(content.items()))))
    assert load_policy(folder).digest == POLICY.digest


def swap_layers(content: dict[str, Any]) -> None:
    for layer in content["network"]:
        if layer["kind"] == "relu":
            layer["kind"] = "tanh"


RESEALED: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "other activation": (swap_layers, "golden actions are missed by"),
    "other controller gain": (
        lambda c: c["action"]["settings"]["controller"].update(heading_gain=0.5), "golden joint references are missed",
    ),
    "other robot": (lambda c: c["robot"].update(n_links=9), "action.size is 10; expected 9 for this robot"),
    "other timing": (lambda c: c.update(control_dt_s=0.1), "control_dt_s is 0.1; expected the robot's, 0.2"),
    "other observation scale": (
        lambda c: c["observation"]["fields"][1].update(scale=2.0),
        "joint_rate (first 9, width 9, scale 2.0, bound 10) is joint_rate (first 9, width 9, scale 0.5,",
    ),
    "fewer fields": (lambda c: c["observation"]["fields"].pop(), "45 entries in 8 fields"),
    "normaliser of another size": (
        lambda c: c.update(normaliser={"mean": [0.0], "variance": [1.0], "epsilon": 1e-8, "clip": 10.0}),
        "normaliser has 1 means and 1 variances; expected 45",
    ),
    "variances of another size": (
        lambda c: c.update(normaliser={"mean": [0.0] * 45, "variance": [1.0], "epsilon": 1e-8, "clip": 10.0}),
        "normaliser has 45 means and 1 variances; expected 45",
    ),
    "normaliser with an infinite mean": (
        lambda c: c.update(normaliser={"mean": ["inf"] * 45, "variance": [1.0] * 45, "epsilon": 1e-8, "clip": 10.0}),
        "normaliser.mean[0] is 'inf'; expected a number",
    ),
    "ragged golden pairs": (lambda c: c["golden"]["observations"][0].pop(), "cannot be played"),
    "no golden pairs": (
        lambda c: c["golden"].update(observations=[], actions=[], references=[[], []]), "expected pairs",
    ),
    "lax tolerance": (lambda c: c["golden"].update(action_tolerance=10.0), "expected in (0, 0.0001]"),
    "layer without weights": (lambda c: c["network"][0].update(weight=None), "kind 'linear' has weight None"),
    "layers in another order": (lambda c: c["network"].reverse(), "expected (outputs, 45)"),
    "unused weights": (lambda c: c.update(network=c["network"][:2]), "it holds the tensors 'layer0.bias'"),
    "unknown controller": (
        lambda c: c["action"]["settings"].update(controller={"kind": "zz"}), "does not fit this version of snake_gym",
    ),
    "controller of a file": (
        lambda c: c["action"]["settings"].update(controller={"file": "/etc/gait.yaml"}), "names file: '/etc/gait.yaml'",
    ),
    "controller of a file, deeper": (
        lambda c: c["action"]["settings"].update(controller={"kind": "reflex", "controller": {"tuned": "../cc"}}),
        "names tuned: '../cc'",
    ),
    "weights elsewhere": (lambda c: c["weights"].update(file="../policy.safetensors"), "expected a plain file name"),
    "env of a module": (lambda c: c["env"].update(id="evil:SnakeGym/X-v0"), "expected the plain name of an env"),
    "another format": (lambda c: c.update(format="snake_gym policy file 9"), "its format is 'snake_gym policy file 9'"),
}  # fmt: skip


@pytest.mark.parametrize("name", RESEALED)
def test_a_contract_that_was_changed_and_resealed_is_refused(name: str, folder: Path) -> None:
    change, message = RESEALED[name]
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no policy file: it is not JSON: Expecting value"),
        (b"[1]", "its format is list"),
        (b'{"a": 1}', "its format is None; expected 'snake_gym policy file 2'"),
        (b'{"format": ' + b"1" * 5000 + b"}", "is no policy file"),
        (b"\x80\x04\x95pickle", "no UTF-8 text"),
        (b" " * ((1 << 20) + 1), "it has more than 1048576 bytes"),
    ],
)
def test_foreign_content_is_refused(content: bytes, message: str, folder: Path) -> None:
    (folder / "policy.json").write_bytes(content)
    assert message in refusal(folder)


CONTENT = json.loads((SHIPPED / "policy.json").read_text())
TENSORS = read_tensors((SHIPPED / "policy.safetensors").read_bytes(), "x")
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_whatever_stands_in_a_sealed_contract_is_taken_or_refused_in_one_line(data: st.DataObject) -> None:
    """Any value, anywhere in the contract, replaced by anything that JSON can hold."""
    content = copy.deepcopy(CONTENT)
    node: Any = content
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = data.draw(st.sampled_from(keys))
        if not (isinstance(node[key], (dict, list)) and node[key]) or data.draw(st.integers(0, 3)) == 0:
            break
        node = node[key]
    if key == SEAL and node is content:
        return
    node[key] = data.draw(JUNK)
    content[SEAL] = seal(content)
    try:
        FilePolicy(parse_contract(json.dumps(content), "x"), TENSORS, SHIPPED)
    except ValueError as error:
        complaint = str(error)
    else:
        complaint = ""
    assert len(complaint) < 1000


# --- the weights -----------------------------------------------------------------------------------------------------

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([1.5, -2.0], np.float64),
    "empty": np.zeros((0, 4), np.float16),
}


def file_of(header: Any, body: bytes) -> bytes:
    """A safetensors file from its parts."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(raw)) + raw + body


def parts() -> tuple[dict[str, Any], bytes]:
    """Header and body of ``ARRAYS``."""
    data = save(ARRAYS)
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


HEADER, BODY = parts()
ENTRY = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}


def changed(name: str, **entry: Any) -> bytes:
    return file_of({**HEADER, name: {**HEADER[name], **entry}}, BODY)


BAD = {
    "nothing": b"",
    "header longer than the file": struct.pack("<Q", 1000) + b"{}",
    "huge header": file_of(b"{" + b" " * MAX_HEADER_BYTES + b"}", b""),
    "not JSON": file_of(b"{hello", b""),
    "deep": file_of(b'{"a":' * 100_000, b""),
    "name twice": file_of(f'{{"a": {json.dumps(ENTRY)}, "a": {json.dumps(ENTRY)}}}'.encode(), bytes(4)),
    "integers": save({"a": np.arange(3)}),
    "shape too large": changed("a", shape=[2, 4]),
    "shape that overflows": changed("a", shape=[1 << 62, 6]),
    "empty but immense": file_of({"z": {"dtype": "F32", "shape": [0, 1 << 62, 1 << 62], "data_offsets": [0, 0]}}, b""),
    "overlap": changed("a", data_offsets=[12, 36]),
    "bytes left over": file_of(HEADER, BODY + b"x"),
    "bytes missing": file_of(HEADER, BODY[:-1]),
}


@pytest.mark.parametrize("name", BAD)
def test_weights_that_break_a_rule_of_the_format_or_ours_are_refused_in_one_line(name: str) -> None:
    with pytest.raises(ConfigError, match="x is no valid safetensors file") as caught:
        read_tensors(BAD[name], "x")
    assert len(str(caught.value)) < 300


def test_weights_are_read_as_they_were_written() -> None:
    found = read_tensors(file_of(HEADER, BODY), "x")
    assert found.keys() == ARRAYS.keys()
    for name, values in ARRAYS.items():
        assert found[name].dtype == values.dtype
        np.testing.assert_array_equal(found[name], values)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.binary(max_size=200), st.integers(0, 300), st.integers(0, 255))
def test_random_bytes_as_weights_raise_nothing_but_the_one_error(junk: bytes, place: int, value: int) -> None:
    flipped = bytearray(file_of(HEADER, BODY))
    flipped[place % len(flipped)] = value
    for content in (junk, file_of(junk, b""), file_of(b"{" + junk, junk), bytes(flipped)):
        with contextlib.suppress(ConfigError):
            read_tensors(content, "x")


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
    np.testing.assert_allclose(network(np.array([[-800.0, -0.5, 0.0, 2.0, 800.0]]))[0], expected, atol=1e-7)


def test_linear_layers_multiply_and_add() -> None:
    tensors = {"w": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), "b": np.array([0.5, 0.0, -0.5])}
    network = ActorNetwork([Layer("linear", "w", "b")], tensors, 2, 3)
    np.testing.assert_allclose(network(np.array([[1.0, -1.0]])), [[-0.5, -1.0, -1.5]])
    no_bias = ActorNetwork([Layer("linear", "w")], {"w": tensors["w"]}, 2, 3)
    np.testing.assert_allclose(no_bias(np.array([[1.0, -1.0]])), [[-1.0, -1.0, -1.0]])


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"w": (3, 2)}, "expected 'b', 'w'"),
        ({"w": (3, 5), "b": (3,)}, r"'w' has shape \(3, 5\); expected \(outputs, 2\)"),
        ({"w": (3, 2), "b": (2,)}, r"'b' has shape \(2,\); expected \(3,\)"),
        ({"w": (4, 2), "b": (4,)}, "the last layer gives 4 numbers; expected 3"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(shapes: dict[str, tuple[int, ...]], message: str) -> None:
    tensors = {name: np.zeros(shape) for name, shape in shapes.items()}
    with pytest.raises(ValueError, match=message):
        ActorNetwork([Layer("linear", "w", "b")], tensors, 2, 3)


def test_a_normaliser_scales_and_clips() -> None:
    normaliser = FrozenNormaliser(np.array([1.0, 0.0]), np.array([4.0, 0.0]), 1e-8, 10.0)
    np.testing.assert_allclose(normaliser(np.array([[5.0, 1.0]])), [[2.0, 10.0]], rtol=1e-6)
