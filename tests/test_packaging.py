"""What the package declares: dependencies and their lock, one version, cards, names, commands."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import snake_gym
from snake_gym.__main__ import COMMANDS, main
from snake_gym.config import ConfigError
from snake_gym.config.program import DISTRIBUTION

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
LOCK_LINES = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_lock_is_plain_pins() -> None:
    assert [line for line in LOCK_LINES if not re.fullmatch(r"[A-Za-z0-9._-]+==[0-9a-z.]+", line)] == []
    names = [canonical(line.split("==")[0]) for line in LOCK_LINES]
    assert len(names) == len(set(names))
    assert [name for name in names if re.match("nvidia|cuda|triton", name)] == []


@pytest.mark.parametrize("group", ["", *EXTRAS])
def test_the_lock_pins_every_dependency_within_its_bounds(group: str) -> None:
    pins = {canonical(line.split("==")[0]): line.split("==")[1] for line in LOCK_LINES}

    def numbers(version: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", version)]

    for requirement in EXTRAS[group] if group else PROJECT["project"]["dependencies"]:
        name, _, least = requirement.partition(";")[0].partition(">=")
        assert numbers(pins[canonical(name)]) >= numbers(least or "0"), requirement


def test_the_makefile_locks_every_extra_and_no_torch_executes_checkpoints() -> None:
    """Before 2.6, ``weights_only=True`` executes what a file says (CVE-2025-32434)."""
    (listed,) = re.findall(r"^ALL_EXTRAS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert sorted(listed.split(",")) == sorted(EXTRAS)
    (least,) = re.findall(r"torch>=(\d+)\.(\d+)", " ".join(EXTRAS["train"]))
    assert (int(least[0]), int(least[1])) >= (2, 6)


def test_every_hint_installs_this_project_and_not_the_game_of_nearly_that_name() -> None:
    assert PROJECT["project"]["name"] == DISTRIBUTION
    assert f"--exclude {DISTRIBUTION} " in (ROOT / "Makefile").read_text()
    files = [ROOT / "README.md", *(path for top in ("docs", "snake_gym", "agents") for path in (ROOT / top).rglob("*"))]
    for path in files:
        if path.suffix in (".py", ".md"):
            installed = re.findall(r"pip install [^`\n]*\b(snake[\w-]+)", path.read_text())
            assert set(installed) <= {DISTRIBUTION}, path


def test_a_version_has_one_place_and_its_section_in_the_changelog(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"snake-gym {snake_gym.__version__}\n"
    assert f"\n## {snake_gym.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()
    files = ("pyproject.toml", "setup.py", "CITATION.cff", "Dockerfile", "README.md")
    assert [file for file in files if re.search(rf"\b{snake_gym.__version__}\b", (ROOT / file).read_text())] == []


def test_style_is_checked_by_one_version_of_ruff() -> None:
    (hooks,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert f"ruff=={hooks['rev'].removeprefix('v')}" in LOCK_LINES


@pytest.mark.parametrize("policy", sorted((ROOT / "agents/pretrained").iterdir()), ids=lambda path: path.name)
def test_the_front_matter_of_a_card_says_what_card_and_contract_say(policy: Path) -> None:
    _, front, text = (policy / "README.md").read_text("utf-8").split("---\n", 2)
    (model,) = yaml.safe_load(front)["model-index"]
    (result,) = model["results"]
    contract = json.loads((policy / "policy.json").read_text("utf-8"))
    assert (model["name"], result["dataset"]["type"]) == (contract["name"], contract["env"]["id"])
    score = re.search(r"\*\*([\d.]+)\*\*", text)
    assert score is not None and result["metrics"][0]["value"] == float(score[1])


def test_names_of_the_package_load_at_first_use() -> None:
    assert set(snake_gym.__all__) <= set(dir(snake_gym))
    assert all(getattr(snake_gym, name) is not None for name in snake_gym.__all__)
    with pytest.raises(AttributeError, match="no attribute 'load_robt'"):
        _ = snake_gym.load_robt


def test_every_command_has_a_program_and_others_are_named() -> None:
    for place, _ in COMMANDS.values():
        module, _, function = place.partition(":")
        assert callable(getattr(importlib.import_module(module), function))
    with pytest.raises(ConfigError, match=r"command is 'trian'; .* did you mean 'train'"):
        main(["trian"])
