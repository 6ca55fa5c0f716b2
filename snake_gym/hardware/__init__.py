"""Physical robot: serial bus, servos, calibration, safety, and the loop that runs a policy on them.

Its commands need the libraries in ``configs/hardware/small_board.txt`` alone. Nothing is imported here, so that a
part can be used without the others.
"""
