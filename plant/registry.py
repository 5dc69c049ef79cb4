"""The registry of plants: from a name in a config to a function `create(dt, *, options...) -> Plant`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from hilnode.core.registry import KindError, Kinds
from hilnode.core.signals import nearest
from plant.abi import Plant

KINDS = Kinds(
    "plant",
    "hilnode.plants",
    {
        "crane_arm": "plant.machines.crane_arm:create",
        "double_pendulum": "plant.machines.double_pendulum:create",
        "excavator": "plant.machines.excavator.plant:create",
    },
)


def create(kind: str, dt: float, options: Mapping[str, Any] | None = None) -> Plant:
    """Make the plant `kind` for steps of `dt` seconds with its own options."""
    maker = KINDS.load(kind)
    options = dict(options or {})
    try:
        allowed = [n for n, p in inspect.signature(maker).parameters.items() if p.kind is p.KEYWORD_ONLY]
    except (TypeError, ValueError) as error:
        raise KindError(f"plant kind {kind!r} is not a function create(dt, *, options...): {error}") from error
    for name in options:
        if name not in allowed:
            raise KindError(f"plant.options.{name} is no option of {kind!r}: {nearest(name, allowed)}")
    try:
        made = maker(dt, **options)
    except (TypeError, ValueError) as error:
        raise KindError(f"plant {kind!r} refuses its options {options}: {error}") from error
    if not isinstance(made, Plant):
        raise KindError(f"plant {kind!r} made a {type(made).__name__} instead of a plant.abi.Plant")
    return made
