"""Everything that leaves the PC: wire format, publisher, commands, recorder, viewer.

`from bridge import Node` is a client of a running node.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bridge.client import Node as Node
    from bridge.link import NodeError as NodeError

__all__ = ["Node", "NodeError"]


def __getattr__(name: str) -> Any:
    """Imported when asked for: the publisher's process needs no client."""
    if name == "Node":
        from bridge.client import Node

        return Node
    if name == "NodeError":
        from bridge.link import NodeError

        return NodeError
    raise AttributeError(f"module 'bridge' has no attribute {name!r}")
