"""The Python client of a node, over the network:

    from bridge import Node

    with Node("tcp://127.0.0.1:9873") as n:
        n.arm()
        n.run()
        n.set("pendulum.shoulder.torque", 0.4)
        n.wait_until("pendulum.elbow.angle", gt=0.5, timeout=2)
        df = n.record(["pendulum.elbow.angle"], seconds=1)

One thread at a time: a ZeroMQ socket is not to be shared. `bridge.client.aio.Node` is the same for asyncio.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import zmq

from bridge.client.link import COMMANDS, Writer, beside, client_key, identify, silent, without_envelope
from bridge.client.node_commands import NodeCommands
from bridge.protocol.keys import ClientKey
from bridge.protocol.operations import NodeError
from bridge.protocol.rows import Condition, Recording, RowReader, schema_of

PATIENCE = 5.0  # [s] for an answer
MOST_ROWS = 100_000  # kept while nobody reads them


class Node(NodeCommands[int]):
    """A running node. `key` is the file that `hilnode keys new` made, where the node asks for one."""

    def __init__(
        self, endpoint: str = COMMANDS, *, key: Path | str | ClientKey | None = None, timeout: float = PATIENCE
    ) -> None:
        self.endpoint = endpoint
        self.lost = 0  # rows that never arrived
        self._told_lost = 0
        self._key = client_key(key)
        self._timeout = timeout
        self._context = zmq.Context()
        self._writer = Writer()
        self._line = identify(self._context.socket(zmq.DEALER), self._key)
        self._line.connect(endpoint)
        self._rows: zmq.Socket[bytes] | None = None
        self._reader: RowReader | None = None
        try:
            self._greet()
        except BaseException:
            self.close()
            raise

    # -- commands ---------------------------------------------------------------------------------------------------

    def ask(self, op: str, *, timeout: float | None = None, **fields: Any) -> dict[str, Any]:
        """Any operation of `bridge.protocol.operations`, with its whole answer; NodeError if it is refused."""
        try:
            return self._ask(op, timeout, fields)
        except NodeError as error:
            if error.reason != "replayed":
                raise
        self._greet()  # the bridge was started anew and knows nobody: what it refused had no effect
        return self._ask(op, timeout, fields)

    def _greet(self) -> None:
        self.about = self._ask("hello", None, {})
        self._writer.session = self.about["session"]

    def _ask(self, op: str, timeout: float | None, fields: dict[str, Any]) -> dict[str, Any]:
        number, body = self._writer.request(op, fields)
        self._line.send(body)
        patience = self._timeout if timeout is None else timeout
        until = time.monotonic() + patience
        while self._line.poll(max(0, round(1e3 * (until - time.monotonic())))):
            answer = Writer.answer(self._line.recv())
            if answer.get("id") in (number, None):  # else it is late: nobody waits for it any more
                return Writer.opened(answer)
        raise silent(self.endpoint, op, patience, self._key)

    def _number(self, op: str, **fields: Any) -> int:
        return int(self.ask(op, **fields)["answer"])

    def status(self) -> dict[str, Any]:
        """State, tick, step, timing and drivers."""
        return without_envelope(self.ask("status"))

    def set_rate(self, hz: float, topic: str = "state") -> float:
        """Messages per second of `state`, `timing`, `driver` or `ecu`, for all who subscribe: what it came to."""
        return float(self.ask("rate", hz=float(hz), topic=topic)["hz"])

    def load_session(self, **tables: Any) -> dict[str, Any]:
        """Parameters, forces, faults and stimuli at once; answers the slots."""
        return without_envelope(self.ask("session", **tables))

    # -- rows -------------------------------------------------------------------------------------------------------

    def wait_until(
        self,
        signal: str,
        *,
        gt: float | None = None,
        lt: float | None = None,
        eq: float | None = None,
        tol: float = 1e-9,
        timeout: float = 2.0,
    ) -> int:
        """Wait for a row in which the signal is so: its tick. TimeoutError says how near it came."""
        condition = Condition(gt, lt, eq, tol)
        seen = None
        with self._listen() as (socket, reader):
            column = reader.column(signal)
            until = time.monotonic() + timeout
            while socket.poll(max(0, round(1e3 * (until - time.monotonic())))):
                row = reader.take(socket.recv_multipart()[1])
                if row is None:
                    continue
                seen = float(row.view(float)[column])
                if condition.met(seen):
                    return int(row[0])
                if time.monotonic() > until:
                    break
        was = "no row came" if seen is None else f"it was {seen:g} at last"
        raise TimeoutError(f"{signal} {condition}: not within {timeout:g} s, {was}")

    def record(self, signals: Sequence[str], seconds: float) -> Recording:
        """Every row of the next simulated seconds: as many as there are ticks in them, however long that takes.

        It ends before if no row comes for as long as an answer may take.
        """
        rows: list[Any] = []
        with self._listen() as (socket, reader):
            for name in signals:
                reader.column(name)
            before, steps = reader.lost, round(seconds * 1e9 / reader.schema.dt_ns)
            while len(rows) <= steps and socket.poll(round(1e3 * self._timeout)):
                if (row := reader.take(socket.recv_multipart()[1])) is not None:
                    rows.append(row)
        self.lost += reader.lost - before
        self._tell_losses()
        return Recording.of(rows, reader, signals, reader.lost - before)

    @contextlib.contextmanager
    def _listen(self) -> Iterator[tuple[zmq.Socket[bytes], RowReader]]:
        """Rows from now on; what was sent meanwhile is thrown away."""
        if self._rows is None or self._reader is None:
            self._reader = RowReader(schema_of(self.ask("schema")))
            self._rows = identify(self._context.socket(zmq.SUB), self._key)
            self._rows.setsockopt(zmq.RCVHWM, MOST_ROWS)
            self._rows.connect(beside(self.endpoint, self.about["publish"]))
        while self._rows.poll(0):
            self._rows.recv_multipart()
        self._rows.subscribe(b"raw")
        self._reader.begin()
        try:
            yield self._rows, self._reader
        finally:  # rows that nobody reads would pile up here, and then at the node
            self._rows.unsubscribe(b"raw")

    def _tell_losses(self) -> None:
        if self.lost > self._told_lost:
            with contextlib.suppress(NodeError):  # the node may be gone: there is nobody to tell
                self.ask("losses", lost=self.lost, timeout=0.2)
                self._told_lost = self.lost

    # -- the end ----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        self._tell_losses()
        self._line.close(0)
        if self._rows is not None:
            self._rows.close(0)
        self._context.term()

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
