"""Connection to a DAQ card: NI's driver on this PC, or an NI gRPC device server on another. Needs nidaqmx."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Callable
from typing import Any

import nidaqmx
import nidaqmx.system
from nidaqmx.errors import Error, RpcError

from drivers.base import DriverError
from drivers.daq.errors import NO_SUCH_CARD, code_of, explain

Failed = Error
"""What every call of nidaqmx may raise."""

_numbers = itertools.count()


class Link:
    """A card, found by its name or its serial number. Tasks that a lost server may still have are cleared later."""

    def __init__(self, device: str, serial: int, server: str, deadline: float) -> None:
        self.device, self.server = device, server
        self._serial = serial
        self._deadline = deadline
        self._channel: Any = None
        self._is_open = False
        self._orphans: list[str] = []

    def open(self) -> None:
        """Reach the server if there is one, clear what we left there, and find the card; nothing if that is done."""
        if self._is_open:
            return
        self.close()
        if self.server:
            self._channel = _Patient(self.server, self._deadline)
        self._clear_orphans()
        if self._serial:
            self.device = self._by_serial()
        self._is_open = True

    def close(self) -> None:
        self._is_open = False
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def task(self) -> tuple[Any, str]:
        """A new task and its name, which is its own, so that it can be found again."""
        name = f"hilnode-{os.getpid()}-{next(_numbers)}"
        return nidaqmx.Task(name, grpc_options=self._options(name)), name

    def clear(self, task: Any, name: str) -> None:
        """Give the task up. A server that cannot be reached may come back and still have it."""
        try:
            task.close()
        except RpcError:
            self._orphans.append(name)
        except Error:
            pass  # reset or removed: there is nothing left to clear

    def reset(self) -> None:
        """Abort every task on the card, whoever has it, and put it into its power-up state."""
        nidaqmx.system.Device(self.device, grpc_options=self._options("")).reset_device()

    def why(self, error: BaseException) -> DriverError:
        """What to tell people."""
        present = ""
        if code_of(error) == NO_SUCH_CARD:
            with contextlib.suppress(Error):
                present = f"There are: {', '.join(self.cards()) or 'none'}"
        return DriverError(explain(error, self.device, self.server, present))

    def _options(self, session: str) -> Any:
        return nidaqmx.GrpcSessionOptions(self._channel, session) if self.server else None

    def _system(self) -> Any:
        system = nidaqmx.system.System
        return system.remote(self._options("")) if self.server else system.local()

    def cards(self) -> list[str]:
        """The names of all cards there; the first call also loads NI's driver, or connects to the server."""
        return [str(card.name) for card in self._system().devices]

    def _by_serial(self) -> str:
        there = [(str(card.name), int(card.serial_num)) for card in self._system().devices]
        for name, serial in there:
            if serial == self._serial:
                return name
        known = ", ".join(f"{serial:08X} ({name})" for name, serial in there) or "none"
        raise DriverError(f"there is no card with serial = {self._serial:08X}: is it plugged in? There are: {known}")

    def _clear_orphans(self) -> None:
        """By their names: attached to if they are still there, else made anew, and then cleared."""
        while self._orphans:
            name = self._orphans[-1]
            nidaqmx.Task(name, grpc_options=self._options(name)).close()
            self._orphans.pop()


class _Patient:
    """A gRPC channel whose calls end after `deadline` [s]: a server that went silent must not hold a thread for ever.

    Each task makes itself a stub of all 451 calls; here they are made once, which saves milliseconds for each task.
    """

    def __init__(self, address: str, deadline: float) -> None:
        try:
            import grpc
        except ImportError as error:
            raise DriverError('the library grpcio is not installed: pip install "hilnode[daq]"') from error
        own = (("grpc.use_local_subchannel_pool", 1),)  # or a new try would inherit the old one's growing patience
        self._channel = grpc.insecure_channel(address, options=own)
        self._deadline = deadline
        self._calls: dict[str, Callable[..., Any]] = {}

    def unary_unary(self, method: str, *arguments: Any, **more: Any) -> Callable[..., Any]:
        if method not in self._calls:
            call = self._channel.unary_unary(method, *arguments, **more)
            self._calls[method] = functools.partial(call, timeout=self._deadline)
        return self._calls[method]

    def unary_stream(self, method: str, *arguments: Any, **more: Any) -> Any:
        return self._channel.unary_stream(method, *arguments, **more)

    def close(self) -> None:
        self._channel.close()
