"""A session with an OPC UA server: a subscription for inputs, and writes. All use of asyncua's client is here.

A subscription tells changes only. So each publishing interval the server sends at least a sign of life (a keep-alive
count of 1), and a value is as fresh as the last one: it would have been told, had it changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from asyncua import Client, ua
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256
from numpy.typing import NDArray

from drivers.base import HELD, DriverError
from drivers.opcua.certificates import read_certificates
from drivers.opcua.loop import Loop
from drivers.opcua.options import TYPES, Address, Credentials, number_for
from drivers.unit_words import plain
from hilnode.core import units

LIFETIME = 1000  # intervals without a request after which the server forgets the subscription
GOODBYE = 0.3  # [s] for the server to end the session; a stop cannot wait for a frozen one
NUMERIC = {getattr(ua.VariantType, name): name for name in TYPES}


@dataclass(slots=True)
class Point:
    """A channel at the server: value in the channel's unit = number * scale + offset."""

    name: str
    unit: str
    node: str
    type: str = ""  # of OPC UA, as the server has it
    scale: float = 1.0
    offset: float = 0.0
    id: Any = None


@dataclass(frozen=True, slots=True)
class Habits:
    """How to talk."""

    timeout: float  # [s] for an answer
    publish: float  # [s] between two signs of life
    by_source: bool  # age by the server's source timestamps
    check_units: bool


class Link:
    """An open session. `inputs` are subscribed to, `outputs` written."""

    def __init__(
        self, address: Address, who: Credentials, habits: Habits, inputs: list[Point], outputs: list[Point]
    ) -> None:
        self.address, self._who, self._habits = address, who, habits
        self._inputs, self._outputs = inputs, outputs
        self._news = threading.Condition()
        self._values = np.zeros(len(inputs))
        self._stamps = np.zeros(len(inputs), np.int64)  # 0: no good value
        self._faults: dict[str, str] = {}  # channel -> what is wrong with it
        self._said: list[Any] = [None] * len(inputs)  # as the server has it
        self._fresh = False
        self._changes = 0  # messages with values in them that nobody has taken yet
        self.heard = time.monotonic()
        self.lost = ""
        self._client: Client | None = None
        self._loop = Loop(f"opcua {address}")
        try:
            found = self._loop.call(self._connect(), 5 * habits.timeout)
            self._convert(found)
            self._loop.call(self._subscribe(), habits.timeout)
        except Exception as error:
            self.close()
            if isinstance(error, DriverError):
                raise
            raise DriverError(f"cannot connect to {address}: {why(error)}") from error

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                self._loop.call(self._leave(client), 2 * GOODBYE)
        self._loop.close()

    async def _leave(self, client: Client) -> None:
        """Close the session if the connection is up, then the socket: asyncua leaves that of a lost connection open."""
        transport = getattr(client.uaclient.protocol, "transport", None)
        if not self.lost:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(client.disconnect(), GOODBYE)
        if transport is not None:
            transport.abort()
        await asyncio.sleep(0)  # the socket is closed in the loop's next round

    # -- connecting -----------------------------------------------------------------------------------------------

    async def _connect(self) -> dict[int, str]:
        """Open the session and look at the nodes; the units that the server has for them."""
        client = Client(str(self.address), timeout=self._habits.timeout, watchdog_intervall=self._habits.timeout)
        client.name = client.description = "hilnode"
        client.connection_lost_callback = self._on_loss
        self._client = client  # from here on there may be something to close
        await self._introduce(client)
        await client.connect()
        await self._find(client)
        if not self._habits.check_units:
            return {}
        asked = {k: p for k, p in enumerate((*self._inputs, *self._outputs)) if p.unit}
        found = await asyncio.gather(*(_unit_of(client, p.id) for p in asked.values()))
        return dict(zip(asked, found, strict=True))

    async def _introduce(self, client: Client) -> None:
        who = self._who
        if who.user:
            client.set_user(who.user)
            client.set_password(who.password())
        if who.certificate:
            certificates = read_certificates(who)
            client.application_uri = certificates.uri
            mode = ua.MessageSecurityMode.SignAndEncrypt
            policy = SecurityPolicyBasic256Sha256
            await client.set_security(
                policy, certificates.certificate, certificates.private_key, None, certificates.peer, mode
            )

    async def _on_loss(self, error: Exception) -> None:
        self.lost = f"lost {self.address}: {why(error)}"

    async def _find(self, client: Client) -> None:
        """Look for every node, and at the type of those that are written."""
        points = [*self._inputs, *self._outputs]
        for point in points:
            point.id = await _node_id(client, point.node)
        answers = await client.uaclient.read_attributes([p.id for p in points], ua.AttributeIds.Value)
        for point, answer in zip(points, answers, strict=True):
            status = answer.StatusCode
            if status is not None and status.value in (
                ua.StatusCodes.BadNodeIdUnknown,
                ua.StatusCodes.BadNodeIdInvalid,
                ua.StatusCodes.BadAttributeIdInvalid,
            ):
                raise DriverError(f"{self.address} has no variable {point.node} ({point.name}): {status.name}")
            kind = answer.Value.VariantType if answer.Value is not None else ua.VariantType.Null
            if kind == ua.VariantType.Null:
                kind = await client.get_node(point.id).read_data_type_as_variant_type()
            is_list = answer.Value is not None and isinstance(answer.Value.Value, list)
            if kind not in NUMERIC or is_list:
                what = "a list" if is_list else f"of type {kind.name}"
                raise DriverError(f"{point.node} ({point.name}) at {self.address} is {what}: a channel is one number")
            point.type = NUMERIC[kind]

    def _convert(self, found: dict[int, str]) -> None:
        """Convert where the server's unit is another one of the same kind; complain where it is of another kind.

        Not in the loop: the first conversion loads a library, and takes its time.
        """
        points = (*self._inputs, *self._outputs)
        for point, unit in ((points[k], unit) for k, unit in found.items() if unit):
            try:
                point.scale, point.offset = units.conversion(unit, point.unit)
            except units.UnitError as error:
                self._faults[point.name] = f"{point.name}: the server's unit is {unit!r}: {error}"

    async def _subscribe(self) -> None:
        client, interval = self._client, self._habits.publish * 1e3
        if client is None or not self._inputs:
            return
        made = await client.uaclient.create_subscription(
            ua.CreateSubscriptionParameters(
                RequestedPublishingInterval=interval,
                RequestedLifetimeCount=LIFETIME,
                RequestedMaxKeepAliveCount=1,
                MaxNotificationsPerPublish=0,
                PublishingEnabled=True,
            ),
            self._on_publish,
        )
        trigger = (
            ua.DataChangeTrigger.StatusValueTimestamp if self._habits.by_source else ua.DataChangeTrigger.StatusValue
        )
        items = [
            ua.MonitoredItemCreateRequest(
                ItemToMonitor=ua.ReadValueId(NodeId=point.id, AttributeId=ua.AttributeIds.Value),
                MonitoringMode=ua.MonitoringMode.Reporting,
                RequestedParameters=ua.MonitoringParameters(
                    ClientHandle=number,
                    SamplingInterval=interval,
                    Filter=ua.DataChangeFilter(Trigger=trigger),
                    QueueSize=1,
                    DiscardOldest=True,
                ),
            )
            for number, point in enumerate(self._inputs)
        ]
        results = await client.uaclient.create_monitored_items(
            ua.CreateMonitoredItemsParameters(
                SubscriptionId=made.SubscriptionId, TimestampsToReturn=ua.TimestampsToReturn.Both, ItemsToCreate=items
            )
        )
        for point, result in zip(self._inputs, results, strict=True):
            if not result.StatusCode.is_good():
                raise DriverError(
                    f"{self.address} does not watch {point.node} ({point.name}): {result.StatusCode.name}"
                )

    # -- reading --------------------------------------------------------------------------------------------------

    def _on_publish(self, result: ua.PublishResult) -> None:
        """Changes, or a sign of life. Runs in the loop's thread."""
        now = time.monotonic_ns()
        with self._news:
            notices = result.NotificationMessage.NotificationData or ()
            items = [item for notice in notices for item in getattr(notice, "MonitoredItems", ())]
            for item in items:
                self._take_item(item.ClientHandle, item.Value, now)
            self._changes += bool(items)
            if not self._habits.by_source:
                self._stamps[self._stamps > 0] = now
            self.heard = time.monotonic()
            self._fresh = True
            self._news.notify()

    def _take_item(self, number: int, data: ua.DataValue, now: int) -> None:
        point = self._inputs[number]
        key = f"{point.name} value"
        status = data.StatusCode
        value = data.Value.Value if data.Value is not None else None
        if (status is not None and status.is_bad()) or not isinstance(value, (bool, int, float)):
            named = status.name if status is not None and status.is_bad() else f"{value!r} is no number"
            self._faults[key] = f"{point.name} has no good value: {named}"
            self._stamps[number] = 0
            return
        self._faults.pop(key, None)
        self._said[number] = value
        self._values[number] = value * point.scale + point.offset
        self._stamps[number] = now
        source = data.SourceTimestamp
        if self._habits.by_source and source is not None:
            aware = source if source.tzinfo else source.replace(tzinfo=UTC)
            age = (datetime.now(UTC) - aware).total_seconds()
            self._stamps[number] = max(1, now - max(0, round(age * 1e9)))

    def take(self, values: NDArray[np.float64], stamps: NDArray[np.int64], wait: float) -> int:
        """What is known, when there was news of it; channels without a good value keep what they had.

        How many messages brought values; HELD if there were only signs of life.
        """
        with self._news:
            if not self._fresh and not self._news.wait_for(lambda: self._fresh, wait):
                return 0
            self._fresh = False
            changes, self._changes = self._changes, 0
            good = self._stamps > 0
            values[good] = self._values[good]
            stamps[good] = self._stamps[good]
            return (changes or HELD) if good.any() else 0

    def said(self) -> dict[str, str]:
        """What the server said last of each input."""
        with self._news:
            return {p.name: f"{x} {p.type}" for p, x in zip(self._inputs, self._said, strict=True) if x is not None}

    @property
    def trouble(self) -> str:
        """What is wrong with single channels."""
        return "; ".join(list(self._faults.values())[:3])

    # -- writing --------------------------------------------------------------------------------------------------

    def write(self, wanted: dict[int, float]) -> dict[int, str]:
        """Write outputs, by their numbers; those that were refused, and why."""
        refused: dict[int, str] = {}
        numbers: dict[int, Any] = {}
        for k, value in wanted.items():
            point = self._outputs[k]
            try:
                numbers[k] = number_for((value - point.offset) / point.scale, point.type)
            except ValueError as error:
                refused[k] = f"{point.name} = {error}"
        if numbers:
            answers = self._call(self._write(numbers))
            for k, status in zip(numbers, answers, strict=True):
                if not status.is_good():
                    refused[k] = f"{self._outputs[k].name} ({self._outputs[k].node}) was refused: {status.name}"
        return refused

    def _call(self, work: Any) -> Any:
        try:
            return self._loop.call(work, self._habits.timeout)
        except (OSError, TimeoutError, ua.UaError) as error:
            raise DriverError(self.lost or f"lost {self.address}: {why(error)}") from error

    async def _write(self, numbers: dict[int, Any]) -> list[ua.StatusCode]:
        """Values alone, without timestamps: many PLCs refuse those."""
        if self._client is None:
            raise ConnectionError("not open")
        points = [self._outputs[k] for k in numbers]
        values = [
            ua.DataValue(ua.Variant(number, getattr(ua.VariantType, p.type)))
            for p, number in zip(points, numbers.values(), strict=True)
        ]
        return await self._client.uaclient.write_attributes([p.id for p in points], values)


async def _node_id(client: Client, text: str) -> ua.NodeId:
    if text.startswith("nsu="):
        uri, _, rest = text[4:].partition(";")
        try:
            text = f"ns={await client.get_namespace_index(uri)};{rest}"
        except (ValueError, ua.UaError) as error:
            known = ", ".join(await client.get_namespace_array())
            raise DriverError(f"the server has no namespace {uri!r}: it has {known}") from error
    try:
        return ua.NodeId.from_string(text)
    except ua.UaError as error:
        raise DriverError(f"node = {text!r} is not written like an identifier: {error}") from error


async def _unit_of(client: Client, node: ua.NodeId) -> str:
    """What the property EngineeringUnits says, or nothing where there is none."""
    try:
        holder = await client.get_node(node).get_child("0:EngineeringUnits")
        information = await holder.read_value()
    except ua.UaStatusCodeError as error:
        if isinstance(error, ua.uaerrors.BadTimeout):
            raise
        return ""
    return plain(getattr(getattr(information, "DisplayName", None), "Text", ""))


def why(error: BaseException) -> str:
    """An error in one line."""
    if isinstance(error, TimeoutError):
        return "nobody answers there: cable, address, firewall?"
    if isinstance(error, ConnectionRefusedError):
        return "the host is there, but no OPC UA server listens on this port: right port? Server enabled in the PLC?"
    return " ".join(str(error).split()) or type(error).__name__
