"""Command ``play``: drive a robot, break and mend its joints, move its target, and watch a controller cope.

snake-gym play Waypoints                                   gaits that you drive: arrows, G, a gamepad
snake-gym play Waypoints --controller fault_aware
snake-gym play Waypoints --policy resilient_servo_locked_joints
snake-gym play ObstacleField --policy runs/mine --env configs/env/obstacles.yaml
snake-gym play Waypoints --controller cc --frames 300 --screenshot play.png
snake-gym play --port /dev/ttyUSB0                         the robot itself, by hand (play --port X --help)
"""

from __future__ import annotations

import math
import os
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from snake_gym.benchmark.policies import load_policy
from snake_gym.benchmark.scenarios import BenchmarkConfig, classical_entrant, learned_entrant, make_scenarios
from snake_gym.commands.env_options import env_parser, read_env
from snake_gym.commands.keys import DRIVING, Key, panel, press
from snake_gym.config import ConfigError, build, prepare_file, run_program, to_dict, write_atomic
from snake_gym.controllers import make_controller
from snake_gym.controllers.driving import DrivenGaits, DrivenModes
from snake_gym.controllers.tuned import tuned_kinds
from snake_gym.envs.vector_env import SnakeVectorEnv
from snake_gym.interface.policy import Policy
from snake_gym.render.frames import progress_text
from snake_gym.render.helm import Gamepad, Helm
from snake_gym.render.play_window import PlayWindow
from snake_gym.render.robot_window import FPS
from snake_gym.robot.chain import ChainSpec, FloatArray
from snake_gym.simulation.fault_kinds import kinds_of
from snake_gym.tasks.task import EnvConfig

BY_HAND = "by hand"
_TRAIL_STEPS = 400
_MOST_STEPS = 64
"""Most control steps of a frame: a machine that is too slow plays slower."""


def main(argv: list[str] | None = None) -> int:
    """Open the window and play until it is closed. Raises ConfigError for what the user has to correct."""
    words = sys.argv[1:] if argv is None else argv
    if any(word.partition("=")[0] in ("--port", "--config") for word in words):
        from snake_gym.commands.play_robot import main as play_robot  # a simulated robot loads no serial port

        return play_robot(words)
    parser = env_parser("play", __doc__)
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--policy", metavar="NAME|PATH", help="name of a shipped policy, or what evaluate takes")
    who.add_argument("--controller", metavar="C", help="classical controller, tuned for the robot, or NAME=FILE.yaml")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first episode (%(default)s)")
    parser.add_argument("--frames", type=int, metavar="N", help=f"end after N frames of 1/{FPS} s, not in real time")
    parser.add_argument("--screenshot", metavar="FILE", help="write the last frame as a PNG")
    args = parser.parse_args(words)
    if not 0 <= args.seed < 2**31 - 1:
        raise ConfigError(f"--seed is {args.seed}; expected an integer from 0 to {2**31 - 2}")
    if args.screenshot is not None:
        prepare_file(args.screenshot, "--screenshot")
    env_id, config = read_env(args)
    env, policy, name = make_player(env_id, config, args.policy, args.controller, args.seed)
    if args.frames is not None and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    window = PlayWindow(env.core, f"{env_id}: {name}", PANEL)
    try:
        session = Session(env, policy, name, args.seed, window)
        session.run(args.frames)
        if args.screenshot is not None:
            write_atomic(args.screenshot, window.png())
    finally:
        window.close()
    return 0


def make_player(
    env_id: str, config: EnvConfig, policy: str | None = None, controller: str | None = None, seed: int = 0
) -> tuple[SnakeVectorEnv, Policy | None, str]:  # fmt: skip
    """Return an env of one world, what chooses its actions (None: the keys do) and its name. Raises ConfigError."""
    if policy is None and controller is None:
        spec: ChainSpec = config.load_robot()
        names_gait = config.action.kind == "residual" or spec.in_space
        base = config.action.controller if names_gait else spec.default_controller
        action = build(type(config.action), {"kind": "residual", "controller": base})
        unseen = replace(config, action=action, observation=type(config.observation)())
        env = SnakeVectorEnv(env_id, 1, AutoresetMode.DISABLED, config=unseen)
        own: Any = env.core.decoder.controller
        if hasattr(own, "modes"):
            own.config = replace(own.config, guided=False)
            env.core.use_controller(DrivenModes(own))
        else:
            gaits = {"own": own} if names_gait else {}
            gaits |= {name: make_controller({"tuned": name}, spec) for name in tuned_kinds(spec)}
            env.core.use_controller(DrivenGaits(gaits or {"cc": make_controller("cc", spec)}, spec))
        return env, None, BY_HAND
    benchmark = BenchmarkConfig(env_id=env_id, episodes=1, seed=seed, env=to_dict(config))
    scenarios = make_scenarios(benchmark)
    if controller is not None:
        entrant = classical_entrant(controller, benchmark)
    else:
        entrant = learned_entrant(Path(str(policy)).stem, load_policy("mine", str(policy)), scenarios)
    for note in entrant.notes:
        print(f"note: {entrant.name}: {note}", file=sys.stderr)
    env = scenarios.make_env(entrant, 1)
    return env, entrant.make_policy(env), entrant.name


class Session:
    """World of one player; ``policy`` None: arrow keys and a gamepad steer.

    A frame shows the robot between its last two control steps.
    """

    def __init__(self, env: SnakeVectorEnv, policy: Policy | None, name: str, seed: int, window: PlayWindow) -> None:
        self.env, self.core, self.name, self.window = env, env.core, name, window
        self.dt_s = self.core.spec.control_dt_s
        self.helm = Helm(getattr(self.core.decoder.controller, "names", ("",)), pace=1.0)
        self.pad = Gamepad(window.pygame, self.helm)
        self._policy = policy
        self.selected, self.speed, self.paused, self.over = 0, 1.0, False, False
        self._n_broken = [0] * self.core.spec.n_joints
        self.reset(seed)

    def reset(self, seed: int | None = None) -> None:
        """Begin the next episode, or that of ``seed``."""
        self._obs, self._infos = self.env.reset(seed=seed)
        self._carried, self._start = None, np.ones(1, bool)
        self._reward, self._due_s = 0.0, 0.0
        self._now = self._before = self._pose()
        self._trail: deque[FloatArray] = deque([self._now[1]], _TRAIL_STEPS)
        self.window.camera.cut()

    def step(self) -> None:
        """Advance one control step; an episode that has ended stands still."""
        if not self.core.live[0]:
            return
        if self._policy is None:
            self.helm.write(self.core.decoder_state)
            action: NDArray[Any] = np.zeros((1, self.core.decoder.size), np.float32)
        else:
            action, self._carried = self._policy.predict(self._obs, self._carried, self._start, deterministic=True)
        self._start = np.zeros(1, bool)
        self._obs, reward, _, _, self._infos = self.env.step(action)
        self._reward += float(reward[0])
        self._before, self._now = self._now, self._pose()
        self._trail.append(self._before[1])

    def pass_time(self, time_s: float) -> None:
        """Let ``time_s`` of the player's time pass."""
        if self.paused:
            return
        self._due_s = min(self._due_s + self.speed * time_s, _MOST_STEPS * self.dt_s)
        while self._due_s >= self.dt_s * (1.0 - 1e-9):
            self._due_s -= self.dt_s
            self.step()

    def run(self, frames: int | None = None) -> None:
        """Play until the player quits, or for ``frames`` frames as fast as the machine can."""
        shown = 0
        while not self.over and (frames is None or shown < frames):
            for event in self.window.pygame.event.get():
                self.handle(event)
            self.pass_time(self.window.wait() if frames is None else 1.0 / FPS)
            self.draw()
            shown += 1

    # --- what is pressed ---------------------------------------------------------------------------------------------

    def handle(self, event: Any) -> None:
        """Do what an event of pygame asks for; what cannot be done is said on the screen."""
        pygame = self.window.pygame
        try:
            if event.type == pygame.QUIT:
                self.over = True
            elif event.type == pygame.KEYDOWN:
                press(KEYS, self, pygame.key.name(event.key))
            elif event.type == pygame.MOUSEWHEEL:
                self.window.camera.widen(1.1**-event.y)
            elif (event.type == pygame.MOUSEBUTTONDOWN and event.button == 1) or (
                event.type == pygame.MOUSEMOTION and event.buttons[0]
            ):
                self.window.message = ""
                self.window.camera.fixed = True  # else the target would run away from the mouse
                self.core.move_target(0, self.window.world_at(event.pos))
            elif event.type == pygame.MOUSEBUTTONUP and event.button == 1:
                self.window.camera.fixed = False
            elif self.pad.handle(event) == "stop":
                self.paused = True
        except ConfigError as error:
            self.window.message = str(error)

    def break_next(self) -> None:
        """Give the selected joint the next kind of fault, those of plugins among them."""
        kinds, joint = kinds_of("joint", self.core.spec), self.selected
        kind = kinds[self._n_broken[joint] % len(kinds)]
        self._n_broken[joint] += 1
        self.core.set_fault(0, joint + 1, kind)

    # --- what is shown -----------------------------------------------------------------------------------------------

    def _pose(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return link angles, head and, of a spatial robot, the links' ends from above."""
        robot = self.core.robot
        body = robot.recorded_body(0, {name: values[:1] for name, values in robot.pose().items()})
        ends = np.zeros((0, 2)) if body is None else body.ends_xy(0)
        return robot.state.link_angle[0].copy(), robot.state.head_xy[0].copy(), ends

    def draw(self) -> None:
        """Show the present frame."""
        share = min(self._due_s / self.dt_s, 1.0) if self.core.live[0] else 1.0
        theta, head, ends = (a + share * (b - a) for a, b in zip(self._before, self._now, strict=True))
        trail = np.array([*self._trail, head])
        self.window.show(theta, head, trail, self.text(), self.selected, ends if ends.size else None)

    def text(self) -> list[str]:
        """Return the lines of the upper left corner."""
        core, infos, task = self.core, self._infos, self.core.task
        state, j = core.robot.state, self.selected
        end = ""
        if not core.live[0]:
            flags = [name for name, values in task.record.items() if values.dtype == bool and values[0]]
            ends = ["time is up", *flags] if core.truncated[0] else flags or ["no success"]
            end = f"   ENDED: {', '.join(ends).replace('is_', '')}, R: next episode"
        terms = [f"{name} {infos['reward/' + name][0]:+.3f}" for name in core.terms]
        lines = [
            f"{self.name}   seed {core.seeds[0]}, episode {core.episode[0]}   H: keys",
            f"{state.time_s[0]:.1f} s of {core.step_limit[0] * self.dt_s:g} s   x{self.speed:g}"
            f"{'   PAUSED' if self.paused else ''}{end}",
            progress_text(core, 0),
            f"speed {infos['speed_m_s'][0]:.3f} m/s   energy {infos['energy_j'][0]:.1f} J",
            f"reward {self._reward:+.2f}, last step:", "   " + "   ".join(terms),
            f"failed joints {np.count_nonzero(core.robot.failed_now()[0])}   joint {j + 1}: "
            f"{math.degrees(core.robot.joint_angle()[0, j]):.0f} deg",
        ]  # fmt: skip
        if self._policy is None:
            lines.append(f"arrows, G: {self.helm.text()}")
        elif task.moves_target:
            lines.append("mouse: move the target")
        return lines


def _set(name: str, change: Callable[[Session], Any]) -> Callable[[Session, str], None]:
    return lambda session, _: setattr(session, name, change(session))


KEYS = (
    *DRIVING,
    Key(tuple("1234567890"), "1 ... 9, 0", "select joint 1 to 10, counted from the tail",
        lambda session, name: setattr(session, "selected", min(int(name) or 10, session.core.spec.n_joints) - 1)),
    Key(("tab",), "Tab", "select the next joint",
        _set("selected", lambda session: (session.selected + 1) % session.core.spec.n_joints)),
    Key(("f",), "F", "selected joint: the next kind of fault, plugins' too", lambda session, _: session.break_next()),
    Key(("m",), "M", "mend the selected joint", lambda session, _: session.core.mend(0, session.selected + 1)),
    Key(("a",), "A", "mend all joints", lambda session, _: session.core.mend(0)),
    Key(("space",), "Space", "pause, or go on", _set("paused", lambda session: not session.paused)),
    Key(("+", "=", "[+]"), "+", "twice as fast", _set("speed", lambda session: min(2.0 * session.speed, 16.0))),
    Key(("-", "[-]"), "-", "half as fast", _set("speed", lambda session: max(0.5 * session.speed, 0.125))),
    Key(("r",), "R", "next episode", lambda session, _: session.reset()),
    Key(("q", "escape"), "Q, Esc", "quit", _set("over", lambda session: True)),
)  # fmt: skip
"""All keys: what they do, the panel on the screen and the page of the documentation follow from this table."""
PANEL = panel(KEYS, (
    ("left button", "click or drag: move the current target"),
    ("wheel", "zoom"),
    ("gamepad", "by hand: left stick steers, A is the next gait, B pauses"),
))  # fmt: skip


if __name__ == "__main__":
    run_program(main)
