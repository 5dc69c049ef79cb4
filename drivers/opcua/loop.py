"""A thread that runs an event loop for asyncua, so that a driver's own threads can call coroutines.

asyncua has such a bridge of its own (`asyncua.sync`), which wraps every object; here a driver has two or three
coroutines, and the thread must end within the time that a stop has, whatever the network does.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
PATIENCE = 2.0  # [s] for the tasks and the thread to end


class Loop:
    """Runs from here until `close`."""

    def __init__(self, name: str) -> None:
        logging.getLogger("asyncua").setLevel(logging.CRITICAL)  # what it would log at every try, the driver says once
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def call(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Have it done over there; TimeoutError, and the work is given up, if it takes longer."""
        try:
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:  # closed by the other thread
            work.close()
            raise ConnectionError("not open") from error
        try:
            return future.result(seconds)
        except concurrent.futures.CancelledError as error:
            raise ConnectionError("not open") from error
        except TimeoutError:
            future.cancel()
            raise

    def close(self) -> None:
        """Give up everything that is still going on, and end the thread; also twice."""
        if threading.current_thread() is self._thread or self._loop.is_closed():
            return
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result(PATIENCE)
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()


async def _cancel_all() -> None:
    tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0)  # lets transports say good-bye
