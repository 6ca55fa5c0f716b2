"""Replay pages, GIFs and figures: complete in themselves, well formed, and holding what was recorded."""

from __future__ import annotations

import base64
import gzip
import io
import json
import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageSequence

from snake_gym.envs.recording import Recording
from snake_gym.render.animation import scene_gif
from snake_gym.render.frames import FrameRenderer, Picture, ends_of
from snake_gym.render.palette import MUTED, fault_colours, rgb
from snake_gym.render.plots import Curve, FaultSeries, plot_by_faults, plot_over_time, plot_paired
from snake_gym.render.replay import ASSETS, Scene, replay_page
from snake_gym.robot.presets import RESILIENT_SERVO as SPEC
from snake_gym.robot.recorded_body import Ground, Pole, RecordedBody
from snake_gym.simulation.fault_kinds import FAULT_KINDS, FaultKind, kinds_of

N_TIMES = 21


def recording(name: str = "sjc", kind: str = "classical", speed: float = 0.3) -> Recording:
    time_s = 0.2 * np.arange(N_TIMES)
    wave = 0.4 * np.sin(4.0 * time_s[:, None] + 0.5 * np.arange(10))
    head = np.stack([speed * time_s, np.zeros(N_TIMES)], axis=1)
    faults = np.zeros((N_TIMES, 9), dtype=np.int64)
    faults[8:, 3] = 1
    target = (head[:, 0] > 0.5).astype(np.int64)
    targets = np.array([[0.5, 0.0], [1.5, 0.4], [3.0, 0.0], [9.0, 9.0]])
    return Recording(name, kind, SPEC, 7, 0.1, targets, time_s, wave, head, head, target, head[:, 0], faults)


def scene() -> Scene:
    return Scene("joint 4 locked", (recording("ppo", "learned", 0.5), recording()))


class Page(HTMLParser):
    """Collects elements and the text inside of them, and complains about ones that are not closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, str] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "link", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            key = self.attributes[-1][1].get("id") or self.open[-1]
            self.text[key] = self.text.get(key, "") + data


def page_data(page: Page) -> Any:
    return json.loads(page.text["data"])


def test_the_page_is_well_formed_and_asks_for_nothing_outside() -> None:
    text = replay_page("A title", [scene()])
    page = Page(text)
    assert page.open == []
    for tag, attributes in page.attributes:
        assert not {"src", "href", "action", "data", "srcset"} & attributes.keys(), (tag, attributes)
    library = gzip.decompress(base64.b64decode(page.text["three"])).decode()
    assert not re.search(r"fetch\(|XMLHttpRequest|import\(|</script", library)
    text = text.replace(page.text["three"].strip(), "")
    assert not re.search(r"https?:|//[a-z]|url\(|@import|fetch\(|XMLHttpRequest|import\(", text)
    assert "{{" not in text


def test_the_library_has_what_the_view_in_space_uses_and_stays_small() -> None:
    packed = (ASSETS / "three.min.js.gz").read_bytes()
    library, note = gzip.decompress(packed).decode(), (ASSETS / "three.txt").read_text()
    used = set(re.findall(r"THREE\.(\w+)", (ASSETS / "replay_space.js").read_text()))
    assert len(used) > 20
    assert {name for name in used if f"{name}:()=>" not in library or not re.search(rf"\b{name}\b", note)} == set()
    assert len(packed) < 130_000 and "Permission is hereby granted" in note


def turning_body() -> RecordedBody:
    """A body of two links in space: it yaws and pitches, and its joint is once beyond its limit."""
    turn = np.array([[1.0, 0.0, 0.0, 0.0], [np.cos(0.2), 0.0, -np.sin(0.2), 0.0], [np.cos(0.5), 0.0, 0.0, np.sin(0.5)]])
    link_xyz = np.zeros((3, 2, 3))
    link_xyz[:, 1, 0], link_xyz[1, :, 2] = 0.2, 0.1
    heights = np.array([[0.0, 0.1], [0.2, 0.3]])
    ground = Ground(heights, (1.0, 2.0), poles=(Pole((0.0, 0.0, 1.0), 0.2, 1.0),))
    angle, limit = np.array([[0.0], [-1.0], [0.4]]), np.array([0.9])
    turns = np.stack([turn, turn], axis=1)
    return RecordedBody(link_xyz, turns, angle, ("y",), limit, np.full(2, 0.1), (0.05, 0.06), ground=ground)


def in_space() -> Recording:
    body, flat = turning_body(), recording()
    short = {name: getattr(flat, name)[:3] for name in ("time_s", "head_xy", "point_xy", "target", "progress_m")}
    return replace(flat, body=body, link_angle=np.zeros((3, 2)), fault_kind=np.zeros((3, 1), np.int64), **short)


def test_the_page_holds_motion_in_space() -> None:
    page = replay_page("t", [Scene("s", (in_space(), recording()))])
    policy, flat = page_data(Page(page))["scenes"][0]["policies"]
    assert policy["body"]["at_mm"][1] == [[0, 0, 100], [200, 0, 100]]
    assert policy["body"]["turn"][1][0] == [9801, 0, -1987, 0]
    assert policy["body"]["heights_mm"] == [[0, 100], [200, 300]] and policy["half_mm"] == [100, 100]
    assert policy["body"]["poles_mm"] == [[0, 0, 1000, 200, 1000]]
    assert (policy["limit_mrad"], flat["limit_mrad"]) == ([900], [1571] * 9) and "body" not in flat


@pytest.mark.skipif(shutil.which("node") is None, reason="runs the page's script with node")
def test_the_player_finds_joints_beyond_their_limits_and_sees_bodies_in_space_from_above(tmp_path: Path) -> None:
    bent = recording()
    bent.link_angle[5, 6:] += 2.0
    data = page_data(Page(replay_page("t", [Scene("s", (in_space(), bent))])))
    player = (ASSETS / "replay.js").read_text().partition("\nreadColours();\n")[0]
    asked = """
const [space, flat] = data.scenes[0].policies, times = flat.time_ms;
console.log(JSON.stringify({
  flat: times.map(t => beyond(flat, sampleAt(flat, t)).indexOf(true)),
  space: [0, 200, 400].map(t => beyond(space, sampleAt(space, t))[0]),
  above: [200, 400].map(t => bodyPoints(space, sampleAt(space, t))),
  between: sampleAt(space, 300).turn[0],
}));"""
    document = f"const document = {{ getElementById: () => ({{ textContent: {json.dumps(json.dumps(data))} }}) }};\n"
    (tmp_path / "asked.js").write_text(document + player + asked)
    done = subprocess.run(["node", str(tmp_path / "asked.js")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [k for k, joint in enumerate(found["flat"]) if joint >= 0] == [5] and found["flat"][5] == 5
    assert found["space"] == [False, True, False]
    along = 0.1 * math.cos(0.4)  # pitched by 0.4 rad: shorter from above
    np.testing.assert_allclose(found["above"][0], [[-along, 0], [along, 0], [0.2 + along, 0]], atol=1e-4)
    yawed = [0.1 * math.cos(1.0), 0.1 * math.sin(1.0)]
    np.testing.assert_allclose(found["above"][1][1], yawed, atol=1e-4)
    half_way = np.array([np.cos(0.2) + np.cos(0.5), 0.0, -np.sin(0.2), np.sin(0.5)])
    np.testing.assert_allclose(found["between"], half_way / np.linalg.norm(half_way), atol=1e-3)


def test_the_page_holds_the_motion() -> None:
    source = recording()
    data = page_data(Page(replay_page("t", [Scene("s", (source,))])))
    policy = data["scenes"][0]["policies"][0]
    np.testing.assert_allclose(np.array(policy["angle_mrad"]) / 1000, source.link_angle, atol=5.01e-4)
    np.testing.assert_allclose(np.array(policy["head_mm"]) / 1000, source.head_xy, atol=5.01e-4)
    np.testing.assert_allclose(np.array(policy["time_ms"]) / 1000, source.time_s, atol=1e-9)
    assert policy["half_mm"] == [70] * 10
    assert policy["faults"] == [[0, [0] * 9], [8, [0, 0, 0, 1, 0, 0, 0, 0, 0]]]
    assert policy["targets_mm"] == [[500, 0], [1500, 400], [3000, 0]]  # one beyond the current one, not all
    assert policy["target"] == source.target.tolist()


def test_names_cannot_break_the_page() -> None:
    nasty = "</script><script>alert(1)</script><!-- {{data}} & \u2028"
    page = Page(replay_page(nasty, [Scene(nasty, (replace(recording(), name=nasty),))], nasty))
    assert page.open == []
    assert sum(tag == "script" for tag, _ in page.attributes) == 4
    assert page_data(page)["scenes"][0]["policies"][0]["name"] == nasty
    assert page.text["h1"].startswith("</script>")


def test_a_gif_plays_for_its_time_and_stays_small() -> None:
    data = scene_gif(scene(), duration_s=2.0, fps=10.0, size=(160, 120))
    image = Image.open(io.BytesIO(data))
    assert (image.format, image.size, image.info["loop"]) == ("GIF", (160 + 4 + 160, 120), 0)
    frames = [frame.copy() for frame in ImageSequence.Iterator(image)]
    assert sum(frame.info["duration"] for frame in frames) == 2000
    assert (np.asarray(frames[0].convert("RGB")) != np.asarray(frames[-1].convert("RGB"))).any()
    smaller = scene_gif(scene(), duration_s=2.0, fps=10.0, size=(160, 120), max_bytes=len(data) // 2)
    assert len(smaller) <= len(data) // 2


def test_figures_are_drawn_without_pyplot_and_of_a_single_episode_too() -> None:
    already = "matplotlib.pyplot" in sys.modules
    series = [
        FaultSeries("a", "#AA3377", [0, 1, 3], [3.0, 2.0, 1.0], [2.8, 1.9, 0.5], [3.1, 2.2, 1.2]),
        FaultSeries("b", "#0072B2", [0, 1], [1.0, -0.5], [0.8, -0.6], [1.1, math.nan]),
    ]
    curve = Curve("a", "#AA3377", np.array([0.0, 1.0]), np.array([[0.0], [1.0]], np.float32))
    paired = plot_paired([1.0], [1.0], [0], ("sjc", "ppo"), ("#0072B2", "#AA3377"))
    for data in (plot_by_faults(series, "title"), plot_over_time([curve]), paired):
        image = Image.open(io.BytesIO(data))
        assert image.format == "PNG" and min(image.size) > 400
    assert already or "matplotlib.pyplot" not in sys.modules


def test_every_kind_of_fault_has_a_colour_and_a_name_in_page_and_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FAULT_KINDS, "sticky", FaultKind("sticky", 20, ""))
    monkeypatch.setitem(FAULT_KINDS, "jerky", FaultKind("jerky", 21, ""))
    colours = fault_colours()
    assert set(colours) == {FAULT_KINDS[name].code for name in kinds_of("joint")}
    one = recording()
    failing = replace(one, fault_kind=np.where(one.fault_kind > 0, 20, 0))
    shown = page_data(Page(replay_page("t", [Scene("joint 4 sticky", (failing,))])))["faults"]
    named = {name: kind.code for name, kind in FAULT_KINDS.items() if kind.code in colours}
    assert {kind["name"]: int(code) for code, kind in shown.items()} == named
    assert shown["20"]["colour"] == MUTED
    ends_xy, failed = ends_of(SPEC, np.zeros(10), np.zeros(2)), np.array([0, 0, 0, 20, 0, 0, 0, 0, 0])
    frame = FrameRenderer(SPEC).draw(Picture(ends_xy, failed=failed))
    assert (np.abs(frame.astype(int) - rgb(MUTED)).max(axis=2) <= 4).sum() > 60
