"""The learned detector: its average against scalar arithmetic, its network against plain sums, and its files."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.config import ConfigError, build
from snake_gym.controllers import make_controller, resolve_controller
from snake_gym.controllers.fault_detection import FREE, HEALTHY, LOCKED, OFFSET, SLOW
from snake_gym.controllers.fault_window import FaultWindow, n_features
from snake_gym.controllers.learned_detection import EstimatorFile, LearnedDetector, LearnedDetectorConfig, Network
from snake_gym.robot.presets import PRESETS
from tests.controllers.test_fault_detection import Joints, kinds_of
from tests.controllers.worlds import N_JOINTS, SPEC


def content(**changes: Any) -> dict[str, Any]:
    """A network that sees nothing: its outputs are its last biases."""
    return {
        "format": "snake_gym fault estimator 1", "source": "by hand", "actuators": ["position"],
        "kinds": ["healthy", "locked", "slow"], "n_samples": 2,
        "weights": [[[0.0] * n_features(2)] * 5], "biases": [[0.0, 0.0, 2.0, -0.5, 0.25]], **changes,
    }  # fmt: skip


def write(folder: Path, **changes: Any) -> str:
    path = folder / "estimator.json"
    path.write_text(json.dumps(content(**changes)))
    return str(path)


def watch(detector: LearnedDetector, joints: Joints, time_s: float, omega: float = 3.0) -> Any:
    """Estimates (T, W, J), steps of 0.2 s, and the last state."""
    state, seen = detector.initial_state(len(joints.kinds)), []
    for _ in range(round(time_s / 0.2)):
        seen.append(detector.update(state, joints.measure(), 0.2).copy())
        reference = joints.reference(omega)
        detector.command_given(state, reference)
        joints.step(reference, 0.2)
    return np.array(seen), state


def test_probabilities_are_averaged_until_they_pass_the_alarm(tmp_path: Path) -> None:
    config = LearnedDetectorConfig("learned", write(tmp_path), alarm=0.6, memory_s=2.0)
    detector = LearnedDetector(config, SPEC)
    seen, state = watch(detector, Joints(SPEC, kinds_of(HEALTHY), 1e9), 4.0)
    total = 1.0 + 1.0 + math.e**2  # of the kinds, the third by far the likeliest
    healthy, expected = 1.0, [HEALTHY]  # the first measurement ends no sample
    for _ in range(19):
        healthy = healthy * math.exp(-0.1) + (1.0 - math.exp(-0.1)) / total
        expected.append(SLOW if healthy < 0.4 else HEALTHY)
    assert 5 < expected.index(SLOW) < 15
    assert seen[:, 0, 3].tolist() == expected
    rest = 1.0 - math.exp(-1.9)
    expected_belief = [1.0 - rest + rest / total, rest / total, rest * math.e**2 / total]
    np.testing.assert_allclose(state["belief"][0, 3], expected_belief, rtol=1e-12)
    np.testing.assert_allclose(state["severity"][0, 3], 1 / (1 + math.exp(0.5)), rtol=1e-12)


def test_the_network_is_a_perceptron() -> None:
    rng = np.random.default_rng(0)
    d = n_features(2)
    first, second = rng.normal(size=(4, d)), rng.normal(size=(5, 4))
    biases = [rng.normal(size=4).tolist(), rng.normal(size=5).tolist()]
    network = Network(build(EstimatorFile, content(weights=[first.tolist(), second.tolist()], biases=biases)))
    x = rng.normal(size=(3, N_JOINTS, d))
    hidden = [max(sum(first[i][k] * x[1, 2, k] for k in range(d)) + biases[0][i], 0.0) for i in range(4)]
    expected = [sum(second[i][k] * hidden[k] for k in range(4)) + biases[1][i] for i in range(5)]
    np.testing.assert_allclose(network(x)[1, 2], expected, rtol=1e-12)


def test_a_window_holds_the_newest_samples_of_its_own_joint() -> None:
    window = FaultWindow(SPEC, 3)
    joints = Joints(SPEC, kinds_of(LOCKED), 0.0)
    state = window.initial_state(1)
    for _ in range(8):
        length = window.advance(state, joints.measure(), 0.2)
        state["reference"][:] = joints.reference(3.0)
        joints.step(state["reference"], 0.2)
    assert length[0] == pytest.approx(0.2)
    asked, done, error, demand = np.moveaxis(state["window"][0], -1, 0)
    assert (done[3] == 0.0).all() and np.abs(asked[3]).min() > 0.0  # it was asked, and did not move
    assert np.abs(done[5]).min() > 0.0
    last = 0.5 * math.sin(3.0 * 1.2 + 0.5 * 3)  # the reference while the last sample was taken
    assert error[3, -1] == pytest.approx(math.asinh(last / 0.05))
    assert demand[3, -1] == pytest.approx(max(-3.0, min(3.0, 60.0 * last / 8.0)))
    lag = np.abs(asked - done).mean(axis=1)
    context = window.features(state["window"])[0, :, -7:]
    np.testing.assert_allclose(context[3, :3], [lag[2], lag[4], np.delete(lag, 3).mean()])
    assert context[0, 0] == context[-1, 1] == 0.0


@pytest.mark.parametrize(("kind", "within_s"), [(LOCKED, 2.0), (FREE, 5.0)])
def test_the_shipped_estimator_finds_and_names_failed_joints(kind: float, within_s: float) -> None:
    detector = LearnedDetector(LearnedDetectorConfig("learned"), SPEC)
    seen, _ = watch(detector, Joints(SPEC, kinds_of(kind, HEALTHY), 10.0), 25.0)
    assert (seen[:50] == HEALTHY).all()
    assert (seen[50 + round(within_s / 0.2) :, 0, 3] != HEALTHY).all()
    assert (seen[-50:, 0, 3] == kind).mean() > 0.8
    assert (np.delete(seen[:, 0], 3, axis=1) == HEALTHY).mean() > 0.99
    assert (seen[:, 1] == HEALTHY).all()


@pytest.mark.parametrize("offset_rad", [-0.4, 0.4])
def test_the_shipped_estimator_tells_the_size_of_an_offset(offset_rad: float) -> None:
    class Shifted(Joints):
        def step(self, reference: Any, dt_s: float) -> None:
            super().step(reference + offset_rad * (np.arange(N_JOINTS) == 3), dt_s)

    detector = LearnedDetector(LearnedDetectorConfig("learned"), SPEC)
    seen, state = watch(detector, Shifted(SPEC, kinds_of(HEALTHY), 1e9), 20.0)
    assert seen[-1, 0, 3] == OFFSET
    assert state["severity"][0, 3] == pytest.approx(offset_rad, abs=0.1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kinds": ["locked", "healthy", "slow"]}, "kinds is .*; expected healthy and then others"),
        ({"kinds": ["healthy", "locked", "broken"]}, r"kinds\[2\] is 'broken'"),
        ({"weights": [[[0.0] * 4] * 5]}, r"weights\[0\] does not fit; expected 5 rows of 15 numbers"),
        ({"biases": [[float("nan")] * 5]}, "NaN"),
        ({"weights": [[[0.0] * 15] * 4], "biases": [[0.0] * 4]}, "the last layer gives 4 numbers; expected 5"),
        ({"format": "other"}, "format is 'other'; expected"),
        ({"extra": 1}, "extra is not a setting"),
        ({"actuators": ["torque"]}, "trained on actuators of kind torque; resilient_servo has position"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(ConfigError, match=message) as caught:
        make_controller({"kind": "fault_aware", "detector": {"kind": "learned", "file": path}}, SPEC)
    assert "\n" not in str(caught.value)


def test_a_record_of_results_holds_for_one_estimator(tmp_path: Path) -> None:
    given = {"kind": "fault_aware", "detector": {"kind": "learned", "file": write(tmp_path)}}
    recorded = resolve_controller(given)
    make_controller(recorded, SPEC)
    write(tmp_path, biases=[[0.0, 0.0, 2.0, -0.5, 0.5]])
    make_controller(given, SPEC)
    assert resolve_controller(given) != recorded == resolve_controller(recorded)
    with pytest.raises(ConfigError, match=r"estimator.json, an estimator of digest \w{12}; expected \w{12}, as in"):
        make_controller(recorded, SPEC)


def test_missing_files_and_other_robots_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path)
    with pytest.raises(ConfigError, match=r"estimater.json does not exist; did you mean '.*estimator.json'"):
        LearnedDetector(LearnedDetectorConfig("learned", path.replace("tor", "ter")), SPEC)
    with pytest.raises(ConfigError, match="resilient has acceleration: take detector kind model"):
        LearnedDetector(LearnedDetectorConfig("learned"), PRESETS["resilient"])
