"""One of several processes of the service: serves on the supervisor's sockets, and ends when the supervisor has."""

import os
import socket
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from app.server import DrainingServer, serve
from app.service import service
from app.settings import Settings
from app.supervisor import SERVING, STARTING

# What a loop that no longer turns would never come to.
_AFTER_DRAINING = 60.0


def main(descriptors: Sequence[int]) -> None:
    """Serve until the supervisor or a signal says to stop.

    Args:
        descriptors: Of the channel to the supervisor and of the sockets that listen.
    """
    channel, *listening = (socket.socket(fileno=number) for number in descriptors)
    for inherited in (channel, *listening):
        inherited.set_inheritable(False)

    def beat(serves: bool) -> None:
        # A supervisor that does not read, or has gone, must not stop the loop.
        with suppress(OSError):
            channel.send(SERVING if serves else STARTING, socket.MSG_DONTWAIT)

    settings = Settings()
    server = DrainingServer(service(), settings, beat=beat)
    longest_end = settings.drain_notice_seconds + settings.drain_seconds + _AFTER_DRAINING
    threading.Thread(target=_obey, args=(channel, server, longest_end), daemon=True).start()
    serve(server, listening)


def _obey(channel: socket.socket, server: DrainingServer, longest_end: float) -> None:
    """Let the server leave when the supervisor says so or has gone; in the second case nobody else would end it."""
    while _heard(channel):
        server.leave()
    server.leave()
    time.sleep(longest_end)
    os._exit(1)


def _heard(channel: socket.socket) -> bool:
    try:
        return bool(channel.recv(1))
    except OSError:
        return False


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]])
