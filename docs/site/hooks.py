"""Pages of the site that follow from the code: one for each env, with its picture and the scores of its suite.

Pictures: ``snake-gym play ENV --controller cc --frames 900 --screenshot docs/images/envs/FILE.png``.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from mkdocs.structure.files import File, Files  # noqa: E402
from suites import section  # noqa: E402

from snake_gym.envs.tables import describe_task  # noqa: E402
from snake_gym.registry import DEFAULT_ENV, TASKS  # noqa: E402
from snake_gym.tasks.task import EnvConfig  # noqa: E402

OURS = [env_id for env_id, task in TASKS.items() if isinstance(task, str)]


def on_config(config: Any) -> Any:
    """Put the envs' pages into the navigation."""
    (group,) = [entry["Environments"] for entry in config.nav if "Environments" in entry]
    group[:0] = [{env_id.partition("/")[2]: page_name(env_id)} for env_id in OURS]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the envs' pages."""
    for env_id in OURS:
        files.append(File.generated(config, page_name(env_id), content=env_page(env_id)))
    return files


def short_name(env_id: str) -> str:
    """Return the name of an env's files: ``obstacle_field`` for ``SnakeGym/ObstacleField-v0``."""
    name = env_id.rpartition("/")[2].rpartition("-v")[0]
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def page_name(env_id: str) -> str:
    """Return the file of an env's page."""
    return f"envs/{short_name(env_id)}.md"


def env_page(env_id: str) -> str:
    """Return the page of an env: its text, picture, scores and tables."""
    shared = [setting.name for setting in dataclasses.fields(EnvConfig)]
    title, text, *rest = describe_task(env_id, shared)
    parts = [title, text]
    image = f"images/envs/{short_name(env_id)}.png"
    if (DOCS / image).exists():
        parts.append(f"![{env_id}](../{image})")
    parts.append(f'```python\nimport gymnasium as gym\nimport snake_gym\n\nenv = gym.make("{env_id}")\n```')
    suite = {DEFAULT_ENV: "demo", "SnakeGym/ObstacleField-v0": "obstacles"}.get(env_id, short_name(env_id))
    rows = DOCS / "suites" / f"{suite}.csv"
    if rows.exists():
        parts += ["## Scores", section(rows), "[All suites](../suites.md)."]
    parts += ["What every env has is in [Environments](../env.md).", *rest]
    return re.sub(r"\n{3,}", "\n\n", "\n\n".join(parts)) + "\n"
