"""JSON to and from pages: NaN and infinity are never sent; received text must be an object, or is refused."""

from __future__ import annotations

import json
import math
from typing import Any

from bridge.protocol.operations import Refused


def as_json(message: dict[str, Any]) -> str:
    """Compact JSON; a number that JSON has not got becomes null."""
    try:
        return json.dumps(message, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_plain(message), separators=(",", ":"), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def from_json(text: str) -> dict[str, Any]:
    """The object in a message of a page; Refused if there is none."""
    try:
        message = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused("malformed", f"not JSON: {type(error).__name__}") from error
    if not isinstance(message, dict):
        raise Refused("malformed", "a message is an object")
    return message


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")
