"""What is left of a score with faults: by number, kind and joint."""

import numpy as np
import pytest

from snake_gym.benchmark.report import summarise
from snake_gym.benchmark.runner import Episodes
from tests.benchmark.test_report import episodes


def failing(faults: list[str], progress: list[float]) -> Episodes:
    counts = np.array([len(told.split()) for told in faults])
    return episodes("cc", n=len(faults), faults=np.array(faults), n_faults=counts, progress_m=np.array(progress))


def test_retention_by_hand() -> None:
    faults = ["", "", "3:locked", "4:free", "3:free 4:free", "1:locked 2:free", "3:locked 5:locked"]
    made = failing(faults, [8.0, 12.0, 9.0, 5.0, 3.0, 2.0, 4.0])
    policy = summarise([made], 200)["policies"]["cc"]
    assert policy["retention"] == pytest.approx(3.0 / 10.0), "two faults over none"
    assert {count: group["retention"] for count, group in policy["by_faults"].items()} == {
        "0": 1.0, "1": pytest.approx(0.7), "2": pytest.approx(0.3),
    }  # fmt: skip
    kinds = {kind: (group["score"], group["retention"], group["episodes"]) for kind, group in policy["by_kind"].items()}
    assert kinds == {"free": (4.0, pytest.approx(0.4), 2), "locked": (6.5, pytest.approx(0.65), 2)}
    joints = {joint: (group["score"], group["retention"]) for joint, group in policy["by_joint"].items()}
    assert joints == {"3": (9.0, pytest.approx(0.9)), "4": (5.0, pytest.approx(0.5))}


@pytest.mark.parametrize("faults", [["", ""], ["1:locked", "2:locked"]])
def test_without_faults_or_only_with_them_there_is_no_retention(faults: list[str]) -> None:
    policy = summarise([failing(faults, [1.0, 2.0])], 200)["policies"]["cc"]
    assert policy["retention"] is None
    assert policy["retention_ci95"] is None
