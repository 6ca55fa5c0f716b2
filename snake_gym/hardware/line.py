"""A line that may be unplugged: exchanges on a port that is opened anew when it comes back.

Nothing here raises when the port vanishes. What was asked for fails with the reason "port gone", at once and without
waiting, until ``reopen`` succeeds; it is tried at most once per ``reopen_interval_s``, at the next use of the line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from snake_gym.hardware.clock import Clock
from snake_gym.hardware.exchange import PORT_GONE, Answers, Exchange, LineCounters
from snake_gym.hardware.transport import PortGone, Transport

_T = TypeVar("_T")


class LineTiming(NamedTuple):
    """How long to wait for what."""

    latency_s: float = 0.004
    """What adapter and operating system may add to an answer: 1 ms of USB, the rest for the scheduler."""
    return_delay_s: float = 0.0005
    """Longest return delay of servos that have not told theirs."""
    ghost_life_s: float = 0.1
    """Longest time by which an answer may be late and still be told from the present one."""
    reopen_interval_s: float = 0.5
    """Between attempts to open a port that has vanished."""


class Line:
    """Exchanges over a port that may vanish and come back.

    Args:
        transport: an open port.
        baud: its bits per second.
        clock: what deadlines are measured on.
        echo: whether the adapter returns what is sent; None: find out at the first exchange.
        reopen: opens the port anew; None: once gone, it stays gone.
    """

    def __init__(
        self,
        transport: Transport,
        baud: int,
        clock: Clock,
        timing: LineTiming,
        echo: bool | None,
        reopen: Callable[[], Transport] | None,
    ) -> None:
        self.counters = LineCounters()
        self.timing = timing
        self._baud, self._clock, self._echo, self._reopen = baud, clock, echo, reopen
        self._next_reopen_s = -1.0
        self._transport: Transport | None = transport
        self._exchange = self._make_exchange(transport)

    @property
    def connected(self) -> bool:
        return self._transport is not None

    @property
    def echoes(self) -> bool | None:
        return self._exchange.echo

    def expect_return_delay(self, delay_s: float) -> None:
        """Longest return delay [s] of the servos that will be asked next."""
        self._exchange.return_delay_s = delay_s

    def span_s(self, n_request_bytes: int, n_answers: int, n_params: int) -> float:
        """See ``Exchange.span_s``."""
        return self._exchange.span_s(n_request_bytes, n_answers, n_params)

    def choose_length(self, ids: Sequence[int], n_bytes: int, longest: int) -> tuple[int, list[int]]:
        """See ``Exchange.choose_length``."""
        return self._exchange.choose_length(ids, n_bytes, longest)

    def is_haunted(self, servo_id: int, request: bytes) -> bool:
        """See ``Exchange.is_haunted``."""
        return self._exchange.is_haunted(servo_id, request)

    def send(self, request: bytes) -> bool:
        """Send a packet that nobody answers; False: the port is gone."""

        def put() -> bool:
            self._exchange.send(request)
            return True

        return self._try(put, False)

    def ask(self, request: bytes, expected: dict[int, int], deadline_s: float, to_the_end: bool = False) -> Answers:
        """See ``Exchange.ask``."""
        gone = Answers(self._clock.now(), failures=dict.fromkeys(expected, PORT_GONE))
        return self._try(lambda: self._exchange.ask(request, expected, deadline_s, to_the_end), gone)

    def close(self) -> None:
        """Give the port back for good."""
        if self._transport is not None:
            self._transport.close()
        self._transport, self._reopen = None, None

    def _try(self, action: Callable[[], _T], otherwise: _T) -> _T:
        if not self._restore():
            return otherwise
        try:
            return action()
        except PortGone:
            if self._transport is not None:
                self._transport.close()
            self._transport = None
            self._next_reopen_s = self._clock.now() + self.timing.reopen_interval_s
            return otherwise

    def _restore(self) -> bool:
        if self._transport is not None:
            return True
        if self._reopen is None or self._clock.now() < self._next_reopen_s:
            return False
        self._next_reopen_s = self._clock.now() + self.timing.reopen_interval_s
        try:
            self._transport = self._reopen()
        except OSError:
            return False
        self._exchange = self._make_exchange(self._transport)
        self.counters.reconnects += 1
        return True

    def _make_exchange(self, transport: Transport) -> Exchange:
        latency_s, return_delay_s, ghost_life_s, _ = self.timing
        args = (transport, self._clock, self._baud, latency_s, return_delay_s, self._echo, ghost_life_s)
        return Exchange(*args, counters=self.counters)
