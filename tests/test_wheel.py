"""The package as it is installed: the wheel holds everything, and claims no name but its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
SB3 = re.findall(r"```python\n([^`]*Sb3VecEnv\([^`]*)```", README)[0].replace("learn(100_000)", "learn(8192)")
"""What the README says for Stable-Baselines3, for a shorter time."""
NOT_INSTALLED = """import sys
sys.meta_path[:] = [one for one in sys.meta_path if "__editable__" not in one.__module__]
"""
"""Code after which an editable installation is not found."""


def run(*command: object, cwd: Path) -> str:
    """What a command prints, without this checkout in reach."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a build leaves files behind
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    for name in filter(None, tracked.decode().split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    pip = (sys.executable, "-m", "pip")
    run(*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, source, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def test_a_checkout_has_one_name_for_its_agents() -> None:
    program = f"{NOT_INSTALLED}import snake_gym.agents\nprint(*snake_gym.agents.__path__)"
    assert run(sys.executable, "-c", program, cwd=ROOT).strip() == str(ROOT / "agents")
    with pytest.raises(AssertionError, match=r"expected: import snake_gym\.agents"):
        run(sys.executable, "-c", "import agents", cwd=ROOT)


@pytest.mark.slow
def test_the_wheel_holds_configs_pretrained_policies_and_assets_below_its_own_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].partition("-")[0] for name in names} == {"snake_gym", "snake_robot_gym"}
    expected = [path.relative_to(ROOT).as_posix() for path in (ROOT / "configs").rglob("*.*")]
    expected += [path.relative_to(ROOT).as_posix() for path in (ROOT / "agents").rglob("*") if path.is_file()]
    inside = [f"snake_gym/{name}" for name in expected if "__pycache__" not in name]
    inside += [f"snake_gym/render/assets/replay.{kind}" for kind in ("html", "css", "js")]
    assert set(inside) <= set(names)


@pytest.mark.slow
def test_installed_in_an_empty_environment_it_trains_evaluates_exports_and_replays(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", wheel, cwd=tmp_path)
    (site / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")  # the libraries, behind our own package
    empty = tmp_path / "empty"
    empty.mkdir()
    program = tmp_path / "venv" / "bin" / "snake-gym"
    where = run(python, "-c", "import snake_gym; print(snake_gym.__file__)", cwd=empty)
    assert where.startswith(str(site))
    run(python, "-c", SB3, cwd=empty)
    small = [part for text in (
        "n_envs=16", "total_steps=2048", "eval.episodes=4", "env.time_limit_s=4", "algorithm.n_steps=64",
        "algorithm.batch_size=256",
    ) for part in ("--set", text)]  # fmt: skip
    train = ("train", "--config", "configs/train/ppo.yaml", "--run-dir", "mine", "--quiet", *small)
    run(program, *train, cwd=empty)
    run(program, "export", "mine", "--out", "policy", cwd=empty)
    play = ("--policy", "mine=policy", "--controllers", "cc", "--episodes", 4, "--set", "env.time_limit_s=4")
    run(program, "evaluate", *play, "--set", "resamples=200", "--out", "results", cwd=empty)
    assert "<canvas" in (empty / "results" / "replay.html").read_text()
    tune = ("--controller", "sjc", "--robot", "resilient_servo", "--env", "configs/env/locked_joints.yaml")
    short = ("--set", "env.time_limit_s=2", "--budget", 1, "--population", 4, "--worlds", 8)
    run(program, "tune", *tune, *short, cwd=empty)
    assert (empty / "configs" / "controllers" / "resilient_servo" / "sjc.yaml").is_file()
    assert "emulate" in run(program, "hardware", "--help", cwd=empty)
