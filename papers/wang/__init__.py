"""wang: a planar snake with torque-driven joints among obstacles, rerun.

``boards`` crosses random pegboards, ``courses`` visits targets and follows a trajectory, ``collisions`` checks the
equations state by state; ``claims`` and ``figures`` say what came out.
"""

from papers.wang.study import CONTROLLER, EQ32, STRONG, STUDY

__all__ = ["CONTROLLER", "EQ32", "STRONG", "STUDY"]
