"""Serial bus of servos, which needs Linux and pyserial."""

from snake_gym.config.program import require
from snake_gym.hardware import check_system

check_system()
require("the robot", "serial")
