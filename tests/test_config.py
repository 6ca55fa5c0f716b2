"""Configuration: YAML, files, overrides, nearest names, records and command lines."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from snake_gym.config import (
    ConfigError,
    OptionParser,
    apply_overrides,
    digest,
    dump_yaml,
    load_yaml,
    merge,
    read_json,
    require,
    run_program,
    to_json,
    write_atomic,
)
from snake_gym.hardware.calibration.calibration import load_calibration
from snake_gym.hardware.robot.record import read_record
from snake_gym.tasks.paths import read_points


def test_text_that_looks_like_something_else_survives_yaml(tmp_path: Path) -> None:
    names = ["yes", "010", "1e-3", "null", "~", "12:30", "2026-01-01", "<<", "=", "0x1F", "", " ", "\x85"]
    dump_yaml({"names": names}, tmp_path / "x.yaml")
    assert load_yaml(tmp_path / "x.yaml") == {"names": names}
    assert yaml.safe_load((tmp_path / "x.yaml").read_text()) == {"names": names}  # so does a reader for YAML 1.1


# --- YAML ------------------------------------------------------------------------------------------------------------


def test_scalars_are_read_by_the_rules_of_yaml_1_2(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("key: [1e-3, -.inf, 12, 1_000_000, 0x1F, 010, 1:30, yes, true, null, '1', 1e]\n")
    read = load_yaml(tmp_path / "x.yaml")["key"]
    expected = [1e-3, -math.inf, 12, 1_000_000, 31, "010", "1:30", "yes", True, None, "1", "1e"]
    assert [(value, type(value)) for value in read] == [(value, type(value)) for value in expected]


@pytest.mark.parametrize("reader", [load_yaml, load_calibration, read_record, read_points])
def test_endless_files_are_not_read(reader: Callable[[str], object], tmp_path: Path) -> None:
    device, sparse, pipe = tmp_path / "device", tmp_path / "sparse", tmp_path / "pipe"
    device.symlink_to("/dev/null")
    with sparse.open("wb") as stream:
        stream.truncate(1 << 40)
    os.mkfifo(pipe)
    for path, reason in ((device, "no regular file"), (sparse, "more than .* bytes"), (pipe, "no regular file")):
        with pytest.raises(ConfigError, match=reason):
            reader(str(path))


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a: 1\nb: 2\na: 3\n", "is not valid YAML, line 3, column 1: 'a' is given twice"),
        ("a: [1, 2\n", "is not valid YAML, line 2"),
        ("a: !!python/object/apply:os.system ['true']\n", "is not valid YAML, line 1"),
        ("a: &a {x: 1}\nb: {<<: [*a, *a]}\n", "is not valid YAML, line 1, column 4: anchors, aliases and tags"),
        ("a: \x00", "is not valid YAML"),
        ("a: \udcff", "cannot be read: 'utf-8' codec can't decode"),
        ("- 1\n- 2\n", "holds [1, 2]; expected settings of the form 'key: value'"),
        ("# nothing\n---\n", "is empty; expected settings"),
        (None, "does not exist; did you mean"),
    ],
)
def test_a_broken_file_is_one_line(content: str | None, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "demo.yaml"
    if content is None:
        path.touch()
        path = tmp_path / "dmeo.yaml"
    else:
        path.write_text(content, errors="surrogateescape")
    with pytest.raises(ConfigError) as caught:
        load_yaml(path)
    assert str(caught.value).startswith(f"{path} {complaint}")
    assert "\n" not in str(caught.value)


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
    write_atomic("/dev/null", "text")
    assert not Path("/dev/null").is_file(), "a device is written to, not replaced"


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


@pytest.mark.parametrize("assignment", ["abc", "a..b=3", "seed.x=3", "a=[1"])
def test_a_bad_override_is_named(assignment: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(assignment)):
        apply_overrides({"seed": 1}, [assignment])


# --- command line ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raised", "code", "stderr"),
    [
        (None, 3, ""),
        (ConfigError("joint is 12;\nexpected 1 to 9"), 2, "error: joint is 12; expected 1 to 9\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (FileNotFoundError(2, "No such file", "/no/such/file"), 2, "error: /no/such/file: No such file\n"),
    ],
)
def test_a_program_ends_with_one_line_and_a_code(
    raised: BaseException | None, code: int, stderr: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(_: list[str] | None) -> int:
        if raised is not None:
            raise raised
        return 3

    with pytest.raises(SystemExit) as ended:
        run_program(main)
    assert (ended.value.code, capsys.readouterr().err) == (code, stderr)


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


def test_json_is_strict_and_holds_what_is_not_finite_as_text() -> None:
    for text, message in (
        ('{"a": 1, "a": 2}', "'a' stands there twice"), ('{"a": NaN}', "NaN is no number of JSON"),
        ("[" * 100_000, "nested too deeply"), ("{", "x.json is not JSON"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=message):
            read_json(text, "x.json")
    value = {"inf": math.inf, "list": (1, -math.inf), "array": np.array([math.nan, 2.5])}
    read: Any = read_json(to_json(value), "x.json")
    assert read["inf"] == "inf" and read["list"] == [1, "-inf"] and read["array"] == ["nan", 2.5]


def test_a_digest_tells_parts_apart() -> None:
    assert digest("ab", "c") != digest("a", "bc") != digest(b"a", "bc")
    assert digest({"a": 1.0}, np.arange(3)) == digest({"a": 1.0}, [0, 1, 2])


def test_a_missing_library_is_named_with_the_extra_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    require("a camera", "math")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError) as caught:
        require("a picture", "matplotlib", "torch")
    message = "a picture needs matplotlib, torch, which are not installed: pip install 'snake-robot-gym[render,train]'"
    assert str(caught.value) == message


def test_wrong_options_are_told_in_one_line_and_negative_numbers_are_values() -> None:
    parser = OptionParser(prog="crawl")
    parser.add_argument("--to")
    assert parser.parse_args(["--to", "-1,0"]).to == "-1,0"
    with pytest.raises(
        ConfigError, match=r"unrecognized arguments: --too=3; did you mean '--to'\? \(see crawl --help\)"
    ):
        parser.parse_args(["--too=3"])
    assert parser.parse_args(["--t=--y"]).to == "--y"  # the beginning of an option is enough
