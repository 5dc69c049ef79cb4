"""The client side of the command channel: requests and answers over one DEALER socket."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, TypeVar

import msgpack
import zmq

from bridge.protocol.keys import ClientKey, read_client_key
from bridge.protocol.operations import LARGEST, VERSION, NodeError

COMMANDS = "tcp://127.0.0.1:9873"
"""Where a node takes commands unless its config says otherwise."""

SocketT = TypeVar("SocketT", bound="zmq.Socket[Any]")


class Writer:
    """Numbers the requests of one client and reads the answers; it knows no socket."""

    def __init__(self) -> None:
        self.session = 0
        self._numbers = itertools.count(1)

    def request(self, op: str, fields: dict[str, Any]) -> tuple[int, bytes]:
        """Its number and its bytes. Fields that are None are left out."""
        number = next(self._numbers)
        head = {"v": VERSION, "session": self.session, "seq": number, "id": number, "op": op}
        body = msgpack.packb(head | {k: v for k, v in fields.items() if v is not None})
        if len(body) > LARGEST:
            raise NodeError("oversized", f"{op}: a request has at most {LARGEST} bytes, this one has {len(body)}")
        return number, body

    @staticmethod
    def answer(body: bytes) -> dict[str, Any]:
        """The map in an answer; NodeError if it is none."""
        try:
            message = msgpack.unpackb(body)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            raise NodeError("malformed", "what answers there is no hilnode")
        return message

    @staticmethod
    def opened(answer: dict[str, Any]) -> dict[str, Any]:
        """What the answer says, or the refusal as an exception."""
        if not answer.get("ok"):
            raise NodeError(str(answer.get("reason", "malformed")), str(answer.get("error", "refused")))
        return answer


def without_envelope(answer: dict[str, Any]) -> dict[str, Any]:
    """What was asked for, without what every answer has."""
    return {key: value for key, value in answer.items() if key not in ("v", "id", "ok")}


def client_key(key: Path | str | ClientKey | None) -> ClientKey | None:
    """A key, from its file if need be."""
    return read_client_key(Path(key)) if isinstance(key, (str, Path)) else key


def identify(socket: SocketT, key: ClientKey | None) -> SocketT:
    """Have a client socket speak CURVE with the node, if there is a key."""
    socket.setsockopt(zmq.LINGER, 0)
    if key:
        socket.curve_publickey, socket.curve_secretkey = key.own.public.encode(), key.own.secret.encode()
        socket.curve_serverkey = key.node.encode()
    return socket


def silent(endpoint: str, op: str, seconds: float, key: ClientKey | None) -> NodeError:
    """Nobody answered: what may be the cause."""
    causes = (
        "is a node running there, and is the key in its list?"
        if key
        else "is a node running there? does it want a key?"
    )
    return NodeError("silent", f"{endpoint} did not answer to {op} within {seconds:g} s: {causes}")


def beside(endpoint: str, publish: str) -> str:
    """Where to subscribe: the node says how it bound its socket, the host is the one we reached it under."""
    if not publish.startswith("tcp://") or not endpoint.startswith("tcp://"):
        return publish
    return f"{endpoint.rpartition(':')[0]}:{publish.rpartition(':')[2]}"
