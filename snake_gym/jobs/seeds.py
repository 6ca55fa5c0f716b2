"""Seeds of jobs that differ in nothing else, as a command line gives them."""

from __future__ import annotations

from snake_gym.config import ConfigError

MOST_SEEDS = 1000


def read_seeds(text: str) -> tuple[int, ...]:
    """Return the seeds that ``5`` (0 to 4) or ``0,1,7`` stands for. Raises ConfigError."""
    is_list, words = "," in text, text.strip().removesuffix(",").split(",")  # "7,": the seed 7 alone
    numbers = tuple(int(word) for word in map(str.strip, words) if word.isascii() and word.isdecimal())
    if len(numbers) < len(words) or not 0 < (len(numbers) if is_list else numbers[0]) <= MOST_SEEDS:
        raise ConfigError(
            f"--seeds is {text!r}; expected a number of seeds up to {MOST_SEEDS}, or a list of them such as 0,1,7"
        )
    seeds = numbers if is_list else tuple(range(numbers[0]))
    if twice := [seed for seed in seeds if seeds.count(seed) > 1]:
        raise ConfigError(f"--seeds has {twice[0]} twice; expected each seed once")
    return seeds
