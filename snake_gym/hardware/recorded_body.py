"""A servo chain that is looked at on every bus cycle, between the steps of the policy too."""

from __future__ import annotations

from collections.abc import Callable

from snake_gym.hardware.body import Body, BodySample
from snake_gym.hardware.clock import Clock
from snake_gym.robot.spec import FloatArray


class RecordedBody:
    """A ``Body`` that hands on everything and tells every new sample.

    Args:
        body: the servo chain.
        period_s: of its bus cycles [s].
        tell: called with each sample that is newer than the last.
    """

    def __init__(self, body: Body, period_s: float, tell: Callable[[BodySample], None]) -> None:
        self._body, self._period_s, self._tell = body, period_s, tell
        self._told_s = float("-inf")
        self.clock: Clock = body.clock

    @property
    def n_joints(self) -> int:
        return self._body.n_joints

    @property
    def stop_reason(self) -> str | None:
        return self._body.stop_reason

    def start(self) -> BodySample:
        return self._noted(self._body.start())

    def command(self, reference: FloatArray) -> None:
        self._body.command(reference)

    def run_until(self, when_s: float) -> BodySample:
        """In parts of half a bus cycle, so that no sample is missed."""
        part_s = 0.5 * self._period_s
        next_s = self.clock.now() + part_s
        while next_s < when_s - 0.5 * part_s:
            self._noted(self._body.run_until(next_s))
            next_s += part_s
        return self._noted(self._body.run_until(when_s))

    def news(self) -> list[str]:
        return self._body.news()

    def close(self) -> None:
        self._body.close()

    def _noted(self, sample: BodySample) -> BodySample:
        if sample.stamp_s > self._told_s:
            self._told_s = sample.stamp_s
            self._tell(sample)
        return sample
