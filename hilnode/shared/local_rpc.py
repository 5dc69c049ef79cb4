"""Local RPC: how another process on this PC calls methods of a running node and gets the result.

A Unix socket in the abstract namespace: it has no file that a crash could leave behind, and the kernel says who is
calling. Only the user that runs the node, and root, are let in. A call is one line of JSON, and so is the answer:

    {"do": "swap", "with": {"driver": "rig", "to": "twin"}}  ->  {"answer": 12345}  or  {"error": "no driver 'rig'"}

Each call has a thread of its own: a device that lets go slowly must not keep a trip waiting.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from typing import Any

from hilnode.core.signals import nearest
from hilnode.shared.lockfree.segment import HOME, PREFIX, owner_alive

log = logging.getLogger("hilnode")

PATIENCE = 2.0  # [s] that a caller may take for its line
LONGEST = 128 * 1024  # [bytes] of a call
MOST_CALLS = 16  # at a time; further ones wait to be accepted
ANSWERED_WITHIN = 30.0  # [s] a device may take its stop deadline to let go


class NotAnswered(RuntimeError):
    """The node said no, or nothing; the message says why."""


def _address(node: str) -> str:
    return f"\0hilnode.{node}"


class LocalRpc:
    """Serves the methods of a node."""

    def __init__(self, node: str, methods: Mapping[str, Callable[..., Any]]) -> None:
        self._node = node
        self._methods = methods
        self._listener: socket.socket | None = None
        self._room = threading.Semaphore(MOST_CALLS)
        self._thread = threading.Thread(target=self._serve, name="local rpc", daemon=True)

    def open(self) -> str:
        """Begin to listen; a sentence if that is not possible, without which a node can do."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(_address(self._node))
            listener.listen(MOST_CALLS)
        except OSError as error:
            listener.close()
            return f"commands from outside are not possible: {error.strerror}"
        self._listener = listener
        self._thread.start()
        return ""

    def close(self) -> None:
        """Stop listening; a call under way gets its answer if it comes within a moment."""
        listener, self._listener = self._listener, None
        if listener is not None:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            self._thread.join(PATIENCE)

    def _serve(self) -> None:
        listener = self._listener
        while listener is not None and self._listener is not None:
            try:
                caller, _ = listener.accept()
            except OSError:
                return
            self._room.acquire()
            threading.Thread(target=self._attend, args=(caller,), name="caller", daemon=True).start()

    def _attend(self, caller: socket.socket) -> None:
        try:
            with caller, contextlib.suppress(OSError):
                caller.settimeout(PATIENCE)
                caller.sendall(json.dumps(self._answer(caller)).encode() + b"\n")
        finally:
            self._room.release()

    def _answer(self, caller: socket.socket) -> dict[str, Any]:
        _, user, _ = struct.unpack("3i", caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
        if user not in (0, os.getuid()):
            return {"error": f"the node {self._node} belongs to another user"}
        try:
            call = json.loads(_line(caller))
            method, given = call["do"], dict(call["with"])
        except (ValueError, KeyError, TypeError) as error:
            return {"error": f"not a call: {error}"}
        if method not in self._methods:
            return {"error": f"no command {method!r}: {nearest(str(method), list(self._methods))}"}
        try:
            return {"answer": self._methods[method](**given)}
        except Exception as error:  # whatever it is, it is for the caller to know
            return {"error": str(error) or type(error).__name__}


def _line(end: socket.socket) -> bytes:
    got = bytearray()
    while not got.endswith(b"\n") and len(got) < LONGEST and (more := end.recv(65536)):
        got += more
    return bytes(got)


def call(node: str, method: str, /, **given: Any) -> Any:
    """Ask a running node for something; `given` may have any names."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(ANSWERED_WITHIN)
        try:
            line.connect(_address(node))
            line.sendall(json.dumps({"do": method, "with": given}).encode() + b"\n")
            answer = json.loads(_line(line))
        except (OSError, ValueError) as error:
            raise NotAnswered(f"the node {node} does not answer ({error}): is it running on this PC?") from error
    if "error" in answer:
        raise NotAnswered(str(answer["error"]))
    return answer["answer"]


def is_open(node: str) -> bool:
    """Whether the node listens: not yet while it starts, and no more once it ends."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        line.settimeout(PATIENCE)
        try:
            line.connect(_address(node))
        except OSError:
            return False
    return True


def running_nodes() -> list[str]:
    """Names of the nodes that run on this PC."""
    found = []
    for path in HOME.glob(f"{PREFIX}*.control"):
        with contextlib.suppress(PermissionError):  # another user's
            if owner_alive(path.name.removeprefix(PREFIX)):
                found.append(path.name.removeprefix(PREFIX).removesuffix(".control"))
    return sorted(found)


def which_node(given: str | None) -> str:
    """The node that is meant: the one named, or the only one there is."""
    names = running_nodes()
    if given is None and len(names) == 1:
        return names[0]
    if given in names and given is not None:
        return given
    if not names:
        raise NotAnswered("no node is running on this PC: start one with hilnode run")
    if given is None:
        raise NotAnswered(f"several nodes are running, say which with --node: {', '.join(names)}")
    raise NotAnswered(f"no node {given!r} is running: {nearest(given, names)}")
