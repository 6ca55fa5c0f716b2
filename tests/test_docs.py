"""The documentation says what the code does."""

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.__main__ import main
from snake_gym.envs.tables import write_page
from snake_gym.interface.policy_file import load_policy

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def test_env_page_is_up_to_date() -> None:
    assert (ROOT / "docs/env.md").read_text() == write_page(), "run: python -m snake_gym.envs.tables > docs/env.md"


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


def test_the_snippets_of_the_policy_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    writer, on_robot, in_env = (ROOT / "docs" / "policy_file.md").read_text().split("```python\n")[1:]
    names: dict[str, Any] = {}
    exec(writer.split("```")[0], names)
    assert load_policy("mine").name == "mine"
    names = {}
    exec(on_robot.split("```")[0].replace("agents/", f"{ROOT}/agents/"), names)
    assert np.isfinite(names["reference"]).all()
    exec(in_env.split("```")[0], names)
    assert names["info"]["episode_time_s"] == pytest.approx(60.0)
    assert names["info"]["progress_m"] > 10.0


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the exporters, in torch itself
def test_the_page_of_comparisons_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "comparing.md").read_text()
    model, export, seam, searched = (text.split("```")[0] for text in page.split("```python\n")[1:])
    for snippet in (model, export, seam):
        exec(snippet, {"__name__": "page"})
    exec(searched, {})
    assert re.search(r"\d m, -?\d+\.\d\d of cc", capsys.readouterr().out)
    told = re.findall(r"^snake-gym (evaluate --policy \w+=(?:model|policy)\..*)$", page, re.MULTILINE)
    assert len(told) == 3
    short = ["--episodes", "3", "--set", "resamples=100", "--no-pictures", "--controllers", "none"]
    for i, command in enumerate(told):
        assert main([*shlex.split(command), *short, "--out", f"out{i}"]) == 0
    assert main(["evaluate", "--check", "out0", "--trust", "--policy", "mine=model.zip", "--rows", "2"]) == 0
    assert main(["evaluate", "--table", "out0/results.json", "out1/results.json"]) == 0
