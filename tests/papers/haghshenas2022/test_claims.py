"""Forces round the corners, from runs made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from papers.drives import Drive
from papers.haghshenas2022 import _corner_force
from papers.haghshenas2022.muscle_pair import muscle_lever
from papers.haghshenas2022.runs import Inverse, PathRun, Results
from snake_gym.robot.presets import MUSCLE

LEVER_M = float(muscle_lever(MUSCLE.actuator.muscle, np.zeros(1))[0, 1])


def square(start_n: float, side_n: float, corner_n: float) -> PathRun:
    """The start at rest, one sample on the lower side, one at its corner; forces on the first joint."""
    force = np.array([start_n, side_n, corner_n])
    torque = np.zeros((3, 1, MUSCLE.n_joints))
    torque[:, 0, 0] = LEVER_M * force
    place = np.array([[0.0, 0.0], [2.0, 0.1], [5.4, 0.1]])[:, None]
    none = np.zeros((3, 1))
    return PathRun("square", "path", Drive(
        np.array([0.1, 20.0, 30.0]), place, np.zeros((3, 1, 2)), np.zeros((3, 1, MUSCLE.n_links)), torque, torque,
        np.zeros((3, 1, MUSCLE.n_joints, 2)), none, none, np.zeros((3, 1), np.int64),
    ))  # fmt: skip


@pytest.mark.parametrize(
    ("forces", "verdict"),
    [((12.0, 0.5, 11.0), "reproduced"), ((12.0, 0.5, 2.0), "not"), ((1.0, 9.0, 12.0), "partly")],
)
def test_corners_count_alone(forces: tuple[float, float, float], verdict: str) -> None:
    run, empty = square(*forces), np.zeros(1)
    results = Results(run, run, run, 0.0, Inverse(0, 0.0, empty, 0.0))
    claim = _corner_force(results)
    assert claim.measured == pytest.approx(forces[2]) and claim.verdict == verdict
