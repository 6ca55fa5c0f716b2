"""Compare policies and controllers: ``snake-gym evaluate`` from a checkout (``snake_gym/benchmark/evaluate.py``)."""

from __future__ import annotations

from snake_gym.benchmark.evaluate import main
from snake_gym.config import run_program

if __name__ == "__main__":
    run_program(main)
