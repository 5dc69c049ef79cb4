"""Messages that are almost right: bytes cut, turned or added, and maps whose parts are not what they should be.

A mutation of bytes alone seldom gets past the decoder; one of the structure always does. `decoded` reads a message with
msgpack's pure Python implementation, which shares no code with the compiled one that the node uses.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgpack
from msgpack.fallback import Unpacker


def _depth(rng: random.Random) -> int:
    """How deep: most not very, some beyond what msgpack takes (1024)."""
    return int(1500 ** rng.random())


STRANGE: tuple[Callable[[random.Random], bytes], ...] = (
    lambda rng: b"\x91" * _depth(rng) + b"\x01",  # lists in one another, also beyond what msgpack takes
    lambda rng: b"\x81\xa1k" * _depth(rng) + b"\x01",  # maps in one another
    lambda rng: b"\x92" * rng.randrange(1, 20) + b"\x01",  # lists that end too early
    lambda rng: msgpack.packb(rng.choice([0, 1, -1, 2**31, 2**53, 2**63, 2**64 - 1, -(2**63)])),
    lambda rng: msgpack.packb(rng.choice([0.0, -0.0, 1.0, 1e308, 5e-324, float("inf"), float("nan")])),
    lambda rng: msgpack.packb(rng.choice([None, True, False, "", b"", [], {}, b"\x00" * 100])),
    lambda rng: msgpack.packb("x" * rng.choice([1, 64, 65, 200, 201, 5000])),
    lambda rng: msgpack.packb(msgpack.ExtType(rng.randrange(128), rng.randbytes(4))),
    lambda rng: msgpack.packb(msgpack.Timestamp(rng.randrange(2**32), 0)),
    lambda rng: msgpack.packb({rng.choice(["a.b", "signal", "kind", "value"]): rng.choice([1.0, "x", True, None])}),
    lambda rng: b"\xa3" + rng.randbytes(3),  # text that may be none
)


def packed_pairs(pairs: Sequence[tuple[str, bytes]]) -> bytes:
    """A map from keys and values that are packed already; a key may come twice."""
    head = msgpack.Packer().pack_map_header(len(pairs))
    return head + b"".join(msgpack.packb(key) + value for key, value in pairs)


def mutated(message: Mapping[str, Any], rng: random.Random) -> bytes:
    """The message with something wrong, or, by chance, nothing."""
    style = rng.randrange(7)
    if style >= 4:
        return _restructured(message, rng)
    body = bytearray(msgpack.packb(dict(message)))
    if style == 0:
        return rng.randbytes(rng.randrange(80))
    if style == 1:
        del body[rng.randrange(len(body)) :]
    elif style == 2:
        body += rng.randbytes(rng.randrange(1, 8))
    else:
        for _ in range(rng.randrange(1, 6)):
            body[rng.randrange(len(body))] = rng.randrange(256)
    return bytes(body)


def _restructured(message: Mapping[str, Any], rng: random.Random) -> bytes:
    pairs = [(key, msgpack.packb(value)) for key, value in message.items()]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        at, strange = rng.randrange(len(pairs)), rng.choice(STRANGE)(rng)
        act = rng.randrange(5)
        if act <= 1:
            pairs[at] = (pairs[at][0], strange)
        elif act == 2 and len(pairs) > 1:
            del pairs[at]
        elif act == 3:
            pairs.insert(at, (rng.choice(["node", "verb", "pad", "", "k" * 300, pairs[at][0]]), strange))
        else:
            rng.shuffle(pairs)
    return packed_pairs(pairs)


class _Map(list[Any]):
    """Pairs of a key and a value, as they came."""


def decoded(body: bytes) -> Any:
    """What the bytes say, or an Exception if they are no message: also one in which a key comes twice."""
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 10_000))  # it goes one call deeper for each list in a list
    reader = Unpacker(strict_map_key=True, object_pairs_hook=_Map, max_buffer_size=len(body) or 1)
    reader.feed(body)
    try:
        message = _plain(reader.unpack())
        return message if reader.tell() == len(body) else ValueError("more than a message")
    except Exception as error:
        return error


def _plain(value: Any) -> Any:
    if isinstance(value, _Map):
        if len({key for key, _ in value}) < len(value):
            raise ValueError("a key comes twice")
        return {key: _plain(x) for key, x in value}
    return [_plain(x) for x in value] if type(value) is list else value


def depth(value: Any) -> int:
    """Maps and lists in one another."""
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max((depth(x) for x in (value.values() if isinstance(value, dict) else value)), default=0)
