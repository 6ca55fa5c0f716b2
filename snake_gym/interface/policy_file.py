"""Trained policies from files, played with numpy alone: no learning library, nothing unpickled, nothing executed.

A policy file is a folder with ``policy.json``, the contract (``policy_contract``), and ``policy.safetensors``, the
weights. A training run holds its policies in this form. Loading checks the hash of the weights, that observations and
actions mean the same in this version, and the golden pairs: what loads acts like the policy that was trained.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors

from snake_gym.config import ConfigError, convert, near_path, nearest, to_dict
from snake_gym.config.files import read_file
from snake_gym.interface.actions import ActionDecoder
from snake_gym.interface.actor_network import ActorNetwork
from snake_gym.interface.observations import ObservationLayout
from snake_gym.interface.policy_contract import PolicyContract, parse_contract
from snake_gym.robot.catalogue import load_any_robot
from snake_gym.robot.chain import ChainSpec

if TYPE_CHECKING:
    from gymnasium.spaces import Box

CONTRACT, WEIGHTS = "policy.json", "policy.safetensors"
MAX_BYTES = 1 << 26
"""Largest contract or file of weights that is read."""
RUN_POLICIES = ("policy/best", "policy/final", "policy")
"""Folders of policies in a training run, the preferred one first, and in a checkpoint."""


class FilePolicy:
    """A policy that was read from a file; ``load_policy`` makes it.

    ``path``: the contract's file; ``weights``: the content of the other one. Raises ConfigError where they and this
    version of snake_gym do not fit each other.
    """

    def __init__(self, contract: PolicyContract, weights: bytes, path: Path) -> None:
        self.contract, self.path = contract, path
        self.name = contract.name
        self.spec = contract.robot
        """The robot it was trained on."""
        self.env_id = contract.env.id
        """Registered name of the env it was trained in."""
        own = {"robot": to_dict(contract.robot), "action": to_dict(contract.action.settings)}
        self.env_config: Mapping[str, Any] = {**contract.env.settings, **own}
        """Settings of the env it was trained in, complete: ``gym.make(policy.env_id, config=policy.env_config)``."""
        sizes = contract.observation.size, contract.action.size
        try:
            self.tensors: Mapping[str, NDArray[Any]] = load_tensors(weights)
            self._network = ActorNetwork(contract.network, self.tensors, *sizes, contract.normaliser)
            with np.errstate(all="ignore"):  # numbers that overflow miss their golden outputs
                contract.golden.check_policy(self._network, self.make_layout(), self.make_decoder())
        except (SafetensorError, ValueError) as error:
            raise ConfigError(f"{path} cannot be played: {error}") from None

    @property
    def digest(self) -> str:
        """Changes whenever the policy would act differently."""
        own = self.contract
        parts = (own.weights.sha256, own.network, own.normaliser, own.observation, own.action)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def observation_space(self) -> Box:
        """Gymnasium's space of the observations of one robot."""
        return _box(self.contract.observation.bound, self.contract.observation.size)

    @property
    def action_space(self) -> Box:
        """Gymnasium's space of the actions of one robot."""
        return _box(1.0, self.contract.action.size)

    def make_decoder(self) -> ActionDecoder:
        """What turns the policy's actions into joint references, the controller underneath included."""
        return ActionDecoder(self.contract.action.settings, self.spec)

    def make_layout(self) -> ObservationLayout:
        """What turns measurements into the policy's observations."""
        return self.contract.observation.make_layout(self.spec, self.make_decoder())

    def predict(
        self, observation: NDArray[Any], state: Any = None, episode_start: Any = None, deterministic: bool = True
    ) -> tuple[NDArray[np.float32], Any]:
        """Actions (W, A) for observations (W, D), or (A,) for (D,), and the state for the next call.

        Only a recurrent policy has a state: (W, S), or (S,); None, or ``episode_start``, begins anew. Actions are the
        deterministic ones: a policy file holds no spread of them. Raises ValueError for another shape.
        """
        obs = np.asarray(observation, np.float32)
        batch, size, n_state = np.atleast_2d(obs), self.contract.observation.size, self._network.n_state
        if obs.ndim > 2 or batch.shape[1] != size:
            raise ValueError(f"observations have shape {obs.shape}; expected ({size},) or (W, {size})")
        before = np.zeros((len(batch), n_state))
        if n_state and state is not None:
            before = np.array(state, np.float64, ndmin=2)
        if before.shape != (len(batch), n_state):
            raise ValueError(f"the policy's state has shape {before.shape}; expected {(len(batch), n_state)}")
        if episode_start is not None:
            before[np.atleast_1d(episode_start)] = 0.0
        action, after = self._network.advance(batch, before)
        if not n_state:
            return (action[0] if obs.ndim == 1 else action), state
        return (action[0], after[0]) if obs.ndim == 1 else (action, after)

    def check_robot(self, robot: str | Mapping[str, Any] | ChainSpec) -> None:
        """Raise ConfigError if the policy's actions make no sense on ``robot``: other joints, or another timing.

        Masses, friction and limits may differ: observations and actions keep the scales of ``spec``.
        """
        spec, own = load_any_robot(robot), self.spec
        for name in ("n_links", "control_dt_s"):
            if getattr(spec, name) != getattr(own, name):
                raise ConfigError(
                    f"{self.path} is a policy for {name} {getattr(own, name):g} (robot {own.name}); robot {spec.name} "
                    f"has {getattr(spec, name):g}"
                )


def load_policy(path: str | os.PathLike[str], robot: str | Mapping[str, Any] | ChainSpec | None = None) -> FilePolicy:
    """The policy under a path: the contract or its folder, a run of ``train`` (its best policy), or a checkpoint of
    one.

    Raises ConfigError: it is missing, damaged, changed, none of ours, or not for this version or for ``robot``.
    """
    path = convert(Path, path, "policy")
    file = find_policy_file(path)
    if file is None:
        raise ConfigError(describe_missing(path))
    contract = parse_contract(_read(file), str(file))
    path = file.parent / contract.weights.file
    weights = _read(path)
    found, expected = hashlib.sha256(weights).hexdigest(), contract.weights.sha256
    if found != expected:
        raise ConfigError(
            f"{path} was changed or damaged: its sha256 is {found[:12]}...; expected {expected[:12]}..., as {file} says"
        )
    policy = FilePolicy(contract, weights, file)
    if robot is not None:
        policy.check_robot(robot)
    return policy


def shipped_policies() -> dict[str, Path]:
    """The folders of the policies that come with the package, by name."""
    package = Path(__file__).parents[1]  # in a checkout, agents lie next to it
    contracts = (path for root in (package, package.parent) for path in root.glob(f"agents/pretrained/*/{CONTRACT}"))
    return {contract.parent.name: contract.parent for contract in sorted(contracts)}


def find_policy_file(path: str | os.PathLike[str]) -> Path | None:
    """The contract under ``path``; None if there is none.

    It is a JSON file, or lies in a folder: the policy's own, a training run (its best policy, else its last one or that
    of its newest checkpoint) or a checkpoint. A path that does not exist may be the name of a shipped policy.
    """
    path = Path(path) if Path(path).exists() else shipped_policies().get(str(path), Path(path))
    if not path.is_dir():
        return path if path.is_file() and path.suffix == ".json" else None
    newest = sorted(path.glob("checkpoints/step_*"), reverse=True)
    folders = [path, *(path / name for name in RUN_POLICIES), *(folder / "policy" for folder in newest)]
    return next((folder / CONTRACT for folder in folders if (folder / CONTRACT).is_file()), None)


def fallback_note(path: str | os.PathLike[str]) -> str | None:
    """A line about a run without a best policy, of which another one is taken; None for anything else."""
    file, path = find_policy_file(path), Path(path)
    best, *_, inside = (path / name for name in RUN_POLICIES)
    if file is None or not path.is_dir() or file.parent in (path, best, inside):
        return None
    return f"{path} has no best policy ({RUN_POLICIES[0]}); {file.parent} is taken"


def describe_missing(path: str | os.PathLike[str]) -> str:
    """A line about a path at which there is no contract: what is there, and what was probably meant."""
    path = Path(path)
    fault = f"holds no {CONTRACT}" if path.is_dir() else "is no policy file" if path.exists() else "does not exist"
    guess = None if path.exists() else near_path(path) or nearest(str(path), shipped_policies())
    if guess is not None:
        return f"{path} {fault}; did you mean {str(guess)!r}?"
    return (
        f"{path} {fault}; expected a {CONTRACT}, its folder, the folder of a run made by snake-gym train or a name in "
        "`snake-gym list policies`"
    )


def _box(bound: float, size: int) -> Box:
    from gymnasium.spaces import Box  # which a small board does not have

    return Box(-bound, bound, (size,), np.float32)


def _read(path: Path) -> bytes:
    try:
        return read_file(path, MAX_BYTES)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from None
