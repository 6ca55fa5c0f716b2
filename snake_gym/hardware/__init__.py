"""Physical robot: serial bus, servos, calibration, safety, and the loop that runs a policy on them.

Nothing is imported here; its commands need the libraries in ``configs/hardware/small_board.txt`` alone.
"""
