"""LeRobot's motor bus drives emulated servos.

LeRobot asks for other versions than ours, so it gets a folder of its own, with what its bus imports and no more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hardware.emulate_servos import emulated

PACKAGES = (
    "lerobot==0.4.4", "accelerate==1.15.0", "cachebox==6.2.10", "datasets==5.2.0", "deepdiff==9.1.0", "dill==0.4.1",
    "h11==0.16.0", "httpcore2==2.16.2", "httpx2==2.16.2", "huggingface_hub==2.4.0", "idna==3.20",
    "multiprocess==0.70.19", "orderly-set==5.5.0", "pandas==3.1.1", "pyarrow==26.0.1", "truststore==0.10.5",
    "xxhash==4.1.0",
)  # fmt: skip


@pytest.mark.slow
def test_lerobots_bus_configures_drives_and_reads_the_servos(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path), *PACKAGES]
    subprocess.run(pip, check=True, timeout=600)
    script = Path(__file__).with_name("drive_lerobot.py")
    with emulated([1, 2, 5]) as device:
        done = subprocess.run(
            [sys.executable, str(script), device], env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    names = ("tail", "middle", "head")
    assert seen["found"] == {"1": 777, "2": 777, "5": 777}
    assert seen["return_delay"] == dict.fromkeys(names, 0) and seen["range_max"] == dict.fromkeys(names, 4095)
    assert seen["position"] == {"tail": 2100, "middle": 2200, "head": 2300}
    degrees = {name: (counts - 4095 / 2) * 360 / 4095 for name, counts in seen["position"].items()}
    assert seen["degrees"] == pytest.approx(degrees)
    assert seen["torque_within"] == dict.fromkeys(names, 0) and seen["torque_after"] == dict.fromkeys(names, 1)
