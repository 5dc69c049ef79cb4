"""The node: starts the tick, its drivers and its helper processes, and stops them."""

from typing import TYPE_CHECKING

from hilnode.core.lazy import lazy_names

if TYPE_CHECKING:
    from hilnode.node.node import Node as Node

else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "hilnode.node.node": "Node",
        },
    )
