"""The options of a CAN driver: the database, the messages used from it, and the channels made of their signals."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drivers.base import OptionError
from drivers.can.layout import Layout, PackedFrame, field_of
from drivers.options import Options
from drivers.unit_words import plain
from hilnode.core.signals import Signal, nearest

if TYPE_CHECKING:
    from cantools.database.can import Database, Message
    from cantools.database.can import Signal as DbcSignal

INSTALL = 'pip install "hilnode[can]"'
CHANNEL_KEYS = ("signal", "unit", "low", "high", "default", "safe")
SILENT_CYCLES = 5  # of a received message without timeout_ms: so many may be missing
LONGEST_MS = 3_600_000.0
CLASSIC = 8  # bytes at most in a frame that is not CAN FD


@dataclass(slots=True)
class Received:
    """A message that is listened for. `heard` is when it last came."""

    name: str
    layout: Layout
    timeout_ns: int  # 0: it may be silent for ever
    heard: int = 0


@dataclass(slots=True)
class Sent:
    """A message that is sent every `period` [s]: its frames one after another, if it has pages."""

    name: str
    can_id: int
    extended: bool
    fd: bool
    frames: list[PackedFrame]
    period: float
    due: float = 0.0
    turn: int = 0

    def plan_next(self, now: float) -> None:
        """On the beat of the first frame, however late this one was; turns that were missed are left out."""
        late = max(0.0, now - self.due)
        if self.due == 0.0:
            self.due = now + self.period
        else:
            self.due += self.period * (1 + late // self.period)


class Messages:
    """What `receive`, `send` and `channels` make of a database."""

    def __init__(self, given: Options, fd: bool) -> None:
        self._given, self._fd = given, fd
        self._database = _load(given)
        self._named = _named(given)
        self.inputs: list[Signal] = []
        self.outputs: list[Signal] = []
        self.received: dict[tuple[int, bool], Received] = {}
        self.sent: list[Sent] = []
        taken: dict[str, str] = {}
        for name, table in _tables(given, "receive", ("timeout_ms",)).items():
            self._receive(self._message(name, "receive", taken), table)
        for name, table in _tables(given, "send", ("period_ms",)).items():
            self._send(self._message(name, "send", taken), table)
        if not taken:
            raise OptionError(f'drivers.{given.name}: give receive = ["Message"], send = ["Message"] or both')
        if self._named:
            where, lost = next(iter(self._named.items()))
            known = [f"{m}.{s.name}" for m in taken for s in self._database.get_message_by_name(m).signals]
            raise OptionError(
                f"drivers.{given.name}.channels.{lost['name']}: {where} is no signal of a message that is received or "
                f"sent: {nearest(where, known)}"
            )

    def _message(self, name: str, key: str, taken: dict[str, str]) -> Message:
        where = f"drivers.{self._given.name}.{key}"
        known = {m.name: m for m in self._database.messages}
        if name not in known:
            raise OptionError(
                f"{where}: {name!r} is no message of {self._given.given['dbc']}: {nearest(name, list(known))}"
            )
        if name in taken:
            raise OptionError(f"{where}: {name} stands in {taken[name]} already: only one side can send a message")
        taken[name] = key
        message = known[name]
        if message.is_container:
            raise OptionError(f"{where}: {name} holds other messages, which this driver does not unpack")
        if message.length > CLASSIC and not self._fd:
            raise OptionError(f"{where}: {name} has {message.length} bytes: that takes CAN FD, so write fd = true")
        try:
            message.refresh(strict=True)
        except Exception as error:  # cantools' own, for signals that overlap or stick out
            raise OptionError(f"{where}: {name}: {error}; mend {self._given.given['dbc']}") from error
        return message

    def _receive(self, message: Message, table: Options) -> None:
        channels = {s.name: len(self.inputs) + k for k, s in enumerate(message.signals)}
        for signal in message.signals:
            self.inputs.append(self._channel(message, signal))
        usual = float(SILENT_CYCLES * (message.cycle_time or 0))
        timeout = round(table.number("timeout_ms", usual, 0.0, LONGEST_MS) * 1e6)
        key = message.frame_id, message.is_extended_frame
        if key in self.received:
            other = self.received[key].name
            raise OptionError(
                f"drivers.{self._given.name}.receive: {message.name} and {other} have the same identifier"
            )
        self.received[key] = Received(message.name, Layout(message, channels), timeout)

    def _send(self, message: Message, table: Options) -> None:
        channels = {}
        for signal in message.signals:
            if signal.is_multiplexer:
                self._refuse_named(f"{message.name}.{signal.name}")
                continue
            channels[signal.name] = len(self.outputs)
            self.outputs.append(self._channel(message, signal))
        if not message.cycle_time and not table.has("period_ms"):
            raise OptionError(
                f"drivers.{table.name}: the database has no cycle time (GenMsgCycleTime): "
                f"write send = {{ {message.name} = {{ period_ms = 10.0 }} }}"
            )
        period = table.number("period_ms", float(message.cycle_time or 0), 0.1, LONGEST_MS) * 1e-3
        try:
            frames = Layout(message, channels).frames()
        except ValueError as error:
            raise OptionError(f"drivers.{table.name}: {error}") from error
        fd = self._fd and (message.is_fd or message.length > CLASSIC)
        self.sent.append(Sent(message.name, message.frame_id, message.is_extended_frame, fd, frames, period))

    def _refuse_named(self, where: str) -> None:
        if where in self._named:
            raise OptionError(
                f"drivers.{self._given.name}.channels.{self._named[where]['name']}: {where} chooses the page of a "
                "message that is sent; pages are sent in turn, so it is no channel"
            )

    def _channel(self, message: Message, signal: DbcSignal) -> Signal:
        """Name, unit, range, default and safe value from the database, where the config does not say otherwise."""
        where = f"{message.name}.{signal.name}"
        own = self._named.pop(where, {})
        low, high = field_of(signal, message.length, 0).span
        low = low if signal.minimum is None else float(signal.minimum)
        high = high if signal.maximum is None else float(signal.maximum)
        if low > high:
            low, high = high, low
        table: dict[str, Any] = {
            "name": own.get("name", _channel_name(where)),
            "unit": plain(signal.unit),
            "low": low,
            "high": high,
        }
        table |= {k: v for k, v in own.items() if k != "signal"}
        start = math.nan
        if signal.raw_initial is not None:
            start = float(signal.raw_initial) * signal.conversion.scale + signal.conversion.offset
        table.setdefault("default", _resting(start, table["low"], table["high"]))
        try:
            return Signal(**table, doc=" ".join(f"{where} {signal.comment or ''} {_choices(signal)}".split()))
        except (TypeError, ValueError) as error:
            raise OptionError(f"drivers.{self._given.name}.channels: {where}: {error}") from error


def _load(given: Options) -> Database:
    """Read the database. Faults in messages that nobody asks for do not matter."""
    path = given.text("dbc", "")
    if not path:
        raise given.wrong("dbc", 'must be the path of a CAN database, such as "ecu.dbc"')
    try:
        library: Any = importlib.import_module("cantools.database")
    except ImportError as error:
        raise OptionError(f"drivers.{given.name}: the library cantools is missing ({error}): {INSTALL}") from error
    try:
        database = library.load_file(path, strict=False)
    except OSError as error:
        raise given.wrong(
            "dbc", f"cannot be read ({error.strerror}); the path is relative to the config's folder"
        ) from error
    except Exception as error:  # a parser of many formats, each with errors of its own
        why = " ".join(str(error).split())
        raise given.wrong("dbc", f"is no CAN database that cantools can read: {why[:200]}") from error
    if not hasattr(database, "get_message_by_frame_id"):
        raise given.wrong("dbc", "describes diagnostics, not messages")
    return database


def _tables(given: Options, key: str, known: tuple[str, ...]) -> dict[str, Options]:
    """Messages and their options, from a list of names or a table of tables."""
    value = given.given.get(key, [])
    if isinstance(value, (list, tuple)):
        value = {name if isinstance(name, str) else repr(name): {} for name in value}
    if not isinstance(value, Mapping):
        raise given.wrong(
            key, f'must be a list such as ["EngineData"] or a table {{ EngineData = {{ {known[0]} = 100.0 }} }}'
        )
    return {name: Options(f"{given.name}.{key}.{name}", table, known) for name, table in value.items()}


def _named(given: Options) -> dict[str, dict[str, Any]]:
    """The option `channels`, by `Message.Signal`."""
    value = given.given.get("channels", {})
    if not isinstance(value, Mapping):
        raise given.wrong("channels", 'must be a table such as { speed = "EngineData.EngineSpeed" }')
    found: dict[str, dict[str, Any]] = {}
    for name, item in value.items():
        table = {"signal": item} if isinstance(item, str) else item
        options = Options(f"{given.name}.channels.{name}", table, CHANNEL_KEYS)
        where = options.text("signal", "")
        if "." not in where:
            raise options.wrong("signal", 'must name a signal of the database, such as "EngineData.EngineSpeed"')
        if where in found:
            raise options.wrong("signal", f"is the channel {found[where]['name']} already")
        for key in ("low", "high", "default", "safe"):
            if options.has(key):
                options.number(key, 0.0, -1e100, 1e100)
        options.text("unit", "")
        found[where] = {**table, "name": name}
    return found


def _channel_name(where: str) -> str:
    """`EngineData.EngineSpeed` is `enginedata.enginespeed` in a config, where names are lower case."""
    message, _, signal = where.lower().partition(".")
    return f"{re.sub('^[_0-9]+', '', message)}.{signal.lstrip('_')}"


def _resting(start: float, low: Any, high: Any) -> float:
    """The start value if it is within the range, else what is nearest to zero.

    Many databases start at "signal not available", a number beyond the range: as a safe value it would be the worst.
    """
    if math.isfinite(start) and low <= start <= high:
        return start
    return float(min(max(0.0, low), high))


def _choices(signal: DbcSignal) -> str:
    return ", ".join(f"{number} = {name}" for number, name in (signal.choices or {}).items())
