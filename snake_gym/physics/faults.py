"""Codes of the joint faults that the physics knows; what they do is in ``actuators``."""

HEALTHY, LOCKED, FREE, WEAK = 0, 1, 2, 3
FAULT_CODES = {"healthy": HEALTHY, "locked": LOCKED, "free": FREE, "weak": WEAK}
