"""Requests and answers on a half-duplex bus whose status packets do not name the request that they answer.

A status packet carries an ID, an error byte and bytes of a block, but neither the address it was read from nor a
sequence number. An answer that comes late (a stalled USB adapter, a busy operating system) could be taken for the
answer to the next request. Three rules prevent that:

- bytes that arrived before a request was sent never count as an answer to it;
- an answer that did not come in time is remembered as *overdue* (ID and length) for ``longest_late_s``; the next
  reading of that servo asks for a block that is a byte or more longer, so that the overdue answer does not fit;
- where length cannot tell them apart (an acknowledgement has no parameters), the register is read back instead.

Adapters that join both directions on one wire return every byte sent. The echo of a request can be the exact bytes of
a status packet: ``FF FF 01 02 01 FB`` is a ping of servo 1 and its answer with the voltage bit set. So at the first
exchange the driver sends one packet that only an echo can return (to the broadcast ID, which no servo has).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from snake_gym.hardware.bus.clock import Clock
from snake_gym.hardware.bus.protocol import (
    BROADCAST_ID,
    MAX_ID,
    MAX_PARAMS,
    OVERHEAD_BYTES,
    Packet,
    PacketParser,
    sync_read,
    wire_time_s,
)
from snake_gym.hardware.bus.transport import PortGone, Transport

NO_ANSWER = "no answer"
PORT_GONE = "port gone"
NO_TIME = "no time left"
AMBIGUOUS = "two answers"
EXTRA_BYTES = 12
"""Most bytes by which a reading is lengthened to tell its answers from overdue ones."""
_LONGEST_ANSWER = 32
"""Parameters of the longest late answer that is still recognised as a whole."""
_MOST_PATIENCE_S, _PATIENCE_KEPT = 0.006, 0.98
"""Greatest lateness that prolongs later waits by as much [s], and share of that which each exchange keeps."""
_READ_CHUNK = 4096
_PROBED = 5
"""Register address in the request that detects echoes; no servo answers it."""


@dataclass
class LineCounters:
    """Counts of the traffic on a line."""

    requests: int = 0
    answers: int = 0
    missing: int = 0
    """Answers that did not come in time."""
    retries: int = 0
    bad_checksums: int = 0
    noise_bytes: int = 0
    late: int = 0
    """Answers to an earlier request, rejected."""
    foreign: int = 0
    """Rejected packets: from a servo that was not asked, of a wrong length, or in conflict with another."""
    reconnects: int = 0


@dataclass
class Answers:
    """Status packets of one exchange."""

    stamp_s: float
    """Time when the request was sent [s]."""
    packets: dict[int, Packet] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)


class _Overdue(NamedTuple):
    """Answer to ``request`` that was given up at ``missed_s`` and may still come until ``until_s`` [s]."""

    missed_s: float
    until_s: float
    request: bytes


class LineTiming(NamedTuple):
    """Waiting times of a line."""

    latency_s: float = 0.004
    """Longest delay added to an answer by adapter and operating system: 1 ms of USB, the rest for the scheduler."""
    return_delay_s: float = 0.0005
    """Longest return delay assumed of servos that have not told theirs."""
    longest_late_s: float = 0.1
    """Longest lateness at which an answer can still be told from the present one."""
    reopen_interval_s: float = 0.5
    """Time between attempts to open a port that has vanished."""


class Line:
    """Exchange of requests and answers over a port that may vanish and come back.

    While the port is gone, every request fails at once with the reason "port gone". ``reopen`` is tried at the next
    use, at most once per ``reopen_interval_s``.

    Args:
        transport: an open port.
        clock: measures the deadlines.
        reopen: opens the port anew; None: a lost port stays gone.
    """

    def __init__(
        self,
        transport: Transport,
        baud: int,
        clock: Clock,
        timing: LineTiming,
        reopen: Callable[[], Transport] | None = None,
    ) -> None:
        self.counters = LineCounters()
        self.late: Counter[int] = Counter()
        """Number of answers that came too late, by servo ID."""
        self.timing = timing
        self.return_delay_s = timing.return_delay_s
        """Longest return delay of the servos that will be asked next [s]."""
        self._baud, self._clock, self._reopen = baud, clock, reopen
        self._next_reopen_s = -1.0
        self._port: Transport | None = transport
        self._begin()

    def _begin(self) -> None:
        """Reset the state for a port that has just been opened: answers on their way are unknown."""
        self.echo: bool | None = None
        """True if the adapter returns what is sent; None: not known yet."""
        self._overdue: dict[tuple[int, int], _Overdue] = {}
        self._echoes: deque[Packet] = deque()
        self._parser = PacketParser()
        self._line_free_s = -1.0
        self._patience_s = 0.0

    @property
    def connected(self) -> bool:
        """False while the port is gone."""
        return self._port is not None

    def close(self) -> None:
        """Close the port for good."""
        if self._port is not None:
            self._port.close()
        self._port, self._reopen = None, None

    def _is_there(self) -> bool:
        """Return True if there is a port; one that has vanished is opened anew when the next attempt is due."""
        if self._port is not None:
            return True
        if self._reopen is None or self._clock.now() < self._next_reopen_s:
            return False
        self._next_reopen_s = self._clock.now() + self.timing.reopen_interval_s
        try:
            self._port = self._reopen()
        except OSError:
            return False
        self._begin()
        self.counters.reconnects += 1
        return True

    def _lose_port(self) -> None:
        if self._port is not None:
            self._port.close()
        self._port = None
        self._next_reopen_s = self._clock.now() + self.timing.reopen_interval_s

    def answer_time_s(self, n_answers: int, n_params: int) -> float:
        """Return the time [s] that answers keep the line busy, return delays included."""
        return n_answers * (self.return_delay_s + wire_time_s(OVERHEAD_BYTES + n_params, self._baud))

    def span_s(self, n_request_bytes: int, n_answers: int, n_params: int) -> float:
        """Return the longest duration [s] of an exchange in which every servo answers."""
        wire_s = wire_time_s(n_request_bytes, self._baud) + self.answer_time_s(n_answers, n_params)
        return wire_s + self.timing.latency_s + self._patience_s

    def choose_length(self, ids: Sequence[int], n_bytes: int, longest: int) -> tuple[int, list[int]]:
        """Return the number of bytes to ask for (``n_bytes`` or, if need be, up to ``EXTRA_BYTES`` more, at most
        ``longest``), and the servos that can then be asked without taking an overdue answer for theirs."""
        self._forget_old()
        if not self._overdue:
            return n_bytes, list(ids)
        lengths = range(n_bytes, max(n_bytes, min(n_bytes + EXTRA_BYTES, longest)) + 1)
        free = {length: [i for i in ids if (i, length) not in self._overdue] for length in lengths}
        best = max(lengths, key=lambda length: (len(free[length]), -length))
        return best, free[best]

    def may_be_mistaken(self, servo_id: int, request: bytes) -> bool:
        """Return True if a late acknowledgement of another request could pass for that of ``request``."""
        self._forget_old()
        overdue = self._overdue.get((servo_id, 0))
        return overdue is not None and overdue.request != request

    def send(self, request: bytes) -> bool:
        """Send a packet that no servo answers. Return False if the port is gone."""
        if not self._is_there():
            return False
        try:
            self._find_out_echo()
            self._put(request)
        except PortGone:
            self._lose_port()
            return False
        return True

    def ask(self, request: bytes, expected: Mapping[int, int], deadline_s: float, to_the_end: bool = False) -> Answers:
        """Send a packet and return its answers.

        Args:
            expected: number of parameters of each servo's answer by ID, in the order in which they answer; each is in
                either ``packets`` or ``failures`` of the result.
            deadline_s: end of the waiting [s, on the clock].
            to_the_end: wait for missing answers until then; False: no longer than answers usually take.
        """
        gone = Answers(self._clock.now(), failures=dict.fromkeys(expected, PORT_GONE))
        if not self._is_there():
            return gone
        try:
            return self._ask(request, expected, deadline_s, to_the_end)
        except PortGone:
            self._lose_port()
            return gone

    def _ask(self, request: bytes, expected: Mapping[int, int], deadline_s: float, to_the_end: bool) -> Answers:
        self._find_out_echo()
        self._drop_input()
        if self._clock.now() >= deadline_s:
            return Answers(self._clock.now(), failures=dict.fromkeys(expected, NO_TIME))
        self._parser.max_params = MAX_PARAMS if self.echo else max(_LONGEST_ANSWER, *expected.values())
        answers = Answers(self._clock.now())
        self._put(request)
        one_s, latency_s = self.answer_time_s(1, max(expected.values())), self.timing.latency_s + self._patience_s
        pause_s = 2.0 * one_s + latency_s  # longer than any that missing servos leave, unless many in a row
        last_s = min(deadline_s, self._line_free_s + len(expected) * one_s + latency_s)
        end_s = deadline_s if to_the_end else min(last_s, self._line_free_s + pause_s)
        last_id = list(expected)[-1]
        try:
            while len(answers.packets) < len(expected):
                left_s = end_s - self._clock.now()
                data = self._transport().read(_READ_CHUNK, max(0.0, left_s))  # at least one look, however late it is
                self._take(self._parser.feed(data), answers, expected)
                if data and not to_the_end:
                    # After the last one's answer, others come only if IDs are wrong: a shorter wait.
                    wait_s = pause_s - (0.5 * self.timing.latency_s if last_id in answers.packets else 0.0)
                    end_s = min(last_s, self._clock.now() + wait_s)
                if left_s <= 0.0 and not data:
                    self._take(self._parser.flush(), answers, expected)
                    break
        finally:  # an interrupted wait leaves overdue answers as well
            self._note_missing(request, answers, expected)
            self._patience_s *= _PATIENCE_KEPT
        return answers

    def _transport(self) -> Transport:
        if self._port is None:
            raise PortGone("closed")
        return self._port

    def _put(self, request: bytes) -> None:
        self.counters.requests += 1
        start_s = max(self._clock.now(), self._line_free_s)  # what is still in the port's buffer leaves first
        self._transport().write(request)
        self._line_free_s = start_s + wire_time_s(len(request), self._baud)
        if self.echo:
            self._echoes.extend(PacketParser().feed(request))

    def _find_out_echo(self) -> None:
        """Find out whether the adapter echoes, by a packet that only an echo can return."""
        if self.echo is not None:
            return
        self.echo = False
        probe = sync_read([MAX_ID], _PROBED, 1)
        for _ in range(2):  # one may be damaged
            self._drop_input()
            self._parser.max_params = MAX_PARAMS
            self._transport().write(probe)
            end_s = self._clock.now() + self.span_s(len(probe), 1, 1)
            while not self.echo and (left_s := end_s - self._clock.now()) > 0.0:
                self._reject(self._parser.feed(self._transport().read(_READ_CHUNK, left_s)))
            if self.echo:
                break
        end_s = self._clock.now() + self.timing.latency_s
        while self._clock.now() < end_s and (data := self._transport().read(_READ_CHUNK, self.answer_time_s(1, 1))):
            self._reject(self._parser.feed(data))
        self._reject(self._parser.flush())

    def _forget_old(self) -> None:
        if self._overdue:
            now = self._clock.now()
            self._overdue = {key: overdue for key, overdue in self._overdue.items() if overdue.until_s > now}

    def _drop_input(self) -> None:
        """Discard received bytes, but not the beginning of an incoming packet, whose rest would be noise."""
        while data := self._transport().read(_READ_CHUNK, 0.0):
            self._reject(self._parser.feed(data))
        self._echoes.clear()

    def _take(self, packets: list[Packet], answers: Answers, expected: Mapping[int, int]) -> None:
        order = list(expected)
        for packet in packets:
            if self._echoes and packet == self._echoes[0]:
                self._echoes.popleft()
                continue
            servo_id = packet.id
            if expected.get(servo_id) != len(packet.params):
                self._reject([packet])
                continue
            # Servos answer in turn: one that follows its successor, or comes twice, means that an ID is wrong.
            doubtful = [known for known in answers.packets if order.index(known) >= order.index(servo_id)]
            if doubtful or servo_id in answers.failures:
                for each in {servo_id, *doubtful}:
                    answers.packets.pop(each, None)
                    answers.failures[each] = AMBIGUOUS
                self.counters.foreign += 1
                continue
            answers.packets[servo_id] = packet

    def _note_missing(self, request: bytes, answers: Answers, expected: Mapping[int, int]) -> None:
        now = self._clock.now()
        for servo_id, n_params in expected.items():
            if servo_id in answers.packets:
                continue
            if answers.failures.setdefault(servo_id, NO_ANSWER) == NO_ANSWER:
                self.counters.missing += 1
                self._overdue[servo_id, n_params] = _Overdue(now, now + self.timing.longest_late_s, request)
        self.counters.answers += len(answers.packets)
        self.counters.bad_checksums += self._parser.n_bad_checksums
        self.counters.noise_bytes += self._parser.n_noise_bytes
        self._parser.n_bad_checksums = self._parser.n_noise_bytes = 0

    def _reject(self, packets: list[Packet]) -> None:
        for packet in packets:
            if packet.id == BROADCAST_ID:  # no servo has this ID: it is what was sent
                self.echo = True
            elif self._echoes and packet == self._echoes[0]:
                self._echoes.popleft()
            elif (overdue := self._overdue.pop((packet.id, len(packet.params)), None)) is not None:
                self.counters.late += 1
                self.late[packet.id] += 1
                lateness_s = self._clock.now() - overdue.missed_s
                if lateness_s < _MOST_PATIENCE_S:  # later ones are not worth waiting for
                    self._patience_s = max(self._patience_s, lateness_s)
            else:
                self.counters.foreign += 1
