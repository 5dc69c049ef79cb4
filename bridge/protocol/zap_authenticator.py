"""The ZAP authenticator (ZeroMQ's ZAP, RFC 27): admits clients with a known key before any message of theirs is read.

ZeroMQ asks for each new connection; the answer names the client, and that name comes with each of its messages.
"""

from __future__ import annotations

import threading
import time

import zmq
from zmq.utils import z85

from bridge.protocol.connections import Refusal
from bridge.protocol.keys import Guest, KeyFileError, Keyring

ADDRESS = "inproc://zeromq.zap.01"
LOOK_AGAIN = 1.0  # [s] a changed list of clients is noticed after this long
UNKNOWN = "a key that nobody here has"


class ZapAuthenticator:
    """Answers ZeroMQ's questions in a thread of its own. Start it before the sockets are bound."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], keyring: Keyring) -> None:
        self._keyring = keyring
        self._guests = keyring.guests()
        self._looked = time.monotonic()
        self._socket = context.socket(zmq.REP)
        self._socket.bind(ADDRESS)
        self._socket.setsockopt(zmq.RCVTIMEO, 200)
        self._ending = False
        self.on_refusal: Refusal = lambda _reason, _who, _why: None
        self._thread = threading.Thread(target=self._work, name="authenticator", daemon=True)
        self._thread.start()

    def guest(self, name: str) -> Guest | None:
        """Who is let in under this name now: a role that was changed or taken away counts from the next message on."""
        return next((g for g in self._guests.values() if g.name == name), None)

    def close(self) -> None:
        self._ending = True
        self._thread.join(2.0)
        self._socket.close(0)

    def _work(self) -> None:
        while not self._ending:
            self._look_again()
            try:
                asked = self._socket.recv_multipart()
            except zmq.Again:
                continue
            except zmq.ZMQError:
                return
            self._socket.send_multipart(self._answer(asked))

    def _look_again(self) -> None:
        if time.monotonic() - self._looked < LOOK_AGAIN:
            return
        self._looked = time.monotonic()
        try:
            self._guests = self._keyring.guests()
        except KeyFileError:  # being written, or spoilt: those who were let in so far stay
            return

    def _answer(self, asked: list[bytes]) -> list[bytes]:
        if len(asked) < 6 or asked[0] != b"1.0":
            return [b"1.0", asked[1] if len(asked) > 1 else b"", b"500", b"not ZAP 1.0", b"", b""]
        request, address, mechanism = asked[1], asked[3].decode(errors="replace"), asked[5]
        guest = self._guests.get(z85.encode(asked[6]).decode()) if mechanism == b"CURVE" and len(asked) > 6 else None
        if guest is None:
            self.on_refusal("unauthenticated", address, UNKNOWN)
            return [b"1.0", request, b"400", UNKNOWN.encode(), b"", b""]
        return [b"1.0", request, b"200", b"OK", guest.name.encode(), b""]


def protect(socket: zmq.Socket[bytes], keyring: Keyring) -> None:
    """Have a server socket speak CURVE and nothing else."""
    own = keyring.own()
    socket.curve_server = True
    socket.curve_publickey, socket.curve_secretkey = own.public.encode(), own.secret.encode()
    socket.zap_domain = b"hilnode"
