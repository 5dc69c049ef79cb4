"""Where a scope's rows come from: the topic `raw` of a node."""

from __future__ import annotations

import math
import time

from bridge.client.client import Node
from bridge.client.link import beside
from bridge.client.subscription import Subscription
from bridge.protocol.keys import ClientKey
from bridge.protocol.rows import RowReader, schema_of
from bridge.scope.capture import Capture, Stage

SILENCE = 5.0  # [s] without a row: something is wrong


class ScopeError(RuntimeError):
    """No shot: the message says why, and what to do."""


class Source:
    """Rows of one node. NodeError if it does not answer."""

    def __init__(self, endpoint: str, key: ClientKey | None = None, *, timeout: float = 5.0) -> None:
        self.endpoint = endpoint
        with Node(endpoint, key=key, timeout=timeout) as node:
            self.schema = schema_of(node.ask("schema"))
            publish = beside(endpoint, node.about["publish"])
        self._reader = RowReader(self.schema)
        self._subscription = Subscription(publish, ["raw"], key)
        self._heard = time.monotonic()

    def feed(self, capture: Capture, wait: float = 0.0) -> None:
        """Give what has come to the shot; ScopeError if the node has other signals now."""
        messages = self._subscription.take(wait)
        for _, body in messages:
            if (row := self._reader.take(body)) is None:
                raise ScopeError("the node was started anew with other signals: start the scope again")
            capture.feed(row)
        if messages:
            self._heard = time.monotonic()

    @property
    def silence(self) -> float:
        """Seconds since the last row."""
        return time.monotonic() - self._heard

    def close(self) -> None:
        self._subscription.close()


def take(source: Source, capture: Capture, timeout: float | None = None) -> None:
    """Wait until the shot is done; ScopeError if the trigger does not come within `timeout` seconds.

    Without a timeout it waits for ever, but not for a node that sends no rows.
    """
    until = None if timeout is None else time.monotonic() + timeout
    while capture.stage is not Stage.DONE:
        source.feed(capture, wait=0.05)
        if until is None and source.silence > SILENCE:
            raise ScopeError(f"{source.endpoint}: {silent(source)}")
        if until is not None and capture.stage is not Stage.TAKING and time.monotonic() > until:
            was = silent(source) if math.isnan(capture.value) else f"it was {capture.value:g} at last"
            raise ScopeError(f"{capture.trigger or 'no row'}: not within {timeout:g} s, {was}")


def silent(source: Source) -> str:
    """That no rows come, and why that may be."""
    return f"no rows for {source.silence:.0f} s: has the node ended, or does its config say raw = false?"
