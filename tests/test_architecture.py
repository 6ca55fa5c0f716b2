"""The house keeps its shape: imports point downwards only, and heavy libraries stay where they belong.

Sources are read with ``ast``, so the rules hold for code that no test runs. Unsafe calls and global generators are
refused by ruff (S and NPY rules in pyproject.toml).
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(path for top in ("snake_gym", "agents", "papers") for path in (ROOT / top).rglob("*.py"))

BELOW_ENVS = {"physics", "obstacles", "robot", "simulation", "controllers", "interface", "tasks"}
MAY_IMPORT: dict[str, set[str]] = {
    "physics": set(),
    "obstacles": {"physics.state"},
    "robot": set(),
    "simulation": {"physics", "robot", "obstacles"},
    "controllers": {"obstacles.polyline", "obstacles.splitmix", "robot"},
    "interface": {"robot", "controllers"},
    "tasks": {"physics.state", "robot", "obstacles", "simulation", "interface"},
    "spatial": BELOW_ENVS,
    "envs": BELOW_ENVS,
    "render": {*BELOW_ENVS, "envs"},
    "benchmark": {*BELOW_ENVS, "envs", "render"},
    "hardware.bus": set(),
    "hardware.calibration": {"hardware.bus", "robot"},
    "hardware.pose": {"hardware.bus", "robot", "controllers.nominal_chain"},
    "hardware.guard": {"hardware.bus", "hardware.calibration", "robot"},
    "hardware.robot.measured_task": {"hardware", *BELOW_ENVS},  # a task of the envs, played by the robot
    "hardware.robot": {"hardware", "robot", "controllers", "interface"},
    "emulator": {"hardware", *BELOW_ENVS},
}
"""Package of snake_gym -> what it may import of snake_gym, besides itself and ``FOR_EVERYONE``. Packages that are not
named here are programs, which nothing below them imports."""
FOR_EVERYONE = {"config", "registry", "plugins", "parallel", "compilation", "__version__"}
LAZY = {("controllers", "simulation")}
"""Allowed inside a function only: what is needed when asked for alone."""

HOME_OF: dict[str, tuple[str, ...]] = {
    "torch": ("snake_gym.agents",),
    "stable_baselines3": ("snake_gym.agents", "snake_gym.commands"),
    "tensorboard": ("snake_gym.agents",),
    "onnx": ("snake_gym.agents",),
    "ray": ("snake_gym.parallel",),
    "joblib": ("snake_gym.parallel",),
    "onnxruntime": ("snake_gym.agents", "snake_gym.hardware"),
    "safetensors": ("snake_gym.agents", "snake_gym.interface"),
    "numba": ("snake_gym.physics", "snake_gym.obstacles", "snake_gym.compilation"),
    "llvmlite": ("snake_gym.physics",),
    "pygame": ("snake_gym.render",),
    "PIL": ("snake_gym.render",),
    "matplotlib": ("snake_gym.render", "snake_gym.benchmark", "papers"),
    "serial": ("snake_gym.hardware", "snake_gym.emulator"),
    "cv2": ("snake_gym.hardware",),
    "mujoco": ("snake_gym.spatial",),
    "yaml": ("snake_gym.config",),
    "pytest": (),
    "hypothesis": (),
}
"""Third-party library -> the packages that may import it."""


def imports(tree: ast.AST, package: list[str], lazy: bool = False) -> Iterator[tuple[str, bool]]:
    """Yield every imported module, dotted in full, and whether the statement stands in a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((f"{source}.{alias.name}", lazy) for alias in node.names)
        is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield from imports(node, package, lazy or is_function)


def is_within(module: str, packages: Iterable[str]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


def complaints_about(source: str, module: str) -> list[str]:
    """Return the imports of a module, named in full, that the tables do not allow."""
    own = module.removeprefix("snake_gym.")
    layer = next((layer for layer in MAY_IMPORT if is_within(own, [layer])), None)
    found = []
    for target, lazy in imports(ast.parse(source), module.split(".")[:-1]):
        library = target.split(".")[0]
        wanted = target.removeprefix("snake_gym.")
        if library in HOME_OF and not is_within(module, HOME_OF[library]):
            found.append(f"{module} imports {library}; its home is {HOME_OF[library] or 'tests'}")
        if module.startswith("snake_gym.") and library in ("papers", "train", "evaluate", "tests", "benchmarks"):
            found.append(f"{module} imports {target}, which is above it")
        if layer is None or library != "snake_gym" or target == "snake_gym":
            continue
        allowed = is_within(wanted, {layer, *FOR_EVERYONE, *MAY_IMPORT[layer]})
        if not allowed and not (lazy and any(layer == one and is_within(wanted, [other]) for one, other in LAZY)):
            found.append(f"{module} imports {target}")
    return found


def test_imports_point_downwards() -> None:
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in SOURCES}
    names = {path: f"snake_gym.{name}" if name.startswith("agents.") else name for path, name in names.items()}
    assert [one for path, name in names.items() for one in complaints_about(path.read_text(), name)] == []


def test_every_package_has_its_place_and_says_what_it_is_for() -> None:
    rooms = {path.parent.name for path in (ROOT / "snake_gym").glob("*/__init__.py")}
    assert rooms - {layer.split(".")[0] for layer in MAY_IMPORT} == {"config", "commands"}
    for path in SOURCES:
        source = path.read_text()
        assert not source.strip() or ast.get_docstring(ast.parse(source)), f"{path}: a module says what it is for"
        assert not {path.stem, path.parent.name} & {"utils", "util", "common", "helpers", "misc", "tools"}, path


def test_no_room_outgrows_its_budget() -> None:
    budget = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["snake_gym"]["most_lines"]
    weight = {room: sum(len(path.read_text().splitlines()) for path in (ROOT / room).rglob("*.py")) for room in budget}
    assert {room: lines for room, lines in weight.items() if lines > budget[room]} == {}


def test_one_step_is_read_in_an_hour() -> None:
    rows = re.findall(r"^\| \d+ \| `(.+?)` \| (.+?) \|", (ROOT / "docs/one_step.md").read_text(), re.MULTILINE)
    lines = 0
    for file, parts in rows:
        source = (ROOT / "snake_gym" / file).read_text()
        for name in re.findall(r"`(.+?)`", parts) or [""]:
            node: ast.AST = ast.parse(source)
            for word in filter(None, name.split(".")):
                node = next(one for one in ast.iter_child_nodes(node) if getattr(one, "name", None) == word)
            lines += getattr(node, "end_lineno", source.count("\n")) - getattr(node, "lineno", 1) + 1
    assert 10 < len(rows) <= 15
    assert 2_000 < lines <= 3_300


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("snake_gym.physics.chain", "from ..robot import spec", "imports snake_gym.robot.spec"),
        ("snake_gym.physics.chain", "def f():\n from snake_gym.robot import spec", "imports snake_gym.robot"),
        ("snake_gym.controllers.base", "from snake_gym import load_robot", "imports snake_gym.load_robot"),
        ("snake_gym.envs.core", "from papers.study import Claim", "which is above it"),
        ("snake_gym.envs.core", "def f():\n from snake_gym.spatial import spec", "imports snake_gym.spatial.spec"),
        ("snake_gym.envs.core", "from snake_gym.render import frames", "imports snake_gym.render"),
        ("snake_gym.benchmark.runner", "import torch", "its home is"),
    ],
)
def test_a_breach_is_found(module: str, source: str, complaint: str) -> None:
    assert complaint in " ".join(complaints_about(source, module))


HEAVY = ["numba", "torch", "stable_baselines3", "scipy", "pygame", "matplotlib", "tensorboard", "mujoco", "pydantic"]


def loaded_by(statement: str) -> set[str]:
    program = f"{statement}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_the_package_or_stopping_a_robot_loads_nothing_heavy() -> None:
    assert loaded_by("import snake_gym, snake_gym.hardware.commands.estop") == set()


def test_an_env_needs_no_learning_library() -> None:
    assert loaded_by("import snake_gym.envs").isdisjoint({"torch", "stable_baselines3", "pygame", "matplotlib"})
