"""`state` as PlotJuggler reads it.

Its ZeroMQ plugin hands every *frame* to the chosen parser, the topic too, and drops what the parser throws at. The
MessagePack parser takes the whole frame as one value, takes the time from a field that must be a number at the top, and
flattens the rest: maps by name, lists by number. A series is what its first value was, number or text; a value of the
other sort is lost. Numbers that come as integers now and as floats then are read by other paths in other tools, so here
they never change.

The flattening is done here by msgpack itself and the rules above, after DataStreamZMQ and nlohmann_parsers of
PlotJuggler 3; and, where it is installed, by the library that PlotJuggler reads MessagePack with.
"""

import itertools
import math
import os
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from bridge.protocol.messages import Packer
from hilnode.core.signals import Signal
from hilnode.shared.row import HEADER, Schema, State

SCHEMA = Schema(1_000_000, (Signal("m.a"), Signal("m.b")), (Signal("m.y"),), (Signal("d.u"),), ("m.one", "m.two"))
PLAIN = (0.0, 1.0, -3.0, 0.5, 1e300, math.inf, -math.inf, math.nan, 2**53, 255.0)


def frames(k: int) -> list[bytes]:
    """Rows that tempt a packer: whole numbers, infinities, flags, every state, large counts."""
    row = np.zeros(SCHEMA.words, np.int64)
    values = row.view(np.float64)
    values[HEADER:] = [PLAIN[(k + i) % len(PLAIN)] for i in range(SCHEMA.words - HEADER)]
    row[0], row[1], row[2], row[3] = 127 + k * 2**33, k * 2**17, k * 10**9, k * 10**9 + (k % 2)
    row[8], row[9], row[10] = k % 1024, k % len(State), k % 3
    return PACKER.state(row)


PACKER = Packer(SCHEMA, "bench")
MANY = [frames(k) for k in range(64)]


def flat(prefix: str, value: Any) -> list[tuple[str, type]]:
    """Series and the sort of their value: bool counts as a number, as it does there."""
    if isinstance(value, dict):
        return [x for key, v in value.items() for x in flat(f"{prefix}/{key}", v)]
    if isinstance(value, list):
        return [x for i, v in enumerate(value) for x in flat(f"{prefix}[{i}]", v)]
    return [(prefix, type(value))]


def test_a_topic_frame_is_no_message():
    """Read as MessagePack it has bytes left over: the parser throws, the frame is dropped."""
    for topic in (b"state", b"raw", b"timing", b"event", b"driver", b"scene", b"schema", b"bridge", b"ecu"):
        with pytest.raises(msgpack.ExtraData):
            msgpack.unpackb(topic)


def test_a_message_is_a_map_that_says_so_in_its_first_byte():
    for _, body in MANY:
        assert body[0] == 0xDE
        assert struct.unpack(">H", body[1:3])[0] >= 16
        assert isinstance(msgpack.unpackb(body, strict_map_key=True), dict)


def test_the_time_is_a_float_at_the_top():
    for _, body in MANY:
        at = body.index(b"\xa9timestamp") + 10
        assert body[at] == 0xCB
        assert type(msgpack.unpackb(body)["timestamp"]) is float


def test_no_series_changes_its_sort():
    first = dict(flat("", msgpack.unpackb(MANY[0][1])))
    for _, body in MANY:
        assert dict(flat("", msgpack.unpackb(body))) == first


def test_all_that_is_physical_is_a_float():
    series = dict(flat("", msgpack.unpackb(MANY[0][1])))
    physical = [s for s in series if s.startswith(("/signals/", "/bodies/"))]
    assert len(physical) == len(SCHEMA.signals) + 7 * len(SCHEMA.bodies)
    named = ["/t", "/timestamp", "/wake_us", "/step_us", "/own_us", "/period_us"]
    assert {series[s] for s in [*physical, *named]} == {float}


def test_names_do_not_meet():
    """A dot in a signal's name is no branch: the series are as many as the values."""
    series = flat("", msgpack.unpackb(MANY[0][1]))
    assert len({name for name, _ in series}) == len(series)
    assert all(a != b for a, b in itertools.pairwise(sorted(name for name, _ in series)))


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Callable[[list[bytes]], list[dict[str, str]]]:
    """PlotJuggler's own decoder, nlohmann::json: series to sort and value of each frame, nothing of one it refuses."""
    include = os.environ.get("NLOHMANN_INCLUDE", "/usr/include")
    if not shutil.which("g++") or not (Path(include) / "nlohmann" / "json.hpp").exists():
        pytest.skip("needs g++ and nlohmann/json.hpp: apt install g++ nlohmann-json3-dev")
    program = tmp_path_factory.mktemp("reader") / "reader"
    source = Path(__file__).with_name("plotjuggler_reader.cpp")
    subprocess.run(["g++", "-std=c++17", "-O0", f"-I{include}", str(source), "-o", str(program)], check=True)

    def read(bodies: list[bytes]) -> list[dict[str, str]]:
        lines = "".join(body.hex() + "\n" for body in bodies)
        said = subprocess.run([str(program)], input=lines, capture_output=True, text=True, check=True).stdout
        parts = said.removesuffix("\n\n").split("\n\n")
        return [dict(line.split(" ", 1) for line in part.splitlines() if line != "refused") for part in parts]

    return read


def as_told(value: Any) -> str:
    """A value that is no float as the reader prints it."""
    return f"{type(value).__name__} {int(value) if isinstance(value, (bool, int)) else value}"


def test_its_own_decoder_reads_the_same_numbers(reader):
    def values(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(value, dict):
            for key, part in value.items():
                yield from values(f"{prefix}/{key}", part)
        elif isinstance(value, list):
            for number, part in enumerate(value):
                yield from values(f"{prefix}[{number}]", part)
        else:
            yield prefix, value

    for read, (_, body) in zip(reader([body for _, body in MANY]), MANY, strict=True):
        wanted = dict(values("", msgpack.unpackb(body)))
        assert read.keys() == wanted.keys()
        for name, value in wanted.items():
            sort, _, text = read[name].partition(" ")
            if isinstance(value, float):
                number = float.fromhex(text)
                assert sort == "float"
                assert number == value or (math.isnan(number) and math.isnan(value)), name
            else:
                assert read[name] == as_told(value), name


def test_its_own_decoder_drops_the_topic_frame(reader):
    topics = [b"state", b"raw", b"timing", b"event", b"driver", b"scene", b"schema", b"bridge", b"ecu"]
    assert reader(topics) == [{}] * len(topics)
