"""How a command line program ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from snake_gym.config.errors import ConfigError


def run_cli(main: Callable[[list[str] | None], int]) -> NoReturn:
    """Run ``main`` and exit with its code. What the user has to correct is one line on stderr and exit code 2."""
    try:
        code = main(None)
        sys.stdout.flush()
    except ConfigError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 2
    except BrokenPipeError:  # the reader of our output (`| head`) has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as error:
        if error.filename is None:
            raise
        print(f"error: {error.filename}: {error.strerror}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    sys.exit(code)
