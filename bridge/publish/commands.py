"""The command server: receives requests over the network, authorises them and passes them on to the node.

    client --(DEALER or REQ)--> ROUTER: shape, size, version, session, sequence, role --> local RPC --> answer

Nothing here touches the tick: the node applies each command at a tick's edge and says at which. A request that takes
long (a device that lets go slowly) does not hold up the others, and a trip never waits behind anything.
"""

from __future__ import annotations

import os
import queue
import secrets
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgpack
import zmq

from bridge.protocol.audit import Audit
from bridge.protocol.connections import Connections, sender
from bridge.protocol.operations import LARGEST, OPERATIONS, REASONS, VERSION, Operation, Refused, Role, check
from bridge.protocol.untrusted import shown, unpack_map
from hilnode.shared.local_rpc import NotAnswered

MOST_CLIENTS = 1000  # sessions that are remembered; the one longest silent is forgotten first
MOST_WAITING = 64  # requests under way
WORKERS = 4
URGENT = ("trip", "stop")

Ask = Callable[[str, dict[str, Any]], Any]
"""Has the node do something; raises NotAnswered."""


@dataclass
class Client:
    """A session with one client."""

    session: int
    name: str
    last: int = 0  # sequence number
    lost: int = 0  # messages it says it never got


@dataclass
class Counts:
    """What has come in since the start."""

    done: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, int]:
        return {"done": self.done, **{reason: self.refused[reason] for reason in REASONS}}


@dataclass(frozen=True)
class _Job:
    route: list[bytes]
    client: Client
    ident: Any
    operation: Operation
    fields: dict[str, Any]
    role: Role


class CommandServer:
    """Serves one endpoint in a thread of its own.

    `local` are operations that need no node (schema, scene, rate): name to function of the fields. `role_of` tells the
    role of a user name that the authenticator let in; without one everybody is `anybody`.
    """

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        *,
        ask: Ask,
        local: dict[str, Callable[..., Any]],
        hello: dict[str, Any],
        tick: Callable[[], int],
        audit: Audit,
        role_of: Callable[[str], Role | None] | None,
        anybody: Role,
        operations: Mapping[str, Operation] = OPERATIONS,
    ) -> None:
        self.counts = Counts()
        self._socket = socket
        self._ask, self._local, self._hello, self._tick, self._audit = ask, local, hello, tick, audit
        self._role_of, self._anybody, self._operations = role_of, anybody, operations
        self._clients: OrderedDict[bytes, Client] = OrderedDict()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._urgent: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[tuple[list[bytes], bytes]] = queue.SimpleQueue()
        self._outside: queue.SimpleQueue[tuple[str, str, str]] = queue.SimpleQueue()  # refused elsewhere
        self._connections = Connections(socket, self._count, keyed=role_of is not None)
        self._waiting = 0
        self._bell = os.eventfd(0, os.EFD_NONBLOCK)
        self._ending = False
        sources = [self._jobs] * WORKERS + [self._urgent]
        self._workers = [threading.Thread(target=self._carry_out, args=(s,), daemon=True) for s in sources]
        self._thread = threading.Thread(target=self._work, name="commands", daemon=True)

    def start(self) -> None:
        for worker in self._workers:
            worker.start()
        self._thread.start()

    def close(self) -> None:
        """Stop listening; what is under way gets no answer any more."""
        self._ending = True
        os.eventfd_write(self._bell, 1)
        if self._thread.ident:  # it was started
            self._thread.join(2.0)
        for worker in self._workers:
            (self._urgent if worker is self._workers[-1] else self._jobs).put(None)
        self._connections.look()
        self._connections.close()
        self._audit.close(self._tick())
        self._socket.close(0)

    def note_refusal(self, reason: str, who: str, why: str) -> None:
        """Somebody was turned away at another place; may be called from any thread."""
        self._outside.put((reason, who, why))
        os.eventfd_write(self._bell, 1)

    def losses(self) -> dict[str, int]:
        """Messages that clients say they never got, by name; those with none are left out."""
        return {f"{c.name}:{c.session & 0xFFFF:04x}": c.lost for c in list(self._clients.values()) if c.lost}

    # -- the thread that owns the socket ----------------------------------------------------------------------------

    def _work(self) -> None:
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._bell, zmq.POLLIN)
        poller.register(self._connections.monitor, zmq.POLLIN)
        while not self._ending:
            poller.poll(500)
            self._clear_bell()
            self._connections.look()
            for _ in range(100):
                try:
                    frames = self._socket.recv_multipart(zmq.NOBLOCK, copy=False)
                except zmq.Again:
                    break
                self._take(frames)
            self._send_answers()

    def _clear_bell(self) -> None:
        try:
            os.eventfd_read(self._bell)
        except BlockingIOError:
            return
        while not self._outside.empty():
            self._count(*self._outside.get())

    def _send_answers(self) -> None:
        while not self._answers.empty():
            route, body = self._answers.get()
            self._waiting -= 1
            self._send(route, body)

    def _send(self, route: list[bytes], body: bytes) -> None:
        try:
            self._socket.send_multipart([*route, body], zmq.NOBLOCK)
        except zmq.ZMQError:  # it went away, or does not read its answers
            return

    def _take(self, frames: list[zmq.Frame]) -> None:
        """One message: begin to carry it out, or refuse it."""
        route = [f.bytes for f in frames[:1]]
        who, ident = sender(frames[-1]), None
        try:
            if len(frames) == 3 and len(frames[1]) == 0:
                route.append(b"")  # a REQ socket puts an empty frame before its message
            elif len(frames) != 2:
                raise Refused("malformed", "a request is one frame")
            message = unpack_map(frames[-1].buffer, LARGEST)
            ident = message.get("id")
            if not isinstance(ident, (int, str)) or (isinstance(ident, str) and len(ident) > 64):
                ident = None
                raise Refused("malformed", "id must be a whole number or a short text")
            self._accept(route, who, ident, message)
        except Refused as error:
            self._refuse(route, who, ident, error)
        except Exception as error:  # whatever a message may bring about, it must not end the commands of all others
            self._refuse(route, who, ident, Refused("malformed", f"it can not be read: {type(error).__name__}"))

    def _refuse(self, route: list[bytes], who: str, ident: Any, error: Refused) -> None:
        self._count(error.reason, who, str(error))
        self._send(route, _refusal(ident, error.reason, str(error)))

    def _accept(self, route: list[bytes], who: str, ident: Any, message: dict[str, Any]) -> None:
        version = message.get("v")
        if type(version) is not int or version != VERSION:
            raise Refused(
                "version", f"this node speaks version {VERSION} of the protocol, the request has {shown(version)}"
            )
        operation, fields = check(message, self._operations)
        role = self._role(who)
        if operation.name == "hello":
            self._greet(route, who, ident, role)
            return
        client = self._session(route[0], message)
        if role < operation.role:
            raise Refused(
                "unauthorised",
                f"{operation.name} is for {operation.role.name.lower()}, {who} may only {role.name.lower()}",
            )
        if self._waiting >= MOST_WAITING and operation.name not in URGENT:
            raise Refused("refused", f"{self._waiting} requests are waiting already: try again")
        self._waiting += 1
        job = _Job(route, client, ident, operation, fields, role)
        (self._urgent if operation.name in URGENT else self._jobs).put(job)

    def _greet(self, route: list[bytes], who: str, ident: Any, role: Role) -> None:
        client = Client(secrets.randbits(62), who)
        self._clients[route[0]] = client
        self._clients.move_to_end(route[0])
        if len(self._clients) > MOST_CLIENTS:
            self._clients.popitem(last=False)
        self.counts.done += 1
        body = {**self._hello, "session": client.session, "role": role.name.lower(), "tick": self._tick()}
        self._send(route, _answer(ident, body))

    def _session(self, identity: bytes, message: dict[str, Any]) -> Client:
        """The client, if the message is newer than all before it: one that was recorded and sent again is not."""
        client, seq = self._clients.get(identity), message.get("seq")
        if client is None or message.get("session") != client.session:
            raise Refused("replayed", "no such session here: begin with hello")
        if not isinstance(seq, int) or isinstance(seq, bool) or not client.last < seq < 2**63:
            raise Refused("replayed", f"seq must be above {client.last}")
        client.last = seq
        self._clients.move_to_end(identity)
        return client

    def _role(self, who: str) -> Role:
        if self._role_of is None:
            return self._anybody
        role = self._role_of(who)
        if role is None:
            raise Refused("unauthorised", f"{who} is no longer let in")
        return role

    def _count(self, reason: str, who: str, why: str) -> None:
        self.counts.refused[reason] += 1
        self._audit.refused(who, reason, why, self._tick())

    # -- the threads that wait for the node -------------------------------------------------------------------------

    def _carry_out(self, jobs: queue.SimpleQueue[_Job | None]) -> None:
        while (job := jobs.get()) is not None:
            name, fields = job.operation.name, {k: v for k, v in job.fields.items() if v is not None}
            try:
                if name == "losses":
                    job.client.lost = fields["lost"]
                    result: Any = self._tick()
                elif name in self._local:
                    result = self._local[name](**fields)
                else:
                    result = self._ask(name, fields)
                body = _answer(job.ident, result if isinstance(result, dict) else {"answer": result})
                self.counts.done += 1
                outcome = "done"
            except (NotAnswered, ValueError) as error:
                body, outcome = _refusal(job.ident, "refused", str(error)), str(error)
                self.counts.refused["refused"] += 1
            except Exception as error:  # a worker that died would be missing for ever
                outcome = f"{name} failed: {type(error).__name__}"
                body = _refusal(job.ident, "refused", outcome)
                self.counts.refused["refused"] += 1
            if job.operation.role > Role.WATCH:
                self._audit.done(job.client.name, job.role.name.lower(), {"op": name, **fields}, outcome, self._tick())
            self._answers.put((job.route, body))
            os.eventfd_write(self._bell, 1)


def _answer(ident: Any, body: dict[str, Any]) -> bytes:
    return msgpack.packb({"v": VERSION, "id": ident, "ok": True, **body})


def _refusal(ident: Any, reason: str, why: str) -> bytes:
    return msgpack.packb({"v": VERSION, "id": ident, "ok": False, "reason": reason, "error": why})
