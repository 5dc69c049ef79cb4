"""The two messages of the ECU lane in docs/wire-protocol.md, and the ECU in C of docs/connect-an-ecu.md."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest
import zmq
from doc_blocks import TOP, blocks_of

from bridge.client.pytest_plugin import running_node
from bridge.ecu.client import State as Told
from bridge.ecu.lane import _row_words
from bridge.ecu.seat import Seat
from bridge.protocol.ecu_wire import VERSION, frame_of, unpack
from hilnode.core.signals import Signal
from hilnode.shared.ecu_link import E, EcuLinks
from hilnode.shared.health import HEALTH_KIND, HEALTH_WORDS
from hilnode.shared.lockfree.mailbox import Mailbox
from hilnode.shared.lockfree.segment import Segment
from hilnode.shared.row import Schema

PAGE = TOP / "docs" / "wire-protocol.md"
ZMQ_H = """
#include <stddef.h>
#define ZMQ_DEALER 5
#define ZMQ_RCVTIMEO 27
void *zmq_ctx_new(void);
void *zmq_socket(void *, int);
int zmq_connect(void *, const char *);
int zmq_setsockopt(void *, int, const void *, size_t);
int zmq_send(void *, const void *, size_t, int);
int zmq_recv(void *, void *, size_t, int);
"""


def block(info: str) -> str:
    (text,) = (b.text for b in blocks_of(PAGE) if b.info == info)
    return text


def test_the_message_from_the_ecu_is_taken_as_the_page_says():
    body = bytes.fromhex(block("hex ecu-message"))
    said = json.loads(block("json ecu-message"))
    assert msgpack.unpackb(body) == said
    frame = frame_of(unpack(body), {"torque": 0})
    assert (frame.seq, frame.t, frame.values, frame.ack, frame.ack_t) == (41, 12.5, [1.5], 1000, 12.4995)


def test_the_state_is_what_the_lane_sends(name):
    """After the message above arrived, in the row of the other vectors."""
    said = json.loads(block("json ecu-state"))
    row = np.array([1000, 1000, 10**9, 1_000_025_000, 0, 0, 0, 0, 32, 2, 0, 0, *[0] * 11], np.int64)
    schema = Schema(1_000_000, (Signal("cart.force"),), (Signal("cart.position"),), (Signal("ecu.ao0"),), ("cart",))
    row.view(float)[schema.at_commands] = 2.5
    parts: list[Any] = [
        EcuLinks.create(name, 1),
        Mailbox.create(f"{name}.in.ecu", channels=1),
        Segment.create(f"{name}.health", kind=HEALTH_KIND, words=HEALTH_WORDS),
    ]
    ecu = {"name": "ecu", "inputs": ["torque"], "commands": [0], "mapped": [0], "safe": [0.0], "record": 0}
    seat = Seat(ecu | {"silent_ns": 10**9, "every": 1}, 0, {"node": name}, schema)
    seat.take(b"x", "somebody")
    seat._seq = 1000
    seat.hear(frame_of(unpack(bytes.fromhex(block("hex ecu-message"))), {"torque": 0}), 999_600_000)
    seat.clock.offset = 11.5
    message = {"v": VERSION, **_row_words(row, 1_000_000), **seat.words(row, True, 1.00011)}
    assert message == said
    assert msgpack.packb(message) == bytes.fromhex(block("hex ecu-state"))
    assert seat.link[E.SEQ] == 41
    for part in parts:
        part.close()


def test_every_field_is_explained():
    page = PAGE.read_text("utf-8")
    for vector in ("json ecu-message", "json ecu-state"):
        assert not {key for key in json.loads(block(vector)) if f"`{key}`" not in page}
    assert set(Told.__slots__) - {"arrived"} <= json.loads(block("json ecu-state")).keys()


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_the_ecu_in_c_closes_the_loop(tmp_path: Path):
    """Compiled against the libzmq that pyzmq brings; its header is not installed, so the prototypes stand above."""
    (library,) = Path(zmq.__file__).parents[1].glob("pyzmq.libs/libzmq*")
    page = {b.file: b.text for b in blocks_of(TOP / "docs" / "connect-an-ecu.md")}
    (tmp_path / "ecu.c").write_text(page["ecu.c"])
    (tmp_path / "zmq.h").write_text(ZMQ_H)
    flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", f"-I{tmp_path}"]
    subprocess.run(
        ["gcc", *flags, "ecu.c", str(library), f"-Wl,-rpath,{library.parent}", "-o", "ecu"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    text = page["lane.toml"].partition("[bridge]")[0] + "[safety]\nbumpless_ms = 0\n"
    with running_node(tmp_path, text) as node:
        config = json.loads(next(tmp_path.glob("hil-*/run/run.json")).read_text())["config"]
        node.arm()
        node.run()
        ecu = subprocess.Popen(
            [tmp_path / "ecu", config["bridge"]["ecu"], "3000"], stdout=subprocess.PIPE, text=True, env=os.environ
        )
        node.wait_until("pendulum.shoulder.torque", lt=-0.1, timeout=60)
        said = ecu.communicate(timeout=60)[0]
    assert ecu.returncode == 0
    assert said.startswith("last angle")
    assert said.endswith(" 0 messages lost\n")
