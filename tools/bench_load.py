"""Background load for the latency benchmark: Python threads that hog the GIL, and ZeroMQ subscribers.

python tools/bench_load.py subscribe ENDPOINT COUNT      subscribers that read everything
python tools/bench_load.py stand-in ENDPOINT HOGS CPU    what a node's Python side does, without the tick:
                                                         GIL hogs, and a publisher of 2 KB at 1 kHz
"""

import sys
import threading
import time

import zmq

from hilnode.shared.realtime import keep_off


def hog() -> None:
    """Keep the GIL as busy as pure Python can."""
    x = 0
    while True:
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF


def start_hogs(count: int) -> None:
    for _ in range(count):
        threading.Thread(target=hog, daemon=True).start()


def subscribe(endpoint: str, count: int) -> None:
    """Read from `count` subscriptions until killed."""
    context = zmq.Context()
    poller = zmq.Poller()
    for _ in range(count):
        socket = context.socket(zmq.SUB)
        socket.setsockopt(zmq.SUBSCRIBE, b"")
        socket.connect(endpoint)
        poller.register(socket, zmq.POLLIN)
    print("ready", flush=True)
    while True:
        for socket, _ in poller.poll():
            while True:
                try:
                    socket.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break


def stand_in(endpoint: str, hogs: int, cpu: int) -> None:
    """The same disturbance as a node makes, for its peer to be measured under."""
    keep_off(cpu)
    start_hogs(hogs)
    socket = zmq.Context().socket(zmq.PUB)
    socket.bind(endpoint)
    print("ready", flush=True)
    due = time.monotonic()
    while True:
        socket.send_multipart([b"raw", bytes(2048)])
        due += 0.001
        time.sleep(max(0.0, due - time.monotonic()))


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    if what == "subscribe":
        keep_off(int(rest[1]))
        subscribe(where, int(rest[0]))
    else:
        stand_in(where, int(rest[0]), int(rest[1]))
