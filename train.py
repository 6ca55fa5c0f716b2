"""Train a policy: ``snake-gym train`` from a checkout. ``agents/train.py`` says how."""

from __future__ import annotations

import os

# Before torch is loaded: waiting threads leave the cores to others.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from snake_gym.agents.train import main

from snake_gym.config import run_program

if __name__ == "__main__":
    run_program(main)
