"""A classical controller as a policy: observations in, actions out, like a learned one (SB3's ``predict``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from snake_gym.controllers.base import Controller, ControllerState, reset_worlds
from snake_gym.interface.actions import ActionDecoder
from snake_gym.interface.observations import ObservationLayout


class ControllerPolicy:
    """Plays ``controller`` through the observation and the ``joint_reference`` action space alone.

    Args:
        controller: any controller of ``snake_gym.controllers``.
        layout: the env's observation layout (``env.unwrapped.core.layout``).
        decoder: the env's action decoder (``env.unwrapped.core.decoder``); its kind must be joint_reference.

    Raises:
        ValueError: the env's action space is not joint_reference.
    """

    def __init__(self, controller: Controller, layout: ObservationLayout, decoder: ActionDecoder) -> None:
        decoder.encode(np.zeros((1, layout.spec.n_joints)))
        self.controller = controller
        self.layout = layout
        self.decoder = decoder

    def predict(
        self,
        observation: NDArray[np.float32],
        state: ControllerState | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = True,
    ) -> tuple[NDArray[np.float32], ControllerState]:
        """Actions (W, A) for observations (W, D), or (A,) for (D,), and the state to pass to the next call.

        ``episode_start`` (W,) marks worlds whose episode begins with this observation. A classical controller is always
        deterministic.
        """
        single = observation.ndim == 1
        obs = observation[None] if single else observation
        carried = self.controller.initial_state(obs.shape[0]) if state is None else _copy(state)
        if episode_start is not None and state is not None and np.any(episode_start):
            reset_worlds(self.controller, carried, np.broadcast_to(np.asarray(episode_start, bool), obs.shape[:1]))
        measurement, goal = self.layout.restore(obs)
        reference = self.controller.command(measurement, goal, carried, self.layout.spec.control_dt_s)
        action = self.decoder.encode(reference).astype(np.float32)
        return (action[0] if single else action), carried


def _copy(state: dict[str, Any]) -> ControllerState:
    return {name: np.array(values) for name, values in state.items()}
