"""Requests and answers on a half-duplex line, where a status packet does not name the request that it answers.

A status packet carries an ID, an error byte and bytes of a block, but neither the address it was read from nor a
sequence number. An answer that comes late (a stalled USB adapter, a busy operating system) could be taken for the
answer to the next request. Two rules prevent that:

- bytes that arrived before a request was sent never count as an answer to it;
- an answer that did not come in time is remembered as *overdue* (ID and length) for ``_LONGEST_LATE_S``; the next
  reading of that servo asks for a block that is a byte or more longer, so that the overdue answer does not fit.

Only readings are asked for: an acknowledgement has no length by which to tell it from an earlier one.

How long is an answer awaited? At first ``FIRST_WAIT_S`` beyond its time on the wire, enough for an adapter that holds
bytes back for 16 ms; then ``LEAST_WAIT_S`` beyond the delay within which nine of ten answers have come.

Protocol 2 tells an answer from a request, but no more: the rules are the same. Its fast sync read is not used: all
servos share one packet there, so one that is silent costs the answers of the others.

Adapters that join both directions on one wire return every byte sent: a packet equal to the request is no answer. A
servo that answers just that by chance counts as silent, and is asked for a longer block.
"""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Callable, Sequence

from snake_gym.hardware.bus.bus import GARBLED, NO_ANSWER, NO_TIME, PORT_GONE
from snake_gym.hardware.bus.clock import Clock
from snake_gym.hardware.bus.protocol import PROTOCOLS, Packet, PacketParser, Protocol, wire_time_s
from snake_gym.hardware.bus.transport import PortGone, Transport

FIRST_WAIT_S = 0.03
"""Longest delay of an answer before any is measured [s]."""
LEAST_WAIT_S = 0.004
"""Wait beyond the usual delay [s]: USB, and the scheduler."""
RETURN_DELAY_S = 0.0005
"""Return delay assumed of a servo [s]."""
_LONGEST_LATE_S = 0.1
"""Longest lateness at which an answer can still be distinguished from the present one [s]."""
_REOPEN_INTERVAL_S = 0.5
EXTRA_BYTES = 12
"""Most bytes by which a reading is lengthened."""
_LONGEST_ANSWER = 32
"""Parameters of the longest late answer that is still recognised as a whole."""
_READ_CHUNK = 4096


Answers = dict[int, Packet | str]
"""Status packets, or the reasons why they are missing, by ID."""


class Line:
    """Exchange of requests and answers over a port that may vanish and come back.

    While the port is gone, every request fails at once with ``PORT_GONE``.

    Args:
        transport: an open port.
        latency_s: longest delay of an answer by adapter and computer [s]; None: it is measured.
        reopen: opens the port anew, tried at the next use and at intervals; None: a lost port stays gone.
    """

    def __init__(
        self,
        transport: Transport,
        baud: int,
        clock: Clock,
        latency_s: float | None = None,
        reopen: Callable[[], Transport] | None = None,
        protocol: Protocol = PROTOCOLS[1],
    ) -> None:
        self.return_delay_s: dict[int, float] = {}
        """Return delays of servos [s], by ID, as far as they are known."""
        self._baud, self._clock, self._latency_s, self._reopen = baud, clock, latency_s, reopen
        self._protocol = protocol
        self._delays: deque[float] = deque(maxlen=32)
        self._next_reopen_s = -1.0
        self._port: Transport | None = transport
        self._begin()

    def _begin(self) -> None:
        """Reset the state for a port that has just been opened: answers on their way are unknown."""
        self._overdue: dict[tuple[int, int], float] = {}  # (ID, parameters) -> time when it was due [s]
        self._sent: Packet | None = None
        self._parser = PacketParser(self._protocol)
        self._line_free_s = -1.0

    @property
    def latency_s(self) -> float:
        """Median delay of the last answers by adapter and computer [s]; 0 before the first."""
        return statistics.median(self._delays) if self._delays else 0.0

    @property
    def wait_s(self) -> float:
        """Longest delay for which an answer is awaited [s]."""
        if self._latency_s is not None:
            return self._latency_s
        if not self._delays:
            return FIRST_WAIT_S
        return LEAST_WAIT_S + sorted(self._delays)[int(0.9 * len(self._delays))]

    def longest_return_delay_s(self, ids: Sequence[int]) -> float:
        """Return the longest time that one of these servos waits before it answers [s]."""
        return max((self.return_delay_s.get(one, RETURN_DELAY_S) for one in ids), default=RETURN_DELAY_S)

    def span_s(self, ids: Sequence[int], n_params: int) -> float:
        """Return the longest duration [s] of a reading that all of these servos answer."""
        request_bytes = len(self._protocol.sync_read(ids, 0, 0))
        return wire_time_s(request_bytes, self._baud) + self._answer_time_s(ids, n_params) + self.wait_s

    def close(self) -> None:
        """Close the port for good."""
        if self._port is not None:
            self._port.close()
        self._port, self._reopen = None, None

    def send(self, request: bytes) -> bool:
        """Send a packet that no servo answers. Return False if the port is gone."""
        try:
            self._put(request)
        except PortGone:
            self._lose_port()
            return False
        return True

    def read(
        self, ids: Sequence[int], address: int, n_bytes: int, longest: int, deadline_s: float, is_retry: bool = False,
        twin_s: float = 0.0,
    ) -> Answers:  # fmt: skip
        """Read a block once, from as many servos as can be awaited, and return what came of it, of all ``ids``.

        Args:
            ids: servos in the order in which they answer.
            n_bytes, longest: length of the block, and how long it may become where it begins.
            deadline_s: end of the waiting [s, on the clock].
            is_retry: True: leave out servos for which little time is left.
            twin_s: time [s] for which more answers are awaited, from servos that share an ID.
        """
        try:
            self._drop_input()
            length, askable = self._choose_length(ids, n_bytes, longest + address)
            early = max(0, length - longest)  # near the table's end a longer block begins earlier
            left_s, margin_s = deadline_s - self._clock.now(), 0.5 * self.wait_s
            if not askable:  # an answer of every length is overdue: only time helps
                self._clock.sleep(min(LEAST_WAIT_S, left_s))
            spare_s = left_s + (1.0 if is_retry else 2.0) * margin_s
            asked = list(askable) if left_s > 0.0 else []
            while asked and self.span_s(asked, length) > spare_s:
                asked.pop()
            left_out = {one: NO_TIME if one in askable else NO_ANSWER for one in ids if one not in asked}
            if not asked:
                return {**left_out}
            # If no time is left for another attempt, all of it goes into waiting for this one.
            is_last = left_s - self.span_s(asked, length) < self.span_s(asked[:1], length) - margin_s
            answers = self._ask(asked, address - early, length, deadline_s, is_last, twin_s)
            for one, answer in answers.items():
                if not isinstance(answer, str):
                    answers[one] = answer._replace(params=answer.params[early:])
            return answers | left_out
        except PortGone:
            self._lose_port()
            return dict.fromkeys(ids, PORT_GONE)

    def _answer_time_s(self, ids: Sequence[int], n_params: int) -> float:
        """Return the time [s] that answers keep the line busy, return delays included."""
        return len(ids) * (
            self.longest_return_delay_s(ids) + wire_time_s(self._protocol.overhead_bytes + n_params, self._baud)
        )

    def _choose_length(self, ids: Sequence[int], n_bytes: int, longest: int) -> tuple[int, list[int]]:
        """Return the number of bytes to ask for (``n_bytes`` or, if need be, up to ``EXTRA_BYTES`` more, at most
        ``longest``), and the servos that can then be asked without taking an overdue answer for theirs."""
        horizon_s = self._clock.now() - _LONGEST_LATE_S
        self._overdue = {key: due_s for key, due_s in self._overdue.items() if due_s > horizon_s}
        lengths = range(n_bytes, max(n_bytes, min(n_bytes + EXTRA_BYTES, longest)) + 1)
        free = {length: [i for i in ids if (i, length) not in self._overdue] for length in lengths}
        best = max(lengths, key=lambda length: (len(free[length]), -length))
        return best, free[best]

    def _ask(
        self, ids: list[int], address: int, n_params: int, deadline_s: float, to_the_end: bool, twin_s: float
    ) -> Answers:
        answers, port, protocol = Answers(), self._open_port(), self._protocol
        one = len(ids) == 1
        request = protocol.read(ids[0], address, n_params) if one else protocol.sync_read(ids, address, n_params)
        self._parser.max_params = max(_LONGEST_ANSWER, n_params)
        self._parser.garbled.clear()
        self._put(request)
        self._sent = protocol.parse(request)
        due_s = self._line_free_s + self._answer_time_s(ids, n_params)
        end_s = deadline_s if to_the_end else min(deadline_s, due_s + self.wait_s)
        is_complete, n_noise = False, 0
        try:
            while True:
                left_s = end_s - self._clock.now()
                data = port.read(_READ_CHUNK, max(0.0, left_s))  # at least one look, however late it is
                packets = self._parser.feed(data)
                n_noise += len(data) - sum(protocol.overhead_bytes + len(packet.params) for packet in packets)
                self._take(packets, answers, ids, n_params)
                if len(answers) == len(ids) and not is_complete:
                    is_complete, end_s = True, self._clock.now() + twin_s
                    self._delays.append(max(0.0, self._clock.now() - due_s))
                if (left_s <= 0.0 and not data) or (is_complete and self._clock.now() >= end_s):
                    break
            self._take(self._parser.flush(), answers, ids, n_params)
        finally:  # an interrupted wait leaves overdue answers as well
            for servo_id in set(ids) - answers.keys():
                is_garbled = servo_id in self._parser.garbled or (len(ids) == 1 and n_noise > 0)
                answers[servo_id] = GARBLED if is_garbled else NO_ANSWER
                if not is_garbled:
                    self._overdue[servo_id, n_params] = due_s
        return answers

    def _open_port(self) -> Transport:
        """Return the port; one that has vanished is opened anew when the next attempt is due. Raises PortGone."""
        if self._port is None:
            if self._reopen is None or self._clock.now() < self._next_reopen_s:
                raise PortGone("gone")
            self._next_reopen_s = self._clock.now() + _REOPEN_INTERVAL_S
            self._port = self._reopen()
            self._begin()
        return self._port

    def _lose_port(self) -> None:
        if self._port is not None:
            self._port.close()
            self._port = None
            self._next_reopen_s = self._clock.now() + _REOPEN_INTERVAL_S

    def _put(self, request: bytes) -> None:
        port = self._open_port()
        start_s = max(self._clock.now(), self._line_free_s)  # what is still in the port's buffer leaves first
        port.write(request)
        self._line_free_s = start_s + wire_time_s(len(request), self._baud)

    def _drop_input(self) -> None:
        """Discard received bytes, but not the beginning of an incoming packet: its rest would be noise."""
        port = self._open_port()
        while data := port.read(_READ_CHUNK, 0.0):
            self._reject(self._parser.feed(data))

    def _take(self, packets: list[Packet], answers: Answers, ids: list[int], n_params: int) -> None:
        for packet in packets:
            if packet.id not in ids or len(packet.params) != n_params or packet == self._sent:
                self._reject([packet])
                continue
            # Servos answer in turn: one that follows its successor, or comes twice, means that an ID is wrong.
            place = ids.index(packet.id)
            doubtful = [one for one, known in answers.items() if known != GARBLED and ids.index(one) >= place]
            if doubtful or packet.id in answers:
                answers.update(dict.fromkeys([packet.id, *doubtful], GARBLED))
            else:
                answers[packet.id] = packet

    def _reject(self, packets: list[Packet]) -> None:
        """Note which overdue answers are among packets that answer nothing asked now."""
        for packet in packets:
            if packet != self._sent:
                self._overdue.pop((packet.id, len(packet.params)), None)
