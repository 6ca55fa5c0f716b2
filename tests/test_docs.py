"""The documentation says what the code does."""

import contextlib
import gc
import io
import json
import re
import shlex
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
from stable_baselines3 import PPO

from papers.__main__ import main as papers_main
from snake_gym.__main__ import main as snake_gym_main
from snake_gym.config import dump_yaml, to_dict
from snake_gym.config.settings import declared_types
from snake_gym.envs import SnakeEnv
from snake_gym.envs.tables import groups, setting_notes, setting_rows
from snake_gym.hardware.__main__ import main as hardware_main
from snake_gym.registry import TASKS, find_task
from snake_gym.robot.measurement import Goal, Measurement

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the robot needs Linux")


@pytest.mark.parametrize(
    ("page", "module"), [("env.md", "snake_gym.envs.tables"), ("settings.md", "snake_gym.agents.settings_page")]
)
def test_a_page_made_by_a_program_is_up_to_date(page: str, module: str) -> None:
    made = pytest.importorskip(module).write_page()  # that of all settings needs torch
    assert (ROOT / "docs" / page).read_text() == made, f"run: python -m {module} > docs/{page}"


def test_the_page_of_policies_has_the_fields_that_a_controller_sees() -> None:
    page = (ROOT / "docs/policy.md").read_text()
    for group in (Measurement, Goal):
        notes = setting_notes(group)
        assert tuple(notes) == group._fields
        for name, note in notes.items():
            assert (row := f"| `{group.__name__.lower()}.{name}` | {note} |") in page, f"expected {row}"


def literals(tp: Any) -> list[Any]:
    """The allowed values of a setting's type that are a choice of a few."""
    own = list(get_args(tp)) if get_origin(tp) is Literal else []
    return [*own, *(value for part in get_args(tp) for value in literals(part))]


def test_every_setting_has_a_meaning_and_so_has_every_value_to_choose() -> None:
    page = pytest.importorskip("snake_gym.agents.settings_page")
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
    for module in re.findall(r"python -m ((?:snake_gym|papers)[\w.]*)", text):
        path = ROOT / module.replace("snake_gym.agents.", "agents.").replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
    for target in re.findall(r"^make (\w+)", text, re.MULTILINE):
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE), f"make {target}"


def test_the_page_of_recipes_has_them_all() -> None:
    text = (ROOT / "docs" / "training.md").read_text()
    files = [path.relative_to(ROOT).as_posix() for path in (ROOT / "configs" / "train").glob("*.yaml")]
    assert [file for file in files if f"`{file}`" not in text] == []


def test_the_readme_s_ten_lines_print_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    snippet, printed = re.findall(r"## Ten lines\n\n```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL)[0]
    exec(snippet, {})
    assert capsys.readouterr().out == printed


@pytest.mark.slow  # `make docs` builds it too
def test_the_site_builds_without_a_dead_link(tmp_path: Path) -> None:
    pytest.importorskip("material", reason="extra docs")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    pages = [page.read_text() for page in (tmp_path / "envs").glob("*.html")]
    for env_id, task in TASKS.items():
        assert not isinstance(task, str) or any(env_id in page for page in pages), env_id
    assert r"\(\varphi_i = \theta_i - \theta_{i+1}\)" in (tmp_path / "physics.html").read_text()
    from_network = re.findall(r'(?:src|href)="(https?://[^"]+\.(?:js|css))"', (tmp_path / "index.html").read_text())
    assert from_network == []


# --- Python ----------------------------------------------------------------------------------------------------------

RUN_ELSEWHERE = {"extending.md": "tests/extending", "comparing.md": "test_the_page_of_comparisons_runs"}
SLOW = {"clients.md", "papers/irani2015.md"}
GIVEN = {
    "papers/irani2015.md": """
import numpy as np
from snake_gym.robot.presets import ROBO_CONDA as spec
from snake_gym.simulation.simulated_robot import SimulatedRobot
robot = SimulatedRobot(spec, 1)
robot.set_shape(np.zeros((1, 13)), np.zeros(1), np.zeros((1, 2)))
references = np.array([0.4 * np.sin(2.0 * 0.1 * k + 0.6 * np.arange(13)) for k in range(20)])
samples = [(robot.joint_angle()[0], robot.state.head_xy[0].copy(), robot.state.link_angle[0, -1])]
for reference in references:
    robot.step(reference[None], n_substeps=round(0.1 / spec.step_s))
    samples.append((robot.joint_angle()[0], robot.state.head_xy[0].copy(), robot.state.link_angle[0, -1]))
period_s, (joint_angles, head_positions, head_angles) = 0.1, (np.array(part) for part in zip(*samples))
""",
}
"""Page -> code before its blocks."""


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


NEEDS = {"play.md": ("moviepy",), "clients.md": ("torchrl", "minari", "jax")}
"""Page -> libraries of extras in its code."""


def pages() -> list[Any]:
    found = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        name = page.relative_to(ROOT / "docs").as_posix()
        if python_blocks(page) and name not in RUN_ELSEWHERE:
            marks = ([pytest.mark.slow] if name in SLOW else []) + ([ON_LINUX] if name == "hardware.md" else [])
            found.append(pytest.param(name, marks=marks))
    return found


@pytest.mark.parametrize("name", pages())
def test_the_python_of_a_page_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in NEEDS.get(name, ()):
        pytest.importorskip(library, reason=f"the page needs {library}")
    if name == "clients.md":
        warnings.simplefilter("default")  # pytest puts the filters back
        monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agents").symlink_to(ROOT / "agents")  # where a checkout has the shipped policies
    names: dict[str, Any] = {}
    exec(GIVEN.get(name, ""), names)
    for block in python_blocks(ROOT / "docs" / name):
        exec(block, names)
    if name == "clients.md":
        names.clear()  # Minari's folder warns when it goes, which the next test would be blamed for
        gc.collect()
    elif name == "policy_file.md":
        assert np.isfinite(names["reference"]).all()
        assert names["info"]["episode_time_s"] == pytest.approx(60.0) and names["info"]["progress_m"] > 10.0
    elif name == "policy.md":
        assert names["info"]["targets_reached"] >= 2, "the gait is steered"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["first_crawl", "train_and_compare"])
def test_a_notebook_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="extra docs")
    pytest.importorskip("ipykernel", reason="extra docs")
    import nbformat

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    book = nbformat.read(ROOT / "docs" / "notebooks" / f"{name}.ipynb", 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nbclient.NotebookClient(book, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()


def test_notebooks_hold_no_outputs() -> None:
    for path in [*(ROOT / "docs/notebooks").glob("*.ipynb"), *(ROOT / "examples").glob("*.ipynb")]:
        cells = json.loads(path.read_text())["cells"]
        assert [cell["source"] for cell in cells if cell.get("outputs")] == [], path.name


# --- commands --------------------------------------------------------------------------------------------------------

COMMAND = r"(?:snake-gym |python (?:-m (?:snake_gym|papers)\b|train\.py|evaluate\.py|benchmarks/\w+\.py))[^`\n]*"


def commands() -> dict[str, list[str]]:
    """Command lines of the README and all pages, in blocks and in the text, by page."""
    found = {}
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text().replace("\\\n", " ")
        lines = re.findall(rf"(?:^|`)({COMMAND})", text, re.MULTILINE)
        found[page.name] = [re.sub(r"\s+#.*", "", line) for line in lines]
    return found


@cache
def help_of(program: str, command: str, *words: str) -> str:
    """The help text of a command, or the source of a program in benchmarks/."""
    if program.startswith("benchmarks/"):
        return (ROOT / program).read_text()
    main = {"papers": papers_main, "snake_gym.hardware": hardware_main}.get(program, snake_gym_main)
    with pytest.raises(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
        main([command, *words, "--help"] if command else ["--help"])
    return out.getvalue()


@ON_LINUX
def test_commands_in_the_documentation_have_the_options_that_they_are_given() -> None:
    n_seen = 0
    for page, lines in commands().items():
        for line in lines:
            line = re.sub(r"^python (train|evaluate)\.py", r"snake-gym \1", line)
            line = re.sub(r"^(snake-gym|python -m snake_gym) hardware\b", "python -m snake_gym.hardware", line)
            program, *rest = shlex.split(re.sub(r"^python (-m )?", "", line).replace("snake-gym", "snake_gym", 1))
            if program.startswith("snake_gym.") and program != "snake_gym.hardware":
                continue  # makers of pages have no options
            command = (
                rest[0] if rest and rest[0].replace("-", "_").isidentifier() and not rest[0].startswith("-") else ""
            )
            if command.isupper():
                continue
            on_robot = command == "play" and {"--port", "--config"} & set(rest)
            known = help_of(program, command, *(["--port", "X"] if on_robot else []))
            for option in (word.partition("=")[0] for word in rest if word.startswith("--") and len(word) > 2):
                assert re.search(rf"(?<![\w-]){option}(?![\w-])", known), f"{page}: {line}: no option {option}"
                n_seen += 1
    assert n_seen > 60


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the exporters, in torch itself
def test_the_page_of_comparisons_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "comparing.md").read_text()
    model, export, seam, searched = (text.split("```")[0] for text in page.split("```python\n")[1:])
    (tmp_path / "saved_model.py").write_text(model)
    env = SnakeEnv("SnakeGym/Waypoints-v0", action={"kind": "gait"}, time_limit_s=4.0)
    PPO("MlpPolicy", env, n_steps=64).save("model.zip")
    dump_yaml(to_dict(env.core.config), "env.yaml")
    for snippet in (export, seam):
        exec(snippet, {"__name__": "page"})
    exec(searched, {})
    assert re.search(r"\d m, -?\d+\.\d\d of cc", capsys.readouterr().out)
    played = re.findall(r"^snake-gym (evaluate --policy (?:mine|onnx)=\S+ --env .*)$", page, re.MULTILINE)
    assert len(played) == 2
    short = ["--episodes", "3", "--set", "resamples=100", "--no-pictures", "--controllers", "none"]
    for i, command in enumerate(played):
        assert snake_gym_main([*shlex.split(command), *short, "--out", f"out{i}"]) == 0
    assert snake_gym_main(["evaluate", "--replay", "out0", "--policy", "mine=saved_model.py:make", "--rows", "2"]) == 0
