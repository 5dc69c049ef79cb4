"""The ECU side of the ECU lane, for controllers in Python and for tests of other controllers:

    from bridge import Ecu

    with Ecu("tcp://127.0.0.1:9874") as ecu:
        ecu.send([0.0])                                  # say hello: from now on the node sends its state
        while True:
            state = ecu.receive()
            ecu.send([-8.0 * state.values[0]])           # in the order of drivers.NAME.inputs

In lockstep (`node.pace = "lockstep"`) the plant moves when it is told to: `state = ecu.step([torque])`. No hilnode is
needed to speak to the lane: docs/wire-protocol.md has the format, and the same in C.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgpack
import zmq

from bridge.client.link import client_key, identify
from bridge.protocol.ecu_wire import VERSION
from bridge.protocol.keys import ClientKey
from bridge.protocol.operations import NodeError

ENDPOINT = "tcp://127.0.0.1:9874"
"""Where a node takes ECUs unless its config says otherwise."""

Values = Sequence[float] | Mapping[str, float]


@dataclass(frozen=True, slots=True)
class State:
    """What the node said: the machine after one tick."""

    tick: int
    step: int  # plant steps done
    t: float  # simulated time [s]
    state: str  # of the node
    live: bool  # else the values are the safe ones
    values: list[float]  # in the order of drivers.NAME.outputs
    seq: int
    granted: int  # steps that this answers, in lockstep
    ack: int  # the last message of ours that it had got, -1: none
    lost: int  # messages of ours that it never got
    timestamp: float  # node's clock when the tick woke [s]
    arrived: float  # our clock when it came [s]
    offset: float | None  # our clock minus the node's, as the node knows it [s]


class Ecu:
    """One ECU. `name` is that of its driver in the config, needed if there are several; `clock` is its own [s]."""

    def __init__(
        self,
        endpoint: str = ENDPOINT,
        name: str | None = None,
        *,
        key: Path | str | ClientKey | None = None,
        timeout: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.endpoint, self.timeout = endpoint, timeout
        self.lost = 0  # states that never came
        self._clock = clock
        self._head: dict[str, Any] = {"v": VERSION} | ({"ecu": name} if name is not None else {})
        self._seq = 0
        self._last: State | None = None
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = identify(self._context.socket(zmq.DEALER), client_key(key))
        self._socket.connect(endpoint)

    def send(self, values: Values | None = None, *, step: int = 0) -> int:
        """Send actuator values, all in their order or some by name: the sequence number. `step` is for lockstep."""
        message = {**self._head, "seq": self._seq, "t": self._clock()}
        if values is not None:
            message["values"] = dict(values) if isinstance(values, Mapping) else [float(x) for x in values]
        if self._last is not None:
            message |= {"ack": self._last.seq, "ack_t": self._last.arrived}
        if step:
            message["step"] = step
        self._socket.send(msgpack.packb(message))
        self._seq += 1
        return self._seq - 1

    def receive(self, timeout: float | None = None) -> State:
        """The next state. NodeError if there is none in time, or if the node refused a message of ours."""
        patience = self.timeout if timeout is None else timeout
        if not self._socket.poll(round(1e3 * patience)):
            raise NodeError(
                "silent",
                f"{self.endpoint} sent nothing within {patience:g} s: is a node running there, has its config a driver "
                "of kind ecu, and did you send it a message first?",
            )
        return self._state(self._socket.recv())

    def newest(self, timeout: float | None = None) -> State:
        """The newest state: what has waited meanwhile is passed over."""
        state = self.receive(timeout)
        while self._socket.poll(0):
            state = self._state(self._socket.recv())
        return state

    def step(self, values: Values | None = None, count: int = 1) -> State:
        """Lockstep: apply the values, advance the plant by `count` steps, and wait for the state after them."""
        self.send(values, step=count)
        state = self.receive()
        if state.granted != count:
            raise NodeError("refused", f"no step was made: the node is {state.state}, not running")
        return state

    def _state(self, body: bytes) -> State:
        arrived = self._clock()
        message = msgpack.unpackb(body)
        if "error" in message:
            raise NodeError(str(message.get("reason", "refused")), str(message["error"]))
        fields = {key: message[key] for key in State.__slots__ if key != "arrived"}
        state = State(**fields, arrived=arrived)
        if self._last is not None and state.seq > self._last.seq:
            self.lost += state.seq - self._last.seq - 1
        self._last = state
        return state

    def close(self) -> None:
        self._socket.close(0)
        self._context.term()

    def __enter__(self) -> Ecu:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
