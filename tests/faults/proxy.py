"""A proxy that stands between a client and its server, and cuts them off from each other around a commit."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

Cut = Literal["before it arrives", "after it was carried out"]


class Proxy:
    """Passes everything on, until it is told to cut the next connection that commits.

    ``before it arrives``: COMMIT is not passed on. ``after it was carried out``: it is, and the server's
    reply is swallowed. Either way the client sees nothing but a closed connection.
    """

    def __init__(self, upstream: str) -> None:
        """``upstream`` is the path of the server's socket."""
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._cut: Cut | None = None
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def cut_the_next_commit(self, when: Cut) -> None:
        self._cut = when

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was closed
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._upstream)
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        swallow = threading.Event()
        back = threading.Thread(target=_pass_on, args=(server, client, swallow), daemon=True)
        try:
            server.sendall(_startup(client))
            back.start()
            while message := _message(client):
                cut = self._cut
                if cut is not None and message == b"Q\x00\x00\x00\x0bCOMMIT\x00":
                    self._cut = None
                    self.cuts += 1
                    swallow.set()  # nothing more reaches the client
                    if cut == "after it was carried out":
                        server.sendall(message)
                        server.sendall(b"X\x00\x00\x00\x04")  # goodbye, read only after the commit
                    return
                server.sendall(message)
        except OSError:
            pass
        finally:
            if back.is_alive():
                server.shutdown(socket.SHUT_WR)
                back.join()  # until the server hangs up: it has then done what it was sent
            client.close()
            server.close()


def _pass_on(source: socket.socket, target: socket.socket, swallow: threading.Event) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            with suppress(OSError):  # the target has gone: read on to the end all the same
                if not swallow.is_set():
                    target.sendall(data)


def _exactly(source: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = source.recv(count - len(found))
        if not more:
            return b""
        found += more
    return found


def _startup(client: socket.socket) -> bytes:
    """The first message, which has no type; requests for encryption are declined."""
    while True:
        head = _exactly(client, 8)
        if not head:
            raise ConnectionError
        length, code = struct.unpack("!ii", head)
        if code not in (80877103, 80877104):  # of SSL, of GSSAPI
            return head + _exactly(client, length - 8)
        client.sendall(b"N")


def _message(client: socket.socket) -> bytes:
    """One message of the client, whole; empty when it has hung up."""
    head = _exactly(client, 5)
    if not head:
        return b""
    (length,) = struct.unpack("!i", head[1:])
    return head + _exactly(client, length - 4)


@contextmanager
def proxy_to(upstream: str) -> Iterator[Proxy]:
    proxy = Proxy(upstream)
    try:
        yield proxy
    finally:
        proxy.close()
