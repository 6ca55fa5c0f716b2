"""The documentation says what the code does."""

import re
from pathlib import Path

import numpy as np

from snake_gym.envs.tables import write_page

ROOT = Path(__file__).parent.parent


def test_env_page_is_up_to_date() -> None:
    assert (ROOT / "docs/env.md").read_text() == write_page(), "run: python -m snake_gym.envs.tables > docs/env.md"


def test_files_and_modules_named_in_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text() + "".join(p.read_text() for p in (ROOT / "docs").rglob("*.md"))
    for path in re.findall(r"\b((?:configs|docs|benchmarks|agents|tests)/[\w./-]+\.\w+)", text):
        if "<" not in path:
            assert (ROOT / path).exists(), f"{path} is named in the documentation but does not exist"
    for module in re.findall(r"python -m (snake_gym[\w.]*|agents[\w.]*)", text):
        path = ROOT / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    for target in re.findall(r"^make (\w+)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"make {target}"


def test_the_snippet_of_the_policy_page_runs() -> None:
    snippet = (ROOT / "docs" / "policy_file.md").read_text().split("```python\n")[1].split("```")[0]
    names: dict[str, object] = {}
    exec(snippet.replace("agents/", f"{ROOT}/agents/"), names)
    assert np.isfinite(names["reference"]).all()  # type: ignore[call-overload]
