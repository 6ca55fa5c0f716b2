"""Command ``play``: keys and mouse come through pygame's own event queue, pictures are looked at pixel by pixel."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from snake_gym.commands import play_robot
from snake_gym.commands.play import KEYS, PANEL, Session, make_player
from snake_gym.render import palette
from snake_gym.render.palette import rgb
from snake_gym.render.play_window import PlayWindow
from snake_gym.render.robot_window import FPS, SIZE
from snake_gym.render.sketch import Sketch
from snake_gym.simulation.fault_kinds import FAULT_KINDS, kinds_of
from snake_gym.tasks.task_settings import build_env

pytest.importorskip("pygame")
DOCS = Path(__file__).parents[2] / "docs"
WAYPOINTS = "SnakeGym/Waypoints-v0"


class Player:
    """Somebody at the window."""

    def __init__(self, env_id: str, settings: dict[str, Any], **who: str) -> None:
        config = build_env(env_id, {"faults": {"n_max": 0}, **settings})
        env, policy, name = make_player(env_id, config, **who)
        self.window = PlayWindow(env.core)
        self.pygame = self.window.pygame
        self.pygame.event.clear()
        self.session = Session(env, policy, name, 3, self.window)
        self.core = env.core

    def press(self, *keys: str) -> None:
        for key in keys:
            code = self.pygame.key.key_code(key)
            self.pygame.event.post(self.pygame.event.Event(self.pygame.KEYDOWN, key=code))
        self.session.run(1)

    def wait(self, frames: int) -> None:
        """Let the time of so many frames pass, and look at the last."""
        for _ in range(frames):
            self.session.pass_time(1.0 / FPS)
        self.session.draw()

    def mouse(self, kind: int, **more: Any) -> None:
        self.pygame.event.post(self.pygame.event.Event(kind, **more))
        self.session.run(1)

    def pixel(self, place: Any) -> tuple[int, int]:
        x, y = self.window.camera.to_pixel(np.asarray(place)) / Sketch.scale
        return int(x), int(y)

    def picture(self) -> np.ndarray:
        """What the window shows (H, W, 3)."""
        return np.swapaxes(self.pygame.surfarray.array3d(self.pygame.display.get_surface()), 0, 1)

    def near(self, colour: str) -> int:
        """Pixels of about that colour."""
        gap = np.abs(self.picture().astype(int) - rgb(colour)).max(axis=2)
        return int((gap < 12).sum())

    @property
    def kinds(self) -> list[int]:
        return self.core.robot.acting_kind()[0].tolist()

    @property
    def time_s(self) -> float:
        return float(self.core.robot.state.time_s[0])


@pytest.fixture
def play() -> Iterator[Any]:
    players: list[Player] = []

    def begin(env_id: str = WAYPOINTS, settings: dict[str, Any] | None = None, **who: str) -> Player:
        players.append(Player(env_id, settings or {}, **who))
        return players[-1]

    yield begin
    for player in players:
        player.window.close()


def angles_over(player: Player, frames: int) -> np.ndarray:
    angles = []
    for _ in range(frames):
        player.session.pass_time(1.0 / FPS)
        angles.append(player.core.robot.joint_angle()[0].copy())
    return np.array(angles)


def test_keys_break_and_mend_the_selected_joint_in_the_physics_and_in_the_picture(play: Any) -> None:
    player = play()
    player.wait(30)
    assert player.time_s == pytest.approx(1.0)
    before = player.near(palette.VERMILION)
    player.press("4", "f")
    assert player.kinds == [0, 0, 0, FAULT_KINDS["locked"].code, 0, 0, 0, 0, 0]
    held = angles_over(player, 60)
    assert np.ptp(held[:, 3]) < 1e-9 and np.ptp(held[:, 4]) > 0.2
    assert player.near(palette.VERMILION) > before + 60  # joint, legend and gauge
    player.press("m")
    assert player.kinds == [0] * 9
    assert np.ptp(angles_over(player, 60)[:, 3]) > 0.2


def test_a_key_gives_a_joint_every_kind_of_fault_and_all_are_mended(play: Any) -> None:
    player = play()
    player.press("2")
    for kind in kinds_of("joint", player.core.spec):
        player.press("f")
        assert player.kinds[1] == FAULT_KINDS[kind].code, kind
    player.press("tab", "f")
    assert player.kinds[2] == FAULT_KINDS["locked"].code and player.session.selected == 2
    player.press("a")
    assert player.kinds == [0] * 9


def test_dragging_moves_the_target_and_the_picture_of_it(play: Any) -> None:
    player = play(controller="cc")
    player.press("space")
    place = player.core.task.targets_xy[0, 0].copy()
    start = player.pixel(place)
    pg = player.pygame
    player.mouse(pg.MOUSEBUTTONDOWN, button=1, pos=start)
    np.testing.assert_allclose(player.core.goal.target_xy_w[0], place, atol=0.02)
    end = (SIZE[0] // 2 + 60, SIZE[1] // 2 - 200)
    player.mouse(pg.MOUSEMOTION, pos=end, rel=(0, 0), buttons=(1, 0, 0))
    wanted = player.window.world_at(end)
    np.testing.assert_allclose(player.core.goal.target_xy_w[0], wanted)
    gap = np.abs(player.picture()[end[1], end[0]].astype(int) - rgb(palette.ORANGE)).max()
    assert gap < 12  # the middle of the drawn target
    player.mouse(pg.MOUSEBUTTONUP, button=1, pos=end)
    player.mouse(pg.MOUSEMOTION, pos=(5, 5), rel=(0, 0), buttons=(0, 0, 0))
    np.testing.assert_allclose(player.core.goal.target_xy_w[0], wanted)
    assert not player.window.camera.fixed


def test_arrows_drive_and_g_changes_the_gait_without_a_jump(play: Any) -> None:
    player = play(settings={"action": {"kind": "residual", "controller": {"tuned": "cpg"}}})
    target, core = player.core.goal.target_xy_w.copy(), player.core
    player.press(*["right"] * 8, "g")
    np.testing.assert_array_equal(core.goal.target_xy_w, target)
    angle, references = float(core.robot.state.link_angle[0].mean()), []
    for _ in range(120):
        player.session.pass_time(1.0 / FPS)
        references.append(core.reference[0].copy())
    player.session.draw()
    steps = np.diff(np.array(references), axis=0)
    assert np.abs(steps).max() <= 2.0 * np.pi * player.session.dt_s and np.abs(steps).max() > 0.05
    assert float(core.robot.state.link_angle[0].mean()) < angle - 0.5  # turned to the right
    assert core.decoder_state["gait"][0] == 1 and core.decoder.controller.names[1] in " ".join(player.session.text())
    assert core.decoder.controller.names[0] == "own"  # the env's
    player.press(*["down"] * 10)
    player.wait(90)
    assert np.ptp(angles_over(player, 30), axis=0).max() < 0.05  # pace 0: the wave stands


def test_a_gamepad_drives_and_pauses(play: Any) -> None:
    player = play()
    pg, helm = player.pygame, player.session.helm
    player.mouse(pg.JOYAXISMOTION, instance_id=4, axis=0, value=0.2)
    assert helm.steering == 0.0, "one that lies around steers nothing"
    player.mouse(pg.JOYAXISMOTION, instance_id=4, axis=0, value=0.75)
    player.mouse(pg.JOYAXISMOTION, instance_id=4, axis=1, value=-0.5)
    player.mouse(pg.JOYAXISMOTION, instance_id=5, axis=1, value=1.0)  # somebody else's
    player.mouse(pg.JOYBUTTONDOWN, instance_id=4, button=0)
    assert (helm.steering, helm.pace, helm.gait) == (-0.75, 0.5, 1)
    player.wait(30)
    state = player.core.decoder_state
    assert (state["asked_steering"][0], state["asked_pace"][0], state["asked_gait"][0]) == (-0.75, 0.5, 1.0)
    player.mouse(pg.JOYAXISMOTION, instance_id=4, axis=1, value=0.02)
    assert helm.pace == 0.0 and not player.session.paused
    player.mouse(pg.JOYBUTTONDOWN, instance_id=5, button=1)
    assert player.session.paused


def test_pause_stops_time_and_speed_changes_it(play: Any) -> None:
    player = play()
    player.press("space")
    began = player.time_s
    player.wait(20)
    assert player.time_s == began
    player.press("space", "+", "+")
    before = player.time_s
    player.wait(30)
    assert player.time_s - before == pytest.approx(4.0, abs=0.21)


def test_reset_begins_the_next_episode(play: Any) -> None:
    player = play()
    first = player.core.task.targets_xy.copy()
    player.press("f")
    player.wait(20)
    player.press("space", "r")
    assert player.time_s == 0.0 and player.kinds == [0] * 9
    assert (player.core.task.targets_xy != first).any() and player.core.episode[0] == 1


def test_a_spatial_robot_climbs_by_the_gait_of_its_env_and_falls_by_another(play: Any) -> None:
    pytest.importorskip("mujoco")
    player = play("SnakeGym/Climb-v0")
    climbing = angles_over(player, 150)
    text = " ".join(player.session.text())
    assert np.ptp(climbing, axis=0).max() > 0.8 and "gait SRL" in text and "success at 2 m" in text
    assert "ENDED" not in text and player.core.task.record["progress_m"][0] > 0.2
    player.press("g")  # creeping: it lets go
    player.wait(90)
    text = " ".join(player.session.text())
    assert f"gait {player.core.decoder.controller.names[1]}" in text and "ENDED: fell," in text


@pytest.mark.parametrize("name", ["ObstacleField", "PathFollow", "Velocity", "Escape"])
def test_every_task_is_played_and_what_cannot_be_moved_is_said(play: Any, name: str) -> None:
    player = play(f"SnakeGym/{name}-v0")
    player.wait(9)
    player.mouse(player.pygame.MOUSEBUTTONDOWN, button=1, pos=(300, 300))
    assert (player.window.message == "") == (name == "Velocity")


def test_no_key_does_two_things_and_the_pages_have_the_tables() -> None:
    names = [name for key in KEYS for name in key.names]
    assert len(names) == len(set(names))
    for page, panel in (("play", PANEL), ("hardware", play_robot.PANEL)):
        table = "".join(f"| {label} | {meaning} |\n" for label, meaning in panel)
        assert f"| --- | --- |\n{table}\n" in (DOCS / f"{page}.md").read_text(), table
