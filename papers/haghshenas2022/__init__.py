"""haghshenas2022: a planar snake driven by antagonistic pneumatic muscles, rerun.

``runs`` follows the two paths, ``inverse`` shows what muscle forces can and cannot do, ``published`` holds the paper's
numbers; ``claims`` and ``figures`` say what came out.
"""

from papers.haghshenas2022.study import STUDY

__all__ = ["STUDY"]
