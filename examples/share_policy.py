"""Share a policy file on the Hugging Face Hub, with a card, or fetch another one (``pip install huggingface_hub``).

    python examples/share_policy.py push runs/mine/export OWNER/NAME
    python examples/share_policy.py pull OWNER/NAME --out mine
    snake-gym evaluate --policy mine=mine

Contract, weights and card travel, nothing else. What was fetched is read and checked as on a robot, never executed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from huggingface_hub import CommitOperationAdd, HfApi, snapshot_download

from snake_gym.config import ConfigError
from snake_gym.interface.policy_contract import PolicyContract
from snake_gym.interface.policy_file import CONTRACT, WEIGHTS, load_policy

CARD = "README.md"
NOT_MEASURED = ("n_faults", "length", "episode_time_s")


def make_card(contract: PolicyContract, repo: str) -> str:
    """Return a card: front matter with the results that the training stored, and how to play the policy."""
    assert contract.env is not None
    env_id, training = contract.env.id, contract.training
    results = {k: v for k, v in (training.get("evaluation") or {}).items() if k not in NOT_MEASURED and "/" not in k}
    tags = ["reinforcement-learning", "deep-reinforcement-learning", "robotics", "snake-robot", "gymnasium", env_id]
    front: dict[str, Any] = {"library_name": "snake-robot-gym", "license": "mit", "pipeline_tag": tags[0], "tags": tags}
    if results:
        metrics = [{"type": name, "value": value} for name, value in results.items()]
        task, dataset = {"type": tags[0]}, {"type": env_id, "name": f"{env_id}, as in {CONTRACT}"}
        result = {"task": task, "dataset": dataset, "metrics": metrics}
        front["model-index"] = [{"name": contract.name, "results": [result]}]
    lines = [f"{key}: {json.dumps(value)}" for key, value in front.items()]  # JSON is YAML
    robot = f"A policy for `{env_id}` on the robot `{contract.robot.name}`, {training.get('steps') or '?'} steps of "
    robot += f"{(training.get('algorithm') or {}).get('name')}."
    play = f"```\npython examples/share_policy.py pull {repo} --out mine\nsnake-gym evaluate --policy mine=mine\n```"
    return "\n".join(["---", *lines, "---", "", f"# {contract.name}", "", robot, "", play, ""])


def push(folder: Path, repo: str) -> str:
    """Upload the policy file in ``folder`` and its card, made if there is none; return where they are."""
    contract = load_policy(folder).contract
    card = folder / CARD
    text = card.read_text("utf-8") if card.is_file() else make_card(contract, repo)
    files = {name: (folder / name).read_bytes() for name in (contract.weights.file, CONTRACT)} | {CARD: text.encode()}
    api = HfApi()
    api.create_repo(repo, exist_ok=True)
    operations = [CommitOperationAdd(name, content) for name, content in files.items()]
    return str(api.create_commit(repo, operations, commit_message=f"Policy {contract.name}").commit_url)


def pull(repo: str, out: Path, revision: str | None = None) -> Path:
    """Download a policy file and its card into ``out``. Raises ConfigError if it is none, or damaged."""
    snapshot_download(repo, revision=revision, local_dir=out, allow_patterns=[CONTRACT, WEIGHTS, CARD])
    load_policy(out)
    return out


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Share a policy file on the Hugging Face Hub, or fetch one.")
    commands = parser.add_subparsers(dest="command", required=True)
    up, down = commands.add_parser("push"), commands.add_parser("pull")
    up.add_argument("folder", type=Path, help="folder of a policy file: snake-gym export writes one")
    up.add_argument("repo", metavar="OWNER/NAME")
    down.add_argument("repo", metavar="OWNER/NAME")
    down.add_argument("--out", type=Path, required=True, metavar="DIR")
    down.add_argument("--revision", help="branch, tag or commit (default: the newest)")
    arguments = parser.parse_args(argv)
    try:
        done = (
            push(arguments.folder, arguments.repo)
            if arguments.command == "push"
            else pull(arguments.repo, arguments.out, arguments.revision)
        )
    except ConfigError as error:
        parser.error(str(error))
    print(done)


if __name__ == "__main__":
    main()
