"""Messages between a guard and the process that started it: lists in JSON, on a private pair of Unix sockets.

Arrays and tuples arrive as lists, and the IDs in a dict as strings.

The first one holds the guard's settings (``process.main``). Then, to the guard:

* ``command``: the time when it was given [s], and joint references (J,) [rad];
* ``call``: a number, name and arguments of a bus call; the guard sends an ``answer`` with the number to each.

From the guard:

* ``sample``: a ``BodySample``; ``answer``: number and result of a call;
* ``stop``: the reason; ``news``: a line; ``alive``, while there is nothing else to say;
* ``farewell``: torque is off in all servos, and the guard ends.

Times are those of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import json
import socket
from typing import Any

from snake_gym.config import to_dict

_LARGEST = 1 << 17


def send(link: socket.socket, *message: Any) -> None:
    """Send a message. Raises BlockingIOError: the other process is busy with earlier ones; OSError: it is gone."""
    link.send(json.dumps(to_dict(message)).encode(), socket.MSG_DONTWAIT)


def receive(link: socket.socket) -> list[Any] | None:
    """Return the next message, or None if the other process is gone."""
    for _ in range(2):
        try:
            data = link.recv(_LARGEST)
            return list(json.loads(data)) if data else None
        except OSError:  # it left with messages unread: its own can still be read
            continue
    return None
