"""Reruns what can be rerun of liu2024 (SnakeSys: Hopf pattern generator, derivative of its output, creeping gait).

``network``: limit cycle and phase locking of every topology and weight. ``gait_change``: changes of gait beside a
serpenoid's. ``derivative_error``: the sliding-window derivative against the exact one. ``creeping``: speed of the
creeping gait on the yaw joints of Snake Robot III. docs/papers/liu2024.md says what the paper leaves out.
"""

from papers.liu2024.study import STUDY

__all__ = ["STUDY"]
