"""Helm: pace, steering and gait that a person asks for, with keys or a gamepad."""

from __future__ import annotations

import os
from typing import Any, Literal

from snake_gym.controllers.base import ControllerState

STEP = 0.1
"""Change of pace or steering for a key pressed once."""
_DEAD_ZONE = 0.12
"""Deflection of a stick that counts as none."""
STEER_AXIS, PACE_AXIS, NEXT_BUTTON, STOP_BUTTON = 0, 1, 0, 1
"""Axes of the left stick, and buttons A and B, as SDL numbers them."""


class Helm:
    """Request to ``controllers.driving.DrivenGaits``: gait, and shares of its own pace and of the steepest turn."""

    def __init__(self, names: tuple[str, ...], pace: float = 0.0) -> None:
        self.names, self.gait, self.pace, self.steering = names, 0, pace, 0.0

    def arrow(self, key: str) -> None:
        """Let an arrow key steer, or change the pace."""
        side, faster = {"left": (1, 0), "right": (-1, 0), "up": (0, 1), "down": (0, -1)}[key]
        self.steering = _within(self.steering + STEP * side)
        self.pace = _within(self.pace + STEP * faster)

    def stand(self) -> None:
        """Ask for pace 0."""
        self.pace = 0.0

    def straight(self) -> None:
        """Ask for no steering."""
        self.steering = 0.0

    def choose(self, number: int) -> None:
        """Ask for a gait by its number, from 1; beyond the last one, for that."""
        self.gait = min(number, len(self.names)) - 1

    def next_gait(self) -> None:
        """Ask for the next gait."""
        self.gait = (self.gait + 1) % len(self.names)

    def write(self, state: ControllerState) -> None:
        """Write what is asked for into the state of ``DrivenGaits``."""
        state["asked_pace"][:], state["asked_steering"][:] = self.pace, self.steering
        state["asked_gait"][:] = self.gait

    def text(self) -> str:
        """Return what is asked for, in words."""
        side = f"{'left' if self.steering > 0.0 else 'right'} {100 * abs(self.steering):.0f} %"
        way = side if self.steering else "straight on"
        return f"gait {self.names[self.gait]}   pace {100 * self.pace:.0f} %   {way}"


class Gamepad:
    """All plugged gamepads; the first one touched steers the helm, and is missed when it goes."""

    def __init__(self, pygame: Any, helm: Helm) -> None:
        self._pygame, self._helm = pygame, helm
        self._plugged: dict[int, Any] = {}
        self.used: int | None = None
        """Number of the gamepad that steers; None: none does."""
        # else SDL hears no stop button while another window has the focus
        os.environ.setdefault("SDL_JOYSTICK_ALLOW_BACKGROUND_EVENTS", "1")
        pygame.joystick.init()

    def handle(self, event: Any) -> Literal["stop", "lost"] | None:
        """Let an event steer. Return "stop" for the button of the emergency stop, "lost" if the gamepad has gone."""
        pygame, helm = self._pygame, self._helm
        if event.type == pygame.JOYDEVICEADDED:
            one = pygame.joystick.Joystick(event.device_index)
            self._plugged[one.get_instance_id()] = one  # else pygame would forget it
        elif event.type == pygame.JOYDEVICEREMOVED:
            self._plugged.pop(event.instance_id, None)
            if event.instance_id == self.used:
                self.used = None
                helm.stand()
                return "lost"
        elif event.type == pygame.JOYBUTTONDOWN:
            if event.button == STOP_BUTTON:  # of whichever gamepad
                return "stop"
            if self._takes(event.instance_id) and event.button == NEXT_BUTTON:
                helm.next_gait()
        elif event.type == pygame.JOYAXISMOTION and (event.instance_id == self.used or abs(event.value) > 0.5):
            if not self._takes(event.instance_id):
                return None
            value = 0.0 if abs(event.value) < _DEAD_ZONE else -float(event.value)  # sticks tell right and down as +
            if event.axis == STEER_AXIS:
                helm.steering = _within(value)
            elif event.axis == PACE_AXIS:
                helm.pace = _within(value)
        return None

    def _takes(self, number: int) -> bool:
        if self.used is None:
            self.used = number
        return self.used == number


def _within(value: float) -> float:
    return min(max(round(value, 6), -1.0), 1.0)
