"""The client for asyncio: the same methods as `bridge.Node`, to be awaited.

    from bridge.client.aio import Node

    async with Node("tcp://127.0.0.1:9873") as n:
        await n.arm()
        await asyncio.gather(n.wait_until("a.b", gt=1.0), n.set("c.d", 2.0))

Requests may be under way at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zmq
import zmq.asyncio
from numpy.typing import NDArray

from bridge.client.client import MOST_ROWS, PATIENCE
from bridge.client.link import COMMANDS, Writer, beside, client_key, identify, silent, without_envelope
from bridge.client.node_commands import NodeCommands
from bridge.protocol.keys import ClientKey
from bridge.protocol.operations import NodeError
from bridge.protocol.rows import Condition, Recording, RowReader, schema_of


class Node(NodeCommands[Awaitable[int]]):
    """A running node; use it with `async with`."""

    def __init__(
        self, endpoint: str = COMMANDS, *, key: Path | str | ClientKey | None = None, timeout: float = PATIENCE
    ) -> None:
        self.endpoint = endpoint
        self.lost = 0  # rows that never arrived
        self._told_lost = 0
        self.about: dict[str, Any] = {}
        self._key = client_key(key)
        self._timeout = timeout
        self._writer = Writer()
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}

    async def __aenter__(self) -> Node:
        self._context = zmq.asyncio.Context()
        self._line = identify(self._context.socket(zmq.DEALER), self._key)
        self._line.connect(self.endpoint)
        self._reading = asyncio.create_task(self._read_answers())
        try:
            await self._greet()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._tell_losses()
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        self._line.close(0)
        self._context.destroy(0)

    async def ask(self, op: str, *, timeout: float | None = None, **fields: Any) -> dict[str, Any]:
        """Any operation of `bridge.protocol.operations`, with its whole answer; NodeError if it is refused."""
        try:
            return await self._ask(op, timeout, fields)
        except NodeError as error:
            if error.reason != "replayed":
                raise
        await self._greet()  # the bridge was started anew and knows nobody: what it refused had no effect
        return await self._ask(op, timeout, fields)

    async def _greet(self) -> None:
        self.about = await self._ask("hello", None, {})
        self._writer.session = self.about["session"]

    async def _ask(self, op: str, timeout: float | None, fields: dict[str, Any]) -> dict[str, Any]:
        number, body = self._writer.request(op, fields)
        patience = self._timeout if timeout is None else timeout
        answered = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self._line.send(body)
            return Writer.opened(await asyncio.wait_for(answered, patience))
        except TimeoutError:
            raise silent(self.endpoint, op, patience, self._key) from None
        finally:
            del self._waiting[number]

    async def _read_answers(self) -> None:
        while True:
            body = await self._line.recv()
            try:
                self._deliver(Writer.answer(body))
            except NodeError as error:  # nobody knows what it was the answer to
                for waiting in self._waiting.values():
                    if not waiting.done():
                        waiting.set_exception(error)

    def _deliver(self, answer: dict[str, Any]) -> None:
        """To who waits for it; a refusal of what could not be read has no number: it is for who asked last."""
        number = answer.get("id")
        if number is None:
            number = next((n for n in reversed(self._waiting) if not self._waiting[n].done()), None)
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _number(self, op: str, **fields: Any) -> Awaitable[int]:
        async def asked() -> int:
            return int((await self.ask(op, **fields))["answer"])

        return asked()

    async def status(self) -> dict[str, Any]:
        """State, tick, step, timing and drivers."""
        return without_envelope(await self.ask("status"))

    async def set_rate(self, hz: float, topic: str = "state") -> float:
        """Messages per second of `state`, `timing`, `driver` or `ecu`, for all who subscribe: what it came to."""
        return float((await self.ask("rate", hz=float(hz), topic=topic))["hz"])

    async def load_session(self, **tables: Any) -> dict[str, Any]:
        """Parameters, forces, faults and stimuli at once; answers the slots."""
        return without_envelope(await self.ask("session", **tables))

    async def wait_until(
        self,
        signal: str,
        *,
        gt: float | None = None,
        lt: float | None = None,
        eq: float | None = None,
        tol: float = 1e-9,
        timeout: float = 2.0,
    ) -> int:
        """Wait for a row in which the signal is so: its tick. TimeoutError says what was waited for."""
        condition = Condition(gt, lt, eq, tol)

        async def look() -> int:
            async with self._listen() as (rows, reader):
                column = reader.column(signal)
                async for row in rows:
                    if condition.met(float(row.view(float)[column])):
                        return int(row[0])
            raise NodeError("silent", "no more rows")

        try:
            return await asyncio.wait_for(look(), timeout)
        except TimeoutError:
            raise TimeoutError(f"{signal} {condition}: not within {timeout:g} s") from None

    async def record(self, signals: Sequence[str], seconds: float) -> Recording:
        """Every row of the next simulated seconds: as many as there are ticks in them, however long that takes.

        It ends before if no row comes for as long as an answer may take.
        """
        kept: list[NDArray[np.int64]] = []
        async with self._listen() as (rows, reader):
            for name in signals:
                reader.column(name)
            steps = round(seconds * 1e9 / reader.schema.dt_ns)
            clock = asyncio.get_running_loop().time
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._timeout) as limit:
                    async for row in rows:
                        kept.append(row)
                        if len(kept) > steps:
                            break
                        limit.reschedule(clock() + self._timeout)
            self.lost += reader.lost
        await self._tell_losses()
        return Recording.of(kept, reader, signals, reader.lost)

    async def _tell_losses(self) -> None:
        if self.lost > self._told_lost:
            with contextlib.suppress(NodeError):  # the node may be gone
                await self.ask("losses", lost=self.lost, timeout=0.2)
                self._told_lost = self.lost

    @contextlib.asynccontextmanager
    async def _listen(self) -> AsyncIterator[tuple[AsyncIterator[NDArray[np.int64]], RowReader]]:
        """Rows from now on, on a socket of their own: several may listen at the same time."""
        reader = RowReader(schema_of(await self.ask("schema")))
        socket = identify(self._context.socket(zmq.SUB), self._key)
        socket.setsockopt(zmq.RCVHWM, MOST_ROWS)
        socket.subscribe(b"raw")
        socket.connect(beside(self.endpoint, self.about["publish"]))

        async def rows() -> AsyncIterator[NDArray[np.int64]]:
            while True:
                _, body = await socket.recv_multipart()
                if (row := reader.take(body)) is not None:
                    yield row

        try:
            yield rows(), reader
        finally:
            socket.close(0)
