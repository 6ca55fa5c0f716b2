"""Train a policy: ``snake-gym train`` from a checkout. ``agents/train.py`` has the loop."""

from __future__ import annotations

import sys

from snake_gym.__main__ import main
from snake_gym.config import run_program

if __name__ == "__main__":
    run_program(lambda argv: main(["train", *sys.argv[1:]]))
