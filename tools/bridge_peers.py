"""The other ends of the bridge's benchmark, each in a process of its own; a line on standard input ends one.

subscribe ENDPOINT COUNT CPU   subscribers of raw; counts what is lost and how late the first one gets it
echo ENDPOINT CPU              an ECU that answers each state with its tick
collect ENDPOINT CPU           keeps tick and first input of every raw row
publish NODE ENDPOINT          a publisher on the rows of NODE, without a node
large ENDPOINT COUNT BYTES S   sends large messages of terrain, one every S seconds
stall ENDPOINT [TOPIC]         subscribes and never reads
follow ENDPOINT [TOPIC]        subscribes and says now and then how far it is
"""

from __future__ import annotations

import json
import select
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np
import zmq
from bench_plants import BODIES, SIGNALS

from bridge.ecu.client import Ecu
from bridge.protocol.endpoints import bound
from bridge.protocol.messages import Packer
from bridge.publish.publisher import Publisher
from bridge.publish.subscribers import Subscribers
from hilnode.core.signals import Signal
from hilnode.shared.realtime import keep_off
from hilnode.shared.row import Col, Schema

RING_ROWS = 10_000
STATES_FIRST = 1000  # ticks that are left out: the bridge is starting
WIDE_SCHEMA = Schema(
    1_000_000,
    tuple(Signal(f"wide.in.{k}") for k in range(SIGNALS)),
    tuple(Signal(f"wide.out.{k}") for k in range(SIGNALS)),
    tuple(Signal(f"cable.out.{k}") for k in range(SIGNALS)),
    tuple(f"wide.body{k}" for k in range(BODIES)),
)


def told_to_end() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


def subscription(context: zmq.Context[zmq.Socket[bytes]], endpoint: str, *topics: str) -> zmq.Socket[bytes]:
    socket = context.socket(zmq.SUB)
    socket.setsockopt(zmq.LINGER, 0)
    socket.setsockopt(zmq.RCVHWM, 0)
    for topic in topics:
        socket.subscribe(topic)
    socket.connect(endpoint)
    return socket


class Count:
    """Rows of one subscription."""

    def __init__(self) -> None:
        self.rows = self.lost = self.publisher_lost = 0
        self.late: list[float] = []
        self._expected = -1

    def take(self, topic: bytes, body: bytes, arrived: float) -> None:
        message = msgpack.unpackb(body)
        if topic == b"bridge":
            self.publisher_lost = message["lost"]
            return
        if 0 <= self._expected != message["seq"]:
            self.lost += message["seq"] - self._expected
        self._expected = message["seq"] + 1
        self.rows += 1
        self.late.append(arrived - message["timestamp"])


def subscribe(endpoint: str, count: str, cpu: str) -> dict[str, Any]:
    keep_off(int(cpu))
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    poller, counts = zmq.Poller(), {}
    for k in range(int(count)):
        socket = subscription(context, endpoint, "raw", *(["bridge"] if k == 0 else []))
        counts[socket] = Count()
        poller.register(socket, zmq.POLLIN)
    print("ready", flush=True)
    while not told_to_end():
        for socket, _ in poller.poll(100):
            while True:
                try:
                    topic, body = socket.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                counts[socket].take(topic, body, time.monotonic())
    first, every = next(iter(counts.values())), list(counts.values())
    p50, p99 = np.percentile(first.late[STATES_FIRST // 10 :], [50, 99]) * 1e6
    return {
        "rows": sum(c.rows for c in every),
        "least": min(c.rows for c in every),
        "lost": sum(c.lost for c in every),
        "publisher_lost": first.publisher_lost,
        "p50_us": p50,
        "p99_us": p99,
    }


def echo(endpoint: str, cpu: str) -> dict[str, Any]:
    keep_off(int(cpu))
    print("ready", flush=True)
    with Ecu(endpoint, timeout=60.0) as ecu:
        ecu.send([0.0])
        trips: list[float] = []
        while not told_to_end():
            state = ecu.newest()
            ecu.send([float(state.tick)])
            trips.append(state.arrived - state.timestamp)
    p50, p99 = np.percentile(trips, [50, 99]) * 1e6
    return {"p50_us": p50, "p99_us": p99}


def collect(endpoint: str, cpu: str) -> dict[str, Any]:
    keep_off(int(cpu))
    socket = subscription(zmq.Context(), endpoint, "raw")
    print("ready", flush=True)
    rows: list[tuple[int, float]] = []
    at = WIDE_SCHEMA.at_inputs
    while not told_to_end():
        if socket.poll(100):
            words = np.frombuffer(msgpack.unpackb(socket.recv_multipart()[1])["row"], np.int64)
            rows.append((words.item(Col.TICK), words.view(np.float64).item(at)))
    return {"rows": rows[STATES_FIRST:]}


def publish(node: str, endpoint: str) -> dict[str, Any]:
    subscribers = Subscribers(bound(zmq.Context(), None, zmq.XPUB, "publish", endpoint))
    spec = {"node": node, "schema": WIDE_SCHEMA.as_dict(), "scene": [], "state_hz": 100.0, "raw": True}
    publisher = Publisher(spec | {"parameters": [], "ecus": [], "ecu_lane": {}, "display": None}, subscribers)
    print("ready", flush=True)
    publisher.work(dict)
    return {}


def large(endpoint: str, count: str, size: str, pause: str) -> dict[str, Any]:
    """Begins when two subscribers are there."""
    import psutil

    subscribers = Subscribers(bound(zmq.Context(), None, zmq.XPUB, "large", endpoint))
    packer, process, body = Packer(WIDE_SCHEMA, "large"), psutil.Process(), bytes(int(size))
    print("ready", flush=True)
    while subscribers.connections.count < 2:
        subscribers.look()
        time.sleep(0.01)
    time.sleep(0.5)
    before = most = process.memory_info().rss
    for number in range(int(count)):
        subscribers.send(packer.pack("terrain", time.monotonic(), number, {"units": body}))
        subscribers.look()
        most = max(most, process.memory_info().rss)
        time.sleep(float(pause))
    return {"growth_mb": (most - before) / 1e6, "there": subscribers.connections.count}


def stall(endpoint: str, topic: str = "raw") -> dict[str, Any]:
    socket = zmq.Context().socket(zmq.SUB)
    socket.setsockopt(zmq.RCVHWM, 1000 if topic == "raw" else 1)
    socket.subscribe(topic)
    socket.connect(endpoint)
    print("ready", flush=True)
    threading.Event().wait()
    return {}


def follow(endpoint: str, topic: str = "raw") -> dict[str, Any]:
    socket = subscription(zmq.Context(), endpoint, topic)
    print("ready", flush=True)
    count = Count()
    while not told_to_end():
        while socket.poll(20):
            count.take(*socket.recv_multipart(), time.monotonic())
            count.late.clear()
            if count.rows % 500 == 0:
                print(count._expected - 1, flush=True)
        print(count._expected - 1, flush=True)
    return {"rows": count.rows, "lost": count.lost}


PEERS: dict[str, Callable[..., dict[str, Any]]] = {
    f.__name__: f for f in (subscribe, echo, collect, publish, large, stall, follow)
}

if __name__ == "__main__":
    print(json.dumps(PEERS[sys.argv[1]](*sys.argv[2:])), flush=True)
