"""The house keeps its shape: imports point downwards only, heavy libraries stay where they belong, files stay short.

Everything is read from the source with ``ast``; nothing is imported, so the rules hold for code that no test runs.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("snake_gym", "agents", "papers")
SOURCES = sorted(
    path
    for path in [*ROOT.glob("*.py"), *(path for top in PACKAGES for path in (ROOT / top).rglob("*.py"))]
    if path.name != "conftest.py"
)

# --- the rules -------------------------------------------------------------------------------------------------------

BELOW_ENVS = {"physics", "obstacles", "robot", "simulation", "controllers", "interface", "spatial", "tasks"}
MAY_IMPORT: dict[str, set[str]] = {
    "physics": set(),
    "obstacles": {"physics.state", "physics.compilation"},
    "robot": set(),
    "simulation": {"physics", "robot", "obstacles"},
    "controllers": {"obstacles.polyline", "obstacles.splitmix", "robot"},
    "interface": {"robot", "controllers"},
    "spatial": {"physics.state", "physics.faults", "robot", "obstacles", "simulation"},
    "tasks": {"physics.state", "robot", "obstacles", "simulation", "interface", "spatial", "controllers.multimodal"},
    "envs": BELOW_ENVS,
    "hardware": {"robot", "controllers", "interface"},
    "benchmark": {*BELOW_ENVS, "envs", "render"},
    "render": {*BELOW_ENVS, "envs"},
    "commands": {*BELOW_ENVS, "envs"},
}
"""Package of snake_gym -> what it may import of snake_gym. Every one may import itself and snake_gym.config."""

ABOVE = ["agents", "snake_gym.agents", "train", "evaluate", "tests", "benchmarks"]
"""What stands above the library, ``papers`` apart, which stands beside them."""

FOR_EVERYONE = {"config", "registry", "plugins", "parallel", "__version__"}
TOP_LEVEL = {"", "registry", "plugins", "parallel", "config"}
"""Modules directly in snake_gym: they import nothing of ours but each other (the lazy names are text, not imports)."""

PROGRAMS = {
    "snake_gym.__main__", "papers.__main__", "snake_gym.hardware.__main__", "snake_gym.hardware.run.real_env",
    "snake_gym.hardware.run.measured_task",    "snake_gym.hardware.commands", "snake_gym.commands",
}  # fmt: skip
"""Entry modules and packages, found by name and imported by no other module: they may reach up."""

HARDWARE_ROOMS: dict[str, set[str]] = {
    "bus": set(),
    "emulator": {"bus"},
    "calibration": {"bus"},
    "pose": {"bus"},
    "safety": {"bus", "calibration"},
    "run": {"bus", "emulator", "calibration", "pose", "safety"},
}
"""Package of snake_gym.hardware -> the others of them that it may import."""

LAZY = {("envs", "render"), ("controllers", "simulation")}
"""Allowed inside a function only: an env draws, and a controller simulates, when asked to; nothing is loaded before."""

HOME_OF: dict[str, tuple[str, ...]] = {
    "torch": ("snake_gym.agents",),
    "stable_baselines3": ("snake_gym.agents", "snake_gym.commands"),
    "tensorboard": ("snake_gym.agents",),
    "onnx": ("snake_gym.agents",),
    "ray": ("snake_gym.parallel",),
    "joblib": ("snake_gym.parallel",),
    "onnxruntime": ("snake_gym.agents", "snake_gym.hardware"),
    "safetensors": ("snake_gym.agents", "snake_gym.interface"),
    "numba": ("snake_gym.physics", "snake_gym.obstacles", "snake_gym.simulation.disturbances"),
    "llvmlite": ("snake_gym.physics",),
    "pygame": ("snake_gym.render",),
    "PIL": ("snake_gym.render",),
    "matplotlib": ("snake_gym.render", "snake_gym.benchmark", "papers"),
    "serial": ("snake_gym.hardware",),
    "cv2": ("snake_gym.hardware",),
    "mujoco": ("snake_gym.spatial",),
    "pytest": (),
    "hypothesis": (),
}
"""Third-party library -> the packages that may import it."""

ONLY: dict[str, set[str]] = {
    "snake_gym.physics": {"numpy", "numba", "llvmlite"},
    "snake_gym.obstacles": {"numpy", "numba"},
    "snake_gym.robot": {"numpy"},
    "snake_gym.controllers": {"numpy", "scipy"},
    "snake_gym.config": {"yaml"},
}
"""Packages that need nothing else than these third-party libraries."""

VAGUE_NAMES = {"utils", "util", "common", "helpers", "helper", "misc", "tools", "stuff"}

MAX_KERNEL_LINES = 40
LONG_KERNELS: dict[str, str] = {
    "snake_gym.physics.chain.eliminate_links": "one sweep: the fields that a link leaves are read by the next",
}
"""module.function -> why this kernel earns more than MAX_KERNEL_LINES lines of code."""


# --- reading the source ----------------------------------------------------------------------------------------------


class Import(NamedTuple):
    """One imported module, dotted in full; ``lazy`` if the statement stands in a function."""

    target: str
    line: int
    lazy: bool


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return f"snake_gym.{name}" if parts[0] == "agents" else name


@cache
def nodes(tree: ast.AST) -> list[ast.AST]:
    """All nodes of a module."""
    return list(ast.walk(tree))


@cache
def imports(tree: ast.AST, module: str, is_package: bool = False) -> list[Import]:
    """Every import of a module, relative ones and the text in ``import_module("...")`` included."""
    package = module.split(".") if is_package else module.split(".")[:-1]

    def walk(node: ast.AST, lazy: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (Import(alias.name, child.lineno, lazy) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = package[: len(package) - child.level + 1] if child.level else []
                source = ".".join([*base, *([child.module] if child.module else [])])
                for alias in child.names:  # `from snake_gym import physics` imports snake_gym.physics
                    full = f"{source}.{alias.name}"
                    yield Import(full if source == "snake_gym" or is_module(full) else source, child.lineno, lazy)
            elif isinstance(child, ast.Call) and dotted(child.func) in ("import_module", "__import__"):
                argument = child.args[0] if child.args else None
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield Import(argument.value, child.lineno, lazy)
            inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from walk(child, lazy or inside)

    return list(walk(tree, False))


def dotted(node: ast.expr) -> str:
    """A name, dotted as far as it is plain: ``np.random.rand``."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return is_within(name, PROGRAMS) or path.is_dir() or path.with_suffix(".py").is_file()


def is_within(module: str, packages: Iterable[str]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


# --- the checks, each a list of complaints ---------------------------------------------------------------------------


def check_layers(tree: ast.AST, module: str, is_package: bool = False) -> list[str]:
    """Imports of our own packages that point upwards or sideways."""
    if not is_within(module, ["snake_gym"]) or is_within(module, [*PROGRAMS, "snake_gym.agents"]):
        return []
    inner = module.removeprefix("snake_gym").removeprefix(".")
    layer = inner.split(".")[0]
    complaints = []
    for target, line, lazy in imports(tree, module, is_package):
        if is_within(target, PROGRAMS):
            complaints.append(f"{module}:{line} imports the program {target}")
        elif is_within(target, [*ABOVE, "papers"]):
            complaints.append(f"{module}:{line} imports {target}, which is above it")
        elif target == "snake_gym":
            complaints += [f"{module}:{line} uses {name}" for name in upward_names(tree)]
        elif is_within(target, ["snake_gym"]):
            wanted = target.removeprefix("snake_gym").removeprefix(".")
            top = wanted.split(".")[0]
            if layer in TOP_LEVEL:
                allowed = top in TOP_LEVEL
            elif layer not in MAY_IMPORT:
                allowed = False
            else:
                allowed = top in ({layer} | FOR_EVERYONE) or is_within(wanted, MAY_IMPORT[layer])
                allowed = allowed or (lazy and (layer, top) in LAZY)
            if not allowed:
                complaints.append(f"{module}:{line} imports {target}")
    return complaints


def check_rooms(tree: ast.AST, module: str, is_package: bool = False) -> list[str]:
    """Imports between the packages of the hardware that point upwards or sideways."""
    room = module.removeprefix("snake_gym.hardware.").split(".")[0]
    if room not in HARDWARE_ROOMS or is_within(module, PROGRAMS):
        return []
    complaints = []
    for target, line, _ in imports(tree, module, is_package):
        other = target.removeprefix("snake_gym.hardware.").split(".")[0]
        if is_within(target, ["snake_gym.hardware"]) and other not in {room, *HARDWARE_ROOMS[room]}:
            complaints.append(f"{module}:{line} imports {target}")
    return complaints


def check_papers(tree: ast.AST, module: str, is_package: bool = False) -> list[str]:
    """What the published experiments take that a user of the library would not: private names, what is above it."""
    if not is_within(module, ["papers"]):
        return []
    targets = [(target, line) for target, line, _ in imports(tree, module, is_package)]
    complaints = [f"{module}:{line} imports {target}" for target, line in targets if is_within(target, ABOVE)]
    programs = [(target, line) for target, line in targets if is_within(target, PROGRAMS)]
    complaints += [f"{module}:{line} imports the program {target}" for target, line in programs]
    for node in nodes(tree):
        if isinstance(node, ast.ImportFrom) and is_within(node.module or "", ["snake_gym"]):
            words = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            private = [word for word in words if word.startswith("_") and not word.endswith("__")]
            complaints += [f"{module}:{node.lineno} imports {word}, which is private" for word in private]
    return complaints


def upward_names(tree: ast.AST) -> set[str]:
    """What is taken out of the package itself, other than facts about it (``snake_gym.__version__``) and modules."""
    names = {dotted(node) for node in nodes(tree) if isinstance(node, ast.Attribute)}
    own = {name for name in names if name.startswith("snake_gym.") and name.count(".") == 1}
    return {name for name in own if not name.startswith("snake_gym.__") and not is_module(name)}


def check_libraries(tree: ast.AST, module: str, is_package: bool = False) -> list[str]:
    """Third-party imports outside the packages that are their home."""
    complaints = []
    for target, line, _ in imports(tree, module, is_package):
        library = target.split(".")[0]
        if library in HOME_OF and not is_within(module, HOME_OF[library]):
            complaints.append(f"{module}:{line} imports {library}; its home is {HOME_OF[library] or 'tests'}")
        third_party = library not in sys.stdlib_module_names and library != "snake_gym"
        for package, libraries in ONLY.items():
            if is_within(module, [package]) and third_party and library not in libraries:
                complaints.append(f"{module}:{line} imports {library}; {package} needs only {sorted(libraries)}")
    return complaints


UNSAFE_CALLS = {"eval", "exec", "__import__", "yaml.load", "yaml.unsafe_load", "yaml.full_load"}
UNPICKLERS = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}


def check_safety(tree: ast.AST, module: str) -> list[str]:
    """Calls that execute what a file holds."""
    complaints = []
    no = ast.Constant(False)
    for node in nodes(tree):
        if isinstance(node, ast.Call):
            name = dotted(node.func)
            keywords = {keyword.arg: keyword.value for keyword in node.keywords}
            last = name.split(".")[-1]
            if name == "yaml.load" and "_Loader" in ast.unparse(keywords.get("Loader", no)):
                continue  # our own strict subclass of SafeLoader
            if name in UNSAFE_CALLS:
                complaints.append(f"{module}:{node.lineno} calls {name}")
            elif name.split(".")[0] in UNPICKLERS and last in ("load", "loads", "open", "Unpickler"):
                complaints.append(f"{module}:{node.lineno} calls {name}, which runs whatever the file says")
            elif name == "torch.load" and ast.unparse(keywords.get("weights_only", no)) != "True":
                complaints.append(f"{module}:{node.lineno} calls torch.load without weights_only=True")
            elif name in ("np.load", "numpy.load") and ast.unparse(keywords.get("allow_pickle", no)) != "False":
                complaints.append(f"{module}:{node.lineno} calls {name} with allow_pickle")
        elif isinstance(node, ast.ImportFrom) and node.module in UNPICKLERS:
            loaders = {alias.name for alias in node.names} & {"load", "loads", "Unpickler", "open"}
            complaints += [f"{module}:{node.lineno} imports {node.module}.{name}" for name in sorted(loaders)]
    return complaints


def check_randomness(tree: ast.AST, module: str) -> list[str]:
    """Chance has no place in physics, and nowhere may it come from a global generator."""
    complaints = []
    for target, line, _ in imports(tree, module):
        if target == "random" or (target == "numpy.random" and is_within(module, ["snake_gym.physics"])):
            complaints.append(f"{module}:{line} imports {target}")
    generators = {"default_rng", "Generator", "SeedSequence", "PCG64", "Philox", "BitGenerator"}
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and dotted(node.value) in ("np.random", "numpy.random"):
            if is_within(module, ["snake_gym.physics"]):
                complaints.append(f"{module}:{node.lineno} uses {dotted(node)}")
            elif not is_within(module, ["snake_gym.agents"]) and node.attr not in generators:
                complaints.append(f"{module}:{node.lineno} uses the global generator {dotted(node)}")
    return complaints


def check_kernels(tree: ast.AST, module: str) -> list[str]:
    """Compiled functions that are too long to be read like an equation."""
    complaints = []
    for node in nodes(tree):
        if isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(d) for d in node.decorator_list):
            name = f"{module}.{node.name}"
            length = code_lines(node)
            if length > MAX_KERNEL_LINES and name not in LONG_KERNELS:
                complaints.append(f"{module}:{node.lineno} the kernel {node.name} has {length} lines of code")
    return complaints


def code_lines(node: ast.FunctionDef) -> int:
    """Lines of a function's body that hold code: no docstring, comments or blank lines."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return len(ast.unparse(ast.Module(body, [])).splitlines())


CHECKS = (check_layers, check_rooms, check_papers, check_libraries)
PLAIN_CHECKS = (check_safety, check_randomness, check_kernels)


def complaints_about(source: str, module: str, is_package: bool = False) -> list[str]:
    tree = ast.parse(source)
    found = [complaint for check in CHECKS for complaint in check(tree, module, is_package)]
    return found + [complaint for check in PLAIN_CHECKS for complaint in check(tree, module)]


# --- the house as it stands ------------------------------------------------------------------------------------------


def test_modules_obey_the_rules() -> None:
    complaints = [
        complaint
        for path in SOURCES
        for complaint in complaints_about(path.read_text(), module_name(path), path.name == "__init__.py")
    ]
    assert complaints == []


def test_modules_are_named_documented_and_finished() -> None:
    for path in SOURCES:
        source = path.read_text()
        assert not {path.stem, path.parent.name} & VAGUE_NAMES, path
        is_empty_package = path.name == "__init__.py" and not source.strip()
        assert is_empty_package or ast.get_docstring(ast.parse(source)), f"{path}: a module says what it is for"
        assert [word for word in ("TODO", "FIXME", "XXX") if word in source] == [], path


def test_every_package_has_its_place() -> None:
    packages = {path.parent.name for path in (ROOT / "snake_gym").glob("*/__init__.py")}
    modules = {path.stem for path in (ROOT / "snake_gym").glob("*.py")} - {"__init__", "__main__"}
    assert packages - set(MAY_IMPORT) - TOP_LEVEL == set()
    assert modules - TOP_LEVEL == set()
    folders = {path.parent for path in SOURCES} - {ROOT}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []


def test_the_layers_have_no_circle() -> None:
    placed: set[str] = set()
    remaining = {layer: {target.split(".")[0] for target in below} for layer, below in MAY_IMPORT.items()}
    while remaining:
        free = {layer for layer, below in remaining.items() if below <= placed}
        assert free, f"a circle among {sorted(remaining)}"
        placed |= free
        remaining = {layer: below for layer, below in remaining.items() if layer not in free}


def test_exceptions_are_still_needed() -> None:
    for name in LONG_KERNELS:
        module, _, function = name.rpartition(".")
        tree = ast.parse((ROOT / (module.replace(".", "/") + ".py")).read_text())
        (node,) = [n for n in nodes(tree) if isinstance(n, ast.FunctionDef) and n.name == function]
        assert code_lines(node) > MAX_KERNEL_LINES, f"{name} is short now"


def test_the_top_level_scripts_hold_no_logic() -> None:
    for path in ROOT.glob("*.py"):
        assert len(path.read_text().splitlines()) <= 120, path.name


# --- the rules themselves can fail -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "source", "complaint"),
    [
        ("snake_gym.physics.chain", "import snake_gym.robot.spec", "imports snake_gym.robot.spec"),
        ("snake_gym.physics.chain", "from ..robot import spec", "imports snake_gym.robot"),
        ("snake_gym.physics.chain", "from .. import robot", "imports snake_gym.robot"),
        ("snake_gym.physics.chain", "def f():\n from snake_gym.robot import spec", "imports snake_gym.robot"),
        ("snake_gym.physics.chain", "from numpy.random import default_rng", "imports numpy.random"),
        ("snake_gym.physics.chain", "np.random.default_rng()", "uses np.random.default_rng"),
        ("snake_gym.tasks.waypoints", "from snake_gym.physics.chain import x", "imports snake_gym.physics.chain"),
        ("snake_gym.controllers.base", "from snake_gym import load_robot", "imports snake_gym.load_robot"),
        ("papers.report", "from papers import __main__", "imports the program"),
        ("papers.report", "from snake_gym.envs.core import _x", "imports _x, which is private"),
        ("snake_gym.envs.core", "from papers.study import Claim", "which is above it"),
        ("snake_gym.interface.actions", "from snake_gym.simulation import robot", "imports snake_gym.simulation"),
        ("snake_gym.envs.core", "from snake_gym.render import frames", "imports snake_gym.render"),
        ("snake_gym.envs.core", "import snake_gym.agents.training", "which is above it"),
        ("snake_gym.benchmark.runner", "import torch", "its home is"),
        ("snake_gym.envs.core", "from numba import njit", "its home is"),
        ("snake_gym.registry", "import snake_gym.envs", "imports snake_gym.envs"),
        ("snake_gym.robot.spec", "import snake_gym\nsnake_gym.make_waypoints(3)", "uses snake_gym.make_waypoints"),
        ("snake_gym.hardware.bus.exchange", "import snake_gym.hardware.safety.guard", "imports snake_gym.hardware"),
        ("snake_gym.hardware.safety.guard", "import snake_gym.hardware.commands.run", "imports the program"),
        ("snake_gym.newcomer.x", "import snake_gym.robot", "imports snake_gym.robot"),
        ("snake_gym.agents.training", "eval('1')", "calls eval"),
        ("snake_gym.agents.training", "pickle.load(f)", "calls pickle.load"),
        ("snake_gym.agents.training", "from pickle import loads", "imports pickle.loads"),
        ("snake_gym.agents.training", "torch.load(f, weights_only=False)", "without weights_only"),
        ("snake_gym.agents.training", "np.load(f, allow_pickle=True)", "allow_pickle"),
        ("snake_gym.agents.training", "yaml.load(f, Loader=yaml.Loader)", "calls yaml.load"),
        ("snake_gym.simulation.faults", "np.random.rand(3)", "global generator"),
        ("snake_gym.simulation.faults", "import random", "imports random"),
        ("snake_gym.physics.x", "@njit(cache=True)\ndef f():\n" + " a = 1\n" * 41, "has 41 lines"),
    ],
)
def test_a_breach_is_found(module: str, source: str, complaint: str) -> None:
    assert complaint in " ".join(complaints_about(source, module))


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("snake_gym.tasks.waypoints", "from snake_gym.physics.state import ChainState"),
        ("snake_gym.benchmark.report", "from snake_gym import __version__"),
        ("papers.study", "from snake_gym.benchmark import runner\nfrom snake_gym import __version__"),
        ("snake_gym.envs.core", "def render():\n from snake_gym.render import frames"),
        ("snake_gym.hardware.commands.replay", "from snake_gym.render import frames"),
        ("snake_gym.robot.catalogue", "from snake_gym.config import build"),
        (
            "snake_gym.agents.training",
            "import torch, stable_baselines3, snake_gym.benchmark\nmodel.eval()\nmodel.load(x)",
        ),
        ("snake_gym.agents.training", "torch.load(f, weights_only=True)\nnp.load(f, allow_pickle=False)"),
        ("snake_gym.simulation.faults", "np.random.default_rng(3)"),
        ("snake_gym.physics.x", '@njit\ndef f():\n """Long.\n' + "\n" * 60 + '"""\n a = 1'),
    ],
)
def test_what_is_allowed_passes(module: str, source: str) -> None:
    assert complaints_about(source, module) == []


# --- what an import loads --------------------------------------------------------------------------------------------

HEAVY = ["numba", "torch", "stable_baselines3", "scipy", "pygame", "matplotlib", "tensorboard", "mujoco"]


def loaded_by(statement: str) -> set[str]:
    program = f"{statement}\nimport sys\nprint(*[name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import snake_gym") == set()


def test_an_env_needs_no_learning_library() -> None:
    assert loaded_by("import snake_gym.envs").isdisjoint({"torch", "stable_baselines3", "pygame", "matplotlib"})
