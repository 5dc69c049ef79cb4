"""The test vectors in docs/wire-protocol.md: the bytes that bridge.protocol makes, and what the page says."""

from __future__ import annotations

import json
import struct
from typing import Any

import msgpack
import numpy as np
import pytest
from doc_blocks import TOP, blocks_of

from bridge.protocol.messages import Packer
from bridge.protocol.operations import OPERATIONS, REASONS, REQUIRED, Role, check
from bridge.protocol.terrain import GridSender
from bridge.publish.commands import _answer, _refusal
from hilnode.core.signals import Signal
from hilnode.shared.codes import Event
from hilnode.shared.ecu_link import EcuLinkReport
from hilnode.shared.events import Happening
from hilnode.shared.health import Report
from hilnode.shared.row import Schema

PAGE = TOP / "docs" / "wire-protocol.md"
TOPICS = (
    "state", "raw", "timing", "schema", "driver", "event", "ecu", "scene", "bridge", "terrain", "arrows", "props",
)  # fmt: skip
HEADER = (1000, 1000, 1_000_000_000, 1_000_025_000, 1_000_026_000, 1_000_027_500, 1_000_029_000, 1_000_010, 32, 2, 0, 0)
CART = {"body": "cart", "kind": "box", "size": [1.0, 0.5, 0.25], "p": [0.0, 0.0, 0.125], "q": [1.0, 0.0, 0.0, 0.0],
        "colour": [0.5, 0.5, 0.5]}  # fmt: skip
REQUESTS = {"done": 3, **dict.fromkeys(REASONS, 0), "malformed": 1}
COUNTED = {"lost": 0, "overflows": 1, "commands": REQUESTS, "losses": {"anna:1f2e": 12}}
VALUES = (1.5, 0.25, 0.125, 2.5, 0.125, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)  # input, its age, output, command, pose
ROW = struct.pack("<12q11d", *HEADER, *VALUES)


def vector(topic: str) -> bytes:
    (text,) = (b.text for b in blocks_of(PAGE) if b.info == f"hex {topic}")
    return bytes.fromhex(text)


def meaning(topic: str) -> dict[str, Any]:
    (text,) = (b.text for b in blocks_of(PAGE) if b.info == f"json {topic}")
    return json.loads(text)


def shown(topic: str) -> dict[str, Any]:
    """What stands beside the row: a grid of 3 x 2 samples that has changed once, one arrow, one prop."""
    if topic == "arrows":
        at, force = np.array([1.0, 2.0, 0.5], "<f4"), np.array([0.0, 0.0, 1500.0], "<f4")
        return {"count": 1, "at": at.tobytes(), "force": force.tobytes()}
    if topic == "props":
        return {"props": {"stone": {"p": [1.0, 2.0, 0.25], "q": [1.0, 0.0, 0.0, 0.0]}}}
    sender = GridSender({"name": "ground", "nx": 3, "ny": 2, "tile": 2})
    heights = np.array([[0.0, 0.1], [0.2, 0.3], [-0.1, 1.5]])
    whole = [sender.change(i, 0, heights[2 * i : 2 * i + 2]) for i in (0, 1)]
    changed = sender.change(0, 0, heights[:2] - [[0.0, 0.0], [0.0123, 0.0]])
    return {"grid": "ground", "coder": 7, "tiles": [whole[1], changed]}


def packed(topic: str) -> list[bytes]:
    """The message of the page, as the publisher would send it first."""
    schema = Schema(
        dt_ns=1_000_000,
        inputs=(Signal("cart.force", "N", low=-100.0, high=100.0),),
        outputs=(Signal("cart.position", "m"),),
        commands=(Signal("valve.ao0", "V", low=-10.0, high=10.0),),
        bodies=("cart",),
    )
    row = np.frombuffer(ROW, "<i8")
    packer = Packer(schema, "bench", [CART])
    if topic == "timing":
        earlier = row.copy()
        earlier[3] -= 10_000  # woke 15 us late instead of 25
        return packer.timing(np.stack([earlier, row]), lost=0)
    if topic == "driver":
        periods = [[992.0, 990], [1120.0, 9]]
        valve = Report("valve", "udp", "up", False, 0, 1000, 2, 1, 0, 0.0005, 1000.0, 1125.0, periods, "not open")
        return packer.drivers(row[3] * 1e-9, 1000, [valve])
    if topic == "event":
        return packer.event(Happening(1000, 1_000_025_000, Event.STALE, 0, 0.25, 0, "cart.force is stale").as_dict())
    if topic == "ecu":
        report = EcuLinkReport(True, 0.0005, 41, 40, 2, 0, 1000, 0, 1, 0, 11.5, 90.0, 250.0, 900.0)
        return packer.pack("ecu", row[3] * 1e-9, 1000, {"ecus": {"valve": report.as_dict()}})
    if topic == "bridge":
        return packer.pack("bridge", row[3] * 1e-9, 1000, COUNTED)
    if topic in ("schema", "scene"):
        return getattr(packer, topic)(row[3] * 1e-9, 1000)
    if topic in ("terrain", "arrows", "props"):
        return packer.pack(topic, row[3] * 1e-9, 1000, shown(topic))
    return packer.raw(row) if topic == "raw" else packer.state(row)


@pytest.mark.parametrize("topic", TOPICS)
def test_the_publisher_still_sends_these_bytes(topic: str) -> None:
    assert packed(topic) == [topic.encode(), vector(topic)]


@pytest.mark.parametrize("topic", TOPICS)
def test_the_bytes_mean_what_the_page_says(topic: str) -> None:
    decoded = msgpack.unpackb(vector(topic))
    if topic == "raw":
        assert decoded["row"] == ROW
        decoded["row"] = f"{len(ROW)} bytes"
    for form, of in (("<f4", [decoded] if topic == "arrows" else []), ("<i4", decoded.get("tiles", []))):
        for table in of:  # binary fields as the numbers that they hold
            narrow = "<i2" if table.get("delta") else form
            table |= {k: np.frombuffer(v, narrow).tolist() for k, v in table.items() if isinstance(v, bytes)}
    assert decoded == meaning(topic)


def test_state_tells_the_row_in_words() -> None:
    said = meaning("state")
    assert said["timestamp"] == pytest.approx(1.000025, abs=1e-12)
    assert (said["t"], said["step"], said["state"], said["flags"]) == (1.0, 1000, "running", 32)
    assert (said["wake_us"], said["step_us"], said["own_us"], said["period_us"]) == (25.0, 1.5, 2.5, 1000.01)
    assert said["signals"] == {"cart.force": 1.5, "cart.position": 0.125, "valve.ao0": 2.5}
    assert said["bodies"] == {"cart": {"p": [0.125, 0.0, 0.0], "q": [1.0, 0.0, 0.0, 0.0]}}


def test_timing_is_that_of_two_ticks() -> None:
    said = meaning("timing")
    assert said["rows"] == 2
    assert said["wake_us"] == {"p50": 20.0, "p99": pytest.approx(24.9), "max": 25.0}


def test_schema_describes_the_raw_vector() -> None:
    layout, raw = meaning("schema")["layout"], msgpack.unpackb(vector("raw"))
    assert raw["schema"] == meaning("schema")["schema"]
    assert len(raw["row"]) == 8 * layout["words"]
    at = layout["offsets"]
    found = [VALUES[at[part] - 12] for part in ("inputs", "ages", "outputs", "commands", "poses")]
    assert found == [1.5, 0.25, 0.125, 2.5, 0.125]


@pytest.mark.parametrize("topic", TOPICS)
def test_every_field_is_explained(topic: str) -> None:
    page = PAGE.read_text("utf-8")

    def fields(value: Any) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(fields, value))
        if not isinstance(value, dict):
            return set()
        named = value.keys() - {
            "cart",
            "cart.force",
            "cart.position",
            "valve",
            "valve.ao0",
            "anna:1f2e",
            "stone",
        }  # names of things, not of fields
        return named.union(*map(fields, value.values()))

    unexplained = {f for f in fields(msgpack.unpackb(vector(topic))) if f"`{f}`" not in page}
    assert not unexplained


def test_the_page_lists_every_operation_with_its_role_and_fields() -> None:
    text = PAGE.read_text("utf-8")
    for o in OPERATIONS.values():
        fields = ", ".join(f"`{key}`" + ("" if f.default is REQUIRED else "?") for key, f in o.fields.items())
        assert f"| `{o.name}` | {o.role.name.lower()} | {fields} | {o.doc} |" in text


def test_the_request_is_taken_and_answered_as_the_page_says() -> None:
    assert msgpack.unpackb(vector("request")) == meaning("request")
    operation, fields = check(meaning("request"))
    assert (operation.name, operation.role, fields) == ("force", Role.OPERATE, {"name": "cart.force", "value": 1.5})
    assert vector("answer") == _answer(7, {"answer": 1000})
    assert vector("refusal") == _refusal(8, "refused", "no signal 'cart.fork': did you mean 'cart.force'")
    for each in ("answer", "refusal"):
        assert msgpack.unpackb(vector(each)) == meaning(each)
