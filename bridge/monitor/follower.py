"""Keeps the monitor's model up to date and sends commands; starts over when the node or its bridge restarts."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any

from bridge.client.aio import Node
from bridge.client.link import beside
from bridge.client.subscription import Subscription
from bridge.monitor.model import TOPICS, Model
from bridge.protocol.keys import ClientKey
from bridge.protocol.operations import NodeError
from bridge.protocol.rows import schema_of

ANSWERS_WITHIN = 2.0  # [s]
ASK_EVERY = 1.0  # [s] for the status: the sign that commands would arrive, too
AGAIN_AFTER = 0.5  # [s]


class Follower:
    """One endpoint. `follow` runs for ever; `look` is called for each picture."""

    def __init__(self, endpoint: str, key: ClientKey | None, model: Model) -> None:
        self.endpoint = endpoint
        self.model = model
        self._key = key
        self._node: Node | None = None
        self._subscription: Subscription | None = None
        self._told_lost = 0

    async def follow(self) -> None:
        """Connect, ask for the status again and again, and begin anew when there is no answer."""
        while True:
            try:
                async with Node(self.endpoint, key=self._key, timeout=ANSWERS_WITHIN) as node:
                    await self._stay(node)
            except NodeError as error:
                self.model.trouble = str(error)
            await asyncio.sleep(AGAIN_AFTER)

    async def _stay(self, node: Node) -> None:
        answer = await node.ask("schema")
        self.model.describe(answer["schema"], schema_of(answer))
        self._subscription = Subscription(beside(self.endpoint, node.about["publish"]), TOPICS, self._key)
        self._node = node
        try:
            while True:
                self.model.told(await node.status())
                self.model.about, self.model.trouble = node.about, ""
                if self.model.lost > self._told_lost:
                    self._told_lost = self.model.lost
                    await node.ask("losses", lost=self._told_lost)
                await asyncio.sleep(ASK_EVERY)
        finally:
            self._node = None
            self._subscription.close()
            self._subscription = None

    def look(self) -> None:
        """Take what has been published since the last time."""
        if self._subscription is not None:
            self.model.hear(self._subscription.take(), time.monotonic())

    async def command(self, op: str, **fields: Any) -> int:
        """Have the node do something: the tick at which it was done. NodeError says why not."""
        node = self._node
        if node is None:
            raise NodeError("silent", f"{op} was not sent, there is no connection: {self.model.trouble}")
        answer = int((await node.ask(op, **fields))["answer"])
        with contextlib.suppress(NodeError):
            self.model.told(await node.status())  # shown at once, not with the next question
        return answer
