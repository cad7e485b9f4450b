"""A network that fails when it is told to: stands between a client and a server."""

import os
import select
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

_PORT = ".s.PGSQL.5432"
Address = str | tuple[str, int]
"""A socket's file, or a host and a port; port 0 is any that is free."""


def _socket(address: Address) -> socket.socket:
    return socket.socket(socket.AF_UNIX if isinstance(address, str) else socket.AF_INET)


class Network:
    """Passes bytes on between clients and the server, until it is cut."""

    COMMIT = "COMMIT\0"
    """The whole word: a transaction that begins as READ COMMITTED does not end by it."""

    def __init__(self, server: Address, here: Address) -> None:
        self.cuts = 0
        """How often a connection was cut."""
        self._word: bytes | None = None
        self._is_heard = self._stays = False
        self._left = 0
        self._counting = threading.Lock()
        self._down = threading.Event()
        self._server = server
        self._listening = _socket(here)
        self._listening.bind(here)
        self._listening.listen()
        self.address: Address = self._listening.getsockname()
        """Where clients find it."""
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_at(self, word: str, *, heard: bool, after: int = 0, stay_down: bool = False) -> None:
        """Cut the connection over which this word is said next, or ``after`` so many times.

        After the server has heard it, so that its answer is lost; or before. ``stay_down``: until ``up``.
        """
        self._is_heard, self._word, self._left, self._stays = heard, word.encode(), after, stay_down

    def up(self) -> None:
        """Let everything through again."""
        self._word = None
        self._down.clear()

    @contextmanager
    def down(self) -> Iterator[None]:
        """Nothing comes through meanwhile, and nobody can connect."""
        self._down.set()
        try:
            yield
        finally:
            self._down.clear()

    def close(self) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _is_due(self, said: bytes) -> bool:
        """Whether the connection over which this was said is to be cut."""
        with self._counting:
            if self._word is None or self._word not in said:
                return False
            self._left -= 1
            if self._left >= 0:
                return False
            self._word = None
            self.cuts += 1
            if self._stays:
                self._down.set()
            return True

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, _socket(self._server) as server:
            if self._down.is_set():
                return
            server.connect(self._server)
            while not self._down.is_set():
                ready, _, _ = select.select([client, server], [], [], 0.05)
                for side in ready:
                    said = side.recv(65536)
                    if not said:
                        return
                    if side is client and self._is_due(said):
                        if self._is_heard:
                            server.sendall(said)
                            server.recv(65536)  # the answer, which nobody will hear
                        return
                    (server if side is client else client).sendall(said)


@contextmanager
def network_to(url: str) -> Iterator[tuple[Network, str]]:
    """A network to the server that this URL reaches through a socket, and the URL that goes through it."""
    from sqlalchemy import make_url

    parsed = make_url(url)
    with tempfile.TemporaryDirectory(prefix="sidelight-net-") as folder:
        network = Network(str(Path(str(parsed.query["host"])) / _PORT), str(Path(folder) / _PORT))
        try:
            through = parsed.update_query_dict({"host": folder}).render_as_string(hide_password=False)
            yield network, through
        finally:
            network.close()
            with suppress(OSError):
                os.unlink(Path(folder) / _PORT)


def is_reached_by_a_socket(url: str) -> bool:
    """Whether such a network can stand in between."""
    return quote("/") in url or "host=/" in url
