"""Command ``describe``: spaces, observation columns, actions, reward terms, infos and changed settings of one env.

snake-gym describe Waypoints
snake-gym describe ObstacleField --set action.kind=residual --set action.controller.kind=cc
snake-gym describe Mine/Reach-v0 --plugin my_task.py
"""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from rich.markdown import Markdown

from snake_gym.commands.env_options import env_parser, read_env
from snake_gym.config import differences, run_program, to_dict
from snake_gym.envs.core import SnakeCore
from snake_gym.envs.tables import action_table, describe, info_table, observation_table, show, table
from snake_gym.envs.vector_env import single_spaces
from snake_gym.tasks.task import EnvConfig


def main(argv: list[str] | None = None) -> int:
    """Print the description. Raises ConfigError for what the user has to correct."""
    args = env_parser("describe", __doc__).parse_args(argv)
    text = describe_env(*read_env(args))
    console = Console(highlight=False)
    if console.is_terminal:
        console.print(Markdown(text))
    else:
        print(text)
    return 0


def describe_env(env_id: str, config: EnvConfig) -> str:
    """Return the description of an env as Markdown. Raises ConfigError for wrong settings."""
    core = SnakeCore(replace(config, n_threads=1), 1)
    observation, action = single_spaces(core)
    spec = core.spec
    weights = table(("term", "weight"), ((name, f"{weight:g}") for name, weight in core.weights.items()))
    changed = differences(to_dict(type(config)()), to_dict(config)).items()
    return "\n\n".join(
        part.rstrip("\n")
        for part in (
            f"# {env_id}", describe(type(config)),
            f"Robot {spec.name}: {spec.n_links} links, {spec.n_joints} joints. A control step is "
            f"{spec.control_dt_s:g} s ({spec.n_substeps} physics steps), an episode {core.n_steps} steps "
            f"({config.time_limit_s:g} s).",
            "# Settings that differ from the defaults",
            "\n".join(f"- `{name}={show(value)}`" for name, (_, value) in changed) or "none",
            f"# Observation: `{observation}`", "Each entry is `clip(value * scale, -10, 10)`.",
            observation_table(core.layout.fields),
            f"# Action: `{action}`, kind {config.action.kind}", action_table(core),
            "# Reward: weighted sum", weights, "# Info", info_table(core),
        )
    )  # fmt: skip


if __name__ == "__main__":
    run_program(main)
