"""Strict configuration: what is accepted, what is refused, and what the user is told."""

from __future__ import annotations

import dataclasses
import math
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from snake_gym.benchmark.replay import read_rows
from snake_gym.config import (
    ConfigError,
    OptionParser,
    Range,
    add_set_option,
    apply_overrides,
    build,
    choose,
    dump_yaml,
    load_yaml,
    merge,
    near_path,
    nearest,
    schema,
    to_dict,
    write_atomic,
    yaml_text,
)
from snake_gym.hardware.calibration.calibration import load_calibration
from snake_gym.hardware.run.record import read_record
from snake_gym.tasks.paths import read_points


@dataclass(frozen=True)
class Algorithm:
    kind: Literal["ppo", "sac"] = "ppo"
    learning_rate: float = 3e-4
    batch_size: int = 64
    hidden: tuple[int, ...] = (128, 128)

    def __post_init__(self) -> None:
        if self.learning_rate <= 0:
            raise ValueError(f"learning_rate is {self.learning_rate:g}; expected > 0")
        if self.batch_size < 0:
            raise ValueError(f"algorithm.batch_size is {self.batch_size}; expected >= 0")
        if len(self.hidden) > 5:
            raise ValueError("more than five layers are of no use here")


@dataclass(frozen=True)
class Required:
    kind: Literal["a", "b"]
    n: int = 1


@dataclass(frozen=True)
class Training:
    algorithm: Algorithm = field(default_factory=Algorithm)
    extra: Algorithm | None = None
    gain: float | tuple[float, ...] = 1.0
    limit: Annotated[float, Range(infinite=True)] = math.inf
    span: tuple[float, float] = (0.0, 1.0)
    steps: int = 1000
    name: str = "run"
    resume: bool = False
    weights: dict[str, float] = field(default_factory=dict)
    folder: Path = Path("runs")
    anything: Any = None
    tags: Sequence[str] = ()
    level: Annotated[int, "doc"] = 0
    seed: int | str | None = None
    either: Algorithm | Required | None = None


def refusal(mapping: Mapping[str, Any], where: str = "", cls: type = Training) -> str:
    with pytest.raises(ConfigError) as caught:
        build(cls, mapping, where)
    message = str(caught.value)
    assert "\n" not in message
    return message


# --- what is accepted ------------------------------------------------------------------------------------------------


def test_an_empty_mapping_gives_the_defaults() -> None:
    assert build(Training, {}) == Training()


@pytest.mark.parametrize(
    ("name", "given_value", "expected"),
    [
        ("limit", 3, 3.0),
        ("limit", 1, 1.0),
        ("limit", "-.inf", -math.inf),
        ("limit", np.float32(0.5), 0.5),
        ("steps", 3.0, 3),
        ("steps", 3e6, 3_000_000),
        ("steps", np.int64(7), 7),
        ("gain", [1, 2e0], (1.0, 2.0)),
        ("gain", np.array([1.0, 2.0]), (1.0, 2.0)),
        ("extra", None, None),
        ("extra", {"batch_size": 8}, Algorithm(batch_size=8)),
        ("extra", Algorithm(batch_size=8), Algorithm(batch_size=8)),
        ("algorithm", {"kind": "sac", "hidden": [8]}, Algorithm(kind="sac", hidden=(8,))),
        ("weights", {"progress": 10, "target": 2}, {"progress": 10.0, "target": 2.0}),
        ("folder", "a/b", Path("a/b")),
        ("anything", {"x": [1, "2"]}, {"x": [1, "2"]}),
        ("tags", ["a", "b"], ("a", "b")),
        ("level", 4, 4),
        ("seed", 3, 3),
        ("seed", "3", "3"),
        ("seed", None, None),
    ],
)
def test_values_are_coerced_to_the_declared_type(name: str, given_value: Any, expected: Any) -> None:
    value = getattr(build(Training, {name: given_value}), name)
    assert value == expected
    assert type(value) is type(expected)


def test_huge_integers_keep_every_digit() -> None:
    seed = 2**63 + 1
    assert build(Training, {"steps": seed}).steps == seed


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"steps": "2"}, "run.steps is '2'; expected an integer (without quotes)"),
        ({"steps": " 3e6 "}, "run.steps is ' 3e6 '; expected an integer (without quotes)"),
        ({"limit": "1e-3"}, "run.limit is '1e-3'; expected a number (.inf for no limit) (without quotes)"),
        ({"gain": [1, "2"]}, "run.gain[1] is '2'; expected a number (without quotes)"),
        ({"weights": {"target": "2"}}, "run.weights.target is '2'; expected a number (without quotes)"),
        ({"level": "4"}, "run.level is '4'; expected an integer (without quotes)"),
    ],
)  # fmt: skip
def test_text_is_no_number_but_for_infinities(mapping: dict[str, Any], message: str) -> None:
    assert refusal(mapping, "run").startswith(message)
    (name, value), *_ = mapping.items()
    if isinstance(value, str):  # the command line's text is YAML, and so a number
        assert getattr(build(Training, apply_overrides({}, [f"{name}={value}"])), name) == float(value)
    assert build(Training, {"limit": "inf"}).limit == math.inf  # JSON has no other


def test_the_mapping_is_left_as_it_was() -> None:
    mapping = {"algorithm": {"hidden": [1, 2]}, "weights": {"a": 1}}
    built = build(Training, mapping)
    assert mapping == {"algorithm": {"hidden": [1, 2]}, "weights": {"a": 1}}
    assert built.weights is not mapping["weights"]


# --- what is refused -------------------------------------------------------------------------------------------------


def test_an_unknown_key_names_the_nearest_one() -> None:
    assert refusal({"algorithm": {"learning_ratee": 1}}, "configs/train/x.yaml") == (
        "configs/train/x.yaml: algorithm.learning_ratee is not a setting; did you mean 'learning_rate'? "
        "(settings: kind, learning_rate, batch_size, hidden)"
    )
    assert "did you mean 'algorithm.learning_rate'?" in refusal({"learning_rate": 1})
    message = refusal({"zzz": 1}, "env")
    assert message.startswith("env.zzz is not a setting (settings: algorithm, ") and "did you mean" not in message


@pytest.mark.parametrize("key", [1, None])
def test_a_key_that_is_no_text_is_unknown(key: object) -> None:
    assert refusal({key: 1}).startswith(f"{key} is not a setting")  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"steps": "many"}, "steps is 'many'; expected an integer"),
        ({"steps": 2.5}, "steps is 2.5; expected an integer"),
        ({"steps": math.inf}, "steps is inf; expected an integer"),
        ({"steps": True}, "steps is true; expected an integer"),
        ({"limit": "1,5"}, "limit is '1,5'; expected a number"),
        ({"limit": math.nan}, "limit is nan; expected a number"),
        ({"resume": 1}, "resume is 1; expected true or false"),
        ({"name": 12}, "name is 12; expected text (put it in quotes)"),
        ({"gain": "high"}, "gain is 'high'; expected a number or a list, each a number"),
        ({"gain": [1, "x"]}, "gain[1] is 'x'; expected a number"),
        ({"span": [1]}, "span is [1]; expected a list of 2: a number, a number"),
        ({"weights": {1: 2}}, "the key 1 of weights is 1; expected text (put it in quotes)"),
        ({"weights": [1]}, "weights is [1]; expected a group whose values are a number"),
        ({"algorithm": None}, "algorithm is null; expected a group of settings (kind, learning_rate, "),
        ({"algorithm": {"kind": "poo"}}, "algorithm.kind is 'poo'; expected one of 'ppo', 'sac'; did you mean 'ppo'?"),
        ({"algorithm": {"hidden": 8}}, "algorithm.hidden is 8; expected a list, each an integer"),
        ({"extra": {"kindd": 1}}, "extra.kindd is not a setting; did you mean 'kind'?"),
        ({"folder": 3}, "folder is 3; expected a path"),
        ({"tags": "abc"}, "tags is 'abc'; expected a list, each text"),
        ({"seed": [1]}, "seed is [1]; expected an integer or text or null"),
        ({"either": {"kind": "a", "n": "x"}}, "either.n is 'x'; expected an integer"),
        ({"either": {"kind": "c", "m": 1}}, "either is {'kind': 'c', 'm': 1}; expected a group of settings (kind, lea"),
    ],
)
def test_a_wrong_value_is_named_with_its_place_and_what_was_expected(mapping: dict[str, Any], message: str) -> None:
    assert refusal(mapping).startswith(message)
    first = message.split()[0]
    if first != "the":
        assert refusal(mapping, "demo.yaml").startswith(f"demo.yaml: {first} ")
        assert refusal(mapping, "demo.yaml: train").startswith(f"demo.yaml: train.{first} ")


def test_what_is_missing_no_mapping_or_too_long_to_be_shown() -> None:
    assert refusal({}, "env", Required) == "env.kind is missing; expected one of 'a', 'b'"
    assert build(Required, {"kind": "b"}) == Required("b")
    assert refusal([1], "demo.yaml").startswith("demo.yaml is [1]; expected a group of settings (")  # type: ignore
    assert len(refusal({"steps": "x" * 5000})) < 200
    bomb: list[Any] = [1] * 9
    for _ in range(30):  # 9^30 numbers
        bomb = [bomb] * 9
    assert len(refusal({"steps": bomb})) < 200
    assert "thousands of digits" in refusal({"name": 1 << 100_000})


RATE, BATCH = {"learning_rate": -1}, {"batch_size": -1}


@pytest.mark.parametrize(
    ("cls", "mapping", "where", "expected"),
    [
        (Algorithm, RATE, "", "learning_rate is -1; expected > 0"),
        (Algorithm, RATE, "algorithm", "algorithm.learning_rate is -1; expected > 0"),
        (Algorithm, RATE, "x.yaml", "x.yaml: learning_rate is -1; expected > 0"),
        (Algorithm, RATE, "x.yaml: algorithm", "x.yaml: algorithm.learning_rate is -1; expected > 0"),
        (Algorithm, BATCH, "x.yaml: algorithm", "x.yaml: algorithm.batch_size is -1; expected >= 0"),
        (Training, {"algorithm": BATCH}, "x.yaml", "x.yaml: algorithm.batch_size is -1; expected >= 0"),
        (Training, {"algorithm": {"hidden": [1] * 6}}, "", "algorithm: more than five layers are of no use here"),
    ],
)
def test_an_error_of_post_init_gets_its_place_once(cls: type, mapping: Any, where: str, expected: str) -> None:
    assert refusal(mapping, where, cls) == expected


def test_only_dataclasses_can_be_built() -> None:
    with pytest.raises(TypeError):
        build(dict, {})
    with pytest.raises(TypeError):
        build(Training(), {})  # type: ignore[arg-type]


# --- round trips -----------------------------------------------------------------------------------------------------

number = st.floats(-1e9, 1e9)
text = st.text(max_size=12)
algorithms = st.builds(
    Algorithm,
    kind=st.sampled_from(["ppo", "sac"]),
    learning_rate=st.floats(1e-300, 1e9),
    batch_size=st.integers(0, 2**70),
    hidden=st.lists(st.integers(), max_size=5).map(tuple),
)
trainings = st.builds(
    Training,
    algorithm=algorithms,
    extra=st.none() | algorithms,
    gain=number | st.lists(number, max_size=4).map(tuple),
    limit=st.floats(allow_nan=False),
    span=st.tuples(number, number),
    steps=st.integers(),
    name=text,
    resume=st.booleans(),
    weights=st.dictionaries(text, number, max_size=3),
    folder=st.sampled_from([Path("runs"), Path("/tmp/a b")]),
    tags=st.lists(text, max_size=3).map(tuple),
    level=st.integers(),
    seed=st.none() | st.integers() | text,
)


@settings(max_examples=60)
@given(training=trainings)
def test_yaml_then_build_is_the_identity(training: Training, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("yaml") / "training.yaml"
    dump_yaml(training, path)
    assert build(Training, load_yaml(path)) == training


@pytest.mark.parametrize("name", ["yes", "010", "1e-3", "null", "~", "12:30", "2026-01-01", "<<", "=", "0x1F", "", " "])
def test_text_that_looks_like_something_else_survives_yaml(name: str, tmp_path: Path) -> None:
    dump_yaml({"name": name}, tmp_path / "x.yaml")
    assert load_yaml(tmp_path / "x.yaml") == {"name": name}
    assert yaml.safe_load((tmp_path / "x.yaml").read_text()) == {"name": name}  # so does a reader for YAML 1.1


def test_to_dict_gives_plain_data() -> None:
    plain = to_dict(Training(gain=(1.0, 2.0), weights={"a": np.float64(1)}, anything=np.arange(3)))  # type: ignore
    assert plain["gain"] == [1.0, 2.0]
    assert plain["anything"] == [0, 1, 2]
    assert plain["folder"] == "runs"
    assert plain["limit"] == math.inf
    assert plain["algorithm"] == dataclasses.asdict(Algorithm()) | {"hidden": [128, 128]}
    assert type(plain["weights"]["a"]) is float
    with pytest.raises(TypeError, match="cannot be written as plain data"):
        to_dict({"x": object()})


# --- YAML ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1e-3", 1e-3),
        (".5", 0.5),
        ("-.inf", -math.inf),
        ("12", 12),
        ("1_000_000", 1_000_000),
        ("0x1F", 31),
        ("010", "010"),
        ("1:30", "1:30"),
        ("yes", "yes"),
        ("true", True),
        ("null", None),
        ("", None),
        ("'1'", "1"),
        ("1e", "1e"),
    ],
)
def test_scalars_are_read_by_the_rules_of_yaml_1_2(written: str, value: object, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(f"key: {written}\n")
    read = load_yaml(tmp_path / "x.yaml")["key"]
    assert read == value
    assert type(read) is type(value)


def test_no_settings(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("{}  # nothing\n")
    assert load_yaml(tmp_path / "x.yaml") == {}


def test_a_text_with_too_many_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_text, "MOST_VALUES", 7)
    (tmp_path / "x.yaml").write_text("a: {x: 1, y: [2]}\n")
    with pytest.raises(ConfigError, match="line 1, column 15: it has more than 7 values"):
        load_yaml(tmp_path / "x.yaml")


@pytest.mark.parametrize("reader", [load_yaml, load_calibration, read_record, read_rows, read_points])
def test_endless_files_are_not_read(reader: Callable[[str], object], tmp_path: Path) -> None:
    device, sparse, pipe = tmp_path / "device", tmp_path / "sparse", tmp_path / "pipe"
    device.symlink_to("/dev/null")
    with sparse.open("wb") as stream:
        stream.truncate(1 << 40)
    os.mkfifo(pipe)
    for path, reason in ((device, "no regular file"), (sparse, "more than .* bytes"), (pipe, "no regular file")):
        with pytest.raises(ConfigError, match=reason):
            reader(str(path))


def test_a_mistyped_key_of_one_of_several_groups_names_the_nearest_one() -> None:
    @dataclass(frozen=True)
    class Peg:
        x_m: float
        radius_m: float

    @dataclass(frozen=True)
    class Log:
        x_m: float
        end_m: float
        radius_m: float

    tp = tuple[Peg | Log, ...]
    for shape in ({"x_m": 1, "radus_m": 1}, {"x_m": 1, "end_m": 2, "radus_m": 1}):
        with pytest.raises(ConfigError, match=r"^shapes\[0\].radus_m is not a setting; did you mean 'radius_m'"):
            schema.coerce(tp, [shape], "shapes")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a: 1\nb: 2\na: 3\n", "is not valid YAML, line 3, column 1: 'a' is given twice"),
        ("a: [1, 2\n", "is not valid YAML, line 2"),
        ("a: !!python/object/apply:os.system ['true']\n", "is not valid YAML, line 1"),
        ("a: !!int ''\n", "is not valid YAML, line 1, column 4: anchors, aliases and tags are not read"),
        ("a: &a {x: 1}\nb: {<<: [*a, *a]}\n", "is not valid YAML, line 1, column 4: anchors, aliases and tags"),
        ("a: *b\n", "is not valid YAML, line 1, column 4: anchors, aliases and tags are not read"),
        ("a\tb: : c", "is not valid YAML"),
        ("a: \x00", "is not valid YAML"),
        ("- 1\n- 2\n", "holds [1, 2]; expected settings of the form 'key: value'"),
        ("text", "holds 'text'; expected settings"),
        ("", "is empty; expected settings of the form 'key: value' ({} for none)"),
        ("# nothing\n---\n", "is empty; expected settings"),
    ],
)
def test_a_broken_file_is_one_line(content: str, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError) as caught:
        load_yaml(path)
    assert str(caught.value).startswith(f"{path} {complaint}")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="cannot be read: not UTF-8 text"):
        load_yaml(tmp_path / "x.yaml")


def test_a_missing_file_names_what_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "train"
    folder.mkdir()
    (folder / "demo.yaml").touch()
    (folder / "notes.txt").touch()

    def complaint(path: Path) -> str:
        with pytest.raises(ConfigError) as caught:
            load_yaml(path)
        return str(caught.value)

    assert complaint(folder / "dmeo.yaml").endswith(f"dmeo.yaml does not exist; did you mean '{folder}/demo.yaml'?")
    assert complaint(folder / "demo").endswith(f"demo does not exist; did you mean '{folder}/demo.yaml'?")
    assert complaint(tmp_path / "trian/demo.yaml").endswith(f"did you mean '{folder}'?")
    assert complaint(folder / "zzz.yaml").endswith(f"zzz.yaml does not exist; {folder} has demo.yaml")
    assert complaint(tmp_path / "zzzz/x.yaml").endswith(f"does not exist: there is no folder {tmp_path}/zzzz")
    assert complaint(folder) == f"{folder} is a folder; expected a YAML file"


def test_a_near_path_is_found_by_folder_and_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    (runs / "snake.json").touch()
    assert near_path(runs / "snaek.json", (".json",)) == near_path(runs / "snake", (".json",)) == runs / "snake.json"
    assert near_path(tmp_path / "rnus" / "snake.json", (".json",)) == runs
    assert near_path(runs / "snaek.json", (".yaml",)) is None
    monkeypatch.chdir(runs)
    assert near_path("snaek.json", (".json",)) == Path("snake.json")
    (runs / "a.json").touch()
    assert near_path(runs / "x.json", (".json",)) is None


# --- writing ---------------------------------------------------------------------------------------------------------


def test_writing_replaces_the_file_or_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "new" / "x.txt"
    write_atomic(path, "one")
    write_atomic(path, b"two")

    def fail(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomic(path, "new")
    assert path.read_text() == "two"
    assert os.listdir(path.parent) == ["x.txt"]


def test_a_device_is_written_to_not_replaced() -> None:
    write_atomic("/dev/null", "text")
    assert not Path("/dev/null").is_file()


# --- mappings and names ----------------------------------------------------------------------------------------------


def test_merge_is_deep_and_changes_neither() -> None:
    base = {"a": {"x": 1, "y": [1]}, "b": 2, "c": {"z": 0}}
    override = {"a": {"x": 9, "n": {"m": 1}}, "c": 3, "d": {"k": [1]}}
    merged = merge(base, override)
    assert merged == {"a": {"x": 9, "y": [1], "n": {"m": 1}}, "b": 2, "c": 3, "d": {"k": [1]}}
    merged["a"]["y"].append(2)
    merged["d"]["k"].append(2)
    assert base == {"a": {"x": 1, "y": [1]}, "b": 2, "c": {"z": 0}}
    assert override == {"a": {"x": 9, "n": {"m": 1}}, "c": 3, "d": {"k": [1]}}


nested = st.recursive(
    st.integers() | st.none(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner), max_leaves=8
)
mappings = st.dictionaries(st.sampled_from("abc"), nested)


@given(mappings, mappings)
def test_merge_laws(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert merge(a, {}) == merge({}, a) == merge(a, a) == a
    assert merge(merge(a, b), b) == merge(a, b)
    assert set(merge(a, b)) == set(a) | set(b)
    for key, value in merge(a, b).items():
        if isinstance(a.get(key), dict) and isinstance(b.get(key), dict):
            assert value == merge(a[key], b[key])
        else:
            assert value == (b[key] if key in b else a[key])


def test_overrides_are_read_as_yaml() -> None:
    base = {"env": {"time_limit_s": 60, "faults": None}, "seed": 0}
    assignments = ["env.time_limit_s=1e1", "env.faults.kinds=[locked, free]", "new.deep.key=true", "seed=null", "s=a=b"]
    assert apply_overrides(base, assignments) == {
        "env": {"time_limit_s": 10.0, "faults": {"kinds": ["locked", "free"]}},
        "seed": None,
        "new": {"deep": {"key": True}},
        "s": "a=b",
    }
    assert base == {"env": {"time_limit_s": 60, "faults": None}, "seed": 0}
    assert apply_overrides({}, ["a=1", "a=2"]) == {"a": 2}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("abc", "'abc' is not an assignment; expected key=value"),
        ("=3", "'=3' is not an assignment"),
        ("a..b=3", "'a..b=3' is not an assignment"),
        ("seed.x=3", "'seed.x=3' cannot be set: seed is 1, not a group"),
        ("a=[1", "the value in 'a=[1' is not valid YAML"),
    ],
)
def test_a_bad_override(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        apply_overrides({"seed": 1}, [assignment])
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("name", "choices", "expected"),
    [
        ("Learning-Ratee", ["batch", "learning_rate"], "learning_rate"),
        ("qqq", ["batch", "learning_rate"], None),
        ("qqq", [], None),
        ("evaluation", ["env", "eval", "checkpoint"], "eval"),
        ("evaluation", ["eva", "eval"], "eval"),
        ("chk", ["chk_of_the_folders", "chk_of_folders_x"], "chk_of_folders_x"),
        ("ev", ["evaluations", "on"], None),
        ("environment", ["en"], None),
        ("n_min", ["noise_m"], None),
        ("n_mx", ["n_min", "n_max"], "n_max"),
        ("my_gate", ["my_gait", "sjc"], "my_gait"),
        ("Waypont", ["Waypoints", "Velocity"], "Waypoints"),
        ("num_envs", ["stagger", "n_envs", "seed"], "n_envs"),
        ("standrad", ["joint_angle", "standard"], "standard"),
        ("trian", ["train", "brain"], "train"),
        ("distance_m", ["radius_m", "max_distance_m"], "max_distance_m"),
        ("learningrate", ["batch_size", "learning_rate"], "learning_rate"),
        ("randomisation/masss", ["randomisation/mass", "randomisation/friction_along"], "randomisation/mass"),
        ("randomisation/masss", ["randomisation/friction_along", "randomisation/slope_rad"], None),
        ("heading_bias_rad", ["heading_noise_rad", "bias"], None),
        ("--policy", ["--plugin", "--set"], None),
        ("sweep", ["seed", "steps"], None),
        ("share", ["start", "sphere_m"], None),
        ("goal_m", ["gap_m"], None),
        ("a.episodes", ["n_episodes_max", "examples"], None),
        ("velocity", ["body_velocity", "joint_velocities_m"], "body_velocity"),
    ],
)
def test_nearest(name: str, choices: list[str], expected: str | None) -> None:
    assert nearest(name, choices) == expected


def test_choose() -> None:
    assert choose("sjc", ["sjc", "cc"], "controller.kind") == "sjc"
    with pytest.raises(ConfigError) as caught:
        choose("sjcc", ["sjc", "cc"], "controller.kind")
    assert str(caught.value) == "controller.kind is 'sjcc'; expected one of sjc, cc; did you mean 'sjc'?"
    with pytest.raises(ConfigError, match=r"^kind is null; expected one of sjc, cc$"):
        choose(None, ["sjc", "cc"], "kind")
    with pytest.raises(ConfigError, match=r"^kind is \['sjc'\]; expected one of sjc, cc"):
        choose(["sjc"], ["sjc", "cc"], "kind")


# --- command line ----------------------------------------------------------------------------------------------------


def run_program(body: str) -> subprocess.CompletedProcess[str]:
    program = "from snake_gym.config import *\nimport sys\ndef main(argv):\n" + textwrap.indent(body, "    ")
    return subprocess.run(
        [sys.executable, "-c", program + "\nrun_program(main)"], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("body", "code", "stderr"),
    [
        ("print('fine'); return 0", 0, ""),
        ("return 3", 3, ""),
        ("raise ConfigError('joint is 12;\\nexpected 1 to 9')", 2, "error: joint is 12; expected 1 to 9\n"),
        ("raise KeyboardInterrupt", 130, "interrupted\n"),
        ("open('/no/such/file')", 2, "error: /no/such/file: No such file or directory\n"),
    ],
)
def test_a_program_ends_with_one_line_and_a_code(body: str, code: int, stderr: str) -> None:
    done = run_program(body)
    assert (done.returncode, done.stderr) == (code, stderr)


def test_a_programming_error_keeps_its_traceback() -> None:
    done = run_program("raise ValueError('a bug')")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_a_reader_that_hangs_up_is_no_error() -> None:
    chatter = "[print('x' * 1000) for _ in range(10000)]"
    program = f"from snake_gym.config import run_program\nrun_program(lambda _: {chatter} and 0)"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_set_takes_several_assignments_and_leaves_what_comes_after_them() -> None:
    parser = OptionParser()
    parser.add_argument("env")
    parser.add_argument("--worlds")
    add_set_option(parser)
    for words in (
        ["--set", "a.b=1", "c=[x=2]", "Waypoints", "--set", "d=-3", "--worlds", "e=5"],
        ["Waypoints", "--set", "a.b=1", "--set", "c=[x=2]", "d=-3", "--worlds", "e=5"],
    ):
        found = parser.parse_args(words)
        assert (found.env, found.set, found.worlds) == ("Waypoints", ["a.b=1", "c=[x=2]", "d=-3"], "e=5")
    with pytest.raises(ConfigError, match="--set: expected one argument"):
        parser.parse_args(["Waypoints", "--set"])
