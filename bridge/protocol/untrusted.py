"""Decoding of untrusted bytes: one MessagePack map, bounded in size and depth, and safe excerpts for messages.

Whatever an unknown peer sent is never turned into text as it is: a thousand lists in one another would overflow the
stack of whoever prints them, and a long name would fill the log.
"""

from __future__ import annotations

from typing import Any

import msgpack

from bridge.protocol.operations import LONGEST_TEXT, Refused

DEEPEST = 8  # maps and lists in one another; a session has three
SHOWN = 60  # [characters] of a foreign text in a sentence


def unpack_map(body: bytes | memoryview, largest: int) -> dict[str, Any]:
    """The map in a message of at most `largest` bytes; `Refused` says what is wrong with it."""
    if len(body) > largest:
        raise Refused("oversized", f"a message has at most {largest} bytes, this one {len(body)}")
    try:
        message = msgpack.unpackb(body, strict_map_key=True, object_pairs_hook=_once_each)
    except (ValueError, RecursionError) as error:  # all that msgpack raises at bytes that it does not like
        raise Refused("malformed", f"not MessagePack: {type(error).__name__}") from error
    if not isinstance(message, dict):
        raise Refused("malformed", "a message is a map")
    if not all(isinstance(key, str) and len(key) <= LONGEST_TEXT for key in message):
        raise Refused("malformed", f"the keys of a message are text of up to {LONGEST_TEXT} characters")
    if not _is_shallow(message):
        raise Refused("malformed", f"a message has at most {DEEPEST} maps and lists in one another")
    return message


def _once_each(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """A map; one that has a key twice says two things at once, and who reads it next might believe the other."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key comes twice")
    return made


def _is_shallow(message: dict[str, Any]) -> bool:
    """Whether it ends within DEEPEST levels; looks at one level after the other, so that depth costs no stack."""
    level: list[Any] = [message]
    for _ in range(DEEPEST):
        inside = (x for held in level for x in (held.values() if type(held) is dict else held))
        level = [x for x in inside if type(x) is dict or type(x) is list]
        if not level:
            return True
    return False


def shown(value: Any) -> str:
    """A foreign value in a sentence: short text and numbers as they are, of anything else only what it is."""
    if isinstance(value, str):
        return repr(value if len(value) <= SHOWN else value[:SHOWN] + "...")
    return repr(value) if value is None or isinstance(value, (bool, int, float)) else f"a {type(value).__name__}"
