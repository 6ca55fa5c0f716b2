"""Serial bus of servos, which needs Linux and pyserial."""

from snake_gym.config.program import require, require_linux

require_linux()
require("the robot", "serial")
