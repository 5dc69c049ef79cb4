"""The client for asyncio against peers that answer badly: who asked is told, and the next one is served."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgpack
import pytest
import zmq
import zmq.asyncio

from bridge import NodeError
from bridge.client import aio
from bridge.protocol.operations import LARGEST

Answer = Callable[[dict[str, Any]], bytes]


def sound(message: dict[str, Any], **more: Any) -> bytes:
    return msgpack.packb({"v": 1, "id": message["id"], "ok": True, "session": 7, "answer": 5, **more})


@asynccontextmanager
async def peer(answer: Answer) -> AsyncIterator[str]:
    """Greets well, and answers everything else as it is told."""
    context = zmq.asyncio.Context()
    socket = context.socket(zmq.ROUTER)
    port = socket.bind_to_random_port("tcp://127.0.0.1")

    async def serve() -> None:
        while True:
            who, body = await socket.recv_multipart()
            message = msgpack.unpackb(body)
            await socket.send_multipart([who, sound(message) if message["op"] == "hello" else answer(message)])

    task = asyncio.create_task(serve())
    try:
        yield f"tcp://127.0.0.1:{port}"
    finally:
        task.cancel()
        context.destroy(0)


def refused_and_then_served(bad: bytes, why: str) -> None:
    async def run() -> None:
        answers = iter([bad])
        async with peer(lambda m: next(answers, sound(m))) as endpoint, aio.Node(endpoint, timeout=2.0) as node:
            with pytest.raises(NodeError, match=why):
                await node.pause()
            assert await node.pause() == 5

    asyncio.run(run())


@pytest.mark.parametrize(
    "bad", [b"\xc1", b"", msgpack.packb([1]), b"\x91" * 60_000, msgpack.packb("hello")], ids=lambda b: repr(b[:8])
)
def test_an_answer_that_is_none_is_told_and_the_next_one_is_heard(bad):
    refused_and_then_served(bad, "no hilnode")


def test_a_refusal_without_a_number_reaches_who_asked():
    bad = msgpack.packb({"v": 1, "id": None, "ok": False, "reason": "malformed", "error": "what was that"})
    refused_and_then_served(bad, "what was that")


def test_an_answer_to_something_else_is_left():
    async def run() -> None:
        other = iter([msgpack.packb({"v": 1, "id": [1], "ok": True}), msgpack.packb({"v": 1, "id": 99, "ok": True})])
        async with peer(lambda m: next(other, sound(m))) as endpoint, aio.Node(endpoint, timeout=0.3) as node:
            for _ in range(2):
                with pytest.raises(NodeError, match="did not answer"):
                    await node.pause()
            assert await node.pause() == 5

    asyncio.run(run())


def test_what_is_too_large_is_not_even_sent():
    async def run() -> None:
        async with peer(sound) as endpoint, aio.Node(endpoint, timeout=2.0) as node:
            with pytest.raises(NodeError, match=f"at most {LARGEST} bytes") as refusal:
                await node.load_session(forces={f"signal.{k}": 1.0 for k in range(5000)})
            assert refusal.value.reason == "oversized"
            assert await node.pause() == 5

    asyncio.run(run())
