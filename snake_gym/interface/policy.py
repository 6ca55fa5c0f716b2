"""What everything that chooses actions has in common, and the policy that leaves the choice to a controller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Policy(Protocol):
    """Anything with the ``predict`` of Stable-Baselines3."""

    def predict(
        self,
        observation: NDArray[np.float32],
        state: Any = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> tuple[NDArray[Any], Any]:
        """Actions (W, A) for observations (W, D), or (A,) for (D,), and the state to pass to the next call.

        ``episode_start`` (W,): the episode begins with this observation.
        """


class ZeroResidual:
    """A classical controller as a policy: in the action space of ``controller_action``, of ``size`` A, it adds nothing.

    The controller runs in the action decoder and sees the measurements themselves, as below a learned residual.
    """

    def __init__(self, size: int) -> None:
        self._size = size

    def predict(
        self, observation: NDArray[Any], state: Any = None, episode_start: Any = None, deterministic: bool = False
    ) -> tuple[NDArray[np.float32], Any]:
        """Zeros (W, A) for observations (W, D), or (A,) for (D,)."""
        return np.zeros((*observation.shape[:-1], self._size), np.float32), state


def controller_action(controller: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the action space in which ``ZeroResidual`` plays this controller."""
    return {"kind": "residual", "controller": dict(controller)}
