"""Physical robot: serial bus, servos, calibration, safety, and the loop that runs a policy on them.

The run path needs numpy and pyserial only. Nothing is imported here, so that a part can be used without the others.
"""

import sys

from snake_gym.config.errors import ConfigError


def check_system() -> None:
    """Raise ConfigError on other systems than Linux."""
    if sys.platform != "linux":
        raise ConfigError(f"the robot needs Linux, and this is {sys.platform}: here are simulation and training alone")
