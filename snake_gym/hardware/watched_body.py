"""The chain of servos in this process, as long as another one waits for its death: without that one nothing moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from snake_gym.hardware.body import BodySample, BringUpError
from snake_gym.hardware.bring_up import Interrupted
from snake_gym.hardware.servo_body import ServoBody


class WatchedBody(ServoBody):
    """A ``ServoBody`` that stops when it is told that nobody watches this process.

    Args:
        trouble: asked before every bus cycle and on the way up: why to stop, or None.
    """

    def __init__(self, *settings: Any, trouble: Callable[[], str | None]) -> None:
        super().__init__(*settings)
        self._trouble = trouble

    def start(self, interrupted: Interrupted | None = None) -> BodySample:
        def asked() -> str | None:
            return self._trouble() or (None if interrupted is None else interrupted())

        reason = None if self._gate is None else self._trouble()  # on the way up it is asked
        if reason is not None:
            raise BringUpError(reason)
        return super().start(asked)

    def cycle(self) -> None:
        reason = self._trouble()
        if reason is not None:
            self.halt(reason)
        super().cycle()
