"""Physical robot: serial bus, servos, calibration, safety, and the loop that runs a policy on them.

The run path needs numpy and pyserial only. Nothing is imported here, so that a part can be used without the others.
"""
