"""A policy goes to a hub and comes back, by the hub's own client; the hub is a local server of its API."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from snake_gym.interface.policy_file import load_policy

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "agents/pretrained/resilient_servo_locked_joints"
COMMIT = "a" * 40


class Hub(BaseHTTPRequestHandler):
    """One repository of regular files."""

    files: dict[str, bytes]

    def reply(self, content: Any, **headers: str) -> None:
        if not isinstance(content, bytes):
            content, headers = json.dumps(content).encode(), {"Content_Type": "application/json", **headers}
        self.send_response(200)
        for name, value in {"Content_Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if "/preupload/" in self.path:
            paths = [one["path"] for one in json.loads(body)["files"]]
            self.reply({"files": [{"path": path, "uploadMode": "regular", "shouldIgnore": False} for path in paths]})
            return
        for line in body.splitlines() if "/commit/" in self.path else ():
            if (entry := json.loads(line))["key"] == "file":
                self.files[entry["value"]["path"]] = base64.b64decode(entry["value"]["content"])
        url = f"http://{self.headers['Host']}/me/mine"
        self.reply({"url": url, "commitUrl": f"{url}/commit/{COMMIT}", "commitOid": COMMIT})

    def do_GET(self) -> None:
        if "/resolve/" in self.path:
            content = self.files[self.path.rpartition("/")[2]]
            self.reply(content, ETag=f'"{sha1(content).hexdigest()}"', X_Repo_Commit=COMMIT)
        elif "/tree/" in self.path:
            rows = [(path, len(content), sha1(content).hexdigest()) for path, content in self.files.items()]
            self.reply([{"type": "file", "path": path, "size": size, "oid": oid} for path, size, oid in rows])
        else:
            self.reply({"id": "me/mine", "sha": COMMIT, "siblings": [{"rfilename": name} for name in self.files]})

    do_HEAD = do_GET

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def hub() -> Iterator[tuple[str, dict[str, bytes]]]:
    """Address and files of a hub."""
    kind = type("Kind", (Hub,), {"files": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", kind.files
        server.shutdown()


def test_a_policy_goes_to_a_hub_and_comes_back_without_what_else_is_there(hub: Any, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    address, files = hub
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("policy.json", "policy.safetensors"):
        shutil.copy(SHIPPED / name, mine)
    own = {"HF_ENDPOINT": address, "HF_TOKEN": "hf_x", "HF_HOME": str(tmp_path / "home"), "HF_HUB_DISABLE_XET": "1"}

    def share(*words: object, expected: int = 0) -> str:
        command = [sys.executable, ROOT / "examples/share_policy.py", *words]
        done = subprocess.run(
            [str(part) for part in command], env={**os.environ, **own}, cwd=tmp_path, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == expected, done.stderr
        return done.stdout + done.stderr

    assert COMMIT in share("push", mine, "me/mine")
    _, front, text = files["README.md"].decode().split("---\n")
    (model,) = yaml.safe_load(front)["model-index"]
    (result,) = model["results"]
    assert result["dataset"]["type"] == "SnakeGym/Waypoints-v0" and "pull me/mine" in text
    assert {"type": "success_rate", "value": 1.0} in result["metrics"]
    files |= {"run_me.py": b"raise SystemExit", "pytorch_model.bin": b"pickle"}
    share("pull", "me/mine", "--out", tmp_path / "theirs")
    theirs = {path.name for path in (tmp_path / "theirs").iterdir() if path.is_file()}
    assert theirs == {"policy.json", "policy.safetensors", "README.md"}
    assert load_policy(tmp_path / "theirs").contract == load_policy(mine).contract
    files["policy.safetensors"] = files["policy.safetensors"][:-1] + b"?"
    assert "policy.safetensors" in share("pull", "me/mine", "--out", tmp_path / "damaged", expected=2)
