"""LeRobot's motor bus drives servos 1, 2 and 5 of the port named on the command line; prints what it saw as JSON."""

import json
import sys
import time

from lerobot.motors import Motor, MotorCalibration, MotorNormMode
from lerobot.motors.feetech import FeetechMotorsBus

IDS = {"tail": 1, "middle": 2, "head": 5}
motors = {name: Motor(i, "sts3215", MotorNormMode.DEGREES) for name, i in IDS.items()}
calibration = {name: MotorCalibration(i, 0, 0, 0, 4095) for name, i in IDS.items()}
bus = FeetechMotorsBus(sys.argv[1], motors, calibration)
bus.default_timeout = 500
bus.connect()
bus.set_timeout(500)
seen = {"found": bus.broadcast_ping(num_retry=20)}
bus.disable_torque()
bus.configure_motors()
seen["return_delay"] = bus.sync_read("Return_Delay_Time", normalize=False, num_retry=20)
for name in motors:
    bus.write("Operating_Mode", name, 0, num_retry=20)
bus.write_calibration(calibration)
seen["range_max"] = bus.sync_read("Max_Position_Limit", normalize=False, num_retry=20)
bus.enable_torque()
goals = {"tail": 2100, "middle": 2200, "head": 2300}
bus.sync_write("Goal_Position", goals, normalize=False, num_retry=20)
end_s = time.monotonic() + 20.0
while time.monotonic() < end_s:
    seen["position"] = bus.sync_read("Present_Position", normalize=False, num_retry=20)
    if seen["position"] == goals:
        break
seen["degrees"] = bus.sync_read("Present_Position", num_retry=20)
with bus.torque_disabled():
    seen["torque_within"] = bus.sync_read("Torque_Enable", num_retry=20)
seen["torque_after"] = bus.sync_read("Torque_Enable", num_retry=20)
bus.disconnect()
print(json.dumps(seen))
