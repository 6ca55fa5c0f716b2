"""Generator of the reference page of the settings of robots, trainings and benchmarks, from the dataclasses themselves.

``python -m snake_gym.agents.settings_page > docs/settings.md`` writes it; a test compares the file.
"""

from __future__ import annotations

from typing import Any

from snake_gym.benchmark.scenarios import BenchmarkConfig
from snake_gym.envs.tables import describe, group_tables, settings_table
from snake_gym.robot.catalogue import find_kind
from snake_gym.robot.spec import RobotSpec

from .algorithms import GradientNorms, NetworkConfig, ScheduleConfig
from .config import TrainConfig

SECTIONS: tuple[tuple[str, str, type[Any]], ...] = (
    ("Robot", "Settings of a robot: a file in `configs/robot/`, or `robot:` of an env.", RobotSpec),
    ("Spatial robot", "Settings of a robot: a file in `configs/robot/spatial/`.", find_kind("spatial")),
    ("Training", "Settings of `snake-gym train`: a file in `configs/train/`.", TrainConfig),
    ("Benchmark", "Settings of `snake-gym evaluate`: a file in `configs/benchmark/`.", BenchmarkConfig),
)
ALGORITHM: tuple[tuple[str, str, type[Any]], ...] = (
    ("algorithm.network", "The network of `algorithm`.", NetworkConfig),
    ("algorithm.<parameter>", "A changing `learning_rate`, `clip_range` or `clip_range_vf`.", ScheduleConfig),
    ("algorithm.max_grad_norm", "Of PPO; one number bounds the whole gradient.", GradientNorms),
)


def write_page() -> str:
    """Return the whole page as Markdown."""
    parts = [
        "# Settings of robots, trainings and benchmarks",
        "<!-- made by: python -m snake_gym.agents.settings_page > docs/settings.md -->",
        "What can I set in a robot, a training or a benchmark? Every key of their files is here; [env.md](env.md) has "
        "those of the envs. Units are in the names: `_s`, `_m`, `_rad`, `_kg`, `_nm` and so on.\nA number is finite "
        "and at most 1e9 in size, unless its row says otherwise.",
        "Editors with a YAML language server complete and check these files. Begin yours as the files of `configs/` "
        "do, with `# yaml-language-server: $schema=` and a path to a file of `configs/schemas`.",
    ]
    for title, text, cls in SECTIONS:
        parts += [f"## {title}", text, describe(cls), settings_table(cls), *group_tables(cls)]
        if cls is TrainConfig:
            for path, what, group in ALGORITHM:
                parts += [f"### `{path}`", what, settings_table(group, path)]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    print(write_page(), end="")
