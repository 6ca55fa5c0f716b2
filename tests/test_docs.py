"""The documentation says what the code does."""

import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest

from snake_gym.config.settings import declared_types
from snake_gym.envs.tables import groups, setting_rows, write_page
from snake_gym.registry import TASKS, find_task

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_env_page_is_up_to_date() -> None:
    assert (ROOT / "docs/env.md").read_text() == write_page(), "run: python -m snake_gym.envs.tables > docs/env.md"


def test_settings_page_is_up_to_date() -> None:
    page = pytest.importorskip("agents.settings_page")  # needs torch
    written = (ROOT / "docs/settings.md").read_text()
    assert written == page.write_page(), "run: python -m agents.settings_page > docs/settings.md"


def literals(tp: Any) -> list[Any]:
    """The allowed values of a setting's type that are a choice of a few."""
    own = list(get_args(tp)) if get_origin(tp) is Literal else []
    return [*own, *(value for part in get_args(tp) for value in literals(part))]


def test_every_setting_has_a_meaning_and_so_has_every_value_to_choose() -> None:
    page = pytest.importorskip("agents.settings_page")
    classes = [*map(find_task, TASKS), *(cls for *_, cls in (*page.SECTIONS, *page.ALGORITHM))]
    owners = {group: path for cls in classes for path, group in groups(cls)}
    assert len(owners) > 35
    without = []
    for group, path in owners.items():
        types = declared_types(group)  # type: ignore[arg-type]
        for name, _, allowed, meaning in setting_rows(group, path):
            choices = map(str, literals(types[name.strip("`").rpartition(".")[2]]))
            without += [name] if not meaning.strip() or not allowed else []
            without += [f"{name}: {value}" for value in choices if not re.search(rf"\b{value}\b", meaning)]
    assert not without, f"their docstrings say nothing: {', '.join(without)}"


def test_files_and_modules_named_in_the_readme_exist() -> None:
    text = README + "".join(p.read_text() for p in (ROOT / "docs").rglob("*.md"))
    for path in re.findall(r"\b((?:configs|docs|benchmarks|agents|tests)/[\w./-]+\.\w+)", text):
        if "<" not in path:
            assert (ROOT / path).exists(), f"{path} is named in the documentation but does not exist"
    for module in re.findall(r"python -m ((?:snake_gym|agents|papers)[\w.]*)", text):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    for target in re.findall(r"^make (\w+)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"make {target}"


def test_the_readme_s_ten_lines_print_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    snippet, printed = re.findall(r"## Ten lines\n\n```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)[0]
    exec(snippet, {})
    assert capsys.readouterr().out == printed


def test_the_snippets_of_the_policy_page_run() -> None:
    on_robot, in_env = (ROOT / "docs" / "policy_file.md").read_text().split("```python\n")[1:]
    names: dict[str, Any] = {}
    exec(on_robot.split("```")[0].replace("agents/", f"{ROOT}/agents/"), names)
    assert np.isfinite(names["reference"]).all()
    exec(in_env.split("```")[0], names)
    assert names["info"]["episode_time_s"] == pytest.approx(60.0)
    assert names["info"]["progress_m"] > 10.0
