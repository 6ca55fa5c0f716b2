"""What a policy file says about its policy: everything that is needed to play it on a robot, and to check that.

``docs/policy_file.md`` describes the JSON.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import numpy as np
import pydantic
from numpy.typing import NDArray

from snake_gym.config import Settings, build, read_json, to_json
from snake_gym.interface.actions import ActionConfig, ActionDecoder, describe_action
from snake_gym.interface.actor_network import ActorNetwork, Layer, Normaliser
from snake_gym.interface.observations import BOUND, Field, ObservationLayout
from snake_gym.registry import check_env_id
from snake_gym.robot.catalogue import load_any_robot
from snake_gym.robot.chain import ChainSpec, FloatArray

FORMAT: Final = "snake_gym policy file 2"
MAX_TOLERANCE = 1e-4
ACCURACY = 1e-6
"""Largest distance from the learner's action that needs no larger tolerance."""
Tolerance = Annotated[float, pydantic.Field(gt=0.0, le=MAX_TOLERANCE)]


class WeightsFile(Settings):
    """The file that holds the weights, in the contract's folder."""

    file: Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*\.safetensors$")]
    n_bytes: int
    sha256: str


class ObservationContract(Settings):
    """What the policy sees: the arguments of ``ObservationLayout``, and the table that they gave."""

    size: int
    bound: float
    tracked_point: Literal["centre", "head"]
    reveal_faults: bool
    contact_limit_n: float | None
    n_beams: Annotated[int, pydantic.Field(ge=0, le=10_000)]
    max_range_m: float
    fields: tuple[Field, ...]
    """The columns of one control step, in order."""
    history: Annotated[int, pydantic.Field(ge=1, le=64)] = 1
    """Control steps that an observation shows, the newest first."""

    @classmethod
    def of(cls, layout: ObservationLayout) -> ObservationContract:
        """The contract of a layout's observations."""
        return cls(
            size=layout.size, bound=BOUND, tracked_point=layout.point, reveal_faults=layout.reveal_faults,  # type: ignore[arg-type]
            contact_limit_n=layout.contact_limit_n, n_beams=layout.n_beams, max_range_m=layout.max_range_m,
            fields=tuple(layout.fields.values()), history=layout.history,
        )  # fmt: skip

    def make_layout(self, spec: ChainSpec, decoder: ActionDecoder) -> ObservationLayout:
        """The layout of this contract. Raises ValueError unless it is the one that the table describes."""
        layout = ObservationLayout(
            spec, decoder.size, decoder.has_phase, self.tracked_point, self.reveal_faults, self.contact_limit_n,
            self.n_beams, self.max_range_m, [field.name for field in self.fields], history=self.history,
            controller_signals=decoder.signal_names,
        )  # fmt: skip
        for own, other in zip(self.fields, layout.fields.values(), strict=True):  # made from the same names
            if own.place != other.place:
                raise ValueError(f"observation field {own.place} is {other.place} in this version of snake_gym")
        if (self.size, self.bound) != (layout.size, BOUND):
            raise ValueError(
                f"observations have {self.size} entries within +-{self.bound:g}; in this version of snake_gym "
                f"{layout.size} within +-{BOUND:g}"
            )
        return layout


@dataclass(frozen=True)
class ActionContract:
    """What the policy's actions in [-1, 1] mean."""

    size: int
    settings: ActionConfig
    """Kind, scales and, for ``residual``, the controller underneath with its gait."""
    formula: str
    """The joint reference in words, for the reader."""
    entries: tuple[dict[str, str], ...]
    """Name, range and unit of what each action asks for."""

    @classmethod
    def of(cls, decoder: ActionDecoder) -> ActionContract:
        """The contract of a decoder's actions."""
        formula = {
            "joint_reference": "joint_limit_rad * action",
            "residual": "clip(controller command + scale_rad * action, -joint_limit_rad, joint_limit_rad)",
            "gait": "clip(amplitude * sin(phase + (i - 1) * phase_shift) + offset, -joint_limit_rad, joint_limit_rad)",
        }[decoder.config.kind]
        if decoder.own_actions:
            formula = "clip(controller command after its actions, -joint_limit_rad, joint_limit_rad)"
        if decoder.has_pace:
            formula += "; the controller's gait runs 1 + pace_range * (last action) times as fast"
        return cls(decoder.size, decoder.config, formula, tuple(describe_action(decoder)))


class Golden(Settings):
    """Inputs with the outputs that they have to give.

    ``actions`` are the learner's own deterministic actions; for a recurrent network, in one episode that makes these
    observations one after the other. ``references`` (2, G, J) [rad] are what the decoder makes of them in its first two
    steps, with the measurements that the observations stand for: they tie down the controller underneath.
    """

    observations: tuple[tuple[float, ...], ...]
    actions: tuple[tuple[float, ...], ...]
    references: tuple[tuple[tuple[float, ...], ...], ...]
    action_tolerance: Tolerance
    reference_tolerance_rad: Tolerance = 1e-6

    @classmethod
    def of(
        cls,
        layout: ObservationLayout,
        decoder: ActionDecoder,
        observations: NDArray[np.float32],
        actions: NDArray[np.float32],
        deviation: float,
    ) -> Golden:
        """Pairs of observations (G, D) and the learner's actions (G, A), which ours miss by ``deviation``.

        The tolerance is the usual one, or a power of ten where the learner rounds more.
        """
        tolerance = ACCURACY if deviation <= ACCURACY else 10.0 ** math.ceil(math.log10(deviation))
        references: Any = np.round(_references(layout, decoder, observations, actions), 9).tolist()
        return cls(_short(observations), _short(actions), references, min(tolerance, MAX_TOLERANCE))

    def check_policy(self, network: ActorNetwork, layout: ObservationLayout, decoder: ActionDecoder) -> None:
        """Raise ValueError unless the policy has the actions and joint references of the pairs."""
        obs, expected = np.array(self.observations, np.float32), np.array(self.actions, np.float32)
        _check_close("actions", network.play(obs), expected, self.action_tolerance)
        found = _references(layout, decoder, obs, expected)
        _check_close("joint references", found, np.array(self.references), self.reference_tolerance_rad)


def _references(
    layout: ObservationLayout, decoder: ActionDecoder, observations: NDArray[np.float32], actions: NDArray[np.float32]
) -> FloatArray:
    """Joint references (2, G, J) [rad] of the decoder's first two steps for observations (G, D) and actions (G, A)."""
    measurement, goal = layout.restore(observations)
    state = decoder.initial_state(observations.shape[0])
    return np.stack([decoder.decode(actions.astype(np.float64), measurement, goal, state) for _ in range(2)])


def _short(values: NDArray[np.float32]) -> tuple[tuple[float, ...], ...]:
    """Return single-precision numbers in their shortest form that reads back the same."""
    return tuple(tuple(float(str(value)) for value in row) for row in values)


def _check_close(what: str, found: NDArray[Any], expected: NDArray[Any], tolerance: float) -> None:
    if found.shape != expected.shape:
        raise ValueError(f"golden {what} have shape {expected.shape}; expected {found.shape}")
    error = float(np.abs(found - expected).max())
    if not error <= tolerance:
        raise ValueError(f"its golden {what} are missed by {error:.3g}; expected at most {tolerance:g}")


class EnvOrigin(Settings):
    """The environment that the policy was trained in."""

    id: str
    settings: dict[str, Any]
    """Complete, but for ``robot`` and ``action``, which stand in the contract itself; no privileged columns."""

    def check(self) -> None:
        """Raise ConfigError for a name that makes Gymnasium import a module."""
        check_env_id(self.id, "id")


class PolicyContract(Settings):
    """Everything about a policy but its weights."""

    format: Literal["snake_gym policy file 2"]
    name: str
    weights: WeightsFile
    robot: Annotated[ChainSpec, pydantic.PlainValidator(load_any_robot)]
    """The robot it was trained on, every setting written out."""
    control_dt_s: float
    """Time between two actions [s]."""
    observation: ObservationContract
    action: ActionContract
    normaliser: Normaliser | None
    network: tuple[Layer, ...]
    golden: Golden
    env: EnvOrigin
    training: dict[str, Any]
    """How it came about: algorithm, steps, seed, last evaluation, versions."""
    versions: dict[str, str]
    """Versions of the packages that wrote the file."""

    def check(self) -> None:
        if self.control_dt_s != self.robot.control_dt_s:
            raise ValueError(
                f"control_dt_s is {self.control_dt_s:g}; expected the robot's, {self.robot.control_dt_s:g}"
            )


def format_contract(contract: PolicyContract) -> str:
    """The contract as JSON text."""
    numbers = re.compile(r"\[\s*([-+.\deE]+(?:,\s+[-+.\deE]+)*)\s*\]")
    return numbers.sub(lambda found: "[" + re.sub(r"\s+", " ", found[1]) + "]", to_json(contract))


def parse_contract(text: str | bytes, where: str) -> PolicyContract:
    """The contract in a JSON text. Raises ConfigError, which begins with ``where``, for anything else."""
    content = read_json(text, where)
    if isinstance(content, dict):
        content.pop("sha256", None)  # a checksum in earlier files, which is not read
    return build(PolicyContract, content, where)
