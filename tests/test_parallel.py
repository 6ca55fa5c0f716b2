"""Programs side by side."""

import time

from snake_gym.parallel import run_parallel


def program(words: list[str]) -> int:
    time.sleep(0.6)  # longer than a worker waits between two looks for its parent
    return 0


def test_one_program_alone_runs_to_its_end_and_none_is_no_error() -> None:
    assert run_parallel(program, {"alone": []}, n_jobs=2) == {"alone": None}
    assert run_parallel(program, {}, n_jobs=2) == {}
