"""Batched core of every task: one control step of W worlds from action to observation, reward, end and reset.

``SnakeVectorEnv`` is a thin Gymnasium shell over this class, and ``SnakeEnv`` one over a vector env of one world.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from snake_gym.config import ConfigError, build, convert
from snake_gym.config.errors import show
from snake_gym.config.settings import Share
from snake_gym.controllers.base import Controller, ControllerState
from snake_gym.envs.arguments import NO_SEED, check_action
from snake_gym.envs.observation_columns import make_layout
from snake_gym.envs.saved_state import write_state
from snake_gym.interface.actions import ActionDecoder
from snake_gym.interface.observer import Observer
from snake_gym.physics.faults import HEALTHY
from snake_gym.plugins import are_finite, check_numbers
from snake_gym.robot.measurement import Goal, Measurement, tracked_point
from snake_gym.robot.protocol import Robot
from snake_gym.robot.spec import FloatArray
from snake_gym.simulation.faults import JointFault, break_joint, draw_faults, end_faults
from snake_gym.simulation.randomisation import DrawnQuantities
from snake_gym.simulation.streams import RandomStreams, begin_streams
from snake_gym.tasks.costs import Costs
from snake_gym.tasks.privileged import PrivilegedLayout, Truth
from snake_gym.tasks.task import EnvConfig, NewEpisodes, Step, Task, begin_episodes, check_kept, unkept

BoolArray = NDArray[np.bool_]
_KEPT_DIFFICULTIES = 256
"""Largest number of difficulties with settings in memory."""
N_STAGGER_GROUPS = 32
"""Groups of worlds in ``spread_ends``, each with its own time limit."""

POLICY, PRIVILEGED = "policy", "privileged"
"""Parts of observations where ``observation.privileged`` names any columns."""
Observations = Any
"""Observations (W, D) float32; with privileged columns a dict of such arrays by part."""
StepResult = tuple[Observations, FloatArray, BoolArray, BoolArray, dict[str, Any]]


def pick(arrays: Any, rows: Any) -> Any:
    """Return the rows of an array, or of each array in a dict or tuple; None stays."""
    if isinstance(arrays, dict):
        return {name: pick(values, rows) for name, values in arrays.items()}
    if isinstance(arrays, tuple):
        picked = [pick(values, rows) for values in arrays]
        return type(arrays)(*picked) if hasattr(arrays, "_fields") else picked
    return None if arrays is None else arrays[rows]


class SnakeCore:
    """Worlds without Gymnasium's conventions: ``n_worlds`` W with the settings ``config``.

    A world is *live* from its reset until it ends; a step leaves ended worlds as they are (no motion, reward 0, their
    flags and infos repeated) until they are reset.
    """

    def __init__(self, config: EnvConfig, n_worlds: int) -> None:
        self.config, self.n_worlds = config, n_worlds
        self.spec = config.load_robot()
        self.n_steps = config.n_steps(self.spec)

        # What the settings make
        self.task: Task = config.make_task(self.spec, n_worlds)
        self._others = None if type(self.task).__module__.startswith("snake_gym.") else unkept(self.task)
        """What a user's task had, when it was made, that is no part of its state; None: the task is ours."""
        self.robot: Robot = config.make_robot(self.spec, n_worlds, self.task)
        self.robot.allow_faults(config.faults.present_kinds)
        self.task.robot = self.robot
        self.sensors = config.make_sensors(self.spec, n_worlds)
        self.randomisation: DrawnQuantities | None = None
        """What varies from episode to episode; None: nothing does."""
        if config.randomisation.any:
            self.randomisation = config.make_randomisation(self.spec, self.robot)
            self.sensors.errors = self.randomisation.sensors
        self.costs = Costs(config.costs, self.robot) if config.costs.names else None
        """Costs, apart from the reward; None: none are on."""
        self.decoder = ActionDecoder(config.action, self.spec, self.task.commands_speed)
        if config.action.kind == "pressure":
            self.robot.take_pressures()
        self.layout = make_layout(config, self.task, self.sensors, self.decoder)
        self.observer = Observer(self.layout, n_worlds)
        self.streams = {name: RandomStreams(name, n_worlds) for name in ("start", self.task.stream, "faults")}
        self.weights = dict(self.task.weights)

        # Where the episodes stand
        self.seeds, self.step_count = (np.zeros(n_worlds, np.int64) for _ in range(2))
        self.episode = np.full(n_worlds, -1, np.int64)
        """(W,) number of the episode of its seed, from 0; -1: none has begun."""
        self.step_limit = np.full(n_worlds, self.n_steps, np.int64)
        self.live, self.terminated, self.truncated = (np.zeros(n_worlds, bool) for _ in range(3))
        self.action: FloatArray = np.zeros((n_worlds, self.decoder.size))
        self.reference: FloatArray = np.zeros((n_worlds, self.spec.n_joints))
        self.decoder_state: ControllerState = self.decoder.initial_state(n_worlds)
        self.terms: dict[str, FloatArray] = {name: np.zeros(n_worlds) for name in self.weights}
        self.difficulty: FloatArray = np.ones(n_worlds)
        """(W,) difficulty of each world's next episode, see ``set_difficulty``."""
        self._present_difficulty: FloatArray = np.ones(n_worlds)
        self._at_difficulty: dict[float, EnvConfig] = {1.0: config}
        self.set_difficulty(config.difficulty)
        self._present_difficulty[:] = self.difficulty
        self.measurement: Measurement = self.sensors.measure(self.robot)
        self.goal: Goal = self.task.goal()
        """Where to go, as policies are shown it."""
        kinds, names = tuple(sorted(config.faults.present_kinds)), config.observation.privileged
        truth = Truth(self.robot, self.measurement, self.randomisation, kinds, self.task.obstacles is not None)
        self.privileged = PrivilegedLayout(names, truth) if names else None
        """Truth in observations, for critics; None: there is none."""
        self._at_first = self.get_state()
        self.lean_infos = False
        """Whether a step gives the infos of speed and weighted reward terms alone."""

    @property
    def point_xy(self) -> FloatArray:
        """True position (W, 2) [m] of the tracked point."""
        return self.robot.state.head_xy if self.task.tracked_point == "head" else self.robot.state.centre_xy

    @property
    def have_begun(self) -> bool:
        """True once every world has had a reset, and so a seed."""
        return bool((self.episode >= 0).all())

    # --- settings of the next episodes -------------------------------------------------------------------------------

    def set_difficulty(self, difficulty: Any) -> None:
        """Let each world's next episode have the share ``difficulty`` of what makes one hard: a number, or (W,).

        See ``EnvConfig.at_difficulty``. Raises ConfigError for what is not in [0, 1], or has a field that this robot
        does not fit in, with nothing changed.
        """
        given = convert(Share | tuple[Share, ...], difficulty, "difficulty")
        if isinstance(given, tuple) and len(given) != self.n_worlds:
            raise ConfigError(f"difficulty is {show(given)}; expected a number in [0, 1], or {self.n_worlds} of them")
        wanted = np.array(np.broadcast_to(given, (self.n_worlds,)))
        level = np.ones(self.n_worlds)
        for share in np.unique(wanted).tolist():
            level[wanted == share] = self._config_at(share).randomisation.level
        self.difficulty[:] = wanted
        if self.randomisation is not None:
            self.randomisation.level[:] = level

    def _config_at(self, difficulty: float) -> EnvConfig:
        """Return the settings at a difficulty, checked against the robot."""
        if difficulty not in self._at_difficulty:
            if len(self._at_difficulty) >= _KEPT_DIFFICULTIES:
                self._at_difficulty = {1.0: self.config}
            config = self.config.at_difficulty(difficulty)
            config.load_robot()
            self._at_difficulty[difficulty] = config
        return self._at_difficulty[difficulty]

    def use_controller(self, controller: Controller) -> None:
        """Replace the controller under the residual action, for example by one with parameters for each world."""
        self.decoder.controller = controller
        self.decoder_state = self.decoder.initial_state(self.n_worlds)
        others = {name: values for name, values in self._at_first.items() if not name.startswith("decoder/")}
        self._at_first = {**others, **_copies(_named("decoder", self.decoder_state))}

    def limit_steps(self, n: int) -> None:
        """End the next episodes after ``n`` control steps; ``config`` is changed accordingly."""
        self.config = replace(self.config, time_limit_s=n * self.spec.control_dt_s)
        self.n_steps = self.config.n_steps(self.spec)

    def spread_ends(self) -> None:
        """Cut the time limits of the running episodes, just begun: they end at up to 32 times spread over the limit.

        The worlds are then never all in step, which suits a learner. Later episodes have the whole time limit.
        """
        group = np.arange(self.n_worlds) * N_STAGGER_GROUPS // self.n_worlds + 1
        self.step_limit[:] = -(-group * self.n_steps // N_STAGGER_GROUPS)

    # --- changes during an episode -----------------------------------------------------------------------------------

    def set_fault(self, world: int, joint: int, kind: str, **sizes: Any) -> None:
        """Break a joint (from 1 at the tail) of one world now, instead of the faults that it has, until ``mend``.

        ``sizes`` are numbers of ``JointFault``, such as ``strength``. Raises ConfigError, with nothing changed, for
        what this robot cannot have.
        """
        world = convert(Annotated[int, Field(ge=0, lt=self.n_worlds)], world, "world")
        now = float(self.robot.state.time_s[world])
        fault = build(JointFault, {"joint": joint, "kind": kind, "onset_s": now, **sizes})
        break_joint(self.robot, world, fault, self.reference[world])

    def mend(self, world: int, joint: int | None = None) -> None:
        """End the faults of a joint (from 1 at the tail; None: of all joints) of one world now. Raises ConfigError."""
        world = convert(Annotated[int, Field(ge=0, lt=self.n_worlds)], world, "world")
        joint = convert(Annotated[int, Field(ge=1, le=self.spec.n_joints)] | None, joint, "joint")
        end_faults(self.robot, world, slice(None) if joint is None else slice(joint - 1, joint))

    def move_target(self, world: int, xy: Any) -> None:
        """Move the current target of one world to ``xy`` (2,) [m] now. Raises ConfigError; see ``Task``."""
        self.task.move_target(world, xy)
        self.goal = self.task.goal()

    # --- episodes ----------------------------------------------------------------------------------------------------

    def reset(self, seeds: NDArray[np.int64] | None = None, mask: BoolArray | None = None) -> Observations:
        """Begin new episodes in the worlds of ``mask`` (W,), see ``begin``; return all worlds' observations (W, D)."""
        self.begin(self.task.rows if mask is None else np.flatnonzero(mask), seeds)
        return self.observe()

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.int64] | None = None) -> None:
        """Begin a new episode in the worlds ``rows`` (M,).

        ``seeds`` (M,) are those of the worlds, whose episodes then count from 0 again; NO_SEED (or None for all)
        continues with the next episode of the present seed.
        """
        self.episode[rows] += 1
        if seeds is not None:
            seeded = rows[seeds != NO_SEED]
            self.seeds[seeded] = seeds[seeds != NO_SEED]
            self.episode[seeded] = 0
        begin_streams(self.streams.values(), self.seeds[rows], self.episode[rows], rows)
        if self.randomisation is not None:
            self.randomisation.begin(self.seeds[rows], self.episode[rows], rows)
        difficulty = self._present_difficulty[rows] = self.difficulty[rows]
        for share in sorted(set(difficulty.tolist())):
            self._lay_out(rows[difficulty == share], self._config_at(share))
        for values in (self.action, self.step_count, *self.terms.values()):
            values[rows] = 0
        for name, values in self.decoder_state.items():
            values[rows] = self._at_first[f"decoder/{name}"][rows]
        self.terminated[rows], self.truncated[rows] = False, False
        self.step_limit[rows], self.live[rows] = self.n_steps, True
        if self.costs is not None:
            self.costs.begin(rows)
        sample = self.sensors.measure(self.robot, rows)
        for own, new in zip(self.measurement, sample, strict=True):
            if own is not None and new is not None:
                own[rows] = new
        self.reference[rows] = sample.joint_angle
        self.observer.begin(self.measurement, rows)
        self.task.update_goal(tracked_point(self.spec, sample, self.task.tracked_point), rows)

    def _lay_out(self, rows: NDArray[np.int64], config: EnvConfig) -> None:
        """Begin the episodes of worlds with the same difficulty and its settings: sensors, task, robots and faults."""
        start, task = config.start, self.task
        self.sensors.begin(self.seeds[rows], self.episode[rows], rows, config.sensors.encoder_faults)
        u = 2.0 * np.pi * self.streams["start"].uniform(2, rows) if start.random else np.zeros((rows.size, 2))
        wave = u[:, :1] + np.arange(self.spec.n_joints) * start.phase_shift_rad
        joint_angle = start.amplitude_rad * np.sin(wave)
        numbers = self.streams[task.stream].uniform(task.n_random, rows)
        place = begin_episodes(task, NewEpisodes(rows, config, joint_angle, u[:, 1], numbers))
        mask = np.zeros(self.n_worlds, bool)
        mask[rows] = True
        self.robot.set_shape(joint_angle, place.head_angle, place.point_xy, task.tracked_point, mask)
        if place.placed is not None:
            place.placed()
        draw_faults(config.faults, self.streams["faults"], (self.robot.faults, self.robot.second_faults), rows)

    def step(self, action: NDArray[Any]) -> StepResult:
        """Advance all live worlds by one control step with actions (W, A); entries beyond [-1, 1] are clipped.

        Returns observation (W, D) float32, reward (W,), terminated (W,), truncated (W,), infos. Raises ValueError for a
        wrong shape, no numbers, or an entry that is not finite.
        """
        live, before_xy, work_j = self.live.copy(), self.point_xy.copy(), self.robot.state.work_j.copy()
        # 1. From the action to joint references
        self.action = check_action(action, (self.n_worlds, self.decoder.size))
        self.reference = self.decoder.decode(self.action, self.measurement, self.goal, self.decoder_state)
        if (pressure := self.decoder.pressures(self.action)) is not None:
            self.robot.state.pressure_command[live] = pressure[live]
        if (torque := self.decoder.torques(self.action)) is not None:
            self.robot.feedforward[live] = torque[live]
        # 2. Physics
        if self.randomisation is not None:
            self.randomisation.before_step()
        self.robot.step(self.decoder.to_servos(self.reference, self.decoder_state), mask=None if live.all() else live)
        self._check_finite()
        # 3. Sensors
        self.measurement = self.decoder.perceive(self.sensors.measure(self.robot), self.decoder_state)
        # 4. The task: reward terms, costs, complete worlds
        state = self.robot.state
        work_j = state.work_j - work_j
        taken = Step(self.goal, before_xy, self.point_xy, state, self.action, work_j, live)
        complete = self._evaluate(taken)
        # 5. Reward, ends
        reward = np.zeros(self.n_worlds)
        for name, weight in self.weights.items():
            reward += weight * self.terms[name]
        self.step_count += live
        self.terminated |= live & complete
        self.truncated |= live & (self.step_count >= self.step_limit) & ~complete
        self.live = live & ~(self.terminated | self.truncated)
        # 6. Observation. 7., final observations and masked resets, is for the vector env
        self.observer.advance(self.measurement)
        self.task.update_goal(tracked_point(self.spec, self.measurement, self.task.tracked_point), slice(None))
        return self.observe(), reward, self.terminated.copy(), self.truncated.copy(), self.infos(self.lean_infos)

    def _evaluate(self, step: Step) -> BoolArray:
        """Work out reward terms and costs of a step, and return the complete worlds (W,).

        Raises ConfigError for terms that are not named as the weights; of a user's task, also unless terms are finite
        and the others flags.
        """
        self.terms, complete = self.task.evaluate(step)
        if self.costs is not None:
            self.costs.count(step.live)
        if self.terms.keys() != self.weights.keys():
            given, wanted = (", ".join(sorted(names)) for names in (self.terms, self.weights))
            raise ConfigError(f"the task's reward terms are {given}; expected {wanted}, as its weights")
        if self._others is None:
            return complete
        for name, values in self.terms.items():
            check_numbers(values, (self.n_worlds,), f"the reward term {name}")
        said = check_numbers(complete, (self.n_worlds,), "what the task says to be complete")
        if said.dtype != bool:
            raise ConfigError(f"what the task says to be complete is {show(complete)}; expected True or False")
        return said

    def _check_finite(self) -> None:
        """Raise FloatingPointError if a world's motion is no longer finite."""
        motion = self.robot.motion()
        if not all(are_finite(values) for values in motion):
            lost = [~np.isfinite(values).all(axis=1) for values in motion]
            world = int(np.flatnonzero(np.logical_or.reduce(lost))[0])
            raise FloatingPointError(
                f"the motion of world {world} is no longer finite after step {self.step_count[world] + 1}; a smaller "
                f"robot.sim_dt_s than {self.spec.step_s:g}, or softer servos and contacts, may help"
            )

    def observe(self, rows: NDArray[np.int64] | None = None) -> Observations:
        """Return observations of the present measurement, a fresh array (W, D), or such arrays by part.

        ``rows``: those of these M worlds alone (M, D).
        """
        self.goal = self.task.goal()
        phase = self.decoder.phase(self.decoder_state)
        signals = {**self.task.signals(), **self.decoder.signals(self.decoder_state)}
        if self._others is not None:
            for name, values in signals.items():
                check_numbers(values, (self.n_worlds, *np.shape(values)[1:]), f"the task's signal {name}")
        remaining = 1.0 - self.step_count / self.step_limit if "remaining_time" in self.layout.fields else None
        seen = (self.measurement, self.goal, self.reference, self.action, phase, signals, remaining)
        if rows is not None:
            seen = pick(seen, rows)
        obs = self.observer.look(*seen, slice(None) if rows is None else rows)
        if self.privileged is None:
            return obs
        truth = self.privileged.build(self.measurement)
        return {POLICY: obs, PRIVILEGED: truth if rows is None else truth[rows]}

    def infos(self, lean: bool = False) -> dict[str, Any]:
        """Return infos on each world's episode so far, fresh arrays (W,); ``lean``: speed and weighted terms alone."""
        state = self.robot.state
        speed_m_s = np.hypot(state.centre_vel[:, 0], state.centre_vel[:, 1])
        if lean:
            weighted = {"reward/" + name: self.weights[name] * term for name, term in self.terms.items()}
            return {"speed_m_s": speed_m_s, **weighted}
        failing = (self.robot.faults.kind != HEALTHY) | (self.robot.second_faults.kind != HEALTHY)
        infos: dict[str, Any] = {
            **_copies(self.task.record),
            "energy_j": state.work_j.copy(),
            "speed_m_s": speed_m_s,
            "n_failed_joints": self.robot.failed_now().sum(axis=1),
            "n_faults": failing.sum(axis=1),
            "episode_time_s": state.time_s.copy(),
            "stood_still": state.stood_still.copy(),
            "self_overlap_m": state.self_overlap_m.copy(),
            "difficulty": self._present_difficulty.copy(),
        }
        if self.randomisation is not None:
            infos |= _copies(self.randomisation.infos())
        if self.costs is not None:
            infos |= self.costs.infos()
        for name, term in self.terms.items():
            infos["reward_raw/" + name] = term.copy()
            infos["reward/" + name] = self.weights[name] * term
        return infos

    def scenario(self) -> dict[str, NDArray[Any]]:
        """Return the scenario of the present episodes: task, faults and the robots' present pose; copies, (W, ...)."""
        faults, state = self.robot.faults, self.robot.state
        varied = {} if self.randomisation is None else self.randomisation.scenario()
        return {
            **_copies(self.task.scenario),
            **varied,
            "fault_kind": faults.kind.copy(),
            "fault_onset_s": np.where(faults.kind == HEALTHY, np.nan, faults.onset_s),
            "link_angle": state.link_angle.copy(),
            "centre_xy": state.centre_xy.copy(),
            **({"second_fault_kind": second.copy()} if (second := self.robot.second_faults.kind).any() else {}),
        }

    # --- the whole state ---------------------------------------------------------------------------------------------

    def get_state(self) -> dict[str, NDArray[Any]]:
        """Return the whole state that later steps depend on, as copies by name.

        Raises ConfigError where a user's task has changed what is no part of it.
        """
        if self._others is not None:
            check_kept(self.task, self._others)
        return _copies(self._state_arrays())

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore a state from ``get_state``, arrays or lists by name, bit for bit.

        Raises ValueError, with the env unchanged, if names, shapes or kinds of faults are not those of this env, or a
        number is not finite but the state's is. Whether an episode can come to such a state is not looked for.
        """
        write_state(self._state_arrays(), state, self._at_first)
        self.robot.restored()
        if self.randomisation is not None:
            self.randomisation.restored()
        self.task.restored()
        self.goal = self.task.goal()

    def _state_arrays(self) -> dict[str, NDArray[Any]]:
        robot = self.robot
        arrays = {
            "seeds": self.seeds, "episode": self.episode, "step_count": self.step_count, "step_limit": self.step_limit,
            "live": self.live, "terminated": self.terminated,
            "truncated": self.truncated, "action": self.action, "reference": self.reference,
            "difficulty": self.difficulty, "present_difficulty": self._present_difficulty,
            **_named("decoder", self.decoder_state), **_named("measurement", self.measurement._asdict()),
            **_named("term", self.terms), **_named("task", self.task.arrays), **self.sensors.state_arrays(),
            **self.observer.state_arrays(), **_named("robot", robot.state._asdict()),
            **_named("fault", robot.faults._asdict()), **_named("second_fault", robot.second_faults._asdict()),
            **_named("servo", robot.servos._asdict()),
        }  # fmt: skip
        if robot.delay is not None:
            arrays["robot/waiting"] = robot.delay.waiting
        for part in (self.randomisation, self.costs):
            arrays |= {} if part is None else part.state_arrays()
        for name, streams in self.streams.items():
            arrays |= streams.state_arrays(f"stream/{name}")
        return arrays


def _copies(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name: values.copy() for name, values in arrays.items()}


def _named(part: str, arrays: Mapping[str, NDArray[Any] | None]) -> dict[str, NDArray[Any]]:
    return {f"{part}/{name}": values for name, values in arrays.items() if values is not None}
