"""What a small board on the robot needs: numpy, safetensors and pydantic, and no other library."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

from snake_gym.interface.policy_file import load_policy
from tests.interface.policy_steps import play

ROOT = Path(__file__).parents[2]
ABSENT = (
    "gymnasium", "numba", "llvmlite", "scipy", "torch", "stable_baselines3", "onnx", "onnxruntime",
    "matplotlib", "pygame", "PIL", "yaml", "rich", "tensorboard", "cv2", "mujoco",
)  # fmt: skip
CHECKS = {"pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
"""Libraries that check the settings."""
HOOK = f"""
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {ABSENT}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name.split(".")[0])

sys.meta_path.insert(0, Absent())
"""


def run_on_board(program: str, *arguments: str) -> str:
    """What the program prints where the libraries in ABSENT cannot be imported."""
    done = subprocess.run(
        [sys.executable, "-c", HOOK + program, *arguments],
        capture_output=True, text=True, check=False, cwd=ROOT, env=dict(os.environ), timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


SHIPPED = "agents/pretrained/resilient_servo_locked_joints"


def test_the_shipped_policy_plays_from_measurements_to_joint_references() -> None:
    program = """
import json
from snake_gym.interface.policy_file import load_policy
from tests.interface.policy_steps import play

references = play(load_policy(sys.argv[1], robot="resilient_servo"))
outside = {name.split(".")[0] for name, module in sys.modules.items() if "site-packages" in str(module)}
# What the interpreter loads when it starts is no library that the policy needs.
outside = {name for name in outside if name != "_distutils_hack" and not name.startswith("__editable_")}
print(json.dumps({"references": references.tolist(), "libraries": sorted(outside)}))
"""
    result = json.loads(run_on_board(program, SHIPPED))
    assert set(result["libraries"]) <= {"numpy", "safetensors", *CHECKS}
    references = np.array(result["references"])
    assert references.shape == (10, 9) and np.isfinite(references).all()
    assert np.abs(np.diff(references, axis=0)).max() > 0.1  # it crawls
    np.testing.assert_allclose(references, play(load_policy(ROOT / SHIPPED)), atol=1e-6)
